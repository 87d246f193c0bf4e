/*
 * The number of names changes, 3 to 5 and 5 to 3: nothing is granted for as
 * long as the longest lock is held. The greatest TTL allowed is one minute, and
 * a minute and more would be waited for by time alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "rival.h"

enum { LATE_MS = 30000, BY_TIME_MS = 60000 };

SUITE(names, .timeout_s = 1500, .tags = "slow");

/* The first so many nodes, under names of their own. */
static const char *options_of(const char *before, int names)
{
    static const int nodes[] = {0, 1, 2, 3, 4};
    return world_name_nodes(before, 'a', nodes, names);
}

/* One server of the old names. */
static void begin(int names)
{
    world_start_nodes(5);
    world_start_server(0, options_of("", names));
    world_await(0, "/readyz");
    rival_await_count(0, names);
}

static bool is_granted(int server, struct lock *lock)
{
    return lock_acquire(&world.servers[server], "held", 1000, lock)->status ==
           201;
}

static const struct {
    int before, after, ttl_ms;
} changes[] = {{3, 5, 8000}, {5, 3, 8000}};

TEST_EACH(story_59_other_names_wait_for_what_is_held, changes)
{
    struct lock held, next;
    int64_t ends_ms = 0;
    begin(changes[_i].before);
    if (changes[_i].ttl_ms > 0) {
        lock_take(here, "held", changes[_i].ttl_ms, &held);
        ends_ms = harness_now_ms() + held.validity_ms;
    }
    int64_t began_ms = harness_now_ms();
    world_start_server(1, options_of("--config-epoch 2", changes[_i].after));
    world_await(1, "/livez");
    while (!is_granted(1, &next)) {
        ck_assert_int_lt(harness_now_ms() - began_ms, BY_TIME_MS);
        pause_ms(50);
    }
    ck_assert_int_ge(harness_now_ms(), ends_ms);
    if (changes[_i].ttl_ms > 0)
        ck_assert_int_gt(next.number, held.number);
    rival_await_count(1, changes[_i].after);
    ck_assert(!is_granted(0, &held)); /* not through the old server */
    world_stop();
}

/* ---- a list without a majority of the old names ---------------------------
 */

enum { SHORT_TTL_MS = 1000, ENOUGH_MS = 20000 }; /* time alone: 14 s */

/* "a=host:port,…" of the names, each with the node of this number. */
static const char *list_of(const char *before, const char *names,
                           const int nodes[])
{
    static char options[500];
    int len = PRINT_TO(options, "--max-ttl-ms 1000 %s --nodes ", before);
    for (int i = 0; names[i] != '\0'; i++)
        len += snprintf(options + len, sizeof options - (size_t)len,
                        "%s%c=127.0.0.1:%d", i > 0 ? "," : "", names[i],
                        world.nodes[nodes[i]].port);
    return options;
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
    static const int old[] = {0, 1, 2, 3, 4};
    for (int i = 0; i < tries(); i++) {
        world_start_nodes(8);
        world_start_server(0, list_of("", outside[_i].before, old));
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
    static const int old[] = {0, 1, 2};
    world_start_nodes(8);
    world_start_server(0, list_of("", "abc", old));
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
    static const int old[] = {0, 1, 2}, next[] = {0, 2, 3};
    struct lock held, later;
    world_start_nodes(5);
    set_behind(&world.nodes[2]);
    set_behind(&world.nodes[3]);
    world_start_server(0, list_of("", "abc", old));
    world_await(0, "/readyz");
    lock_take(here, "held", 100, &held);
    world_start_server(1, list_of("--config-epoch 2", "acd", next));
    world_await(1, "/livez");
    AWHILE(is_granted(1, &later));
    ck_assert_int_gt(later.number, held.number);
    ck_assert(!is_granted(0, &held));
    world_stop();
}
