/* SPDX-License-Identifier: MIT */
/*
 * Log lines of both forms: whatever they are given, each is one line, whole,
 * and within its limit; one of JSON is read by a reader of JSON. And which of
 * them are written.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../server/base/log.h"
#include "../../lib/suite/suite.h"
#include "../said.h"

enum { LINE_LEN_MAX = 2048 };

static size_t line_len;

/* The line with these fields, as a text. */
static const char *write_line(enum log_format format,
                              const struct log_field *fields)
{
    log_set_format(format);
    log_write(LOG_INFO, "e", fields);
    const char *line = said();
    line_len = strlen(line);
    ck_assert_uint_le(line_len, LINE_LEN_MAX);
    ck_assert_ptr_eq(strchr(line, '\n'), line + line_len - 1);
    return line;
}

/* As a reader of JSON sees it; it has no name twice. */
static json_t *read_line(const struct log_field *fields)
{
    const char *line = write_line(LOG_JSON, fields);
    json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(json), "%s", line);
    return json;
}

static void set_up(void)
{
    said_begin();
    log_set_level(LOG_INFO);
    log_set_format(LOG_LOGFMT);
}

SUITE(log, .timeout_s = 30, .set_up = set_up, .tear_down = said_end);

/* ---- a line -------------------------------------------------------------- */

/* Of a line with one field. */
static void expect_field(enum log_format format, const char *value,
                         const char *shown)
{
    const struct log_field fields[] = {LOG_S("v", value), LOG_END};
    const char *line = write_line(format, fields);
    ck_assert_has(line, textf(format == LOG_JSON ? "\"event\":\"e\",\"v\":%s}\n"
                                                 : "event=e v=%s\n",
                              shown));
}

static const char *const values[][2] = {
    {"", ""},
    {"two words", "two words"},
    {"a=b", "a=b"},
    {"say \"hi\"", "say \\\"hi\\\""},
    {"back\\slash", "back\\\\slash"},
    {"\b\t\n\f\r/\x01\x1f\x7f", "\\b\\t\\n\\f\\r/\\u0001\\u001F\\u007F"},
    {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92"},
    /* what a terminal or an editor obeys */
    {"\xc2\x9b\xc2\x85", "\\u009B\\u0085"},
    /* NOLINTNEXTLINE(misc-misleading-bidirectional): no text to show */
    {"a\xe2\x80\xaez\xe2\x81\xa6", "a\\u202Ez\\u2066"},
    {"\xe2\x80\xa8\xd8\x9c", "\\u2028\\u061C"},
    /* each byte that is of no character becomes U+FFFD */
    {"a\xffz", "a\xef\xbf\xbdz"},
    {"\xc3", "\xef\xbf\xbd"},
    {"\xe2\x82.", "\xef\xbf\xbd\xef\xbf\xbd."},
    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xc0\xaf\"", "\xef\xbf\xbd\xef\xbf\xbd\\\""},
};

/* In logfmt, too: the quotes and escapes are those of JSON. */
TEST_EACH(texts_are_escaped, values)
{
    const char *quoted = textf("\"%s\"", values[_i][1]);
    expect_field(LOG_JSON, values[_i][0], quoted);
    expect_field(LOG_LOGFMT, values[_i][0], quoted);
}

static const char *const plain[] = {"plain:1/2", "gr\xc3\xbc\xc3\x9f"};

TEST_EACH(logfmt_needs_no_quotes_for_others, plain)
{
    expect_field(LOG_LOGFMT, plain[_i], plain[_i]);
}

/* What is repeated, and the most bytes that one takes. */
static const struct {
    const char *unit;
    int most;
} units[] = {{"x", 1},    {"\"", 2},           {"\x01", 6},
             {"\xff", 3}, {"\xe2\x82\xac", 3}, {"\xf0\x9f\x94\x92", 4}};

/* Wherever the limit falls. */
TEST_EACH(a_long_json_text_is_cut_between_characters, units)
{
    static char text[3 * LINE_LEN_MAX];
    size_t len = strlen(units[_i].unit);
    for (size_t pad = 0; pad < 8; pad++) {
        memset(text, 'p', pad);
        for (size_t at = pad; at + len < sizeof text; at += len)
            memcpy(text + at, units[_i].unit, len + 1);
        json_t *json = read_line((struct log_field[]){
            LOG_S("v", text), LOG_S("after", ""), LOG_N("n", 1), LOG_END});
        ck_assert_uint_gt(line_len, LINE_LEN_MAX - 16 - (size_t)units[_i].most);
        ck_assert_ptr_nonnull(json_object_get(json, "v"));
        json_decref(json);
    }
}

