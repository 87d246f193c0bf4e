/* SPDX-License-Identifier: MIT */
/*
 * TLS to the nodes: locks work over it, and GET /nodes says precisely why a
 * node is not believed.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node.h"
#include "tlsnode.h"
#include "waiter.h"

enum { SOON_MS = 20000, HOUR_S = 3600 };

static char dir[PATH_SIZE]; /* of the last node's certificate */

/* Before the nodes start; each reads its files then. */
static void secure_nodes(int first, int count)
{
    for (int i = first; i < first + count; i++)
        PRINT_TO(world.nodes[i].tls, "%s", tlsnode_dir());
}

/* Nodes with TLS, stopped and started anew. */
static void restart_nodes(int first, int count)
{
    for (int i = first; i < first + count; i++) {
        node_kill(&world.nodes[i]);
        node_start(&world.nodes[i]);
    }
}

static void start_secure(int count, const char *options)
{
    world_start_nodes(count);
    secure_nodes(0, count);
    restart_nodes(0, count);
    world_admit_nodes(options);
    world_serve(0, options);
}

/* What GET /nodes says of node 0. */
static bool node_has(const char *state, const char *detail)
{
    const struct answer *a = HTTP(here, .method = "GET", .path = "/nodes");
    return strcmp(answer_text(a, "nodes.0.state"), state) == 0 &&
           strstr(answer_text(a, "nodes.0.detail"), detail);
}

static bool log_has(const char *text)
{
    return server_count_log(here, text) > 0;
}

static void await_node(const char *state, const char *detail)
{
    world_await(0, "/livez");
    AWHILE(node_has(state, detail));
}

SUITE(tls_nodes, .timeout_s = 120);

/* ---- locks --------------------------------------------------------------- */

/* Also those that wait: subscriptions speak TLS, too. */
TEST(locks_work_over_tls)
{
    struct lock lock;
    start_secure(3, "");
    world_serve(1, "");
    lock_take(here, "a", 20000, &lock);
    answer_expect(lock_acquire(here, "a", 20000, NULL), 409, "lock_held");
    expect_ok(lock_extend(here, &lock, 60000));
    answer_expect_held(lock_inspect(here, "a"));
    expect_ok(HTTP(here, .method = "GET", .path = "/locks"));
    for (int i = 0; i < 4; i++) {
        int fd = waiter_send(i % 2 ? here : there, "a", 60000, 40000);
        waiter_expect_listeners("a", i == 0 ? 1 : 2);
        lock_drop(i % 2 ? there : here, &lock);
        lock = waiter_expect_grant(fd, "a", SOON_MS).lock;
    }
    ck_assert_int_gt(waiter_handovers(here, "announcement") +
                         waiter_handovers(there, "announcement"),
                     0);
    ck_assert(!log_has("rediss://")); /* a node's name is as without TLS */
    world_stop();
}

TEST(nodes_with_and_without_tls_mix)
{
    world_start_nodes(3);
    secure_nodes(0, 1);
    restart_nodes(0, 1);
    world_admit_nodes("");
    world_serve(0, "");
    lock_expect_cycle(here, "a");
    world_stop();
}

/* Same hosts, same ports: no new configuration, and no lock is lost. */
TEST(tls_can_be_switched_on_in_a_service)
{
    struct lock lock;
    world_start(3, "");
    lock_take(here, "a", 60000, &lock);
    world_stop_server(0);
    secure_nodes(0, 3);
    restart_nodes(0, 3);
    world_serve(0, "");
    ck_assert(!log_has("other_configuration"));
    expect_ok(lock_extend(here, &lock, 60000));
    lock_drop(here, &lock);
    world_stop();
}

/* ---- certificates -------------------------------------------------------- */

static const struct {
    struct certs_wish wish;
    bool is_foreign; /* signed by itself */
    const char *detail;
} bad[] = {
    {{.address = "127.0.0.1", .begins_s = -2 * HOUR_S, .ends_s = -HOUR_S},
     false,
     "has expired"},
    {{.name = "redis1.test"}, false, "not for the name in --nodes: 127.0.0.1"},
    {{.address = "127.0.0.1"}, true, "self-signed"},
};

static void start_one(const struct certs *certs)
{
    world_start_nodes(1);
    tlsnode_make_dir(dir);
    if (certs != NULL)
        tlsnode_replace(dir, certs);
    PRINT_TO(world.nodes[0].tls, "%s", dir);
    restart_nodes(0, 1);
}

