/*
 * An operator deletes a lock by its fencing token.
 */
#include <stdlib.h>

#include "grant.h"
#include "node.h"
#include "waiter.h"

enum { N = 5, SOON_MS = 9000, TTL_MS = 40000 };

#define LEFTOVER "1795221641865000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"

WORLD(world_start, N, "");
static const struct server *const server = &world.servers[0];

static const struct answer *force(const char *path, json_int_t number)
{
    const char *target = textf("%s?force=%lld", path, (long long)number);
    return HTTP(server, .method = "DELETE", .path = target);
}

SUITE(force, .timeout_s = 60, WORLD_ONCE);

TEST(the_lock_with_the_number_is_deleted)
{
    struct lock lock, next;
    lock_take(server, "f:a", TTL_MS, &lock);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "f:a") == N);
    const struct answer *a = force(lock.path, lock.number);
    answer_expect(a, 200, NULL);
    ck_assert_str_eq(answer_text(a, "resource"), "f:a");
    ck_assert_int_ge(answer_int(a, "nodes.released"), 3);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "f:a") == 0);
    answer_expect(force(lock.path, lock.number), 404, "lock_not_found");
    answer_expect(lock_release(server, &lock), 404, "lock_not_found");

    lock_take(server, "f:a", TTL_MS, &next);
    ck_assert_int_gt(next.number, lock.number);
    answer_expect(force(lock.path, lock.number), 409, "not_owner");
    answer_expect(lock_extend(server, &next, TTL_MS), 200, NULL);
    answer_expect(lock_release(server, &next), 200, NULL);
}

TEST(it_is_logged_with_number_and_resource)
{
    struct lock lock;
    lock_take(server, "f:log", TTL_MS, &lock);
    const struct answer *a = force(lock.path, lock.number);
    answer_expect(a, 200, NULL);
    const char *line =
        textf("event=force_release request_id=%s fencing_token=%lld "
              "resource=f:log\n",
              answer_header(a, "X-Request-Id"), (long long)lock.number);
    char *log = harness_read_file(server->log);
    ck_assert_has(log, line);
    free(log);
}

TEST(a_minoritys_leftover_is_deleted)
{
    world_set(&world, 4, 1, "f:left", LEFTOVER, TTL_MS);
    answer_expect(force("/locks/f:left", 1795221641865001), 409, "not_owner");
    const struct answer *a = force("/locks/f:left", 1795221641865000);
    answer_expect(a, 200, NULL);
    ck_assert_int_eq(answer_int(a, "nodes.released"), 1);
    ck_assert_int_eq(world_count_keys(&world, "f:left"), 0);
}

TEST(a_value_without_a_number_stays)
{
    world_set(&world, 0, N, "f:theirs", "7", TTL_MS);
    answer_expect(force("/locks/f:theirs", 7), 409, "not_owner");
    ck_assert_int_eq(world_count_keys(&world, "f:theirs"), N);
}

TEST(all_resources_of_a_lock_are_deleted)
{
    struct lock all;
    grant_ask(server, "{\"resources\":[\"f:x\",\"f:y\"],\"ttl_ms\":50000}",
              NULL, &all);
    const struct answer *a = force(all.path, all.number);
    answer_expect(a, 200, NULL);
    ck_assert_uint_eq(json_array_size(json_object_get(a->json, "resources")),
                      2);
    WAIT_UNTIL(
        SOON_MS,
        world_count_keys(&world, "f:x") + world_count_keys(&world, "f:y") == 0);
}

TEST(who_waits_gets_the_lock)
{
    struct lock lock;
    lock_take(server, "f:wait", TTL_MS, &lock);
    int fd = waiter_send(server, "f:wait", 1000, TTL_MS);
    waiter_expect_count(server, 1);
    answer_expect(force(lock.path, lock.number), 200, NULL);
    (void)waiter_expect_grant(fd, "f:wait", SOON_MS);
}

GROUP(force_away, .timeout_s = 60, WORLD_ONCE);

/* Last: it takes nodes away. */
TEST(nodes_that_were_away_get_the_release_later)
{
    struct lock lock;
    lock_take(server, "f:away", TTL_MS, &lock);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "f:away") == N);
    world_kill_nodes(&world, 0, 2);
    answer_expect(force(lock.path, lock.number), 200, NULL);
    node_kill(&world.nodes[2]);
    WAIT_UNTIL(SOON_MS, http_probe(server, "/readyz") == 503);
    answer_expect(force(lock.path, lock.number), 503, "no_quorum");
    world_restart_nodes(&world, 0, 3);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "f:away") == 0);
}
