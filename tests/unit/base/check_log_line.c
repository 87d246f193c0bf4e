/*
 * Lines of both forms: whatever they are given, each is one line, whole, and
 * within its limit; one of JSON is read by a reader of JSON.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../server/base/log.h"
#include "../../lib/suite/suite.h"

static struct log_line line;

/* The line with these fields, as a text. */
static const char *write_line(enum log_format format,
                              const struct log_field *fields)
{
    static char text[LOG_LINE_MAX + 1];
    log_line_begin(&line, format);
    for (; fields->key != NULL; fields++)
        log_line_add(&line, fields);
    log_line_end(&line);
    ck_assert_uint_le(line.len, LOG_LINE_MAX);
    memcpy(text, line.text, line.len);
    text[line.len] = '\0';
    ck_assert_ptr_eq(strchr(text, '\n'), text + line.len - 1);
    return text;
}

/* As a reader of JSON sees it; it has no name twice. */
static json_t *read_line(const struct log_field *fields)
{
    json_t *json =
        json_loads(write_line(LOG_JSON, fields), JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(json_is_object(json), "%.*s", (int)line.len, line.text);
    return json;
}

SUITE(log_line, .timeout_s = 30);

TEST(both_forms_have_the_same_names)
{
    const struct log_field fields[] = {LOG_S("event", "node_up"),
                                       LOG_N("n", INT64_MIN),
                                       LOG_S("detail", "a b"), LOG_END};
    ck_assert_str_eq(write_line(LOG_LOGFMT, fields),
                     "event=node_up n=-9223372036854775808 detail=\"a b\"\n");
    ck_assert_str_eq(write_line(LOG_JSON, fields),
                     "{\"event\":\"node_up\",\"n\":-9223372036854775808,"
                     "\"detail\":\"a b\"}\n");
}

TEST(a_line_may_have_no_fields)
{
    ck_assert_str_eq(write_line(LOG_LOGFMT, &LOG_END), "\n");
    ck_assert_str_eq(write_line(LOG_JSON, &LOG_END), "{}\n");
}

static const char *const values[][2] = {
    {"", ""},
    {"say \"hi\" \\ a=b", "say \\\"hi\\\" \\\\ a=b"},
    {"\b\t\n\f\r/\x01\x1f\x7f", "\\b\\t\\n\\f\\r/\\u0001\\u001F\\u007F"},
    {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92",
     "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\x92"},
    /* what a terminal or an editor obeys */
    {"\xc2\x9b\xc2\x85", "\\u009B\\u0085"},
    {"a\xe2\x80\xaez\xe2\x81\xa6", "a\\u202Ez\\u2066"},
    {"\xe2\x80\xa8\xd8\x9c", "\\u2028\\u061C"},
    /* each byte that is of no character becomes U+FFFD */
    {"a\xffz", "a\xef\xbf\xbdz"},
    {"\xc3", "\xef\xbf\xbd"},
    {"\xe2\x82.", "\xef\xbf\xbd\xef\xbf\xbd."},
    {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    {"\xc0\xaf\"", "\xef\xbf\xbd\xef\xbf\xbd\\\""},
};

TEST_EACH(json_texts_are_escaped, values)
{
    char expected[200];
    (void)snprintf(expected, sizeof expected, "{\"v\":\"%s\"}\n",
                   values[_i][1]);
    ck_assert_str_eq(
        write_line(LOG_JSON,
                   (struct log_field[]){LOG_S("v", values[_i][0]), LOG_END}),
        expected);
}

/* None of them is plain: the quotes and the escapes are those of JSON. */
TEST_EACH(logfmt_texts_are_quoted, values)
{
    char expected[200];
    (void)snprintf(expected, sizeof expected, "v=\"%s\"\n", values[_i][1]);
    ck_assert_str_eq(
        write_line(LOG_LOGFMT,
                   (struct log_field[]){LOG_S("v", values[_i][0]), LOG_END}),
        expected);
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
    static char text[3 * LOG_LINE_MAX];
    size_t len = strlen(units[_i].unit);
    for (size_t pad = 0; pad < 8; pad++) {
        memset(text, 'p', pad);
        for (size_t at = pad; at + len < sizeof text; at += len)
            memcpy(text + at, units[_i].unit, len + 1);
        json_t *json = read_line((struct log_field[]){
            LOG_S("v", text), LOG_S("after", ""), LOG_N("n", 1), LOG_END});
        ck_assert_uint_gt(line.len, LOG_LINE_MAX - 16 - (size_t)units[_i].most);
        ck_assert_ptr_nonnull(json_object_get(json, "v"));
        json_decref(json);
    }
}

/* A later field that has room stands whole, whatever was left out before. */
TEST(fields_fill_a_line_to_any_length)
{
    static char text[LOG_LINE_MAX + 1];
    for (int format = LOG_LOGFMT; format <= LOG_JSON; format++)
        for (size_t len = LOG_LINE_MAX - 80; len < LOG_LINE_MAX; len++) {
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
