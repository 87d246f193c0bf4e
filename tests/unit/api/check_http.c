/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "../../../api/message/http.h"
#include "../../lib/suite/suite.h"

SUITE(http);

/* ---- routes -------------------------------------------------------------- */

static struct route_match match;
static char names[NAMES_LEN_MAX];

/* A call on a lock, and the names that its path has. */
static const struct {
    const char *method, *target;
    enum lock_call call;
    const char *names; /* "": of no lock, or of none yet */
} calls[] = {
    {"POST", "/locks", LOCK_ACQUIRE, ""},
    {"PUT", "/locks/a/extend", LOCK_EXTEND, "a"},
    {"DELETE", "/locks/a", LOCK_RELEASE, "a"},
    {"GET", "/locks/a", LOCK_INSPECT, "a"},
    {"HEAD", "/locks/a", LOCK_INSPECT, "a"},
    {"GET", "/locks/extend", LOCK_INSPECT, "extend"},
    /* decoded once, behind the split */
    {"GET", "/locks/%61%3Ab", LOCK_INSPECT, "a:b"},
    {"GET", "/locks/%7eYS9i", LOCK_INSPECT, "a/b"},
    {"GET", "/locks/~~YQpi", LOCK_INSPECT, "a\nb"},
    {"PUT", "/locks/%7E~YQpi/extend", LOCK_EXTEND, "a\nb"},
    {"GET", "/locks/%2561", LOCK_INSPECT, "%61"},
    /* absolute forms: the path counts, the host does not */
    {"GET", "http://h:1/locks/a", LOCK_INSPECT, "a"},
    /* a resource in place of its id */
    {"DELETE", "/locks/a%2Fb", LOCK_RELEASE, "a/b"},
    {"DELETE", "/locks/%61%2fb", LOCK_RELEASE, "a/b"},
    {"DELETE", "/locks/caf%C3%A9", LOCK_RELEASE, "caf\xc3\xa9"},
    {"DELETE", "/locks/a%20b%23", LOCK_RELEASE, "a b#"},
    {"DELETE", "/locks/...", LOCK_RELEASE, "..."},
    {"DELETE", "/locks/%7e%7eYQpi", LOCK_RELEASE, "a\nb"},
    {"DELETE", "/locks/a%0Ab", LOCK_RELEASE, ""}, /* these have an id only */
    {"DELETE", "/locks/%7Ea", LOCK_RELEASE, ""},
    {"DELETE", "/locks/..", LOCK_RELEASE, ""},
    {"DELETE", "/locks/%2e", LOCK_RELEASE, ""},
    {"DELETE", "/locks/a%ff", LOCK_RELEASE, ""},
    {"DELETE", "/locks/a%2Fredlockd:b", LOCK_RELEASE, ""},
};

TEST_EACH(calls_on_locks_are_found, calls)
{
    route_find(&match, calls[_i].method, calls[_i].target);
    struct span found = route_names(&match, names);
    ck_assert_int_eq(match.call, calls[_i].call);
    ck_assert_msg(span_is(found, calls[_i].names), "%s", calls[_i].target);
    ck_assert_int_eq(match.route, found.len > 0 || match.call == LOCK_ACQUIRE
                                      ? ROUTE_LOCK
                                      : ROUTE_BAD_ID);
}

