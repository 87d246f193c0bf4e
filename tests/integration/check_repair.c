/*
 * Locks that were taken while nodes were away.
 */
#include <string.h>

#include "http.h"
#include "node.h"

enum { TTL_MS = 30000, DEADLINE_MS = 10000 };

static void take_away(int first, int count, bool is_dead)
{
    for (int i = first; i < first + count; i++) {
        struct node *node = &world.nodes[i];
        node_disconnect(node);
        if (is_dead)
            node_kill(node);
        else
            node_pause(node);
    }
}

static void bring_back(int first, int count, bool is_dead)
{
    /* what lies in the sockets of paused nodes must be late there */
    int64_t late_ms = harness_now_ms() + 600;
    SOON(harness_now_ms() > late_ms);
    for (int i = first; i < first + count; i++) {
        if (is_dead)
            node_start(&world.nodes[i]);
        else
            node_resume(&world.nodes[i]);
    }
    world_wait_ready(0);
}

static void take_on_three_of_five(const char *resource, bool is_dead,
                                  struct lock *lock)
{
    take_away(3, 2, is_dead);
    lock_take(here, resource, TTL_MS, lock);
    bring_back(3, 2, is_dead);
    ck_assert_int_eq(count_keys(resource), 3);
}

SUITE(repair, .timeout_s = 120);

TEST_RANGE(story_50_an_extend_sets_the_lock_where_it_is_missing, 0, 2)
{
    bool is_dead = _i == 1;
    struct lock lock;

    world_start(5, "");
    take_on_three_of_five("repair", is_dead, &lock);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    expect_keys("repair", 5);
    for (int i = 0; i < 5; i++) {
        struct node *node = &world.nodes[i];
        ck_assert_str_eq(node_text(node, "GET repair"), lock.token);
        ck_assert_int_le(node_integer(node, "PTTL repair"), TTL_MS);
        ck_assert_int_gt(node_integer(node, "PTTL repair"), TTL_MS / 2);
    }

    take_away(0, 2, true);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    answer_expect_held(lock_inspect(here, "repair"));
    lock_drop(here, &lock);
    bring_back(0, 2, true);
    expect_keys("repair", 0);
    world_stop();
}

/* The repair of its last extend is due behind the release. */
TEST(a_release_leaves_nothing_for_the_repair)
{
    struct lock lock;

    world_start_two(5, "");
    take_on_three_of_five("gone", false, &lock);
    expect_ok(lock_extend(here, &lock, TTL_MS));
    lock_drop(there, &lock);
    /* a majority has answered; the others may be a little later */
    WAIT_UNTIL(5000, count_keys("gone") == 0);
    int64_t due_ms = harness_now_ms() + 2000; /* two node timeouts, and more */
    while (harness_now_ms() < due_ms)
        ck_assert_int_eq(count_keys("gone"), 0);
    world_stop();
}
