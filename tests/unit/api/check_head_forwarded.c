/* Who the client is behind proxies. */

#include "../../../api/message/head.h"
#include "../../lib/suite/suite.h"

SUITE(head_forwarded);

GROUP(clients);

#define PROXIES "10.0.0.0/8,2001:db8::/32"

static const struct {
    const char *peer;
    const char *fields[3];
    const char *client; /* NULL: the peer */
} clients[] = {
    {"10.0.0.1:80", {NULL}, NULL},
    {"10.0.0.1:80", {""}, NULL},
    {"10.0.0.1:80", {"192.0.2.1"}, "192.0.2.1"},
    {"[2001:db8::1]:80", {"192.0.2.1"}, "192.0.2.1"},
    {"10.0.0.1:80", {"192.0.2.1:4711"}, "192.0.2.1"},
    {"10.0.0.1:80", {"[2001:db9::1]:4711"}, "2001:db9::1"},
    /* who is no proxy may write what it likes */
    {"192.0.2.7:80", {"192.0.2.1"}, NULL},
    {"", {"192.0.2.1"}, NULL},
    {"10.0.0.1:80", {"1.1.1.1, 192.0.2.1"}, "192.0.2.1"},
    {"10.0.0.1:80", {"1.1.1.1", "192.0.2.1"}, "192.0.2.1"},
    /* two proxies, in one field and in two */
    {"10.0.0.1:80", {"1.1.1.1,192.0.2.1 , 10.0.0.2"}, "192.0.2.1"},
    {"10.0.0.1:80", {"1.1.1.1", "192.0.2.1", "10.0.0.2"}, "192.0.2.1"},
    {"10.0.0.1:80", {"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
    /* the last one to be believed */
    {"10.0.0.1:80", {"192.0.2.1, unknown"}, NULL},
    {"10.0.0.1:80", {"192.0.2.1, unknown, 10.0.0.2"}, "10.0.0.2"},
    {"10.0.0.1:80", {"192.0.2.1,"}, NULL},
};

TEST_EACH(it_is_the_last_that_is_no_proxy, clients)
{
    struct head head;
    head_init(&head, 0, 0);
    for (int i = 0; i < 3 && clients[_i].fields[i] != NULL; i++)
        head_add(&head, span_of("x-forwarded-for"),
                 span_of(clients[_i].fields[i]));
    struct span client = head_client(&head, PROXIES, clients[_i].peer);
    if (clients[_i].client == NULL)
        ck_assert_ptr_null(client.ptr);
    else
        ck_assert(span_is(client, clients[_i].client));
}

TEST(only_the_last_fields_are_kept)
{
    struct head head;
    char address[] = "10.0.0.0";
    head_init(&head, 0, 0);
    head_add(&head, span_of("X-Forwarded-For"), span_of("192.0.2.1"));
    for (int i = 0; i < HEAD_FORWARDED_MAX; i++)
        head_add(&head, span_of("X-Forwarded-For"), span_of(address));
    struct span client = head_client(&head, PROXIES, "10.0.0.1:80");
    ck_assert(span_is(client, "10.0.0.0"));
    client = head_client(&head, "", "10.0.0.1:80");
    ck_assert_ptr_null(client.ptr);
}
