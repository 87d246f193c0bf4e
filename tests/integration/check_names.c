/* SPDX-License-Identifier: MIT */
/*
 * The number of names changes, 3 to 5 and 5 to 3: nothing is granted for as
 * long as the longest lock is held. The greatest TTL allowed is one minute, and
 * a minute and more would be waited for by time alone.
 */
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

enum { BY_TIME_MS = 60000 };

static const int first[] = {0, 1, 2, 3, 4};

SUITE(names, .timeout_s = 1500, .tags = "slow");

/* The first so many nodes. */
static const char *options_of(const char *before, int names)
{
    return world_name_nodes(before, textf("%.*s", names, "abcde"), first);
}

/* One server of the old names. */
static void begin(int names)
{
    world_start_nodes(5);
    world_start_server(0, options_of("", names));
    world_await(0, "/readyz");
    rival_await_count(0, names);
}

/* Asks now and then: each attempt is a promise of its own. */
static bool is_granted(int server, struct lock *lock)
{
    if (lock_acquire(&world.servers[server], "held", 1000, lock)->status == 201)
        return true;
    pause_ms(50);
    return false;
}

static const int changes[][2] = {{3, 5}, {5, 3}};

TEST_EACH(story_59_other_names_wait_for_what_is_held, changes)
{
    struct lock held, next;
    begin(changes[_i][0]);
    lock_take(here, "held", 8000, &held);
    int64_t ends_ms = harness_now_ms() + held.validity_ms;
    world_start_server(1, options_of("--config-epoch 2", changes[_i][1]));
    world_await(1, "/livez");
    WAIT_UNTIL(BY_TIME_MS, is_granted(1, &next));
    ck_assert_int_ge(harness_now_ms(), ends_ms);
    ck_assert_int_gt(next.number, held.number);
    rival_await_count(1, changes[_i][1]);
    ck_assert(!is_granted(0, &held)); /* not through the old server */
    world_stop();
}

/* ---- a list without a majority of the old names ---------------------------
 */

enum { SHORT_TTL_MS = 1000, ENOUGH_MS = 20000 }; /* time alone: 14 s */

static const char *list_of(const char *before, const char *names,
                           const int nodes[])
{
    return world_name_nodes(textf("--max-ttl-ms 1000 %s", before), names,
                            nodes);
}

/* How often each case is tried, for 20 s: NAMES_TRIES=20. */
static int tries(void)
{
    const char *tries = getenv("NAMES_TRIES");
    return tries != NULL ? atoi(tries) : 1;
}

/* Until enough time has passed: nobody else has the lock that is granted by
 * server 0, which goes on granting. */
static void expect_one_holder(void)
{
    struct lock old, next;
    int64_t until_ms = harness_now_ms() + ENOUGH_MS;
    int granted = 0;
    while (harness_now_ms() < until_ms) {
        int64_t sent_ms = harness_now_ms();
        bool is_held =
            lock_acquire(here, "held", SHORT_TTL_MS, &old)->status == 201;
        if (!is_held) {
            pause_ms(100);
            continue;
        }
        granted++;
        bool is_next =
            lock_acquire(there, "held", SHORT_TTL_MS, &next)->status == 201;
        bool is_valid = harness_now_ms() < sent_ms + old.validity_ms;
        ck_assert_msg(!is_next || !is_valid, "two holders");
        (void)lock_release(here, &old);
        pause_ms(100);
    }
    ck_assert_int_gt(granted, 0);
}

static const struct {
    const char *before, *after;
    int nodes[8]; /* of the new names */
} outside[] = {{"abcde", "abx", {0, 1, 5}}, {"abc", "axy", {0, 5, 6}}};

TEST_EACH(story_65_a_majority_of_the_old_names_is_outside_the_list, outside)
{
    for (int i = 0; i < tries(); i++) {
        world_start_nodes(8);
        world_start_server(0, list_of("", outside[_i].before, first));
        world_await(0, "/readyz");
        world_start_server(1, list_of("--config-epoch 2", outside[_i].after,
                                      outside[_i].nodes));
        world_await(1, "/livez");
        expect_one_holder();
        ck_assert_int_eq(server_count_log(there, "event=names_refused"), 1);
        /* and nothing is half done */
        ck_assert_int_eq(rival_count_voting(0),
                         (int)strlen(outside[_i].before));
        world_stop();
    }
}

/* "The old servers are stopped." */
TEST(story_65_take_over_is_the_word_for_it)
{
    world_start_nodes(8);
    world_start_server(0, list_of("", "abc", first));
    world_await(0, "/readyz");
    world_stop_server(0);
    world_start_server(
        1, list_of("--config-epoch 2 --take-over 2", "axy", outside[1].nodes));
    world_await(1, "/readyz");
    /* and is not said of a later change */
    AWHILE(server_count_log(there, "event=take_over_done") == 1);
    world_stop();
}

static void set_behind(struct node *node)
{
    enum { BEHIND_MS = -900 };
    node_kill(node);
    node->has_clock = true;
    node_set_clock(node, BEHIND_MS);
    node_start(node);
}