static const struct {
    const char *method, *target;
    enum route route;
} rows[] = {
    {"GET", "/nodes", ROUTE_NODES},
    {"GET", "/livez", ROUTE_LIVEZ},
    {"GET", "/readyz", ROUTE_READYZ},
    {"GET", "/metrics", ROUTE_METRICS},
    {"GET", "/openapi.yaml", ROUTE_OPENAPI},
    {"GET", "/openapi.yml", ROUTE_NOT_FOUND},
    {"GET", "/", ROUTE_PAGE},
    {"HEAD", "/", ROUTE_PAGE},
    {"GET", "/page.css", ROUTE_PAGE_CSS},
    {"GET", "/page.js", ROUTE_PAGE_JS},
    {"GET", "/page.svg", ROUTE_PAGE_ICON},
    {"GET", "/docs", ROUTE_DOCS},
    {"GET", "/docs/", ROUTE_NOT_FOUND},
    {"GET", "/pools/a", ROUTE_POOL},
    {"HEAD", "/pools/~YS9i", ROUTE_POOL},
    {"GET", "/pools", ROUTE_NOT_FOUND},
    {"GET", "/pools/a/b", ROUTE_NOT_FOUND},
    {"DELETE", "/pools/a", ROUTE_NOT_ALLOWED},
    {"GET", "/pools/..", ROUTE_BAD_ID},
    /* ids that are none */
    {"GET", "/locks/a%00b", ROUTE_BAD_ID},
    {"GET", "/locks/%zz", ROUTE_BAD_ID},
    {"GET", "/locks/%", ROUTE_BAD_ID},
    {"GET", "/locks/%4", ROUTE_BAD_ID},
    {"GET", "/locks/%4%41", ROUTE_BAD_ID},
    {"PUT", "/locks/~YQ/extend", ROUTE_BAD_ID},
    {"DELETE", "/locks/redlockd:x", ROUTE_BAD_ID},
    /* paths */
    {"GET", "", ROUTE_NOT_FOUND},
    {"GET", "//", ROUTE_NOT_FOUND},
    {"GET", "/page", ROUTE_NOT_FOUND},
    {"GET", "*", ROUTE_NOT_FOUND},
    {"GET", "locks", ROUTE_NOT_FOUND},
    {"GET", "//locks", ROUTE_NOT_FOUND},
    {"GET", "/locks/", ROUTE_NOT_FOUND},
    {"GET", "/locks//", ROUTE_NOT_FOUND},
    {"PUT", "/locks//extend", ROUTE_NOT_FOUND},
    {"GET", "/locks/a/", ROUTE_NOT_FOUND},
    {"PUT", "/locks/a/extend/", ROUTE_NOT_FOUND},
    {"PUT", "/locks/a/extend/b", ROUTE_NOT_FOUND},
    {"GET", "/Locks/a", ROUTE_NOT_FOUND},
    {"GET", "/lock", ROUTE_NOT_FOUND},
    {"GET", "/locksa", ROUTE_NOT_FOUND},
    {"GET", "/nodes/a", ROUTE_NOT_FOUND},
    {"GET", "/%zz", ROUTE_NOT_FOUND},
    /* absolute forms: the path counts, the host does not */
    {"GET", "HTTP://h/livez", ROUTE_LIVEZ},
    {"GET", "https://h/livez", ROUTE_LIVEZ},
    {"GET", "http://livez", ROUTE_PAGE},
    {"CONNECT", "h:80", ROUTE_NOT_FOUND},
    /* methods */
    {"GET", "/locks", ROUTE_LIST},
    {"PATCH", "/locks/a", ROUTE_NOT_ALLOWED},
    {"TRACE", "/livez", ROUTE_NOT_ALLOWED},
    {"get", "/livez", ROUTE_NOT_ALLOWED},
    {"POST", "/nodes", ROUTE_NOT_ALLOWED},
    {"POST", "/locks/..", ROUTE_NOT_ALLOWED},
    {"OPTIONS", "/nope", ROUTE_NOT_FOUND},
    {"OPTIONS", "*", ROUTE_OPTIONS},
};

TEST_EACH(target_and_method_make_the_route, rows)
{
    route_find(&match, rows[_i].method, rows[_i].target);
    ck_assert_msg(match.route == rows[_i].route, "%s %s: %d", rows[_i].method,
                  rows[_i].target, (int)match.route);
}

TEST(the_server_takes_all_methods)
{
    route_find(&match, "OPTIONS", "*");
    ck_assert_str_eq(match.allow, "GET, HEAD, POST, PUT, DELETE, OPTIONS");
}

TEST(paths_are_listed_with_their_methods)
{
    const char *path;
    const char *allow;
    int n = 0;

    for (; (allow = route_path(n, &path)) != NULL; n++) {
        route_find(&match, "OPTIONS", path);
        ck_assert_int_eq(match.route, ROUTE_OPTIONS);
        ck_assert_str_eq(match.allow, allow);
    }
    ck_assert_int_eq(n, 15);
    ck_assert_str_eq(route_path(2, &path), "PUT, OPTIONS");
    ck_assert_str_eq(path, "/locks/{id}/extend");
}

