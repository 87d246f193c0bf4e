/* SPDX-License-Identifier: MIT */
/*
 * Nodes that another program has filled: above maxmemory they extend and
 * release what is held, and grant nothing new. Those that would evict locks
 * still release them.
 */
#include <string.h>

#include "http.h"
#include "node.h"
#include "waiter.h"

enum { N = 5, QUORUM = 3, TTL_MS = 20000, SHORT_MS = 5000, SOON_MS = 10000 };

WORLD(world_start, N, "--node-timeout-ms 500");

static void fill(int count)
{
    for (int i = 0; i < count; i++)
        node_do(&world.nodes[i], "CONFIG SET maxmemory 1");
}

static void free_memory(void)
{
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i],
                "CONFIG SET maxmemory 0 maxmemory-policy noeviction");
}

static int count_state(const char *state)
{
    const struct answer *a = HTTP(here, .method = "GET", .path = "/nodes");
    int count = 0;
    for (int i = 0; i < N; i++)
        count += strcmp(answer_text(a, textf("nodes.%d.state", i)), state) == 0;
    return count;
}

/* The looks have seen it. */
static void fill_and_look(int count)
{
    fill(count);
    SOON(count_state("out_of_memory") == count);
}

static void set_up(void)
{
    free_memory();
    SOON(count_state("voting") == N);
}

SUITE(full, .timeout_s = 90, .set_up = set_up, WORLD_ONCE);

static const struct answer *acquire(const char *body)
{
    return HTTP(here, "POST", "/locks", .json = body);
}

/* So many nodes have promised that for so long. */
static int count_lasting(const char *key, int ttl_ms)
{
    int count = 0;
    for (int i = 0; i < N; i++)
        count +=
            node_integer(&world.nodes[i], "PTTL %s", key) > ttl_ms - SHORT_MS;
    return count;
}

/* ---- holders ------------------------------------------------------------- */

TEST_RANGE(held_locks_go_on, 0, 2)
{
    struct lock lock;
    lock_take(here, "held", SHORT_MS, &lock);
    expect_keys("held", N);
    if (_i == 0)
        fill(N);
    else
        fill_and_look(QUORUM);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    SOON(count_lasting("held", TTL_MS) == N);
    lock_drop(here, &lock);
    expect_keys("held", 0);
}

/* ---- new locks ----------------------------------------------------------- */

/* count: of the nodes that are known to be full */
static void expect_refused(const struct answer *a, int count)
{
    answer_expect(a, 503, "no_quorum");
    const char *detail = answer_text(a, "detail");
    ck_assert_msg(strstr(detail, "nothing was granted") != NULL &&
                      strstr(detail, "OOM") != NULL &&
                      strstr(detail, "raise maxmemory") != NULL,
                  "%s", detail);
    int named = 0;
    for (int i = 0; i < N; i++)
        named +=
            strstr(detail, textf("127.0.0.1:%d", world.nodes[i].port)) != NULL;
    ck_assert_msg(named >= count, "%s", detail);
}

TEST_RANGE(nothing_new_is_granted, 0, 2)
{
    int known = _i == 0 ? QUORUM : N;
    if (_i == 0)
        fill(QUORUM);
    else
        fill_and_look(N);
    expect_refused(acquire("{\"resource\":\"new\"}"), known);
    expect_refused(acquire("{\"resource\":\"new\",\"mode\":\"shared\"}"),
                   known);
    expect_refused(acquire("{\"resources\":[\"new\",\"newer\"]}"), known);
    expect_keys("new", 0);
    free_memory();
    lock_expect_cycle(here, "new"); /* no look is needed */
}

TEST(one_that_waits_gets_it_when_there_is_memory)
{
    fill_and_look(N);
    int waiter = waiter_send(here, "awaited", TTL_MS, 20000);
    waiter_expect_count(here, 1);
    free_memory();
    struct verdict verdict = waiter_expect_grant(waiter, "awaited", SOON_MS);
    lock_drop(here, &verdict.lock);
}

/* ---- what operators see ----------------------------------------------------
 */

TEST(full_nodes_are_named)
{
    fill_and_look(N);
    const struct answer *a = HTTP(here, .method = "GET", .path = "/nodes");
    ck_assert_int_eq(answer_int(a, "voting"), 0);
    ck_assert(strstr(answer_text(a, "nodes.0.detail"), "maxmemory"));
    ck_assert(strstr(answer_text(a, "nodes.0.detail"), "extends and releases"));
    ck_assert_int_eq(http_probe(here, "/readyz"), 200); /* for holders */
    ck_assert(http_metric(here, textf("redlockd_node_voting{node=\""
                                      "127.0.0.1:%d\"}",
                                      world.nodes[0].port)) == 0);
    int lines = server_count_log(here, "out_of_memory");
    acquire("{\"resource\":\"new\"}"); /* and looks do not take turns with it */
    STAYS(2500, server_count_log(here, "out_of_memory") == lines &&
                    count_state("out_of_memory") == N);
}

/* ---- nodes that would evict locks ------------------------------------------
 */

/* They do not vote; but what was locked before is released. */
TEST(evicting_nodes_release)
{
    struct lock lock;
    lock_take(here, "evicting", TTL_MS, &lock);
    expect_keys("evicting", N);
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i],
                "CONFIG SET maxmemory 100mb maxmemory-policy volatile-ttl");
    SOON(count_state("evicts") == N);
    answer_expect(acquire("{\"resource\":\"new\"}"), 503, "no_quorum");
    answer_expect(lock_extend(here, &lock, TTL_MS), 503, "no_quorum");
    lock_drop(here, &lock);
    expect_keys("evicting", 0);
}
