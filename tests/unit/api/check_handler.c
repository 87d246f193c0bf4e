/* SPDX-License-Identifier: MIT */
/*
 * Which request is answered by whom, and what it is counted as.
 */

#include "../../lib/suite/suite.h"
#include "ask.h"

static const struct {
    const char *method, *target;
    int call;
    int status; /* 0: nodes are asked */
    const char *code;
    const char *allow;
} rows[] = {
    {"POST", "/locks", LOCK_ACQUIRE, 0, NULL, NULL},
    {"PUT", "/locks/a/extend", LOCK_EXTEND, 0, NULL, NULL},
    {"DELETE", "/locks/a", LOCK_RELEASE, 0, NULL, NULL},
    {"GET", "/locks/a", LOCK_INSPECT, 0, NULL, NULL},
    {"HEAD", "/locks/a", LOCK_INSPECT, 0, NULL, NULL},
    {"GET", "/nodes", METRICS_OTHER, 200, NULL, NULL},
    {"GET", "/livez", METRICS_PROBE, 200, NULL, NULL},
    {"GET", "/readyz", METRICS_PROBE, 200, NULL, NULL},
    {"GET", "/metrics", METRICS_SCRAPE, 200, NULL, NULL},
    {"GET", "/", METRICS_OTHER, 200, NULL, NULL},
    {"HEAD", "/page.js", METRICS_OTHER, 200, NULL, NULL},
    {"GET", "/locks", METRICS_LIST, 0, NULL, NULL},
    {"POST", "/", METRICS_OTHER, 405, "method_not_allowed",
     "GET, HEAD, OPTIONS"},
    {"OPTIONS", "/locks", METRICS_OTHER, 204, NULL, "GET, HEAD, POST, OPTIONS"},
    {"DELETE", "/locks", METRICS_OTHER, 405, "method_not_allowed",
     "GET, HEAD, POST, OPTIONS"},
    {"POST", "/batch", METRICS_BATCH, 415, "unsupported_media_type", NULL},
    {"PUT", "/batch", METRICS_OTHER, 405, "method_not_allowed",
     "POST, OPTIONS"},
    {"GET", "/locks/%zz", METRICS_OTHER, 400, "invalid_request", NULL},
    {"GET", "/lock", METRICS_OTHER, 404, "not_found", NULL},
};

SUITE(handler, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(each_route_has_its_handler, rows)
{
    if (rows[_i].call == LOCK_ACQUIRE) {
        ask.request.body = span_of("{\"resource\":\"a\"}");
        ask.request.content_type = span_of("application/json");
    } else {
        ask.request.call.lock_token = span_of(ASK_TOKEN);
    }
    ck_assert_int_eq(ask_send(rows[_i].method, rows[_i].target, NULL),
                     rows[_i].status != 0);
    ck_assert_int_eq(ask.request.counted_as, rows[_i].call);
    ck_assert_int_eq(ask.response.status, rows[_i].status);
    ck_assert_pstr_eq(ask.response.code, rows[_i].code);
    ck_assert_pstr_eq(ask.response.allow, rows[_i].allow);
    ck_assert_int_eq(ask.response.body == NULL,
                     rows[_i].status == 0 || rows[_i].status == 204);
    ck_assert(!ask.response.close);
    if (rows[_i].call < LOCK_CALLS)
        ck_assert_int_eq(play_count(ask_kinds[rows[_i].call]), PLAY_NODES);
}

/* ---- lists --------------------------------------------------------------- */

static const struct {
    const char *name, *value;
} arguments[] = {
    {"page_size", "1001"},   {"page_size", ""},     {"page_size", "x"},
    {"prefix", "%00"},       {"prefix", "%"},       {"cursor", ""},
    {"prefix", "redlockd:"}, {"cursor", "1.2.3.4"}, {"cursor", "%"},
};

GROUP(lists, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(a_bad_argument_of_a_list_is_refused, arguments)
{
    query_add(&ask.request.query, span_of(arguments[_i].name),
              span_of(arguments[_i].value));
    ck_assert(ask_send("GET", "/locks", NULL));
    ask_expect(400, "invalid_request");
    ask_expect_pointer("query", textf("/%s", arguments[_i].name));
    ck_assert_int_eq(play.sent_count, 0);
}

/* ---- pages --------------------------------------------------------------- */

static const struct {
    const char *target, *content_type, *has;
} pages[] = {
    {"/", "text/html; charset=utf-8", "<script src=\"/page.js\""},
    {"/page.css", "text/css; charset=utf-8", "prefers-color-scheme: dark"},
    {"/page.js", "text/javascript; charset=utf-8", "'/metrics'"},
    {"/page.svg", "image/svg+xml", "</svg>\n"},
    {"/docs", "text/html; charset=utf-8", "id=\"acquireLock\""},
    {"/openapi.yaml", "application/yaml", "\nopenapi: 3"},
};

GROUP(pages, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(each_is_served_whole_with_its_type, pages)
{
    ck_assert(ask_send("GET", pages[_i].target, NULL));
    ck_assert_int_eq(ask.response.status, 200);
    ck_assert_str_eq(ask.response.content_type, pages[_i].content_type);
    ck_assert_uint_eq(ask.response.body_len, strlen(ask.response.body));
    ck_assert_has(ask.response.body, pages[_i].has);
    ck_assert(ask.response.is_page);
}