/* A later field that has room stands whole, whatever was left out before. */
TEST(fields_fill_a_line_to_any_length)
{
    static char text[LINE_LEN_MAX + 1];
    for (int format = LOG_LOGFMT; format <= LOG_JSON; format++)
        for (size_t len = LINE_LEN_MAX - 160; len < LINE_LEN_MAX; len++) {
            const struct log_field fields[] = {
                LOG_S("v", text), LOG_N("a_number", INT64_MAX),
                LOG_S("w", "a b"), LOG_S("u", "ab"), LOG_END};
            memset(text, 'x', len);
            text[len] = '\0';
            (void)write_line((enum log_format)format, fields);
            if (format == LOG_LOGFMT)
                continue;
            json_t *json = read_line(fields);
            const json_t *number = json_object_get(json, "a_number");
            ck_assert(number == NULL ||
                      json_integer_value(number) == INT64_MAX);
            json_decref(json);
        }
}

TEST(any_bytes_become_json)
{
    char text[4][60], *end;
    for (int round = 0; round < 20000; round++) {
        for (int i = 0; i < 4; i++) {
            size_t len = (size_t)(random() % 59);
            for (end = text[i]; len > 0; len--)
                *end++ = (char)(random() % 3 ? random() % 255 + 1
                                             : random() % 0x5d + 1);
            *end = '\0';
        }
        json_decref(read_line((struct log_field[]){
            LOG_S("a", text[0]), LOG_S("b", text[1]), LOG_N("c", random()),
            LOG_S("d", text[2]), LOG_S("e", text[3]), LOG_END}));
    }
}

/* ---- the log ------------------------------------------------------------- */

/* The line after its time stamp. */
static const char *read_rest(void)
{
    const char *line = said();
    int year, month, day, hour, minute, second, ms, at = 0;
    ck_assert_int_eq(sscanf(line, "ts=%4d-%2d-%2dT%2d:%2d:%2d.%3dZ %n", &year,
                            &month, &day, &hour, &minute, &second, &ms, &at),
                     7);
    ck_assert_int_gt(at, 0);
    return line + at;
}

TEST(a_line_has_its_fields)
{
    log_write(LOG_INFO, "node_up", NULL);
    ck_assert_str_eq(read_rest(), "level=info event=node_up\n");
    log_write(LOG_WARN, "x",
              (struct log_field[]){LOG_S("node", "a:1"), LOG_N("m", INT64_MAX),
                                   LOG_END});
    ck_assert_str_eq(read_rest(),
                     "level=warn event=x node=a:1 m=9223372036854775807\n");
}

TEST(levels_are_obeyed)
{
    log_write(LOG_DEBUG, "e", NULL);
    ck_assert_str_eq(said(), "");
    ck_assert(!log_is_enabled(LOG_DEBUG));
    log_set_level(LOG_DEBUG);
    log_write(LOG_DEBUG, "e", NULL);
    ck_assert_str_eq(read_rest(), "level=debug event=e\n");
    log_set_level(LOG_OFF);
    log_write(LOG_ERROR, "e", NULL);
    ck_assert_str_eq(said(), "");
    ck_assert(!log_is_enabled(LOG_OFF));
}

TEST(lines_may_be_json)
{
    const char *line = write_line(
        LOG_JSON, (struct log_field[]){LOG_S("node", "a b"),
                                       LOG_N("n", INT64_MIN), LOG_END});
    ck_assert_int_eq(strncmp(line, "{\"ts\":\"2", 8), 0);
    ck_assert_str_eq(strstr(line, "Z\","),
                     "Z\",\"level\":\"info\",\"event\":\"e\","
                     "\"node\":\"a b\",\"n\":-9223372036854775808}\n");
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
    const char *line = read_rest();
    ck_assert_int_eq(strncmp(line, "level=info event=after lines_lost=1", 34),
                     0);
    log_write(LOG_INFO, "after", NULL);
    ck_assert_str_eq(read_rest(), "level=info event=after\n");
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
