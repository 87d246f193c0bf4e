#include <check.h>

#include "../../../server/base/address.h"

Suite *check_loopback(void);

static const struct {
    const char *host;
    bool is_loopback;
} hosts[] = {
    {"127.0.0.1", true},    {"127.255.0.9", true}, {"::1", true},
    {"localhost", true},    {"0.0.0.0", false},    {"::", false},
    {"10.0.0.5", false},    {"128.0.0.1", false},  {"::2", false},
    {"127.example", false}, {"", false},
};

START_TEST(loopback_is_told_from_elsewhere)
{
    ck_assert_msg(address_is_loopback(hosts[_i].host) == hosts[_i].is_loopback,
                  "%s", hosts[_i].host);
}
END_TEST

Suite *check_loopback(void)
{
    Suite *suite = suite_create("loopback");
    TCase *tc = tcase_create("loopback");
    tcase_add_loop_test(tc, loopback_is_told_from_elsewhere, 0,
                        (int)(sizeof hosts / sizeof *hosts));
    suite_add_tcase(suite, tc);
    return suite;
}
