/* SPDX-License-Identifier: MIT */
/*
 * Many clients that wait: what is left of those that vanish, who may wait, and
 * what signals do.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node.h"
#include "waiter.h"

enum {
    N = 3,
    TTL_MS = 60000,
    BRIEF_MS = 500,
    WAIT_MS = 45000,
    SOON_MS = 20000,
    EACH_MAX = 1000, /* clients that wait for one lock */
};

static struct lock held;
static int fds[EACH_MAX];

/* WAIT_CROWD: how many vanish, up to 999. */
static int crowd_size(void)
{
    const char *text = getenv("WAIT_CROWD");
    int size = text ? (int)strtol(text, NULL, 10) : 60;
    ck_assert(size > 0 && size < EACH_MAX);
    return size;
}

static void begin(void)
{
    harness_raise_descriptors();
    /* no node is slow but for the crowd, or for a busy machine */
    world_start(N, "--node-timeout-ms 2000");
}

static void hold(void)
{
    lock_take(here, "w", TTL_MS, &held);
}

static void send_crowd(int count, int ttl_ms)
{
    for (int i = 0; i < count; i++)
        fds[i] = waiter_send(here, "w", ttl_ms, WAIT_MS);
}

/* ---- clients that vanish --------------------------------------------------
 */

static void close_some(int from, int to, void (*leave)(int fd))
{
    for (int i = from; i < to; i++)
        leave(fds[i]);
}

static void leave_politely(int fd)
{
    close(fd);
}

static void (*const leavings[])(int fd) = {leave_politely, raw_reset};

/* The one behind them has the lock, and no other lock is left. */
static void expect_last(int last)
{
    held = waiter_expect_grant(last, "w", SOON_MS).lock;
    waiter_expect_count(here, 0);
    lock_drop(here, &held);
    AWHILE(count_keys("w") == 0);
    lock_expect_cycle(here, "w");
}

SUITE(wait_crowds, .timeout_s = 90, .set_up_once = begin,
      .tear_down_once = world_finish);

/*
 * Some are granted the lock in the moment in which they go: what reached their
 * kernel is theirs, for a TTL.
 */
TEST_RANGE(clients_that_vanish_around_the_release, 0, 2)
{
    int count = crowd_size();
    hold();
    send_crowd(count, BRIEF_MS);
    waiter_expect_count(here, count);
    int last = waiter_send(here, "w", TTL_MS, WAIT_MS);
    waiter_expect_count(here, count + 1);
    close_some(1, count / 2, leavings[_i]);
    lock_drop(here, &held);
    close_some(count / 2, count, leavings[_i]);
    leavings[_i](fds[0]);
    expect_last(last);
}

/* Before the release, or while the lock passes through its connections. */
TEST_RANGE(a_process_that_is_killed_while_it_waits, 0, 2)
{
    int count = crowd_size();
    hold();
    pid_t pid = harness_fork();
    if (pid == 0) {
        send_crowd(count, _i == 0 ? TTL_MS : BRIEF_MS);
        for (;;)
            pause();
    }
    waiter_expect_count(here, count);
    int last = waiter_send(here, "w", TTL_MS, WAIT_MS);
    waiter_expect_count(here, count + 1);
    if (_i == 0) {
        kill(pid, SIGKILL);
        waiter_expect_count(here, 1);
    }
    lock_drop(here, &held);
    kill(pid, SIGKILL);
    ck_assert_int_ge(harness_reap(pid, SOON_MS), 0);
    expect_last(last);
}

/* ---- signals --------------------------------------------------------------
 */

GROUP(ends, .timeout_s = 90);

/* All are told at once, and the process ends. */
TEST(a_full_queue_refuses_and_is_told_of_the_end)
{
    begin();
    hold();
    send_crowd(EACH_MAX, TTL_MS);
    waiter_expect_count(here, EACH_MAX);
    struct verdict more =
        waiter_read(waiter_send(here, "w", TTL_MS, WAIT_MS), SOON_MS);
    ck_assert_int_eq(more.status, 429);
    ck_assert_str_eq(more.code, "too_many_waiters");
    waiter_expect_count(here, EACH_MAX);
    /* others are none of its business */
    lock_expect_cycle(here, "v");
    http_disconnect();
    kill(here->pid, SIGTERM);
    for (int i = 0; i < EACH_MAX; i++) {
        struct verdict verdict = waiter_read(fds[i], SOON_MS);
        ck_assert_int_eq(verdict.status, 503);
        ck_assert_str_eq(verdict.code, "shutting_down");
    }
    server_await_end(here);
    world_stop();
}

/* The lock is released through another server, and the time of one is up. */
TEST(a_server_that_is_paused_while_clients_wait)
{
    begin();
    world_serve(1, "");
    hold();
    int hasty = waiter_send(here, "w", TTL_MS, 1000);
    waiter_expect_count(here, 1);
    int last = waiter_send(here, "w", TTL_MS, WAIT_MS);
    waiter_expect_count(here, 2);
    server_pause(here);
    lock_drop(there, &held);
    pause_ms(1500);
    server_resume(here);
    struct verdict verdict = waiter_read(hasty, SOON_MS);
    ck_assert(verdict.status == 409 || verdict.status == 201);
    ck_assert_int_ge(verdict.waited_ms, 1000);
    if (verdict.status == 201)
        lock_drop(here, &verdict.lock);
    waiter_expect_grant(last, "w", SOON_MS);
    world_stop();
}
