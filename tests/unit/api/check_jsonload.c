/*
 * Bodies that are read while one allocation fails, each in turn.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "../../../api/message/jsonload.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

enum { LONGEST = 130, MANY = 1000 };

static void set_up(void)
{
    jsonload_init();
}

SUITE(jsonload, .set_up = set_up);

/* One allocation fails after the other, until none is left. */
static void read_starved(const char *text)
{
    json_error_t error;
    json_t *root = NULL;
    for (int n = 1; root == NULL; n++) {
        ck_assert_int_lt(n, MANY);
        starve = (struct starve){.is_on = true, .left = n};
        root = jsonload(text, strlen(text), JSON_REJECT_DUPLICATES, &error);
        bool has_failed = starve.left == 0;
        starve.is_on = false;
        ck_assert_int_eq(root == NULL, has_failed);
        ck_assert_int_eq(jsonload_has_failed(), has_failed);
    }
    json_decref(root);
}

/* jansson goes on without a byte for which it has no room, be it the quote in
 * which a string ends. */
TEST_RANGE(strings_of_any_length_are_whole_or_not_read, 0, LONGEST)
{
    read_starved(textf("{\"resource\":\"%0*d\",\"n\":[1,true]}", _i + 1, 0));
}

TEST_RANGE(numbers_and_escapes_are_whole_or_not_read, 0, 40)
{
    const char *text = textf("{\"a\":\"%0*d\\u00e9\\n\\\"\",\"b\":%0*d1.5e1}",
                             _i + 1, 0, _i + 1, 0);
    memset(strchr(text, ':') + 2, '7', (size_t)_i + 1);
    memset(strrchr(text, ':') + 1, '7', (size_t)_i + 1);
    read_starved(text);
}

TEST(objects_of_many_members_are_whole_or_not_read)
{
    char text[2048] = "{";
    size_t len = 1;
    for (int i = 0; i < 40; i++)
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "\"member%d\":{\"a\":[%d]},", i, i);
    text[len - 1] = '}';
    read_starved(text);
}
