#include <stdio.h>

#include "../../../api/message/head.h"
#include "../../lib/suite/suite.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { FIELDS_MAX = 4 };

static const struct {
    const char *fields[FIELDS_MAX][2];
    bool is_http_1_0;
    bool is_good;
} heads[] = {
    {{{"Host", "x"}}, false, true},
    {{{"host", ""}}, false, true},
    {{{NULL}}, false, false},
    {{{NULL}}, true, true},
    {{{"Host", "x"}, {"HOST", "x"}}, false, false},
    {{{"Host", "x"}, {"Host", "y"}}, true, false},
    {{{"Host", "x"}, {"Content-Length", "2"}}, false, true},
    {{{"Host", "x"}, {"Content-Length", "2"}, {"content-length", "2"}},
     false,
     false},
    {{{"Host", "x"}, {"Transfer-Encoding", "Chunked"}}, false, true},
    {{{"Host", "x"}, {"Transfer-Encoding", "chunked"}}, true, false},
    {{{"Host", "x"}, {"Transfer-Encoding", "gzip"}}, false, false},
    {{{"Host", "x"}, {"Transfer-Encoding", "gzip, chunked"}}, false, false},
    {{{"Host", "x"}, {"Transfer-Encoding", ""}}, false, false},
    {{{"Host", "x"}, {"Transfer-Encoding", "chunked"}, {"Content-Length", "2"}},
     false,
     false},
    {{{"Host", "x"},
      {"Transfer-Encoding", "chunked"},
      {"Transfer-Encoding", "chunked"}},
     false,
     false},
    {{{"Host", "x"}, {"Content-Length ", "2"}}, false, false},
    {{{"Host", "x"}, {"A\tb", "2"}}, false, false},
    {{{"Host", "x"}, {"", "2"}}, false, false},
    {{{"Host", "x"}, {"X-Lock-Token", "a"}, {"X-Lock-Token", "a"}},
     false,
     false},
    {{{"Host", "x"}, {"Accept", "a"}, {"Accept", "b"}}, false, true},
    {{{"Host", "x y"}}, false, false},
    {{{"Host", "x,y"}}, false, false},
    {{{"Host", "x  "}}, false, true},
    {{{"Host", "x"}, {"X\x01y", "2"}}, false, false},
    {{{"Host", "x"}, {"X\x7fy", "2"}}, false, false},
    {{{"Host", "x"}, {"X(y", "2"}}, false, false},
    {{{"Host", "x"}, {"X", "a\x01"}}, false, false},
    {{{"Host", "x"}, {"X", "a\x7f"}}, false, false},
    {{{"Host", "x"}, {"X", "a\rb"}}, false, false},
    {{{"Host", "x"}, {"X", "a\tb \xc3\xa9"}}, false, true},
    {{{"Host", "x"}, {"Expect", "100-Continue"}}, false, true},
    {{{"Host", "x"}, {"Expect", "a cup of tea"}}, false, false},
    {{{"Host", "x"}, {"Content-Encoding", "identity"}}, false, true},
    {{{"Host", "x"}, {"Content-Encoding", "gzip"}}, false, true},
    {{{"Host", "x"}, {"Content-Length", "2"}, {"Content-Encoding", "gzip"}},
     false,
     false},
    {{{"Host", "x"}, {"X-Request-Id", "a"}, {"X-Request-Id", "b"}},
     false,
     true},
};

static struct head head;

static void set_up(void)
{
    head_init(&head, 0, 0);
}

static void add(const char *name, const char *value)
{
    head_add(&head, span_of(name), span_of(value));
}

SUITE(head, .set_up = set_up);

TEST_EACH(doubtful_framing_is_refused, heads)
{
    for (int i = 0; i < FIELDS_MAX && heads[_i].fields[i][0] != NULL; i++)
        add(heads[_i].fields[i][0], heads[_i].fields[i][1]);
    const char *reason = head_check(&head, heads[_i].is_http_1_0).reason;
    ck_assert_msg((reason == NULL) == heads[_i].is_good, "row %d: %s", _i,
                  reason);
}

