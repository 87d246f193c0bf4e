/* SPDX-License-Identifier: MIT */
/*
 * A client certificate as an identity: which of its names counts, and what
 * authorities below the trusted one, whose names are constrained, can make of
 * their clients: nobody outside.
 */
#include <stdio.h>

#include "auth.h"
#include "secure.h"

enum { N = 3 };

static const char standard[] =
    "one cert:dns:a.one.example lock prefix=*\n"
    "two cert:dns:a.two.example lock prefix=*\n"
    "mesh cert:uri:spiffe://two.example/a lock prefix=*\n"
    "mail cert:email:a@two.example lock prefix=*\n"
    "plain cert:cn:plain lock prefix=*\n";

static struct authority ours, root, narrow, by_dns;

static const struct subject of_one = {.dns = "one.example",
                                      .email = "one.example"};
static const struct subject dns_of_one = {.dns = "one.example"};
static const struct subject all_uris = {.uri = "."}, nothing = {.uri = NULL};

static void start(void)
{
    const struct subject subject = {.common = "localhost"};
    char path[PATH_SIZE], options[5 * PATH_SIZE];
    authority_make(&ours, "ours");
    authority_make(&root, "root");
    authority_delegate(&narrow, &root, &of_one, &all_uris);
    authority_delegate(&by_dns, &root, &dns_of_one, &nothing);
    auth_make(path, standard);
    struct pair pair = authority_issue(&ours, &subject);
    snprintf(options, sizeof options,
             "--tls-cert %s --tls-key %s --tls-client-ca %s --auth-file %s",
             pair.certificate, pair.key, root.path, path);
    secure_set_client(&(struct secure_client){.authority = ours.path});
    world_start(N, options);
}

static void finish(void)
{
    world_finish();
    authority_free(&ours);
    authority_free(&root);
    authority_free(&narrow);
    authority_free(&by_dns);
}

/* Who a certificate of the authority makes its client; NULL: nobody. */
static const char *name_of(const struct authority *authority,
                           const struct subject *subject)
{
    const struct pair shown = authority_issue(authority, subject);
    secure_set_client(
        &(struct secure_client){.authority = ours.path, .pair = &shown});
    const struct answer *a =
        http_try(here, &(struct request){.method = "POST",
                                         .path = "/locks",
                                         .json = "{\"resource\":\"r\"}"});
    if (a == NULL || a->status == 401)
        return NULL; /* its handshake is refused, or it is not known */
    answer_expect(a, 201, NULL);
    struct lock lock = {.path = "/locks/r"};
    const char *owner = textf("%s", answer_text(a, "owner"));
    snprintf(lock.token, sizeof lock.token, "%s", answer_text(a, "token"));
    http_disconnect();
    expect_ok(auth_release(here, NULL, &lock));
    return owner;
}

/* owner NULL: nobody's certificate */
static const struct {
    struct subject subject;
    const char *owner;
} clients[] = {
    {{.common = "plain", .is_client = true}, "plain"},
    {{.common = "plain", .dns = "a.one.example", .is_client = true}, "one"},
    {{.uri = "spiffe://two.example/a", .is_client = true}, "mesh"},
    {{.email = "a@two.example", .is_client = true}, "mail"},
    {{.common = "plain",
      .dns = "a.one.example",
      .uri = "spiffe://two.example/a",
      .is_client = true},
     NULL}, /* it would be two */
    /* a name of another kind */
    {{.common = "a.one.example", .is_client = true}, NULL},
    /* beside other names the common one does not count */
    {{.common = "plain", .dns = "x.example", .is_client = true}, NULL},
    {{.is_client = true}, NULL},
};

#define TWO_DNS "a.two.example"
#define TWO_URI "spiffe://two.example/a"
#define TWO_EMAIL "a@two.example"
#define OWN "x.one.example"

/* Which of these any authority may sign for, that of one.example may not. */
static const struct subject tries[] = {
    {.is_client = true, .dns = TWO_DNS},
    {.is_client = true, .uri = TWO_DNS},
    {.is_client = true, .email = TWO_DNS},
    {.is_client = true, .common = TWO_DNS},
    {.is_client = true, .dns = OWN, .uri = TWO_DNS},
    {.is_client = true, .dns = OWN, .email = TWO_DNS},
    {.is_client = true, .dns = OWN, .common = TWO_DNS},
    {.is_client = true, .uri = TWO_URI},
    {.is_client = true, .email = TWO_URI},
    {.is_client = true, .common = TWO_URI},
    {.is_client = true, .dns = OWN, .uri = TWO_URI},
    {.is_client = true, .email = TWO_EMAIL},
    {.is_client = true, .uri = TWO_EMAIL},
    {.is_client = true, .common = TWO_EMAIL},
    {.is_client = true, .dns = OWN, .email = TWO_EMAIL},
    {.is_client = true, .email = "a@one.example", .common = TWO_EMAIL},
};

SUITE(identity, .timeout_s = 60, .set_up_once = start,
      .tear_down_once = finish);

TEST_EACH(the_name_in_the_certificate_is_the_identity, clients)
{
    ck_assert_pstr_eq(name_of(&root, &clients[_i].subject), clients[_i].owner);
}

/* ---- authorities that are constrained ------------------------------------ */

TEST_EACH(who_is_constrained_in_each_kind_becomes_nobody_else, tries)
{
    const char *name = name_of(&narrow, &tries[_i]);
    ck_assert_msg(name == NULL, "try %d becomes %s", _i, name);
}

/* The first ones: they try to get a DNS name by other kinds. */
TEST_RANGE(who_is_constrained_in_dns_gets_no_dns_name, 0, 7)
{
    const char *name = name_of(&by_dns, &tries[_i]);
    ck_assert_msg(name == NULL, "try %d becomes %s", _i, name);
}

TEST(who_is_constrained_is_itself)
{
    static const struct subject own = {.is_client = true,
                                       .dns = "a.one.example"};
    ck_assert_pstr_eq(name_of(&narrow, &own), "one");
    ck_assert_pstr_eq(name_of(&by_dns, &own), "one");
}

/* As docs/reference/tls.md says: each kind that identities have must be
 * constrained. */
TEST(a_kind_that_is_not_constrained_is_open)
{
    static const struct subject mesh = {.is_client = true, .uri = TWO_URI};
    static const struct subject mail = {.is_client = true, .email = TWO_EMAIL};
    static const struct subject plain = {.is_client = true, .common = "plain"};
    ck_assert_pstr_eq(name_of(&by_dns, &mesh), "mesh");
    ck_assert_pstr_eq(name_of(&by_dns, &mail), "mail");
    ck_assert_pstr_eq(name_of(&narrow, &plain), "plain");
}