TEST_EACH(node_that_proves_nothing_does_not_vote, bad)
{
    struct certs_wish wish = bad[_i].wish;
    wish.issuer = bad[_i].is_foreign ? NULL : tlsnode_ca();
    struct certs *certs = certs_new(&wish);
    start_one(certs);
    world_start_server(0, "");
    await_node("tls_failed", bad[_i].detail);
    AWHILE(log_has(bad[_i].detail));
    ck_assert_int_eq(http_probe(here, "/readyz"), 503);
    certs_free(certs);
    world_stop();
}

/* In how many seconds the certificate that the node shows ends. */
static double certificate_ends_s(void)
{
    const char *sample =
        textf("redlockd_node_tls_certificate_expiry_timestamp_seconds{node="
              "\"127.0.0.1:%d\"}",
              world.nodes[0].port);
    return http_metric(here, sample) - (double)time(NULL);
}

static void replace_certificate(const struct certs *certs)
{
    const char *options = textf("CONFIG SET tls-cert-file %s/" TLSNODE_CERT
                                " tls-key-file %s/" TLSNODE_KEY,
                                dir, dir);
    tlsnode_replace(dir, certs);
    node_do(&world.nodes[0], options);
}

TEST(end_of_a_nodes_certificate_is_told)
{
    const struct certs_wish wish = {.address = "127.0.0.1",
                                    .issuer = tlsnode_ca(),
                                    .begins_s = -HOUR_S,
                                    .ends_s = HOUR_S / 4};
    struct certs *shorter = certs_new(&wish);
    start_one(NULL);
    world_admit_nodes("");
    world_serve(0, "");
    ck_assert(certificate_ends_s() > HOUR_S / 2.0);
    ck_assert(certificate_ends_s() <= HOUR_S);
    replace_certificate(shorter);
    AWHILE(certificate_ends_s() <= HOUR_S / 4.0);
    ck_assert(certificate_ends_s() > 0);
    certs_free(shorter);
    world_stop();
}

/* The old connection goes on, but the node must be confirmed by new ones. */
TEST(replaced_certificate_is_verified_again)
{
    struct certs *self = certs_new_node(NULL);
    struct certs *fresh = certs_new_node(tlsnode_ca());
    start_one(NULL);
    world_admit_nodes("");
    world_serve(0, "");
    replace_certificate(self);
    await_node("tls_failed", "self-signed");
    replace_certificate(fresh);
    world_wait_ready(0);
    lock_expect_cycle(here, "a");
    certs_free(self);
    certs_free(fresh);
    world_stop();
}

/* ---- files --------------------------------------------------------------- */

static void hang_up(void)
{
    ck_assert_int_eq(kill(here->pid, SIGHUP), 0);
}

TEST(hangup_reads_the_files_again)
{
    char options[PATH_SIZE + 32], path[PATH_SIZE + 16], ours[PATH_SIZE];
    struct certs *stranger = certs_new_ca();
    start_one(NULL);
    tlsnode_make_dir(ours);
    PRINT_TO(path, "%s/" TLSNODE_CA, ours);
    PRINT_TO(options, "--node-ca %s", path);
    certs_write(stranger, path);
    world_start_server(0, options);
    await_node("tls_failed", "an issuer that --node-ca");
    certs_write(tlsnode_ca(), path);
    hang_up();
    world_wait_ready(0);
    ck_assert(log_has("event=node_tls_reloaded"));
    ck_assert_int_eq(truncate(path, 0), 0);
    hang_up();
    AWHILE(log_has("event=node_tls_not_reloaded"));
    ck_assert(log_has("contains no certificate in PEM"));
    restart_nodes(0, 1); /* a new connection, by the old file */
    world_wait_ready(0);
    lock_expect_cycle(here, "a");
    certs_free(stranger);
    world_stop();
}

TEST(password_and_key_are_in_no_log)
{
    start_one(NULL);
    node_do(&world.nodes[0], "CONFIG SET requirepass hunter2");
    const char *options =
        textf("--nodes rediss://:hunter3@127.0.0.1:%d --node-ca %s/" TLSNODE_CA
              " --node-cert %s/" TLSNODE_CERT " --node-key %s/" TLSNODE_KEY,
              world.nodes[0].port, dir, dir, dir);
    world_start_server(0, options);
    await_node("no_permission", "");
    ck_assert(!log_has("hunter"));
    ck_assert(!log_has("PRIVATE"));
    world_stop();
}
