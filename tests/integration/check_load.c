/* SPDX-License-Identifier: MIT */
/*
 * Steady load while nodes die, stand still and come back: with two of five
 * hurt not one request fails; with three nothing is granted; afterwards all is
 * as before, and no key is left.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "node.h"
#include "rival.h"

/* It must not look like a silent node. */
#define SLOW_MACHINE "--node-timeout-ms 2000"

enum { N = 5, WORKERS = 4, SOME_CYCLES = 150, TTL_MS = 5000 };

/* What the workers share with the test. */
struct load {
    atomic_int cycles;
    atomic_int failed;
    char failure[512]; /* the first one */
};

static struct load *load;

static void note_failure(const char *call, const struct answer *answer)
{
    if (atomic_fetch_add(&load->failed, 1) == 0)
        snprintf(load->failure, sizeof load->failure, "%s: %d %.400s", call,
                 answer->status, answer->body);
}

/* Acquires, extends and releases a lock that nobody else wants, and looks at
 * one that nobody has. */
static void work_once(int worker, int turn)
{
    struct lock lock;
    const struct answer *answer;

    const char *resource = textf("load:%d:%d", worker, turn);
    answer = lock_acquire(here, resource, TTL_MS, &lock);
    if (answer->status != 201) {
        note_failure("acquire", answer);
        return;
    }
    answer = lock_extend(here, &lock, TTL_MS);
    if (answer->status != 200)
        note_failure("extend", answer);
    answer = lock_inspect(here, "load:nobody");
    if (answer->status != 200)
        note_failure("inspect", answer);
    answer = lock_release(here, &lock);
    if (answer->status != 200)
        note_failure("release", answer);
    atomic_fetch_add(&load->cycles, 1);
}

static void work(int worker)
{
    for (int turn = 0; !crowd_is_over(); turn++)
        work_once(worker, turn);
}

static void start_load(const char *options)
{
    world_start(N, options);
    load = harness_share(sizeof *load);
    crowd_start(WORKERS, work);
}

static void let_work(int cycles)
{
    int from = atomic_load(&load->cycles);

    WAIT_UNTIL(60000, atomic_load(&load->cycles) >= from + cycles ||
                          atomic_load(&load->failed) > 0);
}

static void end_load(void)
{
    crowd_end();
    ck_assert_msg(atomic_load(&load->failed) == 0, "%d failed; first: %s",
                  atomic_load(&load->failed), load->failure);
}

SUITE(load, .timeout_s = 300);

/* What the nodes said meanwhile lies in its sockets. */
TEST(a_server_that_is_held_up_fails_no_request)
{
    start_load("--node-timeout-ms 200");
    for (int i = 0; i < 6; i++) {
        let_work(SOME_CYCLES / 5);
        server_pause(here);
        pause_ms(300);
        server_resume(here);
    }
    end_load();
    world_stop();
}

/* Besides the state hash. */
static long long keys_left(void)
{
    long long keys = 0;

    for (int i = 0; i < N; i++)
        keys += node_integer(&world.nodes[i], "DBSIZE") -
                node_integer(&world.nodes[i], "EXISTS redlockd:state");
    return keys;
}

/* Every client has released: nothing may be left, long before the TTL. */
static void expect_no_keys(void)
{
    WAIT_UNTIL(TTL_MS / 2, keys_left() == 0);
}

/* Hurts these nodes for so long that the server gives them up; and back. */
static void hurt(void (*begin)(int, int), void (*end)(int, int), int first,
                 int count)
{
    begin(first, first + count);
    let_work(SOME_CYCLES);
    rival_await_count(0, N - count);
    let_work(SOME_CYCLES);
    end(first, first + count);
    rival_await_count(0, N);
    let_work(SOME_CYCLES);
}

TEST(one_and_two_dead_nodes_fail_no_request)
{
    start_load(SLOW_MACHINE);
    let_work(SOME_CYCLES);
    hurt(world_kill_nodes, world_restart_nodes, 0, 1);
    hurt(world_kill_nodes, world_restart_nodes, 3, 2);
    end_load();
    WAIT_UNTIL(2 * TTL_MS, keys_left() == 0);
    world_stop();
}

TEST(one_and_two_paused_nodes_fail_no_request)
{
    start_load(SLOW_MACHINE);
    let_work(SOME_CYCLES);
    hurt(world_pause_nodes, world_resume_nodes, 4, 1);
    hurt(world_pause_nodes, world_resume_nodes, 1, 2);
    end_load();
    expect_no_keys();
    world_stop();
}

static void expect_no_quorum(void)
{
    answer_expect(lock_acquire(here, "order:42", TTL_MS, NULL), 503,
                  "no_quorum");
}

/* The acquires lie in the paused nodes' sockets, and must not come to life. */
TEST(three_paused_nodes_are_no_quorum_until_one_is_back)
{
    world_start(N, "");
    world_pause_nodes(0, 3);
    for (int i = 0; i < 5; i++)
        expect_no_quorum();
    rival_await_count(0, 2);
    expect_no_quorum();
    world_resume_nodes(0, 3);
    rival_await_count(0, N);
    expect_no_keys(); /* of the acquires that were lost meanwhile */
    lock_expect_cycle(here, "order:42");
    expect_no_keys();
    world_stop();
}
