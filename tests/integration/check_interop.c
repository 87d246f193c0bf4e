/* SPDX-License-Identifier: MIT */
/*
 * Other clients' locks on the same masters exclude ours, and ours theirs. The
 * masters are Redis, or with VALKEY=1 Valkey.
 */
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"

enum { N = 5, Q = 3 };

WORLD(world_start, N, "--retry-count 1 --retry-delay-ms 20");

/* Refused as held, and nothing of ours stays beside the foreign keys. */
static void expect_excluded(const char *resource, int foreign)
{
    answer_expect(lock_acquire(here, resource, 9000, NULL), 409, "lock_held");
    WAIT_UNTIL(5000, count_keys(resource) == foreign);
}

SUITE(interop, .timeout_s = 60, WORLD_ONCE);

/* What make VALKEY=1 puts before PATH is what the other tests run, too. */
TEST(the_masters_are_those_that_were_chosen)
{
    const char *info = node_text(&world.nodes[0], "INFO server");
    bool is_valkey = strstr(info, "\nvalkey_version:") != NULL;
    ck_assert_int_eq(is_valkey, getenv("VALKEY") != NULL);
}

TEST(plain_redlock_excludes_ours)
{
    struct lock lock;

    world_set(1, Q, "plain", "4a6f2c", 30000);
    expect_excluded("plain", Q);
    const struct answer *a = lock_inspect(here, "plain");
    expect_ok(a);
    ck_assert_int_le(answer_int(a, "remaining_ms"), 30000);
    /* released by its own client: ours may have it */
    world_del(1, Q, "plain");
    lock_take(here, "plain", 9000, &lock);
    lock_drop(here, &lock);
}

TEST(hash_as_of_redisson_excludes_ours)
{
    for (int i = 0; i < Q; i++)
        node_do(&world.nodes[i], "HSET redisson id:1 1");
    expect_excluded("redisson", Q);
    for (int i = 0; i < Q; i++)
        ck_assert_str_eq(node_text(&world.nodes[i], "TYPE redisson"), "hash");
    answer_expect_held(lock_inspect(here, "redisson"));
}
TEST(ours_excludes_plain_redlock)
{
    struct lock lock;
    int granted = 0;

    lock_take(here, "ours", 30000, &lock);
    WAIT_UNTIL(5000, count_keys("ours") == N);
    for (int i = 0; i < N; i++)
        granted += node_text(&world.nodes[i], "SET ours v NX PX 1000") != NULL;
    ck_assert_int_eq(granted, 0);
    lock_drop(here, &lock);
    WAIT_UNTIL(5000, count_keys("ours") == 0);
    for (int i = 0; i < N; i++)
        granted += node_text(&world.nodes[i], "SET ours v NX PX 1000") != NULL;
    ck_assert_int_eq(granted, N);
}

/* The usual release script of other clients works on our key. */
TEST(ours_is_released_by_the_usual_script)
{
    static const char script[] =
        "if redis.call('GET',KEYS[1])==ARGV[1] then "
        "return redis.call('DEL',KEYS[1]) else return 0 end";
    struct lock lock;

    lock_take(here, "usual", 30000, &lock);
    WAIT_UNTIL(5000, count_keys("usual") == N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(node_integer(&world.nodes[i], "EVAL %s 1 usual %s",
                                      script, lock.token),
                         1);
    answer_expect_free(lock_inspect(here, "usual"));
}
