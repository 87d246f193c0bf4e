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

static void expect_match(const char *text, const char *pattern)
{
    regex_t regex;

    ck_assert_int_eq(regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB), 0);
    ck_assert_msg(regexec(&regex, text, 0, NULL, 0) == 0, "%s is not %s", text,
                  pattern);
    regfree(&regex);
}

SUITE(api, .timeout_s = 60, WORLD_ONCE);

/* ---- the life of a lock ------------------------------------------------- */

TEST(acquire_answers_as_documented)
{
    const struct answer *a = HTTP(
        server, .method = "POST", .path = "/locks",
        .json =
            "{\"resource\":\"api:1\",\"ttl_ms\":20000,\"owner\":\"web-3\"}");

    answer_expect(a, 201, NULL);
    ck_assert_str_eq(answer_header(a, "Location"), "/locks/api:1");
    ck_assert_str_eq(answer_header(a, "Content-Type"), "application/json");
    ck_assert_str_eq(answer_text(a, "id"), "api:1");
    ck_assert_str_eq(answer_text(a, "resource"), "api:1");
    ck_assert_str_eq(answer_text(a, "owner"), "web-3");
    expect_match(answer_text(a, "token"), "^[0-9]{16}\\.[0-9a-f]{40}\\.web-3$");
    const char *number =
        textf("%016lld", (long long)answer_int(a, "fencing_token"));
    ck_assert_int_eq(strncmp(answer_text(a, "token"), number, 16), 0);
    ck_assert_int_eq(answer_int(a, "ttl_ms"), 20000);
    /* 20000 - 200 (drift) - 7, what has passed, and the flight of the votes */
    json_int_t elapsed_ms = answer_int(a, "elapsed_ms");
    ck_assert_int_ge(elapsed_ms, 0);
    ck_assert_int_le(answer_int(a, "validity_ms"), 19793);
    ck_assert_int_ge(answer_int(a, "validity_ms"), 19792 - 2 * elapsed_ms - 1);
    ck_assert_int_gt(answer_int(a, "renew_after_ms"), 0);
    ck_assert_int_lt(answer_int(a, "renew_after_ms"),
                     answer_int(a, "validity_ms"));
    ck_assert_int_ge(answer_int(a, "nodes.granted"), 2);
    ck_assert_int_eq(answer_int(a, "nodes.quorum"), 2);
    ck_assert_int_eq(answer_int(a, "nodes.total"), N);
}

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

TEST(shortest_and_longest_ttl_are_accepted)
{
    struct lock lock;

    lock_take(server, "api:long", 60000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
    /* on a busy machine it may be over when the nodes have answered */
    WAIT_UNTIL(5000,
               lock_acquire(server, "api:short", 100, &lock)->status == 201);
    WAIT_UNTIL(5000, strstr(lock_inspect(server, "api:short")->body,
                            "\"held\":false") != NULL);
    /* on some nodes a little later */
    WAIT_UNTIL(5000, world_count_keys(&world, "api:short") == 0);
}

/* ---- ids ---------------------------------------------------------------- */

static const struct {
    const char *resource, *path;
} ids[] = {
    {"a", "/locks/a"},           {"..", "/locks/~Li4"},
    {"a/b", "/locks/~YS9i"},     {"\xf0\x9f\x94\x92", "/locks/~8J-Ukg"},
    {"extend", "/locks/extend"},
};

TEST_EACH(id_is_canonical_and_works_in_every_call, ids)
{
    struct lock lock;

    lock_take(server, ids[_i].resource, 9000, &lock);
    ck_assert_str_eq(lock.path, ids[_i].path);
    const struct answer *a = answer_expect(
        HTTP(server, .method = "GET", .path = ids[_i].path), 200, NULL);
    ck_assert_str_eq(answer_text(a, "resource"), ids[_i].resource);
    ck_assert_str_eq(answer_text(a, "id"), ids[_i].path + 7);
    answer_expect(lock_extend(server, &lock, 9000), 200, NULL);
    answer_expect(lock_release(server, &lock), 200, NULL);
}

/* 255 characters of four bytes: the longest resource there can be. */
TEST(longest_resource_works)
{
    struct lock lock;
    char resource[1024] = "";

    for (int i = 0; i < 255; i++)
        memcpy(resource + 4 * i, "\xf0\x9f\x94\x92", 5);
    lock_take(server, resource, 9000, &lock);
    answer_expect(HTTP(server, .method = "GET", .path = lock.path), 200, NULL);
    answer_expect(lock_extend(server, &lock, 9000), 200, NULL);
    answer_expect(lock_release(server, &lock), 200, NULL);
}

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
