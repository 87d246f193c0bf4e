/* SPDX-License-Identifier: MIT */
/*
 * One lock over several resources: all of them or none, whoever asks for them
 * in whatever order.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "http.h"
#include "node.h"

enum { N = 5 };

WORLD(world_start, N, "");
SUITE(several, .timeout_s = 60, WORLD_ONCE);

/* ---- rivals ------------------------------------------------------------- */

static const struct {
    const char *names; /* of one letter each, in the order of the list */
    int wait_ms;
} wishes[] = {
    {"ab", 0},    {"ba", 0},    {"bc", 0},    {"cab", 0},    {"b", 0},
    {"ab", 9000}, {"ba", 9000}, {"cb", 9000}, {"abc", 9000}, {"a", 9000},
};

enum { WORKERS = sizeof wishes / sizeof *wishes, RUN_MS = 3000, HOLD_MS = 2 };

static struct contest {
    atomic_int holders[3]; /* of a, b, c: worker + 1; 0: nobody */
    atomic_llong numbers[3];
    atomic_int grants[WORKERS];
    atomic_int failed;
} * contest;

/* Nobody else has any of them, and each number is above all before. */
static void hold(int worker, const struct lock *grant)
{
    for (const char *name = wishes[worker].names; *name != '\0'; name++) {
        int i = *name - 'a';
        bool was_free = atomic_exchange(&contest->holders[i], worker + 1) == 0;
        bool is_higher = atomic_exchange(&contest->numbers[i], grant->number) <
                         grant->number;
        atomic_fetch_add(&contest->failed, !was_free || !is_higher);
    }
    pause_ms(HOLD_MS);
    for (const char *name = wishes[worker].names; *name != '\0'; name++)
        if (atomic_exchange(&contest->holders[*name - 'a'], 0) != worker + 1)
            atomic_fetch_add(&contest->failed, 1);
}

static void work(int worker)
{
    const struct server *mine = &world.servers[worker % 2];
    char json[256];
    int len = sprintf(json, "{\"ttl_ms\":20000,\"wait_ms\":%d,\"resources\":[",
                      wishes[worker].wait_ms);
    for (const char *name = wishes[worker].names; *name != '\0'; name++)
        len += sprintf(json + len, "\"r:%c\"%s", *name,
                       name[1] != '\0' ? "," : "]}");
    while (!crowd_is_over()) {
        struct lock grant;
        const struct answer *a = grant_ask(mine, json, NULL, &grant);
        if (a->status == 201) {
            atomic_fetch_add(&contest->grants[worker], 1);
            hold(worker, &grant);
            a = lock_release(mine, &grant);
            atomic_fetch_add(&contest->failed, a->status != 200);
        } else {
            answer_expect(a, 409, "lock_held");
            pause_ms(1);
        }
    }
}

static bool has_each_had_grants(void)
{
    for (int i = 0; i < WORKERS; i++)
        if (atomic_load(&contest->grants[i]) == 0)
            return false;
    return true;
}

TEST(rivals_neither_meet_nor_block_each_other)
{
    contest = harness_share(sizeof *contest);
    world_serve(1, "");
    crowd_start(WORKERS, work);
    pause_ms(RUN_MS);
    SOON(has_each_had_grants()); /* a busy machine needs longer */
    crowd_end();
    for (int i = 0; i < WORKERS; i++)
        printf("several: %-3s %s: %d grants\n", wishes[i].names,
               wishes[i].wait_ms > 0 ? "waiting" : "polling",
               atomic_load(&contest->grants[i]));
    ck_assert_int_eq(atomic_load(&contest->failed), 0);
    SOON(count_keys("r:a") + count_keys("r:b") + count_keys("r:c") == 0);
    world_stop_server(1);
}
