#include "tally.h"

#include <stdlib.h>
#include <string.h>

const char *tally_member(const json_t *line, const char *name)
{
    const char *text = json_string_value(json_object_get(line, name));
    return text != NULL ? text : "";
}

static void count(struct tally *tally, const json_t *line)
{
    const char *event = tally_member(line, "event");
    tally->lines++;
    tally->grants += strcmp(event, "grant") == 0;
    tally->releases += strcmp(event, "release") == 0;
    tally->undelivered += strcmp(event, "undelivered") == 0;
    tally->lost += (int)json_integer_value(json_object_get(line, "lost"));
}

void tally_text(struct tally *tally, char *text)
{
    for (char *end; (end = strchr(text, '\n')) != NULL; text = end + 1) {
        *end = '\0';
        json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        ck_assert_msg(json_is_object(line), "%s", text);
        count(tally, line);
        json_decref(line);
    }
    ck_assert_str_eq(text, "");
}

struct tally tally_file(const char *name)
{
    struct tally tally = {0};
    char *text = harness_read_file(name);
    tally_text(&tally, text);
    free(text);
    return tally;
}
