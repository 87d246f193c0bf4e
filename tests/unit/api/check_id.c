#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "../../../api/id.h"

Suite *check_id(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *resource, *id;
} pairs[] = {
    {"a", "a"},
    {"A.z_0-9:x", "A.z_0-9:x"},
    {"...", "..."},
    {"a.", "a."},
    {".a", ".a"},
    {".", "~Lg"},
    {"..", "~Li4"},
    {"a/b", "~YS9i"},
    {"a b", "~YSBi"},
    {"a ", "~YSA"},
    {"~a", "~fmE"},
    {"caf\xc3\xa9", "~Y2Fmw6k"},
    {"\xf0\x9f\x94\x92", "~8J-Ukg"},
    {"\xef\xbf\xbf?", "~77-_Pw"},
    {"redlockd", "redlockd"},
    {"Redlockd:x", "Redlockd:x"},
};

START_TEST(resource_and_id_name_each_other)
{
    struct span resource = span_of(pairs[_i].resource);
    char id[ID_MAX], back[RESOURCE_MAX];
    size_t len = id_encode(id, resource);

    ck_assert_uint_eq(len, strlen(pairs[_i].id));
    ck_assert_mem_eq(id, pairs[_i].id, len);
    ck_assert(id_decode((struct span){id, len}, back, &len));
    ck_assert_uint_eq(len, resource.len);
    ck_assert_mem_eq(back, resource.ptr, len);
}
END_TEST

static const char *const bad_ids[] = {
    "",
    "~",
    "~~",
    "~~YS9i",
    ".",
    "..",
    "a/b",
    "a b",
    "a+b",
    "a~b",
    "a%20b",
    "a\x01",
    "~YQ",
    "~YS9",
    "~YS9i=",
    "~YS9j!",
    "~Lh",
    "~AA",
    "~_w",
    "~YS9iAA",
    "~Y",
    "~YS9iY",
    "~wK8",
    "redlockd:x",
    "a:redlockd:x",
    "~cmVkbG9ja2Q6IA",
    "~YS9yZWRsb2NrZDo",    /* a/redlockd: */
    "~YWIvcmVkbG9ja2Q6eA", /* ab/redlockd:x */
    "caf\xc3\xa9",
    "~7aCA",
    "~YS9i\n",
};

START_TEST(other_spellings_are_refused)
{
    char resource[RESOURCE_MAX];
    size_t len;

    ck_assert_msg(!id_decode(span_of(bad_ids[_i]), resource, &len), "%s",
                  bad_ids[_i]);
}
END_TEST

static const struct {
    const char *resource;
    bool is_good;
} resources[] = {
    {"x", true},
    {"", false},
    {"a\nb", false},
    {"a\x1f", false},
    {"a\x7f", false},
    {" ", true},
    {"\xc2\x80", true}, /* C1 controls are characters */
    {"redlockd:", false},
    {"redlockd:x", false},
    {"a:redlockd:", false},
    {"redlockredlockd:x", false},
    {"\xc3\xa9redlockd:state", false},
    {"redlockd", true},
    {"redlockd;:", true},
    {"a:redlockd", true},
    {"Redlockd:", true},
    {"\x80", false},
    {"\xc0\xaf", false}, /* overlong */
    {"\xc1\xbf", false},
    {"\xe0\x9f\xbf", false},
    {"\xe0\xa0\x80", true},
    {"\xf0\x8f\xbf\xbf", false},
    {"\xf0\x90\x80\x80", true},
    {"\xed\x9f\xbf", true},
    {"\xed\xa0\x80", false}, /* a surrogate */
    {"\xee\x80\x80", true},
    {"\xf4\x8f\xbf\xbf", true}, /* U+10FFFF */
    {"\xf4\x90\x80\x80", false},
    {"\xf5\x80\x80\x80", false},
    {"\xff", false},
    {"a\xc3", false}, /* cut */
    {"\xe2\x82", false},
    {"\xf0\x9f\x94", false},
    {"\xe2\x28\xa1", false},
    {"\xf0\x9f\x28\x92", false},
};

START_TEST(resource_is_checked)
{
    const char *reason = id_check_resource(span_of(resources[_i].resource));

    ck_assert_msg((reason == NULL) == resources[_i].is_good, "row %d: %s", _i,
                  reason);
}
END_TEST

START_TEST(resource_may_have_255_characters)
{
    char text[256 * 4];
    char id[ID_MAX], back[RESOURCE_MAX];
    size_t len;

    for (int i = 0; i < 256; i++)
        /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): no string */
        memcpy(text + 4 * i, "\xf0\x9f\x94\x92", 4);
    struct span longest = {text, RESOURCE_MAX};
    ck_assert_ptr_null(id_check_resource(longest));
    ck_assert_ptr_nonnull(id_check_resource((struct span){text, 1024}));
    len = id_encode(id, longest);
    ck_assert_uint_eq(len, ID_MAX);
    ck_assert(id_decode((struct span){id, len}, back, &len));
    ck_assert_uint_eq(len, RESOURCE_MAX);
    memset(text, 'x', 256);
    ck_assert_ptr_null(id_check_resource((struct span){text, 255}));
    ck_assert_ptr_nonnull(id_check_resource((struct span){text, 256}));
    ck_assert(!id_decode((struct span){text, 256}, back, &len));
    memset(text, 'x', sizeof text);
    ck_assert(!id_decode((struct span){text, sizeof text}, back, &len));
}
END_TEST

/* An id far longer than any must not be decoded past the buffer. */
START_TEST(overlong_id_is_refused)
{
    char *id = malloc(20000);
    char resource[RESOURCE_MAX];
    size_t len;

    ck_assert_ptr_nonnull(id);
    memset(id, 'A', 20000);
    id[0] = '~';
    for (size_t at = ID_MAX; at <= 20000; at += 17)
        ck_assert(!id_decode((struct span){id, at}, resource, &len));
    free(id);
}
END_TEST

Suite *check_id(void)
{
    Suite *suite = suite_create("id");
    TCase *tc = tcase_create("id");
    tcase_add_loop_test(tc, resource_and_id_name_each_other, 0, COUNT(pairs));
    tcase_add_loop_test(tc, other_spellings_are_refused, 0, COUNT(bad_ids));
    tcase_add_loop_test(tc, resource_is_checked, 0, COUNT(resources));
    tcase_add_test(tc, resource_may_have_255_characters);
    tcase_add_test(tc, overlong_id_is_refused);
    suite_add_tcase(suite, tc);
    return suite;
}
