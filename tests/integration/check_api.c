/*
 * Every call of the API: statuses, header fields, members, problem codes.
 */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "node.h"

enum { N = 3 };

WORLD(world_start, N, "");
static const struct server *const server = &world.servers[0];

SUITE(api, .timeout_s = 60, WORLD_ONCE);

/* ---- the life of a lock ------------------------------------------------- */

TEST(key_on_the_nodes_is_resource_and_token)
{
    struct lock lock;

    lock_take(server, "api:key", 20000, &lock);
    WAIT_UNTIL(5000, world_count_keys(&world, "api:key") == N);
    for (int i = 0; i < N; i++) {
        ck_assert_str_eq(node_text(&world.nodes[i], "GET api:key"), lock.token);
        long long pttl = node_integer(&world.nodes[i], "PTTL api:key");
        ck_assert_int_gt(pttl, 0);
        ck_assert_int_le(pttl, 20000);
    }
}

TEST(life_of_a_lock)
{
    struct lock lock;

    lock_take(server, "api:life", 20000, &lock);
    const struct answer *a = lock_inspect(server, "api:life");
    answer_expect(a, 200, NULL);
    ck_assert_lacks(a->body, lock.token);
    ck_assert_str_eq(answer_text(a, "id"), "api:life");
    ck_assert_str_eq(answer_text(a, "resource"), "api:life");
    ck_assert_int_eq(answer_int(a, "fencing_token"), lock.number);
    ck_assert_int_gt(answer_int(a, "remaining_ms"), 0);
    ck_assert_int_le(answer_int(a, "remaining_ms"), 20000);
    ck_assert(!answer_has(a, "owner"));

    a = answer_expect(lock_extend(server, &lock, 30000), 200, NULL);
    ck_assert_str_eq(answer_text(a, "token"), lock.token);
    ck_assert_int_eq(answer_int(a, "fencing_token"), lock.number);
    ck_assert_int_eq(answer_int(a, "ttl_ms"), 30000);
    ck_assert_int_gt(answer_int(a, "validity_ms"), 20000);
    ck_assert_int_gt(node_integer(&world.nodes[0], "PTTL api:life"), 20000);

    a = answer_expect(lock_release(server, &lock), 200, NULL);
    ck_assert(answer_has(a, "released"));
    ck_assert_str_eq(answer_text(a, "id"), "api:life");
    ck_assert_str_eq(answer_text(a, "resource"), "api:life");
    ck_assert_int_eq(answer_int(a, "nodes.total"), N);

    answer_expect_free(lock_inspect(server, "api:life"));
    answer_expect(lock_release(server, &lock), 404, "lock_not_found");
    answer_expect(lock_extend(server, &lock, 1000), 404, "lock_not_found");
    WAIT_UNTIL(5000, world_count_keys(&world, "api:life") == 0);
}

/* ---- ids ---------------------------------------------------------------- */

/* A hold of one TTL at most: the first extend would pass it. */
TEST(extend_beyond_max_hold_is_refused)
{
    const struct answer *a;
    struct world own;
    struct lock lock;

    world_start(&own, 1, "--max-ttl-ms 20000 --max-hold-ms 20000");
    lock_take(&own.servers[0], "m", 20000, &lock);
    harness_pause_ms(2); /* into the next millisecond */
    answer_expect(lock_extend(&own.servers[0], &lock, 20000), 409,
                  "max_hold_reached");
    answer_expect(HTTP(&own.servers[0], .method = "PUT",
                       .path = "/locks/m/extend",
                       .json = textf("{\"token\":\"%s\",\"mode\":\"shared\","
                                     "\"ttl_ms\":20000}",
                                     lock.token)),
                  409, "max_hold_reached");
    a = lock_inspect(&own.servers[0], "m");
    ck_assert_str_eq(answer_text(a, "mode"), "exclusive"); /* as it was */
    a = answer_expect(lock_extend(&own.servers[0], &lock, 5000), 200, NULL);
    ck_assert_int_eq(answer_int(a, "max_hold_ms"), 20000);
    int64_t left_ms = answer_int(a, "hold_left_ms");
    ck_assert(left_ms > 10000 && left_ms < 20000);
    world_stop(&own);
}

TEST(key_prefix_is_put_in_front)
{
    struct world own;
    struct lock lock;

    world_start(&own, 1, "--key-prefix redlock:");
    lock_take(&own.servers[0], "p", 20000, &lock);
    ck_assert_int_eq(node_integer(&own.nodes[0], "EXISTS redlock:p"), 1);
    ck_assert_int_eq(node_integer(&own.nodes[0], "EXISTS p"), 0);
    ck_assert_int_eq(node_integer(&own.nodes[0], "DBSIZE"), 2);
    ck_assert_int_eq(
        node_integer(&own.nodes[0], "EXISTS redlock:redlockd:state"), 1);
    world_stop(&own);
}
