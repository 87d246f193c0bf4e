
#include "../../../server/base/address.h"
#include "../../lib/suite/suite.h"

static const struct {
    const char *host;
    bool is_loopback;
} hosts[] = {
    {"127.0.0.1", true},    {"127.255.0.9", true}, {"::1", true},
    {"localhost", true},    {"0.0.0.0", false},    {"::", false},
    {"10.0.0.5", false},    {"128.0.0.1", false},  {"::2", false},
    {"127.example", false}, {"", false},
};

SUITE(loopback);

TEST_EACH(loopback_is_told_from_elsewhere, hosts)
{
    ck_assert_msg(address_is_loopback(hosts[_i].host) == hosts[_i].is_loopback,
                  "%s", hosts[_i].host);
}