static const char *const single[] = {
    "Host",         "Content-Length",   "Transfer-Encoding",
    "Content-Type", "Content-Encoding", "Expect",
    "X-Lock-Token", "Idempotency-Key",
};

TEST_EACH(a_field_that_occurs_twice_is_named, single)
{
    char expected[80];
    if (_i > 0)
        add("Host", "x");
    for (int i = 0; i < 2; i++)
        add(single[_i], "1");
    snprintf(expected, sizeof expected, "the header field %s occurs twice",
             single[_i]);
    ck_assert_str_eq(head_check(&head, false).reason, expected);
}

TEST(fields_are_picked_by_their_whole_name)
{
    add("Content-Typ", "short");
    add("Content-Types", "long");
    ck_assert_ptr_null(head.values[HEAD_CONTENT_TYPE].ptr);
    add("content-type", "text");
    ck_assert_str_eq(head.values[HEAD_CONTENT_TYPE].ptr, "text");
    /* not terminated by NUL */
    head_add(&head, (struct span){"X-Request-Idle", 12}, span_of("first"));
    add("X-Request-Id", "second");
    ck_assert_str_eq(head.values[HEAD_REQUEST_ID].ptr, "first");
}

/* Nobody can tell which of them is meant. */
TEST(a_trace_that_is_told_twice_is_none)
{
    add("Host", "x");
    add("TraceParent", "same");
    ck_assert_uint_eq(head.values[HEAD_TRACEPARENT].len, 4);
    for (int i = 0; i < 2; i++) {
        add("traceparent", "same");
        ck_assert_uint_eq(head.values[HEAD_TRACEPARENT].len, 0);
    }
    ck_assert_ptr_null(head_check(&head, false).reason);
}

TEST(content_length_is_read)
{
    ck_assert_int_eq(head_content_length(&head), -1);
    add("Content-Length", "16385");
    ck_assert_int_eq(head_content_length(&head), 16385);
    head_init(&head, 0, 0);
    add("Content-Length", "18446744073709551615");
    ck_assert_int_eq(head_content_length(&head), INT64_MAX);
}

TEST(blanks_behind_a_value_are_no_part_of_it)
{
    static const char blanks[] = "   ";
    add("X-Lock-Token", " a b \t ");
    ck_assert_uint_eq(head.values[HEAD_LOCK_TOKEN].len, 3);
    ck_assert_mem_eq(head.values[HEAD_LOCK_TOKEN].ptr, "a b", 3);
    add("X-Request-Id", " \t ");
    ck_assert_uint_eq(head.values[HEAD_REQUEST_ID].len, 0);
    head_init(&head, 0, 0);
    head_add(&head, span_of("X-Request-Id"), (struct span){blanks + 1, 0});
    ck_assert_uint_eq(head.values[HEAD_REQUEST_ID].len, 0);
}

TEST(a_head_has_a_price)
{
    static char cookie[HEAD_COST_MAX / 2];
    memset(cookie, 'c', sizeof cookie);
    head_init(&head, HEAD_COST_MAX - 1000, 0);
    add("Host", "x");
    ck_assert_ptr_null(head_check(&head, false).reason);
    for (int i = 0; i < 20; i++)
        head_add_argument(&head, span_of("a"), span_of("b"));
    ck_assert_int_eq(head_check(&head, false).code, PROBLEM_HEAD_TOO_LARGE);
    head_init(&head, sizeof cookie, 0);
    add("Host", "x");
    head_add(&head, span_of("Cookie"), (struct span){cookie, sizeof cookie});
    ck_assert_int_eq(head_check(&head, false).code, PROBLEM_HEAD_TOO_LARGE);
    for (int i = 0; i < 2; i++) { /* by its bytes it is small */
        memset(cookie, i == 0 ? 'c' : ';', 100);
        head_init(&head, 100, 0);
        add("Host", "x");
        head_add(&head, span_of("Cookie"), (struct span){cookie, 100});
        ck_assert_int_eq(head_check(&head, false).reason != NULL, i);
    }
}

