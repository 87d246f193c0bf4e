/* SPDX-License-Identifier: MIT */
#include "../../../api/message/head.h"
#include "../../lib/suite/suite.h"
#include "fields.h"

/* More of it is in check_sentences.c. */
static const struct {
    const char *fields;
    bool is_http_1_0;
    bool is_good;
} heads[] = {
    {"Host: x", false, true},
    {"host: ", false, true},
    {"", true, true},
    {"Host: x\nHOST: x", false, false},
    {"Host: x\nHost: y", true, false},
    {"Host: x\nContent-Length: 2", false, true},
    {"Host: x\nContent-Length: 2\ncontent-length: 2", false, false},
    {"Host: x\nTransfer-Encoding: Chunked", false, true},
    {"Host: x\nTransfer-Encoding: chunked", true, false},
    {"Host: x\nTransfer-Encoding: gzip, chunked", false, false},
    {"Host: x\nTransfer-Encoding: ", false, false},
    {"Host: x\nTransfer-Encoding: chunked\nTransfer-Encoding: chunked", false,
     false},
    {"Host: x\nContent-Length : 2", false, false},
    {"Host: x\nA\tb: 2", false, false},
    {"Host: x\nX-Lock-Token: a\nX-Lock-Token: a", false, false},
    {"Host: x\nAccept: a\nAccept: b", false, true},
    {"Host: x,y", false, false},
    {"Host: x  ", false, true},
    {"Host: x\nX\x01y: 2", false, false},
    {"Host: x\nX\x7fy: 2", false, false},
    {"Host: x\nX(y: 2", false, false},
    {"Host: x\nX: a\x7f", false, false},
    {"Host: x\nX: a\rb", false, false},
    {"Host: x\nX: a\tb \xc3\xa9", false, true},
    {"Host: x\nExpect: 100-Continue", false, true},
    {"Host: x\nContent-Encoding: identity", false, true},
    {"Host: x\nContent-Encoding: gzip", false, true},
    {"Host: x\nX-Request-Id: a\nX-Request-Id: b", false, true},
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
    fields_add(&head, heads[_i].fields);
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
    if (_i > 0)
        add("Host", "x");
    for (int i = 0; i < 2; i++)
        add(single[_i], "1");
    ck_assert_has(head_check(&head, false).reason, single[_i]);
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
        head_add_parameter(&head, span_of("a"), span_of("b"));
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

/* Parameters have no meaning for JSON (RFC 8259 §11), and clients send many. */
TEST(the_media_type_alone_tells_that_it_is_json)
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
        "application/json; charset=utf8",
        "application/json; charset=latin1",
        "application/json; charset=ISO-8859-1",
        "application/json; charset=",
        "application/json; charset",
        "application/json; odata.metadata=minimal;IEEE754Compatible=true",
        "application/json;x",
        /* a proxy may join two lines */
        "application/json,application/json",
        "application/json, Application/JSON ,application/json; charset=utf-8",
        "application/json; charset=utf-8, application/json; charset=utf-8",
    };
    static const char *const bad[] = {
        "",
        "application/jsonx",
        "application/json garbage",
        "application/json, text/plain",
        "text/plain, application/json",
        "application/json,",
        ",application/json",
        "application/json,,application/json",
        "; application/json",
        "text/plain; application/json",
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
    ck_assert(head.has_fold);
    ck_assert_ptr_nonnull(head_check(&head, true).reason);
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

/* ---- who the client is behind proxies ------------------------------------ */

GROUP(forwarded, .set_up = set_up);

#define PROXIES "10.0.0.0/8,2001:db8::/32"

static const struct {
    const char *peer;
    const char *fields[3];
    const char *client; /* NULL: the peer */
} clients[] = {
    {"10.0.0.1:80", {NULL}, NULL},
    {"10.0.0.1:80", {""}, NULL},
    {"10.0.0.1:80", {"192.0.2.1"}, "192.0.2.1"},
    {"[2001:db8::1]:80", {"192.0.2.1"}, "192.0.2.1"},
    {"10.0.0.1:80", {"192.0.2.1:4711"}, "192.0.2.1"},
    {"10.0.0.1:80", {"[2001:db9::1]:4711"}, "2001:db9::1"},
    /* who is no proxy may write what it likes */
    {"192.0.2.7:80", {"192.0.2.1"}, NULL},
    {"", {"192.0.2.1"}, NULL},
    {"10.0.0.1:80", {"1.1.1.1, 192.0.2.1"}, "192.0.2.1"},
    {"10.0.0.1:80", {"1.1.1.1", "192.0.2.1"}, "192.0.2.1"},
    /* two proxies, in one field and in two */
    {"10.0.0.1:80", {"1.1.1.1,192.0.2.1 , 10.0.0.2"}, "192.0.2.1"},
    {"10.0.0.1:80", {"1.1.1.1", "192.0.2.1", "10.0.0.2"}, "192.0.2.1"},
    {"10.0.0.1:80", {"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
    /* the last one to be believed */
    {"10.0.0.1:80", {"192.0.2.1, unknown"}, NULL},
    {"10.0.0.1:80", {"192.0.2.1, unknown, 10.0.0.2"}, "10.0.0.2"},
    {"10.0.0.1:80", {"192.0.2.1,"}, NULL},
};

TEST_EACH(it_is_the_last_that_is_no_proxy, clients)
{
    for (int i = 0; i < 3 && clients[_i].fields[i] != NULL; i++)
        add("x-forwarded-for", clients[_i].fields[i]);
    struct span client = head_client(&head, PROXIES, clients[_i].peer);
    if (clients[_i].client == NULL)
        ck_assert_ptr_null(client.ptr);
    else
        ck_assert(span_is(client, clients[_i].client));
}

TEST(only_the_last_fields_are_kept)
{
    add("X-Forwarded-For", "192.0.2.1");
    for (int i = 0; i < HEAD_FORWARDED_MAX; i++)
        add("X-Forwarded-For", "10.0.0.0");
    struct span client = head_client(&head, PROXIES, "10.0.0.1:80");
    ck_assert(span_is(client, "10.0.0.0"));
    client = head_client(&head, "", "10.0.0.1:80");
    ck_assert_ptr_null(client.ptr);
}

/* ---- requests that a web page makes through somebody's browser ----------- */

GROUP(pages);

static int check(const char *fields, const char *allowed, bool is_open,
                 bool is_get)
{
    head_init(&head, 100, 1);
    fields_add(&head, fields);
    struct head_refusal refusal =
        head_check_page(&head, allowed, is_open, is_get);
    return refusal.reason == NULL ? 0 : problem_kinds[refusal.code].status;
}

static const struct {
    const char *host, *allowed;
    int status;
} hosts[] = {
    {"127.0.0.1", "", 0},
    {"127.0.0.1:8080", "", 0},
    {"10.1.2.3:80", "", 0},
    {"[::1]:8080", "", 0},
    {"[fe80::1]", "", 0},
    {"localhost", "", 0},
    {"LOCALHOST:8080", "", 0},
    {"redlockd:8080", "", 0},
    {"", "", 0},
    {"evil.example", "", 421},
    {"evil.example:8080", "", 421},
    {"127.0.0.1.evil.example", "", 421},
    {"localhost.", "", 421},
    {"localhost.evil.example", "", 421},
    {"127.1", "", 421},
    {"1.2.3.4.5", "", 421},
    {"999.0.0.1", "", 421},
    {"locks.example.com:443", "locks.example.com", 0},
    {"Locks.Example.com", "a,locks.example.com", 0},
    {"locks.example.com", ".example.com", 0},
    {"locks.example.com.evil.example", ".example.com", 421},
    {"evil.example", "locks.example.com", 421},
};

TEST_EACH(an_open_server_answers_under_names_that_nobody_can_buy, hosts)
{
    const char *fields = textf("Host: %s", hosts[_i].host);
    ck_assert_int_eq(check(fields, hosts[_i].allowed, true, true),
                     hosts[_i].status);
    ck_assert_int_eq(check(fields, hosts[_i].allowed, false, true), 0);
}

TEST(http_1_0_needs_no_host)
{
    ck_assert_int_eq(check("", "", true, true), 0);
}

static const struct {
    const char *origin, *host, *allowed;
    int status;
} origins[] = {
    {"http://localhost:8080", "localhost:8080", "", 0},
    {"http://LOCALHOST:8080", "localhost:8080", "", 0},
    {"https://[::1]", "[::1]", "", 0},
    {"http://localhost:8081", "localhost:8080", "", 403},
    {"http://localhost", "localhost:8080", "", 403},
    {"http://evil.example", "localhost:8080", "", 403},
    {"null", "localhost:8080", "", 403},
    {"", "localhost:8080", "", 403},
    {"http://", "localhost:8080", "", 403},
    {"localhost:8080", "localhost:8080", "", 403},
    {"chrome-extension://abc", "localhost", "", 403},
    {"https://locks.example.com", "redlockd:8080", "locks.example.com", 0},
    {"https://locks.example.com:8443", "redlockd", "locks.example.com", 0},
    {"https://example.com", "redlockd:8080", "locks.example.com", 403},
};

TEST_EACH(a_page_of_another_origin_may_ask_nothing, origins)
{
    const char *fields =
        textf("Host: %s\nOrigin: %s", origins[_i].host, origins[_i].origin);
    for (int is_open = 0; is_open <= 1; is_open++)
        ck_assert_int_eq(check(fields, origins[_i].allowed, is_open, true),
                         origins[_i].status);
}

static const struct {
    const char *site, *mode, *dest;
    bool is_get;
    int status;
} sites[] = {
    {"same-origin", "cors", "empty", false, 0},
    {"none", "navigate", "document", true, 0},
    {"same-site", "no-cors", "image", true, 0},
    {"cross-site", "no-cors", "image", true, 403},
    {"cross-site", "cors", "empty", true, 403},
    {"cross-site", "navigate", "iframe", true, 403},
    {"cross-site", "navigate", "document", false, 403},
    {"Cross-Site", "cors", "empty", true, 403},
    /* a link that somebody follows */
    {"cross-site", "navigate", "document", true, 0},
};

TEST_EACH(another_site_may_only_link_here, sites)
{
    const char *fields =
        textf("Host: localhost\nSec-Fetch-Site: %s\nSec-Fetch-Mode: %s\n"
              "Sec-Fetch-Dest: %s",
              sites[_i].site, sites[_i].mode, sites[_i].dest);
    ck_assert_int_eq(check(fields, "", false, sites[_i].is_get),
                     sites[_i].status);
}
