/* Lists of hosts. */

#include "../../../server/base/hosts.h"
#include "../../lib/suite/suite.h"

SUITE(hosts);

GROUP(lists);

static const struct {
    const char *list;
    bool is_valid;
} lists[] = {
    {"", true},          {"a", true},    {"a.b,c-d,.e", true},
    {"[::1],::1", true}, {"a,", false},  {",a", false},
    {"a,,b", false},     {".", false},   {"a b", false},
    {"a/b", false},      {"a*", false},  {"*", false},
    {"http://a", false}, {"a@b", false},
};

TEST_EACH(a_list_has_names_only, lists)
{
    ck_assert(hosts_are_valid(lists[_i].list) == lists[_i].is_valid);
}

static const struct {
    const char *list, *host;
    bool is_there;
} hosts[] = {
    {"", "a", false},           {"", "", false},
    {"a.b", "a.b", true},       {"a.b", "A.B", true},
    {"a.b,c", "c", true},       {"a.b,c", "a.b,c", false},
    {"a.b", "a.bc", false},     {"a.b", "x.a.b", false},
    {".b.c", "a.b.c", true},    {".b.c", "z.a.b.c", true},
    {".b.c", "ab.c", false},    {".b.c", "b.c", false},
    {".b.c", "a.b.c.d", false},
};

TEST_EACH(a_host_is_in_the_list_or_not, hosts)
{
    ck_assert(hosts_have(hosts[_i].list, span_of(hosts[_i].host)) ==
              hosts[_i].is_there);
}
