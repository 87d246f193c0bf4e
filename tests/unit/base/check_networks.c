/* Lists of networks. */

#include "../../../server/base/networks.h"
#include "../../lib/suite/suite.h"

SUITE(networks);

GROUP(lists);

static const struct {
    const char *list;
    bool is_valid;
} lists[] = {
    {"", true},
    {"192.0.2.1", true},
    {"10.0.0.0/8,2001:db8::/32,::1", true},
    {"0.0.0.0/0,::/0", true},
    {"10.0.0.0/32,::1/128", true},
    {"10.0.0.0/33", false},
    {"::1/129", false},
    {"10.0.0.0/", false},
    {"10.0.0.0/-1", false},
    {"10.0.0.0/0008", false},
    {"10.0.0/8", false},
    {"localhost", false},
    {"[::1]", false},
    {"10.0.0.1:80", false},
    {"10.0.0.1,", false},
    {",10.0.0.1", false},
    {"10.0.0.1, 10.0.0.2", false},
    {"/8", false},
};

TEST_EACH(a_list_has_networks_only, lists)
{
    ck_assert(networks_are_valid(lists[_i].list) == lists[_i].is_valid);
}

static const struct {
    const char *list, *address;
    bool is_there;
} addresses[] = {
    {"", "10.0.0.1", false},
    {"10.0.0.1", "10.0.0.1", true},
    {"10.0.0.1", "10.0.0.2", false},
    {"10.0.0.0/8", "10.255.255.255", true},
    {"10.0.0.0/8", "11.0.0.0", false},
    {"10.0.0.0/9", "10.127.0.1", true},
    {"10.0.0.0/9", "10.128.0.1", false},
    {"10.1.2.3/8", "10.0.0.1", true},
    {"0.0.0.0/0", "203.0.113.9", true},
    {"0.0.0.0/0", "2001:db8::1", false},
    {"::/0", "2001:db8::1", true},
    {"10.0.0.0/8", "::ffff:10.0.0.1", true},
    {"::ffff:10.0.0.0/104", "10.0.0.1", true},
    {"2001:db8::/32", "2001:db8:ffff::1", true},
    {"2001:db8::/32", "2001:db9::1", false},
    {"192.0.2.0/24,::1", "::1", true},
    {"192.0.2.0/24,::1", "0:0:0:0:0:0:0:1", true},
    {"192.0.2.0/24", "192.0.2.1:80", false},
    {"192.0.2.0/24", "", false},
    {"192.0.2.0/24", "unknown", false},
};

TEST_EACH(an_address_is_in_one_of_them_or_not, addresses)
{
    ck_assert(
        networks_have(addresses[_i].list, span_of(addresses[_i].address)) ==
        addresses[_i].is_there);
}

static const struct {
    const char *text, *address; /* NULL: it has none */
} texts[] = {
    {"192.0.2.1", "192.0.2.1"},
    {"192.0.2.1:80", "192.0.2.1"},
    {"2001:db8::1", "2001:db8::1"},
    {"[2001:db8::1]", "2001:db8::1"},
    {"[2001:db8::1]:80", "2001:db8::1"},
    {"", NULL},
    {"[", NULL},
    {"[]", NULL},
    {":80", NULL},
    {"unknown", NULL},
    {"_hidden", NULL},
    {"example.com", NULL},
    {"fe80::1%eth0", NULL},
    {"192.0.2.1\n", NULL},
    {"1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb", NULL},
};

TEST_EACH(an_address_may_have_a_port, texts)
{
    struct span address;
    bool is_there = networks_read_address(span_of(texts[_i].text), &address);
    ck_assert(is_there == (texts[_i].address != NULL));
    if (is_there)
        ck_assert(span_is(address, texts[_i].address));
}