TEST(long_id_is_bad_not_overflowing)
{
    char target[8192] = "/locks/";
    memset(target + 7, 'x', sizeof target - 8);
    route_find(&match, "GET", target);
    ck_assert_int_eq(match.route, ROUTE_BAD_ID);
}

/* ---- arguments ----------------------------------------------------------- */

/* What an argument is read as; NULL: it is refused. */
static const struct {
    const char *name;
    struct span value; /* ptr NULL: it has none */
    const char *read;
    bool is_there;
} arguments[] = {
    {"forced", {"1", 1}, "", false},
    {"Force", {"1", 1}, "", false},
    {"forc", {"1", 1}, "", false},
    {"force", {"%61b%C3%bc", 10}, "ab\xc3\xbc", true},
    {"force", {NULL, 0}, "", true},
    {"force", {"abcde", 5}, NULL, true}, /* there is room for four */
    {"force", {"%", 1}, NULL, true},
    {"force", {"%1", 2}, NULL, true},
    {"force", {"a%4", 3}, NULL, true},
    {"force", {"%xy", 3}, NULL, true},
    /* whatever stands behind the value, as the next argument does */
    {"force", {"%411", 1}, NULL, true},
    {"force", {"%411", 2}, NULL, true},
    {"force", {"%411", 3}, "A", true},
};

TEST_EACH(an_argument_is_decoded_or_refused, arguments)
{
    struct query query = {0};
    char out[4];
    struct span value;
    query_add(&query, span_of(arguments[_i].name), arguments[_i].value);
    ck_assert(query_has(&query, QUERY_FORCE) == arguments[_i].is_there);
    ck_assert(!query_has(&query, QUERY_VERBOSE));
    const char *reason =
        query_read(&query, QUERY_FORCE, out, sizeof out, &value);
    if (arguments[_i].is_there)
        ck_assert((reason == NULL) == (arguments[_i].read != NULL));
    ck_assert(span_is(value, reason == NULL && arguments[_i].is_there
                                 ? arguments[_i].read
                                 : ""));
    if (!arguments[_i].is_there)
        return;
    query_add(&query, span_of("force"), span_of("1"));
    ck_assert_str_eq(query_read(&query, QUERY_FORCE, out, sizeof out, &value),
                     "occurs twice");
}

/* ---- cursors ------------------------------------------------------------ */

static bool decode(const char *text)
{
    struct list_cursor cursor;
    return cursor_decode(span_of(text), &cursor);
}

TEST(an_encoded_cursor_is_decoded)
{
    static const struct list_cursor cursors[] = {
        {.nodes = 7, .at = 0, .scan = 22, .runs = 0xffddd08420860eff},
        {.nodes = 0x1ff, .at = 4, .scan = 999999999999999, .runs = 0},
        {.nodes = 1, .at = 0, .scan = 0, .runs = 1},
    };
    for (size_t i = 0; i < COUNT(cursors); i++) {
        struct list_cursor found;
        char text[CURSOR_MAX];
        cursor_encode(text, &cursors[i]);
        ck_assert(cursor_decode(span_of(text), &found));
        ck_assert_int_eq(found.nodes, cursors[i].nodes);
        ck_assert_int_eq(found.at, cursors[i].at);
        ck_assert_int_eq(found.scan, cursors[i].scan);
        ck_assert_uint_eq(found.runs, cursors[i].runs);
    }
}

TEST(nothing_else_is_decoded_as_a_cursor)
{
    static const char *const texts[] = {
        "",
        "0",
        ".",
        "...",
        "7",
        "7.0.22",
        "0.0.22.ffddd08420860eff",
        "7.0.22.ffddd08420860ef",
        "7.0.22.ffddd08420860efff",
        "7.0.22.FFDDD08420860EFF",
        "07.0.22.ffddd08420860eff",
        "7.00.22.ffddd08420860eff",
        "7.0.022.ffddd08420860eff",
        "7.-1.22.ffddd08420860eff",
        "7.0.-1.ffddd08420860eff",
        "7.0.22.ffddd08420860eff.",
        "7.0.1234567890123456.ffddd08420860eff",
        "10007.0.22.ffddd08420860eff",
        " 7.0.22.ffddd08420860eff",
    };
    for (size_t i = 0; i < COUNT(texts); i++)
        ck_assert_msg(!decode(texts[i]), "%s", texts[i]);
}

