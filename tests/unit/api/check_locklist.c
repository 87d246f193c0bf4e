/*
 * Bodies of heartbeats.
 */
#include <stdio.h>
#include <string.h>

#include "../../../api/message/body.h"
#include "../../../api/message/jsonload.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

enum { MAX_TTL_MS = 60000, TEXT_MAX = 8000 };

static struct locklist list;
static struct faults errors;

static void tear_down(void)
{
    locklist_fini(&list);
}

static bool parse(const char *text)
{
    locklist_fini(&list); /* of the one before */
    return locklist_read(&list, span_of(text), MAX_TTL_MS, &errors);
}

SUITE(locklist, .tear_down = tear_down);

TEST(locks_are_read_in_their_order)
{
    ck_assert(parse("{\"ttl_ms\":100,\"locks\":[{\"id\":\"a\",\"token\":\"t\"},"
                    "{\"token\":\"\",\"id\":\"~b\"}]}"));
    ck_assert_int_eq(list.ttl_ms, 100);
    ck_assert_int_eq(list.count, 2);
    ck_assert(span_is(list.locks[0].id, "a"));
    ck_assert(span_is(list.locks[0].token, "t"));
    ck_assert(span_is(list.locks[1].id, "~b"));
    ck_assert_uint_eq(list.locks[1].token.len, 0);
    ck_assert(parse("{\"locks\":[{\"id\":\"a\",\"token\":\"t\"}]}"));
    ck_assert_int_eq(list.ttl_ms, 0);
}

/* So many locks. */
static const char *many(int count)
{
    static char text[TEXT_MAX];
    int len = snprintf(text, sizeof text, "{\"locks\":[");
    for (int i = 0; i < count; i++)
        len +=
            snprintf(text + len, sizeof text - (size_t)len,
                     "%s{\"id\":\"%d\",\"token\":\"t\"}", i > 0 ? "," : "", i);
    snprintf(text + len, sizeof text - (size_t)len, "]}");
    return text;
}

TEST(there_may_be_as_many_as_the_limit)
{
    ck_assert(parse(many(LOCKLIST_MAX)));
    ck_assert_int_eq(list.count, LOCKLIST_MAX);
    ck_assert(span_is(list.locks[LOCKLIST_MAX - 1].id, "99"));
    ck_assert(!parse(many(LOCKLIST_MAX + 1)));
    ck_assert_str_eq(errors.list[0].pointer, "/locks");
    ck_assert_str_eq(errors.list[0].detail,
                     "locks has 101 elements; the limit is 100; send the "
                     "others in another request");
}

#define LOCK "{\"id\":\"a\",\"token\":\"t\"}"

static const struct {
    const char *text, *pointer, *detail;
} bad[] = {
    {"{}", "/locks",
     "locks, the locks to extend, is missing; send an array of objects with "
     "id and token"},
    {"{\"locks\":[]}", "/locks",
     "locks is empty; it must have 1 to 100 "
     "objects"},
    {"{\"locks\":" LOCK "}", "/locks",
     "locks is an object; it must be an array of 1 to 100 objects"},
    {"{\"locks\":[" LOCK ",7]}", "/locks/1",
     "locks/1 is an integer; it must be an object"},
    {"{\"locks\":[{\"id\":\"a\"}]}", "/locks/0/token",
     "locks/0/token is missing"},
    {"{\"locks\":[{\"token\":\"t\"}]}", "/locks/0/id", "locks/0/id is missing"},
    {"{\"locks\":[{\"id\":1,\"token\":\"t\"}]}", "/locks/0/id",
     "locks/0/id is an integer; it must be a string"},
    {"{\"locks\":[{\"id\":\"a\",\"token\":\"t\",\"ttl/ms\":9}]}",
     "/locks/0/ttl~1ms",
     "the field ttl~1ms is unknown here; the fields are id and token"},
    {"{\"locks\":[" LOCK "],\"mode\":\"shared\"}", "/mode",
     "the field mode is unknown here; the fields are ttl_ms and locks"},
    {"{\"locks\":[" LOCK "],\"ttl_ms\":99}", "/ttl_ms",
     "ttl_ms is 99; it must be an integer from 100 to 60000 (milliseconds)"},
    {"{\"locks\":[" LOCK "],\"ttl_ms\":60001}", "/ttl_ms",
     "ttl_ms is 60001; it must be an integer from 100 to 60000 "
     "(milliseconds)"},
    {"[]", "", "the body is an array; it must be an object"},
    {"", "", "the body is empty; send a JSON object"},
};

TEST_EACH(what_is_wrong_is_told, bad)
{
    ck_assert(!parse(bad[_i].text));
    ck_assert_int_eq(errors.count, 1);
    ck_assert_str_eq(errors.list[0].pointer, bad[_i].pointer);
    ck_assert_str_eq(errors.list[0].detail, bad[_i].detail);
}

/* A long name is cut off in the pointer. */
TEST(unknown_members_of_any_length_are_told)
{
    char text[TEXT_MAX], name[FAULT_POINTER_MAX + 9];
    memset(name, '/', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    snprintf(text, sizeof text,
             "{\"locks\":[{\"id\":\"a\",\"token\":\"t\",\"%s\":1}]}", name);
    ck_assert(!parse(text));
    ck_assert_int_eq(errors.count, 1);
    ck_assert_uint_le(strlen(errors.list[0].pointer), FAULT_POINTER_MAX);
    ck_assert_mem_eq(errors.list[0].pointer, "/locks/0/~1~1", 13);
}

TEST(without_memory_nothing_is_told)
{
    jsonload_init();
    starve = (struct starve){.is_on = true, .left = 1};
    bool is_read = parse("{\"locks\":[" LOCK "]}");
    starve.is_on = false;
    ck_assert(!is_read);
    ck_assert_int_eq(errors.count, 0);
    ck_assert(parse("{\"locks\":[" LOCK "]}"));
}

TEST(the_members_are_listed)
{
    ck_assert_str_eq(locklist_member(1), "locks");
    ck_assert_ptr_null(locklist_member(2));
    ck_assert_str_eq(locklist_lock_member(1), "token");
    ck_assert_ptr_null(locklist_lock_member(2));
}
