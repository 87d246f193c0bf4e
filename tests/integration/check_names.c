/*
 * The number of names changes, 3 to 5 and 5 to 3: nothing is granted for as
 * long as the longest lock is held. The greatest TTL allowed is one minute, and
 * a minute and more would be waited for by time alone.
 */
#include "http.h"
#include "node.h"
#include "rival.h"

enum { LATE_MS = 30000, BY_TIME_MS = 60000 };

static struct world world;

SUITE(names, .timeout_s = 120, .tags = "slow");

/* The first so many nodes, under names of their own. */
static const char *options_of(const char *before, int names)
{
    static const int nodes[] = {0, 1, 2, 3, 4};
    return world_name_nodes(&world, before, 'a', nodes, names);
}

/* One server of the old names. */
static void begin(int names)
{
    world_start_nodes(&world, 5);
    world_start_server(&world, 0, options_of("", names));
    WAIT_UNTIL(LATE_MS, http_probe(&world.servers[0], "/readyz") == 200);
    WAIT_UNTIL(LATE_MS, rival_count_voting(&world, 0) == names);
}

static bool is_granted(int server, struct lock *lock)
{
    return lock_acquire(&world.servers[server], "held", 1000, lock)->status ==
           201;
}

static const struct {
    int before, after, ttl_ms;
} changes[] = {{3, 5, 0}, {5, 3, 0}, {3, 5, 8000}, {5, 3, 8000}};

TEST_EACH(story_59_other_names_wait_for_what_is_held, changes)
{
    struct lock held, next;
    int64_t ends_ms = 0;
    begin(changes[_i].before);
    if (changes[_i].ttl_ms > 0) {
        answer_expect(
            lock_acquire(&world.servers[0], "held", changes[_i].ttl_ms, &held),
            201, NULL);
        ends_ms = harness_now_ms() + held.validity_ms;
    }
    int64_t began_ms = harness_now_ms();
    world_start_server(&world, 1,
                       options_of("--config-epoch 2", changes[_i].after));
    WAIT_UNTIL(LATE_MS, http_probe(&world.servers[1], "/livez") == 200);
    while (!is_granted(1, &next)) {
        ck_assert_int_lt(harness_now_ms() - began_ms, BY_TIME_MS);
        harness_pause_ms(50);
    }
    ck_assert_int_ge(harness_now_ms(), ends_ms);
    if (changes[_i].ttl_ms > 0)
        ck_assert_int_gt(next.number, held.number);
    WAIT_UNTIL(LATE_MS, rival_count_voting(&world, 1) == changes[_i].after);
    ck_assert(!is_granted(0, &held)); /* not through the old server */
    world_stop(&world);
}

/* One of them marks the nodes, the other one follows. */
TEST(two_servers_of_the_new_names_may_start_at_once)
{
    struct lock next;
    begin(5);
    int64_t began_ms = harness_now_ms();
    for (int i = 1; i < 3; i++)
        world_start_server(&world, i, options_of("--config-epoch 2", 3));
    for (int i = 1; i < 3; i++)
        WAIT_UNTIL(LATE_MS, http_probe(&world.servers[i], "/livez") == 200);
    while (!is_granted(1, &next) && !is_granted(2, &next)) {
        ck_assert_int_lt(harness_now_ms() - began_ms, BY_TIME_MS);
        harness_pause_ms(50);
    }
    for (int i = 1; i < 3; i++)
        WAIT_UNTIL(LATE_MS, rival_count_voting(&world, i) == 3);
    world_stop(&world);
}
