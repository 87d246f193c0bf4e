/*
 * PUT /locks: many locks extended by one request, while nodes and servers come
 * and go.
 */
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "node.h"

enum { N = 5, MANY = 100, TTL_MS = 60000, SHORT_MS = 20000, BODY_MAX = 40000 };

WORLD(world_start_two, N, "--node-timeout-ms 500");
static struct lock locks[MANY];

SUITE(heartbeats, .timeout_s = 90, WORLD_ONCE);

static void hold(int count, const char *prefix, int ttl_ms)
{
    for (int i = 0; i < count; i++) {
        const char *resource = textf("%s/%d", prefix, i);
        lock_take(&world.servers[i % 2], resource, ttl_ms, &locks[i]);
    }
}

/* Extends them through the server. The answer stays until the next one. */
static const struct answer *beat(int server, int count)
{
    static char body[BODY_MAX];
    int len = snprintf(body, sizeof body, "{\"ttl_ms\":%d,\"locks\":[", TTL_MS);
    for (int i = 0; i < count; i++)
        len += snprintf(body + len, sizeof body - (size_t)len,
                        "%s{\"id\":\"%s\",\"token\":\"%s\"}", i > 0 ? "," : "",
                        locks[i].path + strlen("/locks/"), locks[i].token);
    snprintf(body + len, sizeof body - (size_t)len, "]}");
    return HTTP(&world.servers[server], "PUT", "/locks", .json = body);
}

/* What a single extend would have been answered. */
static const json_t *item(const struct answer *answer, int n)
{
    const json_t *list = json_object_get(answer->json, "locks");
    const json_t *it = json_array_get(list, (size_t)n);
    bool is_grant = json_integer_value(json_object_get(it, "status")) == 200;
    ck_assert_uint_eq(json_object_size(it), 2);
    return json_object_get(it, is_grant ? "grant" : "problem");
}

static json_int_t member(const struct answer *answer, int n, const char *name)
{
    return json_integer_value(json_object_get(item(answer, n), name));
}

static void expect_extended(const struct answer *answer, int n)
{
    ck_assert_int_eq(member(answer, n, "fencing_token"), locks[n].number);
    ck_assert_int_eq(member(answer, n, "ttl_ms"), TTL_MS);
    ck_assert_int_gt(member(answer, n, "validity_ms"), TTL_MS / 2);
}

/* They were granted by two servers, and the second one extends them all. */
TEST(a_hundred_locks_last_longer)
{
    hold(MANY, "many", SHORT_MS);
    const struct answer *answer = answer_expect(beat(1, MANY), 200, NULL);
    for (int i = 0; i < MANY; i++)
        expect_extended(answer, i);
    answer =
        HTTP(&world.servers[0], .method = "GET", .path = locks[MANY - 1].path);
    ck_assert_int_gt(answer_int(answer, "remaining_ms"), SHORT_MS);
    for (int i = 0; i < MANY; i++)
        answer_expect(lock_release(&world.servers[0], &locks[i]), 200, NULL);
}

TEST(a_paused_node_delays_nobody)
{
    hold(3, "paused", TTL_MS);
    node_pause(&world.nodes[1]);
    node_pause(&world.nodes[3]);
    const struct answer *answer = answer_expect(beat(0, 3), 200, NULL);
    for (int i = 0; i < 3; i++)
        expect_extended(answer, i);
    node_resume(&world.nodes[1]);
    node_resume(&world.nodes[3]);
}

TEST(without_a_quorum_each_lock_is_told_so)
{
    hold(3, "quorum", TTL_MS);
    world_pause_nodes(&world, 0, 3);
    const struct answer *answer = answer_expect(beat(0, 3), 200, NULL);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(member(answer, i, "status"), 503);
        ck_assert_int_gt(member(answer, i, "retry_after_ms"), 0);
    }
    world_resume_nodes(&world, 0, 3);
    world_wait_ready(&world, 0);
    answer = beat(0, 3);
    for (int i = 0; i < 3; i++)
        expect_extended(answer, i);
}

/* A lock that somebody else has by now is not taken from him. */
TEST(what_is_lost_stays_lost)
{
    struct lock next;
    hold(3, "lost", TTL_MS);
    answer_expect(lock_release(&world.servers[1], &locks[0]), 200, NULL);
    answer_expect(lock_release(&world.servers[1], &locks[1]), 200, NULL);
    lock_take(&world.servers[1], "lost/1", TTL_MS, &next);
    const struct answer *answer = answer_expect(beat(0, 3), 200, NULL);
    ck_assert_int_eq(member(answer, 0, "status"), 404);
    ck_assert_int_eq(member(answer, 1, "status"), 409);
    expect_extended(answer, 2);
    answer_expect(lock_release(&world.servers[0], &next), 200, NULL);
    answer_expect_free(lock_inspect(&world.servers[0], "lost%2F0"));
}
