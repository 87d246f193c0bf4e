/* SPDX-License-Identifier: MIT */
/*
 * Repeats that wait: whoever else waits for the lock, and whatever the clocks
 * of its server show, the holder has it again.
 *
 * The clocks of two nodes are behind. Server 0 reaches all nodes, server 1 all
 * but one: so its time is behind that of server 0. What the nodes say to server
 * 2 takes long to come back, so its time is behind, too.
 *
 * REPEAT_SEED=n plays a random test again.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "node.h"
#include "waiter.h"
#include "ways.h"

#define LIMIT "--max-ttl-ms 3000"
#define OTHER_KEY "0f1c27a5-b9d0-4e6e-8f1c-27a5b9d04e6e"

enum {
    N = 5,
    TTL_MS = 3000,
    WAIT_MS = 8000,
    BEHIND_MS = 400,
    SLOW_MS = 90,
    SOON_MS = 9000,
    /* half a second of it because of the clocks */
    REGAINED_MS = 1500,
    DOUBLED_MS = 1500, /* what would be taken in vain was taken by then */
};

static const struct server *const behind = &world.servers[1];
static const struct server *const slow = &world.servers[2];

static bool all_vote(const struct server *it, int count)
{
    int voting = 0;
    for (int i = 0; i < N; i++) {
        const char *sample = textf(
            "redlockd_node_voting{node=\"127.0.0.1:%d\"}", world.nodes[i].port);
        voting += (int)http_metric(it, sample);
    }
    return voting == count;
}

static void set_up(void)
{
    world_start_nodes(N);
    for (int i = N - 2; i < N; i++) {
        node_kill(&world.nodes[i]);
        world.nodes[i].has_clock = true;
        node_set_clock(&world.nodes[i], -BEHIND_MS);
        node_start(&world.nodes[i]);
    }
    world_admit_nodes(LIMIT);
    server_route(there, &world.nodes[0], harness_free_port());
    ways_slow(&world.servers[2], 0, N, SLOW_MS);
    for (int i = 0; i < 3; i++)
        world_start_server(i, LIMIT);
    /* clocks that differ are watched for the greatest TTL */
    for (int i = 0; i < 3; i++)
        AWHILE(http_probe(&world.servers[i], "/readyz") == 200 &&
               all_vote(&world.servers[i], i == 1 ? N - 1 : N));
}

/* A body for these resources, each a letter after the name. */
static const char *wish(const char *name, const char *letters, int wait_ms)
{
    static char json[512];
    size_t len = (size_t)snprintf(json, sizeof json, "{\"resources\":[");
    for (int i = 0; letters[i] != '\0'; i++)
        len += (size_t)snprintf(json + len, sizeof json - len, "%s\"%s:%c\"",
                                i > 0 ? "," : "", name, letters[i]);
    snprintf(json + len, sizeof json - len, "],\"ttl_ms\":%d,\"wait_ms\":%d}",
             TTL_MS, wait_ms);
    return json;
}

/* A key of its own for each name. */
static const char *key_of(const char *name)
{
    return textf("%s-repeat-0123456789", name);
}

static struct lock hold(const struct server *at, const char *name,
                        const char *letters)
{
    struct lock grant;
    grant_take(at, wish(name, letters, WAIT_MS), key_of(name), &grant);
    return grant;
}

/* The client has not had the answer, and asks again. */
static struct lock expect_regained(const struct server *at, const char *name,
                                   const char *letters)
{
    struct lock grant;
    int64_t began_ms = harness_now_ms();
    expect_ok(
        grant_ask(at, wish(name, letters, WAIT_MS), key_of(name), &grant));
    ck_assert_int_lt(harness_now_ms() - began_ms, REGAINED_MS);
    return grant;
}

static void release(const struct lock *grant)
{
    lock_drop(here, grant);
}

static void expect_grant(int fd)
{
    struct lock grant = grant_read(fd, 201, SOON_MS);
    close(fd);
    release(&grant);
}

SUITE(repeat_waits, .timeout_s = 120, .tags = "slow", .set_up_once = set_up,
      .tear_down_once = world_finish);

