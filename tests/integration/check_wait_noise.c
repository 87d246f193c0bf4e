/* SPDX-License-Identifier: MIT */
/*
 * Announcements that break off, are not true, or are none: they are hints, and
 * whoever waits is granted the lock all the same.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <unistd.h>

#include "node.h"
#include "waiter.h"

enum { N = 3, TTL_MS = 60000, WAIT_MS = 45000, SOON_MS = 15000 };

static struct lock held;

static void begin(void)
{
    world_start_two(N, "");
}

static void hold(const char *resource)
{
    lock_take(here, resource, TTL_MS, &held);
}

static int send_waiter(const char *resource)
{
    int fd = waiter_send(there, resource, TTL_MS, WAIT_MS);
    waiter_expect_count(there, 1);
    return fd;
}

/* From a to the client that waits at b. */
static void hand_over(int fd, const char *resource)
{
    lock_drop(here, &held);
    held = waiter_expect_grant(fd, resource, SOON_MS).lock;
    lock_drop(there, &held);
}

SUITE(wait_noise);

/* ---- connections that break ---------------------------------------------- */

GROUP(two_servers, .timeout_s = 60, .set_up_once = begin,
      .tear_down_once = world_finish);

/* In the moment in which they would tell. */
TEST(subscriptions_that_are_killed_at_the_release)
{
    hold("killed now");
    int fd = send_waiter("killed now");
    waiter_expect_listeners("killed now", 1);
    for (int j = 0; j < N; j++)
        node_do(&world.nodes[j], "CLIENT KILL TYPE pubsub");
    hand_over(fd, "killed now");
}

/* As many as may be silent, before and while the lock is released. */
TEST(a_node_that_is_paused_tells_nothing)
{
    hold("paused");
    int fd = send_waiter("paused");
    waiter_expect_listeners("paused", 1);
    node_pause(&world.nodes[0]);
    hand_over(fd, "paused");
    node_resume(&world.nodes[0]);
    AWHILE(count_keys("paused") == 0);
}

/* ---- announcements that are not true --------------------------------------
 */

enum { FLOOD = 100000, BATCH = 500 };

static void publish(redisContext *to[N], const char *message)
{
    for (int i = 0; i < BATCH; i++)
        ck_assert_int_eq(redisAppendCommand(to[i % N],
                                            "PUBLISH redlockd:released:flood "
                                            "%s",
                                            message),
                         REDIS_OK);
    for (int i = 0; i < BATCH; i++) {
        redisReply *reply = NULL;
        ck_assert_int_eq(redisGetReply(to[i % N], (void **)&reply), REDIS_OK);
        ck_assert_int_eq(reply->integer, 1);
        freeReplyObject(reply);
    }
}

static double cpu_s(const struct server *server)
{
    long user = 0, system = 0;
    FILE *file = fopen(textf("/proc/%d/stat", (int)server->pid), "r");
    ck_assert_ptr_nonnull(file);
    int got = fscanf(file,
                     "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u "
                     "%ld %ld",
                     &user, &system);
    (void)fclose(file); /* only read */
    ck_assert_int_eq(got, 2);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

/* A number that is of the future. */
TEST(a_flood_of_false_announcements)
{
    redisContext *to[N];
    hold("flood");
    int fd = send_waiter("flood");
    waiter_expect_listeners("flood", 1);
    for (int i = 0; i < N; i++)
        to[i] = redisConnect("127.0.0.1", world.nodes[i].port);
    int calls = node_count(&world.nodes[0], "evalsha"), cycles = 0;
    int64_t since_ms = harness_now_ms();
    for (int sent = 0; sent < FLOOD; sent += BATCH) {
        publish(to, "9999999999999999");
        if (sent % (20 * BATCH) == 0) {
            lock_expect_cycle(there, "other");
            cycles++;
        }
    }
    waiter_expect_count(there, 1);
    /* mostly once in 200 ms; besides, calls that would come anyway */
    int64_t took_ms = harness_now_ms() - since_ms;
    calls = node_count(&world.nodes[0], "evalsha") - calls;
    ck_assert_int_lt(calls, took_ms / 20 + 4 * cycles + 100);
    /* and then it is idle again */
    pause_ms(300);
    double before_s = cpu_s(there);
    pause_ms(500);
    ck_assert_double_lt(cpu_s(there) - before_s, 0.2);
    hand_over(fd, "flood");
    for (int i = 0; i < N; i++)
        redisFree(to[i]);
}
