/* Requests that a web page makes through somebody's browser. */

#include "../../../api/message/head.h"
#include "../../lib/suite/suite.h"

enum { FIELDS_MOST = 4 };

static struct head head;

SUITE(browser);

static int check(const char *const fields[][2], const char *allowed,
                 bool is_open, bool is_get)
{
    head_init(&head, 100, 1);
    for (int i = 0; i < FIELDS_MOST && fields[i][0] != NULL; i++)
        head_add(&head, span_of(fields[i][0]), span_of(fields[i][1]));
    struct head_refusal refusal =
        head_check_page(&head, allowed, is_open, is_get);
    return refusal.reason == NULL ? 0 : problem_kinds[refusal.code].status;
}

/* ---- Host ---------------------------------------------------------------- */

GROUP(host);

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
    const char *const fields[][2] = {{"Host", hosts[_i].host}, {NULL, NULL}};
    ck_assert_int_eq(check(fields, hosts[_i].allowed, true, true),
                     hosts[_i].status);
    ck_assert_int_eq(check(fields, hosts[_i].allowed, false, true), 0);
}

TEST(http_1_0_needs_no_host)
{
    const char *const fields[][2] = {{NULL, NULL}};
    ck_assert_int_eq(check(fields, "", true, true), 0);
}

/* ---- Origin -------------------------------------------------------------- */

GROUP(origin);

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
    const char *const fields[][2] = {{"Host", origins[_i].host},
                                     {"Origin", origins[_i].origin},
                                     {NULL, NULL}};
    for (int is_open = 0; is_open <= 1; is_open++)
        ck_assert_int_eq(check(fields, origins[_i].allowed, is_open, true),
                         origins[_i].status);
}

/* ---- Sec-Fetch ----------------------------------------------------------- */

GROUP(site);

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
    const char *const fields[FIELDS_MOST][2] = {
        {"Host", "localhost"},
        {"Sec-Fetch-Site", sites[_i].site},
        {"Sec-Fetch-Mode", sites[_i].mode},
        {"Sec-Fetch-Dest", sites[_i].dest},
    };
    ck_assert_int_eq(check(fields, "", false, sites[_i].is_get),
                     sites[_i].status);
}
