/* SPDX-License-Identifier: MIT */
/*
 * Many workers, one lock: those who wait as retry_after_ms tells get it as
 * often as those who poll, and all of them get it.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "http.h"
#include "node.h"

enum {
    N = 5,
    WORKERS = 16,
    HOLD_MS = 5,
    POLL_MS = 50,
    RUN_MS = 3000,
    RUNS_MAX = 3,
};

/* What the workers share with the test. */
struct contest {
    atomic_int grants[WORKERS];
    atomic_int hand_overs;
    atomic_int last; /* who had the lock */
    atomic_int ready, failed;
    atomic_bool is_begun;
};

static struct contest *contest;
static int poll_ms; /* 0: they wait for as long as they are told */

/* False: the contest ended before the lock was granted. */
static bool acquire(struct lock *lock)
{
    while (!crowd_is_over()) {
        const struct answer *answer =
            lock_acquire(here, "contended", 10000, lock);
        if (answer->status == 201)
            return true;
        answer_expect(answer, 409, "lock_held");
        pause_ms(poll_ms > 0 ? poll_ms
                             : (int)answer_int(answer, "retry_after_ms"));
    }
    return false;
}

static void work(int worker)
{
    struct lock lock;
    lock_inspect(here, "contended"); /* connects */
    atomic_fetch_add(&contest->ready, 1);
    while (!atomic_load(&contest->is_begun))
        pause_ms(1);
    while (acquire(&lock)) {
        atomic_fetch_add(&contest->grants[worker], 1);
        if (atomic_exchange(&contest->last, worker) != worker)
            atomic_fetch_add(&contest->hand_overs, 1);
        pause_ms(HOLD_MS);
        if (lock_release(here, &lock)->status != 200)
            atomic_fetch_add(&contest->failed, 1);
    }
}

static bool has_each_a_grant(void)
{
    for (int i = 0; i < WORKERS; i++)
        if (atomic_load(&contest->grants[i]) == 0)
            return false;
    return true;
}

/* For some seconds: how often the lock went to another worker. Those that wait
 * as they are told go on until each of them has had it. */
static int contend(int polling_ms)
{
    int least = INT32_MAX, most = 0, all = 0;
    poll_ms = polling_ms;
    memset(contest, 0, sizeof *contest);
    crowd_start(WORKERS, work);
    AWHILE(atomic_load(&contest->ready) == WORKERS);
    atomic_store(&contest->is_begun, true);
    pause_ms(RUN_MS);
    int hand_overs = atomic_load(&contest->hand_overs);
    if (poll_ms == 0)
        AWHILE(has_each_a_grant());
    crowd_end();
    ck_assert_int_eq(atomic_load(&contest->failed), 0);
    for (int i = 0; i < WORKERS; i++) {
        int grants = atomic_load(&contest->grants[i]);
        least = grants < least ? grants : least;
        most = grants > most ? grants : most;
        all += grants;
    }
    printf("contention: %s: %d grants, %d to another worker in %d ms, "
           "fewest %d, most %d\n",
           poll_ms > 0 ? "polling" : "as told", all, hand_overs, RUN_MS, least,
           most);
    return hand_overs;
}

SUITE(contention, .timeout_s = 120);

/* On a machine that is busy with something else one run says little. */
TEST(who_waits_as_told_gets_it_as_often_as_who_polls)
{
    int polling = 0, told = 0;
    world_start(N, "");
    contest = harness_share(sizeof *contest);
    for (int i = 0; i < RUNS_MAX && (i == 0 || told < polling); i++) {
        polling = contend(POLL_MS);
        told = contend(0);
    }
    ck_assert_int_ge(told, polling);
    world_stop();
}