/* ---- clocks ------------------------------------------------------------- */

static const struct {
    const struct server *at;
    const char *name;
} late[] = {{&world.servers[1], "behind"}, {&world.servers[2], "slow"}};

TEST_EACH(story_58_where_the_time_is_behind, late)
{
    (void)hold(here, late[_i].name, "a");
    struct lock grant = expect_regained(late[_i].at, late[_i].name, "a");
    release(&grant);
}

/*
 * Two copies of one request wait at two servers. One has the lock; the other
 * does not take it away, at whichever server it is.
 */
TEST_RANGE(of_two_copies_that_wait_one_has_the_lock, 0, 4)
{
    const struct server *const others[] = {behind, slow};
    const struct server *other = others[_i / 2];
    const char *name = textf("twice%d", _i);
    struct lock grant, first;
    grant_take(here, wish(name, "a", 0), OTHER_KEY, &first);
    /* a server that misses a node finds a lock with it there and on two more */
    const char *key = textf("%s:a", name);
    expect_keys(key, N);
    int at_other = _i % 2;
    int fds[2];
    for (int i = 0; i < 2; i++) {
        const struct server *at = i == at_other ? other : here;
        fds[i] = grant_send(at, wish(name, "a", WAIT_MS), key_of(name));
        waiter_expect_count(at, 1);
    }
    release(&first);
    struct pollfd waits[] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    ck_assert_int_eq(poll(waits, 2, SOON_MS), 1);
    int won = (waits[0].revents & POLLIN) != 0 ? 0 : 1;
    grant = grant_read(fds[won], 201, SOON_MS);
    raw_stays(fds[!won], DOUBLED_MS);
    expect_ok(lock_extend(here, &grant, TTL_MS));
    close(fds[!won]);
    waiter_expect_count(won == at_other ? here : other, 0);
    close(fds[won]);
    release(&grant);
}

/* ---- at random ---------------------------------------------------------- */

enum { SCENES = 12, OTHERS = 6, LETTERS = 3 };

static unsigned long seed;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned)(seed >> 33) % below;
}

static const char *draw_letters(void)
{
    static char text[LETTERS + 1];
    unsigned mask = 1 + draw((1 << LETTERS) - 1);
    int len = 0;
    for (int i = 0; i < LETTERS; i++)
        if ((mask >> i & 1) != 0)
            text[len++] = (char)('a' + i);
    text[len] = '\0';
    return text;
}

static void play(int scene)
{
    char name[32], letters[LETTERS + 1];
    int fds[OTHERS], others = (int)draw(OTHERS + 1);
    snprintf(name, sizeof name, "scene%d", scene);
    snprintf(letters, sizeof letters, "%s", draw_letters());
    (void)hold(&world.servers[draw(3)], name, letters);
    for (int i = 0; i < others; i++) {
        fds[i] = grant_send(
            &world.servers[draw(3)], wish(name, draw_letters(), SOON_MS),
            draw(2) == 0 ? textf("%s-other-%d-0123456789", name, i) : NULL);
    }
    pause_ms((int)draw(50));
    struct lock grant = expect_regained(&world.servers[draw(3)], name, letters);
    release(&grant);
    /* in any order: who waits for several needs all that others release */
    for (int left = others; left > 0;) {
        struct pollfd waits[OTHERS];
        for (int i = 0; i < others; i++)
            waits[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
        ck_assert_int_gt(poll(waits, (nfds_t)others, SOON_MS), 0);
        for (int i = 0; i < others; i++)
            if (fds[i] >= 0 && waits[i].revents != 0) {
                expect_grant(fds[i]);
                fds[i] = -1;
                left--;
            }
    }
}

TEST(stories_57_and_58_a_repeat_among_others_at_random)
{
    const char *text = getenv("REPEAT_SEED");
    seed = text != NULL ? strtoul(text, NULL, 10) : (unsigned long)time(NULL);
    printf("repeat_waits: REPEAT_SEED=%lu plays this again\n", seed);
    (void)fflush(stdout);
    for (int i = 0; i < SCENES; i++)
        play(i);
}
