#include <check.h>

#include "ask.h"

Suite *check_pages(void);

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

START_TEST(each_is_served_whole_with_its_type)
{
    ck_assert(ask_send("GET", rows[_i].target, NULL));
    ck_assert_int_eq(ask.response.status, 200);
    ck_assert_str_eq(ask.response.content_type, rows[_i].content_type);
    ck_assert_uint_eq(ask.response.body_len, strlen(ask.response.body));
    ck_assert_ptr_nonnull(strstr(ask.response.body, rows[_i].has));
    ck_assert(ask.response.is_page);
}
END_TEST

START_TEST(other_answers_are_no_pages)
{
    ck_assert(ask_send("GET", "/nodes", NULL));
    ck_assert(!ask.response.is_page);
}
END_TEST

Suite *check_pages(void)
{
    Suite *suite = suite_create("pages");
    TCase *tc = tcase_create("pages");
    tcase_add_checked_fixture(tc, ask_begin, ask_end);
    tcase_add_loop_test(tc, each_is_served_whole_with_its_type, 0,
                        (int)(sizeof rows / sizeof *rows));
    tcase_add_test(tc, other_answers_are_no_pages);
    suite_add_tcase(suite, tc);
    return suite;
}
