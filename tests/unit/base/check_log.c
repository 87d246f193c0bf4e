#include <stdio.h>
#include <string.h>

#include "../../../server/base/log.h"
#include "../../lib/suite/suite.h"
#include "../said.h"

static void set_up(void)
{
    said_begin();
    log_set_level(LOG_INFO);
}

/* The line after its time stamp. */
static const char *read_line(void)
{
    const char *line = said();
    int year, month, day, hour, minute, second, ms, at = 0;
    ck_assert_int_eq(sscanf(line, "ts=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year,
                            &month, &day, &hour, &minute, &second, &ms, &at),
                     7);
    ck_assert_int_gt(at, 0);
    return line + at;
}

SUITE(log, .set_up = set_up, .tear_down = said_end);

TEST(a_line_has_its_fields)
{
    log_write(LOG_INFO, "node_up", NULL);
    ck_assert_str_eq(read_line(), "level=info event=node_up\n");
    log_write(LOG_WARN, "x",
              (struct log_field[]){LOG_S("node", "a:1"), LOG_N("n", -5),
                                   LOG_N("m", INT64_MAX), LOG_END});
    ck_assert_str_eq(read_line(), "level=warn event=x node=a:1 n=-5 "
                                  "m=9223372036854775807\n");
}

static const char *const values[][2] = {
    {"plain:1/2", "plain:1/2"},
    {"", "\"\""},
    {"two words", "\"two words\""},
    {"a=b", "\"a=b\""},
    {"say \"hi\"", "\"say \\\"hi\\\"\""},
    {"back\\slash", "\"back\\\\slash\""},
    {"line\nts=forged\r\t", "\"line\\nts=forged\\r\\t\""},
    {"\x01\x1b\x7f", "\"\\u0001\\u001B\\u007F\""},
    {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
};

TEST_EACH(values_are_escaped, values)
{
    char expected[200];
    snprintf(expected, sizeof expected, "level=error event=e v=%s\n",
             values[_i][1]);
    log_write(LOG_ERROR, "e",
              (struct log_field[]){LOG_S("v", values[_i][0]), LOG_END});
    ck_assert_str_eq(read_line(), expected);
}

TEST_RANGE(a_long_line_is_cut_and_still_whole, 0, 2)
{
    static char text[5000];
    memset(text, _i == 0 ? '"' : 'x', sizeof text - 1);
    log_write(
        LOG_INFO, "e",
        (struct log_field[]){LOG_S("v", text), LOG_N("after", 1), LOG_END});
    const char *line = said();
    size_t len = strlen(line);
    ck_assert_uint_le(len, 2048);
    ck_assert_uint_ge(len, 2000);
    ck_assert_ptr_eq(strchr(line, '\n'), line + len - 1);
    if (_i == 0)
        ck_assert_str_eq(line + len - 4, "\\\"\"\n");
}

TEST(levels_are_obeyed)
{
    log_write(LOG_DEBUG, "e", NULL);
    ck_assert_str_eq(said(), "");
    ck_assert(!log_is_enabled(LOG_DEBUG));
    log_set_level(LOG_DEBUG);
    log_write(LOG_DEBUG, "e", NULL);
    ck_assert_str_eq(read_line(), "level=debug event=e\n");
    log_set_level(LOG_OFF);
    log_write(LOG_ERROR, "e", NULL);
    ck_assert_str_eq(said(), "");
    ck_assert(!log_is_enabled(LOG_OFF));
}

TEST(lines_may_be_json)
{
    log_set_format(LOG_JSON);
    log_write(
        LOG_WARN, "x",
        (struct log_field[]){LOG_S("node", "a b"), LOG_N("n", -5), LOG_END});
    const char *line = said();
    ck_assert_int_eq(strncmp(line, "{\"ts\":\"2", 8), 0);
    ck_assert_str_eq(strstr(line, "Z\","),
                     "Z\",\"level\":\"warn\",\"event\":\"x\","
                     "\"node\":\"a b\",\"n\":-5}\n");
}

TEST(a_reader_that_stalls_costs_lines_and_no_time)
{
    static char text[1000];
    memset(text, 'x', sizeof text - 1);
    const struct log_field fields[] = {LOG_S("v", text), LOG_END};
    for (int i = 0; i < 200; i++) /* more than a pipe of 64 KiB holds */
        log_write(LOG_INFO, "e", fields);
    while (*said() != '\0')
        continue;
    log_write(LOG_INFO, "after", NULL);
    const char *line = read_line();
    ck_assert_int_eq(strncmp(line, "level=info event=after lines_lost=1", 34),
                     0);
    log_write(LOG_INFO, "after", NULL);
    ck_assert_str_eq(read_line(), "level=info event=after\n");
}

TEST(a_limit_lets_a_burst_through_and_counts_the_rest)
{
    struct log_limit limit = {.every_us = 1000, .burst = 3};
    int64_t now_us = 5000000;
    for (int i = 0; i < 3; i++)
        ck_assert(log_limit_take(&limit, now_us));
    for (int i = 0; i < 7; i++)
        ck_assert(!log_limit_take(&limit, now_us + 999));
    ck_assert(log_limit_take(&limit, now_us + 1000));
    ck_assert_int_eq(limit.dropped, 7);
    ck_assert(!log_limit_take(&limit, now_us + 1999));
    ck_assert_int_eq(limit.dropped, 1);
    ck_assert(log_limit_take(&limit, now_us + 2000));
    ck_assert_int_eq(limit.dropped, 1);
    now_us += 1000000000; /* never more than the burst */
    for (int i = 0; i < 3; i++) {
        ck_assert(log_limit_take(&limit, now_us));
        ck_assert_int_eq(limit.dropped, 0);
    }
    ck_assert(!log_limit_take(&limit, now_us));
}