/* ---- ids of requests ----------------------------------------------------- */

TEST(only_harmless_ids_are_echoed)
{
    static const char *const bad[] = {
        "",
        "a b",
        "a\"",
        "a\x7f",
        "\xc3\xa9",
        "a/b",
        "a=b",
        ("12345678901234567890123456789012345678901234567890123456789012"
         "345")};
    ck_assert(requestid_is_valid(span_of("Ab-1._z")));
    ck_assert(requestid_is_valid(span_of(
        "1234567890123456789012345678901234567890123456789012345678901234")));
    for (size_t i = 0; i < COUNT(bad); i++)
        ck_assert_msg(!requestid_is_valid(span_of(bad[i])), "%s", bad[i]);
}

/* Known numbers of SplitMix64, the last digit first. */
TEST(ids_are_numbers_of_a_generator_that_repeats_none)
{
    static const char *const ids[] = {"fadcd1b7938a022e", "4f569b1aa6e987e6",
                                      "f454900881d54c60"};
    struct requestid_source source = {.seed = 0};
    char id[REQUESTID_LEN + 1];
    for (int i = 0; i < 3; i++) {
        requestid_make(&source, id);
        ck_assert_str_eq(id, ids[i]);
    }
}

/* ---- which values of traceparent count (W3C Trace Context, §3.2) -------- */

#define ID "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static const char *const valid[] = {
    "00-" ID "-" PARENT "-00",
    "00-" ID "-" PARENT "-01",
    "00-" ID "-" PARENT "-ff", /* flags of later versions are of no matter */
    /* a later version is read as this one, and may have more */
    "01-" ID "-" PARENT "-01",
    "cc-" ID "-" PARENT "-01-what-the-future-will-be-like",
    "fe-" ID "-" PARENT "-01-",
};

TEST_EACH(a_valid_value_is_taken_over, valid)
{
    struct trace trace = {"x", "y"};
    trace_read(&trace, span_of(valid[_i]));
    ck_assert_str_eq(trace.id, ID);
    ck_assert_str_eq(trace.parent, PARENT);
}

static const char *const invalid[] = {
    "",
    "00",
    "00-" ID "-" PARENT,
    "00-" ID "-" PARENT "-",
    "00-" ID "-" PARENT "-0",
    "00-" ID "-" PARENT "-011",
    "00-" ID "-" PARENT "-01-",
    "00-" ID "-" PARENT "-01-more",
    "00-" ID "-" PARENT "-01, 00-" ID "-" PARENT "-01",
    "01-" ID "-" PARENT "-01more",
    "01-" ID "-" PARENT "-01 ",
    "ff-" ID "-" PARENT "-01",
    "FF-" ID "-" PARENT "-01",
    "0-" ID "-" PARENT "-01-",
    "0x-" ID "-" PARENT "-01",
    "000-" ID "-" PARENT "-01",
    " 00-" ID "-" PARENT "-01",
    "00-00000000000000000000000000000000-" PARENT "-01",
    "00-" ID "-0000000000000000-01",
    "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
    "00-" ID "-00F067AA0BA902B7-01",
    "00-4bf92f3577b34da6a3ce929d0e0e473g-" PARENT "-01",
    "00-" ID "-00f067aa0ba902b.-01",
    "00-" ID "-" PARENT "-0G",
    "00_" ID "-" PARENT "-01",
    "00-" ID "_" PARENT "-01",
    "00-" ID "-" PARENT "_01",
    "00-4bf92f3577b34da6a3ce929d0e0e473-6" PARENT "-01",
};

TEST_EACH(any_other_value_is_as_none, invalid)
{
    struct trace trace = {"x", "y"};
    trace_read(&trace, span_of(invalid[_i]));
    ck_assert_str_eq(trace.id, "");
    ck_assert_str_eq(trace.parent, "");
}
