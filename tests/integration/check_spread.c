/* SPDX-License-Identifier: MIT */
/*
 * A lock that is held gets onto all nodes, whoever else comes by, through
 * whichever servers: then two of five nodes may die.
 *
 * SPREAD_TRIES plays each scene so often.
 */
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"

enum { N = 5, TTL_MS = 30000, SPREAD_MS = 2500 /* a second, if all is idle */ };

WORLD(world_start_two, N, "");

static int tries(void)
{
    const char *text = getenv("SPREAD_TRIES");
    return text != NULL ? atoi(text) : 2;
}

/* Nodes on which the lock has this token, and most of its time. */
static int count_with(const char *resource, const char *token)
{
    int count = 0;
    for (int i = 0; i < N; i++) {
        const char *value = node_text(&world.nodes[i], "GET %s", resource);
        long long left_ms = node_integer(&world.nodes[i], "PTTL %s", resource);
        count += value != NULL && strcmp(value, token) == 0 &&
                 left_ms > TTL_MS / 2 && left_ms <= TTL_MS;
    }
    return count;
}

static void expect_everywhere(const char *resource, const struct lock *lock)
{
    WAIT_UNTIL(SPREAD_MS, count_with(resource, lock->token) == N);
}

static void expect_readers(const char *token, int wanted)
{
    for (int i = 0; i < N; i++)
        WAIT_UNTIL(SPREAD_MS, (node_text(&world.nodes[i], "ZSCORE read %s",
                                         token) != NULL) == (wanted > 0));
}

SUITE(spread, .timeout_s = 240, .tags = "slow", WORLD_ONCE);

/* The fill of the released lock may come after its release, and keeps that of
 * the next one out. */
TEST(story_68_a_lock_behind_one_that_was_released_elsewhere)
{
    struct lock lock, next;
    for (int i = 0; i < tries(); i++) {
        const char *resource = textf("behind:%d", i);
        lock_take(here, resource, TTL_MS, &lock);
        pause_ms(40 + i % 6 * 10);
        lock_drop(there, &lock);
        lock_take(there, resource, TTL_MS, &next);
        expect_everywhere(resource, &next);
        lock_drop(here, &next);
        expect_keys(resource, 0);
    }
}

TEST(story_68_a_lock_of_a_server_that_stands_still)
{
    struct lock lock;
    for (int i = 0; i < tries(); i++) {
        const char *resource = textf("still:%d", i);
        lock_take(here, resource, TTL_MS, &lock);
        server_pause(here);
        pause_ms(600); /* longer than the fill may take */
        server_resume(here);
        expect_everywhere(resource, &lock);
        lock_drop(here, &lock);
    }
}

/* Takes a lock beside the reader again and again, and lets it go. */
static void come_by(int number)
{
    struct lock grant;
    (void)number;
    while (!crowd_is_over()) {
        bool is_granted = grant_ask(there,
                                    "{\"resource\":\"read\","
                                    "\"mode\":\"shared\"}",
                                    NULL, &grant)
                              ->status == 201;
        pause_ms(250);
        if (is_granted)
            (void)lock_release(there, &grant);
    }
}

TEST(story_69_a_reader_beside_others_that_come_and_go)
{
    struct lock grant;
    crowd_start(2, come_by);
    for (int i = 0; i < tries(); i++) {
        grant_take(here,
                   "{\"resource\":\"read\",\"ttl_ms\":30000,"
                   "\"mode\":\"shared\"}",
                   NULL, &grant);
        expect_readers(grant.token, N);
        for (int k = 3; k < N; k++)
            node_do(&world.nodes[k], "ZREM read %s", grant.token);
        expect_ok(lock_extend(here, &grant, TTL_MS));
        expect_readers(grant.token, N);
        lock_drop(here, &grant);
        expect_readers(grant.token, 0);
    }
    crowd_end();
}

/* ---- nodes that were away ------------------------------------------------ */

/* Granted by three of five nodes; what lies in the sockets of the others is
 * late when they go on. */
static void take_on_three(const char *resource, struct lock *lock)
{
    world_pause_nodes(3, N);
    lock_take(here, resource, TTL_MS, lock);
    pause_ms(600);
    world_resume_nodes(3, N);
    world_wait_ready(0);
    ck_assert_int_eq(count_keys(resource), 3);
}

TEST(story_50_an_extend_sets_the_lock_where_it_is_missing)
{
    struct lock lock;
    take_on_three("repair", &lock);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    expect_everywhere("repair", &lock);
    lock_drop(here, &lock);
    expect_keys("repair", 0);
}

/* The repair of its last extend is due behind the release. */
TEST(a_release_leaves_nothing_for_the_repair)
{
    struct lock lock;
    take_on_three("gone", &lock);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    lock_drop(there, &lock);
    expect_keys("gone", 0); /* a majority has answered; others may be later */
    STAYS(2000, count_keys("gone") == 0); /* two node timeouts, and more */
}

GROUP(own, .timeout_s = 240, .tags = "slow");

TEST(a_lock_lives_on_nodes_that_were_dead_when_it_was_granted)
{
    struct lock lock;
    world_start(N, "");
    world_kill_nodes(3, N);
    lock_take(here, "dead", TTL_MS, &lock);
    world_restart_nodes(3, N);
    world_wait_ready(0);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    expect_everywhere("dead", &lock);
    world_kill_nodes(0, 2);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    answer_expect_held(lock_inspect(here, "dead"));
    lock_drop(here, &lock);
    world_restart_nodes(0, 2);
    expect_keys("dead", 0);
    world_stop();
}
