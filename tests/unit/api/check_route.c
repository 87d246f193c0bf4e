#include <check.h>
#include <string.h>

#include "../../../api/route.h"

Suite *check_route(void);

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *method, *target;
    enum route route;
    const char *resource; /* NULL: not looked at */
} rows[] = {
    {"POST", "/locks", ROUTE_ACQUIRE, ""},
    {"PUT", "/locks/a/extend", ROUTE_EXTEND, "a"},
    {"DELETE", "/locks/a", ROUTE_RELEASE, "a"},
    {"GET", "/locks/a", ROUTE_INSPECT, "a"},
    {"HEAD", "/locks/a", ROUTE_INSPECT, "a"},
    {"GET", "/locks/extend", ROUTE_INSPECT, "extend"},
    {"GET", "/nodes", ROUTE_NODES, ""},
    {"HEAD", "/nodes", ROUTE_NODES, ""},
    {"GET", "/livez", ROUTE_LIVEZ, ""},
    {"GET", "/readyz", ROUTE_READYZ, ""},
    {"GET", "/metrics", ROUTE_METRICS, ""},
    {"GET", "/openapi.yaml", ROUTE_OPENAPI, ""},
    {"HEAD", "/openapi.yaml", ROUTE_OPENAPI, ""},
    {"GET", "/openapi.yml", ROUTE_NOT_FOUND, ""},
    /* decoded once, behind the split */
    {"GET", "/locks/%61%3Ab", ROUTE_INSPECT, "a:b"},
    {"GET", "/locks/%7eYS9i", ROUTE_INSPECT, "a/b"},
    {"GET", "/locks/a%2Fb", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/%2561", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/a%00b", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/%zz", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/%", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/%4", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/%4%41", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/..", ROUTE_BAD_ID, NULL},
    {"GET", "/locks/%2e", ROUTE_BAD_ID, NULL},
    {"PUT", "/locks/~YQ/extend", ROUTE_BAD_ID, NULL},
    {"DELETE", "/locks/redlockd:x", ROUTE_BAD_ID, NULL},
    /* paths */
    {"GET", "", ROUTE_NOT_FOUND, NULL},
    {"GET", "/", ROUTE_NOT_FOUND, NULL},
    {"GET", "*", ROUTE_NOT_FOUND, NULL},
    {"GET", "locks", ROUTE_NOT_FOUND, NULL},
    {"GET", "//locks", ROUTE_NOT_FOUND, NULL},
    {"GET", "/locks/", ROUTE_NOT_FOUND, NULL},
    {"GET", "/locks//", ROUTE_NOT_FOUND, NULL},
    {"PUT", "/locks//extend", ROUTE_NOT_FOUND, NULL},
    {"GET", "/locks/a/", ROUTE_NOT_FOUND, NULL},
    {"PUT", "/locks/a/extend/", ROUTE_NOT_FOUND, NULL},
    {"PUT", "/locks/a/extend/b", ROUTE_NOT_FOUND, NULL},
    {"GET", "/Locks/a", ROUTE_NOT_FOUND, NULL},
    {"GET", "/lock", ROUTE_NOT_FOUND, NULL},
    {"GET", "/locksa", ROUTE_NOT_FOUND, NULL},
    {"GET", "/nodes/a", ROUTE_NOT_FOUND, NULL},
    {"GET", "/%zz", ROUTE_NOT_FOUND, NULL},
    /* absolute forms: the path counts, the host does not */
    {"GET", "http://h:1/locks/a", ROUTE_INSPECT, "a"},
    {"GET", "HTTP://h/livez", ROUTE_LIVEZ, ""},
    {"GET", "https://h/livez", ROUTE_LIVEZ, ""},
    {"GET", "http://livez", ROUTE_NOT_FOUND, NULL},
    {"CONNECT", "h:80", ROUTE_NOT_FOUND, NULL},
    /* methods */
    {"GET", "/locks", ROUTE_NOT_ALLOWED, NULL},
    {"PATCH", "/locks/a", ROUTE_NOT_ALLOWED, NULL},
    {"TRACE", "/livez", ROUTE_NOT_ALLOWED, NULL},
    {"get", "/livez", ROUTE_NOT_ALLOWED, NULL},
    {"POST", "/nodes", ROUTE_NOT_ALLOWED, NULL},
    {"POST", "/locks/..", ROUTE_NOT_ALLOWED, NULL},
    {"OPTIONS", "/locks", ROUTE_OPTIONS, NULL},
    {"OPTIONS", "/locks/a", ROUTE_OPTIONS, NULL},
    {"OPTIONS", "/nope", ROUTE_NOT_FOUND, NULL},
    {"OPTIONS", "*", ROUTE_OPTIONS, NULL},
};

START_TEST(target_and_method_make_the_route)
{
    struct route_match match;

    route_find(&match, rows[_i].method, rows[_i].target);
    ck_assert_msg(match.route == rows[_i].route, "%s %s: %d", rows[_i].method,
                  rows[_i].target, (int)match.route);
    if (rows[_i].resource == NULL)
        return;
    ck_assert_uint_eq(match.resource_len, strlen(rows[_i].resource));
    ck_assert_mem_eq(match.resource, rows[_i].resource, match.resource_len);
}
END_TEST

START_TEST(allow_lists_the_methods_of_the_path)
{
    struct route_match match;

    route_find(&match, "OPTIONS", "/locks");
    ck_assert_str_eq(match.allow, "POST, OPTIONS");
    route_find(&match, "BREW", "/locks/a");
    ck_assert_str_eq(match.allow, "GET, HEAD, DELETE, OPTIONS");
    route_find(&match, "GET", "/locks/a/extend");
    ck_assert_str_eq(match.allow, "PUT, OPTIONS");
}
END_TEST

START_TEST(long_id_is_bad_not_overflowing)
{
    char target[8192] = "/locks/";
    struct route_match match;

    memset(target + 7, 'x', sizeof target - 8);
    route_find(&match, "GET", target);
    ck_assert_int_eq(match.route, ROUTE_BAD_ID);
}
END_TEST

Suite *check_route(void)
{
    Suite *suite = suite_create("route");
    TCase *tc = tcase_create("route");
    tcase_add_loop_test(tc, target_and_method_make_the_route, 0, COUNT(rows));
    tcase_add_test(tc, allow_lists_the_methods_of_the_path);
    tcase_add_test(tc, long_id_is_bad_not_overflowing);
    suite_add_tcase(suite, tc);
    return suite;
}
