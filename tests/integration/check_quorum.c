/* SPDX-License-Identifier: MIT */
/*
 * Locks that a quorum has at first: what is left of those that are released
 * through another server, and whether they live on while nodes die.
 *
 * QUORUM_CYCLES and QUORUM_LOCKS make it longer, QUORUM_KILLS too.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "http.h"
#include "node.h"
#include "rival.h"

enum {
    N = 5,
    TTL_MS = 1000,
    STEP_MS = 300, /* acquired, extended three times, released */
    STEPS = 5,
    HOLDERS = 4, /* processes, for each of two servers */
    SOON_MS = 10000,
};

SUITE(quorum, .timeout_s = 240, .tags = "slow");

static int from_environment(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : otherwise;
}

/* ---- released elsewhere ---------------------------------------------------
 */

/* Nodes that have nothing but redlockd's state. */
static int count_empty(void)
{
    int count = 0;
    for (int i = 0; i < N; i++)
        count += node_integer(&world.nodes[i], "DBSIZE") == 1;
    return count;
}

TEST(a_release_through_another_server_leaves_nothing)
{
    int cycles = from_environment("QUORUM_CYCLES", 1000);
    struct lock lock;
    rival_start(N, 2, "");
    for (int i = 0; i < cycles; i++) {
        lock_take(&world.servers[i % 2], textf("cycle:%d", i), 60000, &lock);
        if (i % 100 == 0) /* one that gets onto the other nodes meanwhile */
            pause_ms(90 + i / 100 % 10 * 2);
        lock_drop(&world.servers[(i + 1) % 2], &lock);
    }
    SOON(count_empty() == N);
    world_stop();
}

/* ---- while nodes die ------------------------------------------------------
 */

static struct board {
    atomic_int slow;
    atomic_int lost[2], cycles[2]; /* by server */
} * board;

struct held {
    struct lock lock;
    int step;
};

static void go_on(struct held *it, int server, const char *resource)
{
    const struct server *at = &world.servers[server];
    if (it->step == 0) {
        if (lock_acquire(at, resource, TTL_MS, &it->lock)->status != 201)
            return;
    } else if (it->step < STEPS - 1) {
        if (lock_extend(at, &it->lock, TTL_MS)->status != 200) {
            atomic_fetch_add(&board->lost[server], 1);
            it->step = 0;
            return;
        }
    } else {
        (void)lock_release(at, &it->lock);
        atomic_fetch_add(&board->cycles[server], 1);
    }
    it->step = (it->step + 1) % STEPS;
}

/* Each of its locks at another step. */
static void hold(int holder)
{
    int count = from_environment("QUORUM_LOCKS", 80) / (2 * HOLDERS);
    struct held *all = calloc((size_t)count, sizeof *all);
    int server = holder % 2;
    for (int64_t next_ms = harness_now_ms(); !crowd_is_over();) {
        for (int i = 0; i < count; i++) {
            go_on(&all[i], server, textf("held:%d:%d", holder, i));
        }
        next_ms += STEP_MS;
        int64_t left_ms = next_ms - harness_now_ms();
        if (left_ms > 0)
            pause_ms((int)left_ms);
        else if (atomic_fetch_add(&board->slow, 1) >= 0)
            break; /* this machine is too slow: nothing of it counts */
    }
    free(all);
}

/* Server 0 asks a quorum, server 1 all: the same happens to both. */
TEST(locks_live_on_while_nodes_die)
{
    int kills = from_environment("QUORUM_KILLS", 4);
    board = harness_share(sizeof *board);
    rival_start(N, 1, "--ask quorum ");
    rival_start_fresh(1, "--ask all ");
    rival_await_count(1, N);
    http_disconnect(); /* no connection is shared */
    crowd_start(2 * HOLDERS, hold);
    for (int i = 0; i < kills; i++) {
        struct node *node = &world.nodes[random() % N];
        int cycles = atomic_load(&board->cycles[0]);
        SOON(atomic_load(&board->cycles[0]) > cycles ||
             atomic_load(&board->slow) > 0);
        node_kill(node);
        node_start(node);
        WAIT_UNTIL(2 * SOON_MS,
                   rival_count_voting(0) == N && rival_count_voting(1) == N);
    }
    crowd_end();
    int slow = atomic_load(&board->slow);
    for (int i = 0; i < 2; i++)
        fprintf(stderr, "quorum: asking %s: %d cycles, %d lost, %d too slow\n",
                i == 0 ? "a quorum" : "all", atomic_load(&board->cycles[i]),
                atomic_load(&board->lost[i]), slow);
    if (slow == 0) {
        ck_assert_int_eq(board->lost[0], 0);
        ck_assert_int_eq(board->lost[1], 0);
        ck_assert_int_gt(board->cycles[0], 0);
    }
    world_stop();
}
