/*
 * A lock that is held gets onto all nodes, whoever else comes by, through
 * whichever servers: then two of five nodes may die.
 *
 * SPREAD_TRIES plays each scene so often.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "grant.h"
#include "http.h"
#include "node.h"

enum {
    N = 5,
    TTL_MS = 30000,
    SOON_MS = 1000,  /* it has so long */
    SLACK_MS = 1500, /* on machines that are busy */
};

static int tries(void)
{
    const char *text = getenv("SPREAD_TRIES");
    return text != NULL ? atoi(text) : 2;
}

static void name(char text[40], const char *what, int number)
{
    snprintf(text, 40, "%s:%d", what, number);
}

/* Nodes on which the lock has this token, and more of its time than so much. */
static int count_with(const char *resource, const char *token, int left_ms)
{
    int count = 0;
    for (int i = 0; i < N; i++) {
        const char *value = node_text(&world.nodes[i], "GET %s", resource);
        count += value != NULL && strcmp(value, token) == 0 &&
                 node_integer(&world.nodes[i], "PTTL %s", resource) > left_ms;
    }
    return count;
}

static int count_readers(const char *resource, const char *token)
{
    int count = 0;
    for (int i = 0; i < N; i++)
        count +=
            node_text(&world.nodes[i], "ZSCORE %s %s", resource, token) != NULL;
    return count;
}

SUITE(spread, .timeout_s = 240, .tags = "slow");

/* The fill of the released lock may come after its release, and keeps that of
 * the next one out. */
TEST(story_68_a_lock_behind_one_that_was_released_elsewhere)
{
    struct lock lock, next;
    world_start_two(N, "");
    for (int i = 0; i < tries(); i++) {
        char resource[40];
        name(resource, "behind", i);
        lock_take(here, resource, TTL_MS, &lock);
        pause_ms(40 + i % 6 * 10);
        lock_drop(there, &lock);
        lock_take(there, resource, TTL_MS, &next);
        WAIT_UNTIL(SOON_MS + SLACK_MS,
                   count_with(resource, next.token, TTL_MS / 2) == N);
        lock_drop(here, &next);
        WAIT_UNTIL(SOON_MS + SLACK_MS, count_keys(resource) == 0);
    }
    world_stop();
}

TEST(story_68_a_lock_of_a_server_that_stands_still)
{
    struct lock lock;
    world_start(N, "");
    for (int i = 0; i < tries(); i++) {
        char resource[40];
        name(resource, "still", i);
        lock_take(here, resource, TTL_MS, &lock);
        server_pause(here);
        pause_ms(600); /* longer than the fill may take */
        server_resume(here);
        WAIT_UNTIL(SOON_MS + SLACK_MS,
                   count_with(resource, lock.token, TTL_MS / 2) == N);
        lock_drop(here, &lock);
    }
    world_stop();
}

/* ---- beside others ------------------------------------------------------- */

/* Another process that takes the lock, as these words ask for it, and lets it
 * go, so often a second, or finds it held. */
static pid_t come_by(const char *words, int a_second)
{
    pid_t pid = harness_fork();
    if (pid != 0)
        return pid;
    for (;;) {
        struct lock grant;
        const struct answer *answer = grant_ask(there, words, NULL, &grant);
        pause_ms(1000 / a_second);
        if (answer->status == 201)
            (void)lock_release(there, &grant);
    }
}

static void leave(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_gt(harness_reap(pid, 10000), 0);
}

static void take(const char *words, struct lock *grant)
{
    grant_take(here, words, NULL, grant);
}

TEST(story_69_a_reader_beside_others_that_come_and_go)
{
    static const char *const words =
        "{\"resource\":\"read\",\"ttl_ms\":30000,\"mode\":\"shared\"}";
    struct lock grant;
    world_start_two(N, "");
    pid_t first = come_by(words, 4), second = come_by(words, 4);
    for (int i = 0; i < tries(); i++) {
        take(words, &grant);
        WAIT_UNTIL(SOON_MS + SLACK_MS, count_readers("read", grant.token) == N);
        for (int k = 3; k < N; k++)
            node_do(&world.nodes[k], "ZREM read %s", grant.token);
        expect_ok(lock_extend(here, &grant, TTL_MS));
        WAIT_UNTIL(SOON_MS + SLACK_MS, count_readers("read", grant.token) == N);
        lock_drop(here, &grant);
        WAIT_UNTIL(SOON_MS + SLACK_MS, count_readers("read", grant.token) == 0);
    }
    leave(first);
    leave(second);
    world_stop();
}
