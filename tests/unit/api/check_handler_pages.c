
#include "../../lib/suite/suite.h"
#include "ask.h"

static const struct {
    const char *target, *content_type, *has;
} rows[] = {
    {"/", "text/html; charset=utf-8", "<script src=\"/page.js\""},
    {"/page.css", "text/css; charset=utf-8", "prefers-color-scheme: dark"},
    {"/page.js", "text/javascript; charset=utf-8", "'/metrics'"},
    {"/page.svg", "image/svg+xml", "</svg>\n"},
    {"/docs", "text/html; charset=utf-8", "id=\"acquireLock\""},
    {"/openapi.yaml", "application/yaml", "\nopenapi: 3"},
    {"/openapi.yaml", "application/yaml", "/locks/{id}/extend"},
};

SUITE(handler_pages, .set_up = ask_begin, .tear_down = ask_end);

TEST_EACH(each_is_served_whole_with_its_type, rows)
{
    ck_assert(ask_send("GET", rows[_i].target, NULL));
    ck_assert_int_eq(ask.response.status, 200);
    ck_assert_str_eq(ask.response.content_type, rows[_i].content_type);
    ck_assert_uint_eq(ask.response.body_len, strlen(ask.response.body));
    ck_assert_ptr_nonnull(strstr(ask.response.body, rows[_i].has));
    ck_assert(ask.response.is_page);
}

TEST(other_answers_are_no_pages)
{
    ck_assert(ask_send("GET", "/nodes", NULL));
    ck_assert(!ask.response.is_page);
}