/* c and d are behind: by most of the clocks, time goes back. */
TEST(story_65_numbers_rise_though_most_of_the_new_clocks_are_behind)
{
    static const int next[] = {0, 2, 3};
    struct lock held, later;
    world_start_nodes(5);
    set_behind(&world.nodes[2]);
    set_behind(&world.nodes[3]);
    world_start_server(0, list_of("", "abc", first));
    world_await(0, "/readyz");
    lock_take(here, "held", 100, &held);
    world_start_server(1, list_of("--config-epoch 2", "acd", next));
    world_await(1, "/livez");
    AWHILE(is_granted(1, &later));
    ck_assert_int_gt(later.number, held.number);
    ck_assert(!is_granted(0, &held));
    world_stop();
}

/* ---- servers that disagree at the same time -------------------------------
 */

#define SMALL "--max-ttl-ms 1000 --node-timeout-ms 300 "

/* Two servers that disagree about the same nodes at the same epoch. */
TEST(story_10_another_configuration_is_named_and_never_admitted)
{
    struct lock lock;
    rival_start(3, 1, SMALL);
    const char *options = textf("--nodes 127.0.0.1:%d,127.0.0.1:%d",
                                world.nodes[0].port, world.nodes[1].port);
    world_start_server(1, options);
    world_await(1, "/livez");
    for (int i = 0; i < 2; i++)
        rival_await_state(1, i, "other_configuration");
    ck_assert_has(rival_told(1, 0, "detail"), "--config-epoch 2");
    answer_expect(lock_acquire(there, "other", 900, &lock), 503, "no_quorum");
    ck_assert_int_eq(rival_count_voting(0), 3);
    rival_cycle(here, "other");
    world_stop();
}

/* Neither ever gets the nodes of both: that must not look like a quarantine. */
TEST(two_lists_that_wait_for_the_same_new_nodes_are_named)
{
    world_start_nodes(4);
    for (int i = 0; i < 2; i++)
        world_start_server(i, textf(SMALL "--nodes 127.0.0.1:%d,127.0.0.1:%d,"
                                          "127.0.0.1:%d",
                                    world.nodes[0].port, world.nodes[1].port,
                                    world.nodes[2 + i].port));
    for (int i = 0; i < 2; i++) {
        world_await(i, "/livez");
        rival_await_state(i, 0, "other_configuration");
        ck_assert_has(rival_told(i, 0, "detail"), "the same --nodes");
    }
    world_stop_server(1);
    world_await(0, "/readyz");
    world_stop();
}

/*
 * Servers whose limits differ share the nodes. One with a lower limit respects
 * a lock that is longer than it would grant, even where a node forgets it.
 */
TEST(servers_with_other_limits_vote_and_wait_for_long_locks)
{
    struct lock lock;
    rival_start(5, 1, "--max-ttl-ms 8000");
    world_serve(1, SMALL);
    ck_assert_int_eq(rival_count_voting(1), 5);
    int64_t promised_ms = harness_now_ms();
    lock_take(here, "long", 8000, &lock);
    world_stop_server(0);
    for (int i = 0; i < 2; i++)
        node_do(&world.nodes[i], "FLUSHALL");
    for (int i = 0; i < 2; i++)
        rival_await_state(1, i, "quarantined");
    rival_await_count(1, 5);
    ck_assert_int_ge(harness_now_ms() - promised_ms, 8000);
    rival_cycle(there, "long");
    world_stop();
}

static bool is_any_granted(const char *resource)
{
    bool is_any = false;
    for (int i = 0; i < WORLD_SERVERS; i++)
        is_any |=
            lock_acquire(&world.servers[i], resource, 900, NULL)->status == 201;
    return is_any;
}

/*
 * Five nodes become three under two old and two new servers. A lock that an old
 * one granted for 4 s is respected by the new ones, whose greatest TTL is 1 s;
 * the old ones stand down (32); the greatest TTL governs the timers until what
 * was granted under it has ended (33).
 */
TEST(story_32_and_33_nodes_change_under_running_servers)
{
    struct lock lock;
    world_start_nodes(5);
    world_serve_all(2,
                    options_of("--max-ttl-ms 4000 --node-timeout-ms 300", 5));
    lock_take(here, "long", 4000, &lock);
    int64_t valid_until_ms = harness_now_ms() + lock.validity_ms;
    for (int i = 2; i < 4; i++)
        world_start_server(i, options_of(SMALL "--config-epoch 2", 3));
    for (int i = 2; i < 4; i++)
        world_await(i, "/livez");
    while (harness_now_ms() < valid_until_ms - 500)
        ck_assert(!is_any_granted("long") ||
                  harness_now_ms() >= valid_until_ms);
    for (int i = 0; i < 2; i++) {
        rival_await_state(i, 0, "superseded");
        ck_assert_has(rival_told(i, 0, "detail"), "stores configuration epoch");
        answer_expect(lock_acquire(&world.servers[i], "old", 900, &lock), 503,
                      "no_quorum");
    }
    for (int i = 2; i < 4; i++)
        rival_await_count(i, 3);
    ck_assert_int_ge(harness_now_ms(), valid_until_ms);
    rival_cycle(&world.servers[2], "long");
    ck_assert_str_eq(node_text(&world.nodes[0], "HGET redlockd:state max_ttl"),
                     "1000");
    world_stop();
}
