/*
 * A client certificate as an identity: the listener's TLS and the auth file
 * together.
 */
#include <stdlib.h>
#include <unistd.h>

#include "auth.h"
#include "secure.h"

enum { N = 3 };

static const char standard[] =
    "team cert:dns:team.example lock,read prefix=t/\n"
    "mesh cert:uri:spiffe://mesh/a lock prefix=*\n"
    "mail cert:email:a@mail.example lock prefix=*\n"
    "plain cert:cn:plain lock prefix=*\n"
    "blue " AUTH_BLUE " lock,read,metrics,admin prefix=*\n";

static struct authority ours, theirs;
static char path[PATH_SIZE];
static struct pair shown;

/* Who asks from now on. */
static void ask_as(const struct subject *subject)
{
    shown = authority_issue(&theirs, subject);
    secure_set_client(
        &(struct secure_client){.authority = ours.path, .pair = &shown});
    http_disconnect();
}

static const struct subject team = {.dns = "team.example", .is_client = true};

static void start(void)
{
    const struct subject subject = {.common = "localhost"};
    authority_make(&ours, "ours");
    authority_make(&theirs, "theirs");
    auth_make(path, standard);
    struct pair pair = authority_issue(&ours, &subject);
    ask_as(&team);
    const char *options =
        textf("--tls-cert %s --tls-key %s --tls-client-ca %s --auth-file %s "
              "--audit-log %s.audit",
              pair.certificate, pair.key, theirs.path, path, path);
    world_start(N, options);
}

static void finish(void)
{
    world_finish();
    authority_free(&ours);
    authority_free(&theirs);
}

static const struct answer *acquire(const char *token, struct lock *lock)
{
    return auth_acquire(here, token, "{\"resource\":\"t/1\"}", lock);
}

/* owner NULL: nobody's certificate */
static const struct {
    struct subject subject;
    const char *owner;
} clients[] = {
    {{.common = "plain", .is_client = true}, "plain"},
    {{.common = "plain", .dns = "team.example", .is_client = true}, "team"},
    {{.uri = "spiffe://mesh/a", .is_client = true}, "mesh"},
    {{.email = "a@mail.example", .is_client = true}, "mail"},
    {{.common = "plain",
      .dns = "team.example",
      .uri = "spiffe://mesh/a",
      .email = "a@mail.example",
      .is_client = true},
     NULL}, /* it would be three */
    /* a name of another kind */
    {{.common = "team.example", .is_client = true}, NULL},
    /* beside other names the common one does not count */
    {{.common = "plain", .dns = "x.example", .is_client = true}, NULL},
    {{.is_client = true}, NULL},
};

SUITE(identity, .timeout_s = 60, .set_up_once = start,
      .tear_down_once = finish);

TEST_EACH(the_name_in_the_certificate_is_the_identity, clients)
{
    struct lock lock;
    ask_as(&clients[_i].subject);
    const struct answer *a = acquire(NULL, &lock);
    if (clients[_i].owner == NULL) {
        answer_expect(a, 401, "unauthorized");
        ck_assert_str_eq(answer_header(a, "WWW-Authenticate"),
                         "Bearer realm=\"redlockd\"");
        return;
    }
    answer_expect(a, 201, NULL);
    ck_assert_str_eq(answer_text(a, "owner"), clients[_i].owner);
    expect_ok(auth_release(here, NULL, &lock));
}
