
#include "../../../api/answer.h"
#include "../../lib/suite/suite.h"

static struct http_request request;
static struct http_response response;
static struct answer_fields fields;

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

SUITE(answer, .set_up = set_up);

TEST(each_answer_has_its_id_and_is_not_stored)
{
    answer_fill_fields(&fields, &request, &response);
    ck_assert_int_eq(fields.count, 2);
    ck_assert_str_eq(find("X-Request-Id"), "r-1");
    ck_assert_str_eq(find("Cache-Control"), "no-store");
}

TEST(what_the_answer_has_is_told)
{
    response.content_type = "application/json";
    response.allow = "GET, HEAD";
    response.challenge = "Bearer";
    response.retry_after_ms = 1;
    response.close = true;
    response.is_page = true;
    strcpy(response.location, "/locks/a");
    answer_fill_fields(&fields, &request, &response);
    ck_assert_int_eq(fields.count, ANSWER_FIELDS_MAX);
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

static const struct {
    int64_t ms;
    const char *seconds;
} waits[] = {
    {0, NULL},   {1, "1"},    {999, "1"},
    {1000, "1"}, {1001, "2"}, {INT64_MAX - 999, "9223372036854775"},
};

TEST_EACH(retry_after_is_rounded_up, waits)
{
    response.retry_after_ms = waits[_i].ms;
    answer_fill_fields(&fields, &request, &response);
    ck_assert_pstr_eq(find("Retry-After"), waits[_i].seconds);
}
