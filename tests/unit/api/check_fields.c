#include <check.h>

#include "../../../api/fields.h"

Suite *check_fields(void);

static struct http_request request;
static struct http_response response;
static struct fields fields;

static void set_up(void)
{
    request = (struct http_request){.id = "r-1"};
    http_response_init(&response);
}

/* NULL: there is no such field. */
static const char *find(const char *name)
{
    for (int i = 0; i < fields.count; i++)
        if (strcmp(fields.list[i].name, name) == 0)
            return fields.list[i].value;
    return NULL;
}

START_TEST(each_answer_has_its_id_and_is_not_stored)
{
    fields_fill(&fields, &request, &response);
    ck_assert_int_eq(fields.count, 2);
    ck_assert_str_eq(find("X-Request-Id"), "r-1");
    ck_assert_str_eq(find("Cache-Control"), "no-store");
}
END_TEST

START_TEST(what_the_answer_has_is_told)
{
    response.content_type = "application/json";
    response.allow = "GET, HEAD";
    response.challenge = "Bearer";
    response.retry_after_ms = 1;
    response.close = true;
    response.is_page = true;
    strcpy(response.location, "/locks/a");
    fields_fill(&fields, &request, &response);
    ck_assert_int_eq(fields.count, FIELDS_MAX);
    ck_assert_str_eq(find("Content-Type"), "application/json");
    ck_assert_str_eq(find("Location"), "/locks/a");
    ck_assert_str_eq(find("Allow"), "GET, HEAD");
    ck_assert_str_eq(find("WWW-Authenticate"), "Bearer");
    ck_assert_str_eq(find("Retry-After"), "1");
    ck_assert_str_eq(find("Connection"), "close");
    ck_assert_str_eq(find("Content-Security-Policy"),
                     "default-src 'self'; base-uri 'none'; frame-ancestors "
                     "'none'; form-action 'none'");
    ck_assert_str_eq(find("X-Content-Type-Options"), "nosniff");
}
END_TEST

static const struct {
    int64_t ms;
    const char *seconds;
} waits[] = {
    {0, NULL},   {1, "1"},    {999, "1"},
    {1000, "1"}, {1001, "2"}, {INT64_MAX - 999, "9223372036854775"},
};

START_TEST(retry_after_is_rounded_up)
{
    response.retry_after_ms = waits[_i].ms;
    fields_fill(&fields, &request, &response);
    ck_assert_pstr_eq(find("Retry-After"), waits[_i].seconds);
}
END_TEST

Suite *check_fields(void)
{
    Suite *suite = suite_create("fields");
    TCase *tc = tcase_create("fields");
    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, each_answer_has_its_id_and_is_not_stored);
    tcase_add_test(tc, what_the_answer_has_is_told);
    tcase_add_loop_test(tc, retry_after_is_rounded_up, 0,
                        (int)(sizeof waits / sizeof *waits));
    suite_add_tcase(suite, tc);
    return suite;
}