/* So that a lock of many resources can be named beside the usual fields. */
TEST(the_path_of_a_lock_has_no_price)
{
    head_init(&head, HEAD_PATH_MAX + HEAD_COST_MAX, HEAD_PATH_MAX);
    ck_assert_uint_eq(head.cost, HEAD_COST_MAX);
    head_init(&head, HEAD_PATH_MAX + 500, HEAD_PATH_MAX + 400);
    ck_assert_uint_eq(head.cost, 500);
    head_init(&head, 0, 10); /* the library does not tell */
    ck_assert_uint_eq(head.cost, 0);
}

TEST(only_json_in_utf_8_is_json)
{
    static const char *const good[] = {
        "application/json",
        "Application/JSON",
        "application/json ;",
        "application/json;;",
        "application/json;; charset=utf-8",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "application/json; profile=x; charset=utf-8",
    };
    static const char *const bad[] = {
        "",
        "application/jsonx",
        "application/json garbage",
        "application/json, text/plain",
        "application/json; charset=latin1",
        "application/json; charset=",
        "application/json; charset",
        "application/json; =utf-8",
        "application/json;x",
        "application/json; charset=utf-8;x",
        "application/json; x; charset=utf-8",
        "application/json; a b=c",
        "text/json",
    };
    for (size_t i = 0; i < COUNT(good); i++)
        ck_assert_msg(head_is_json(span_of(good[i])), "%s", good[i]);
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_msg(!head_is_json(span_of(bad[i])), "%s", bad[i]);
    ck_assert(!head_is_json((struct span){NULL, 0}));
}

/* Lines as the library leaves them: it ends each with NULs. */
static const struct {
    const char *bytes;
    size_t names[2];
    bool is_good;
} received[] = {
    {"GET / HTTP/1.1\0\0Host: x\0\0Accept: y\0\0", {16, 25}, true},
    {"GET / HTTP/1.1\0Host: x\0\0Accept: y\0\0", {15, 24}, false},
    {"GET / HTTP/1.1\0\0Host: x\0Accept: y\0\0", {16, 24}, false},
    {"GET / HTTP/1.1\0\0Host: \0\0Accept: y\0\0", {16, 24}, true},
    {"GET / HTTP/1.1\0\0Host: \0Accept: y\0\0", {16, 23}, false},
};

TEST_EACH(a_line_that_ends_with_cr_or_lf_alone_is_refused, received)
{
    head.line_end = received[_i].bytes + 14;
    for (int i = 0; i < 2; i++) {
        const char *name = received[_i].bytes + received[_i].names[i];
        const char *value = strstr(name, ": ") + 2;
        head_add_line(&head, (struct span){name, (size_t)(value - 2 - name)},
                      span_of(value));
    }
    ck_assert_int_eq(head_check(&head, false).reason == NULL,
                     received[_i].is_good);
}

/* "X:", "5": libmicrohttpd 0.9 leaves an empty value, and the name "X5". */
TEST(a_name_that_was_copied_behind_its_value_is_refused)
{
    static const char bytes[] = "GET / HTTP/1.1\0\0X\0\0Host\0x\0\0X5";
    head.line_end = bytes + 14;
    head_add_line(&head, span_of(bytes + 28), span_of(bytes + 18));
    ck_assert_str_eq(head_check(&head, true).reason,
                     "a header field goes on in the next line; send it in one");
}

TEST(a_line_without_a_value_has_an_empty_one)
{
    static const char bytes[] = "GET / HTTP/1.1\0\0Host";
    head.line_end = bytes + 14;
    head_add_line(&head, span_of(bytes + 16), (struct span){NULL, 0});
    ck_assert_ptr_nonnull(head.values[HEAD_HOST].ptr);
    ck_assert_uint_eq(head.values[HEAD_HOST].len, 0);
    ck_assert_ptr_eq(head.line_end, bytes + 14);
}
