/*
 * Other clients' locks on the same masters exclude ours, and ours theirs.
 */
#include <hiredis/hiredis.h>
#include <string.h>

#include "http.h"
#include "node.h"

enum { N = 5, Q = 3 };

WORLD(world_start, N, "--retry-count 1 --retry-delay-ms 20");
static const struct server *const server = &world.servers[0];

/* Refused as held, and nothing of ours stays beside the foreign keys. */
static void expect_excluded(const char *resource, int foreign)
{
    answer_expect(lock_acquire(server, resource, 9000, NULL), 409, "lock_held");
    WAIT_UNTIL(5000, world_count_keys(&world, resource) == foreign);
}

SUITE(interop, .timeout_s = 60, WORLD_ONCE);

TEST(plain_redlock_excludes_ours)
{
    struct lock lock;

    world_set(&world, 1, Q, "plain", "4a6f2c", 30000);
    expect_excluded("plain", Q);
    const struct answer *a = lock_inspect(server, "plain");
    answer_expect(a, 200, NULL);
    ck_assert_int_le(answer_int(a, "remaining_ms"), 30000);
    /* released by its own client: ours may have it */
    world_del(&world, 1, Q, "plain");
    lock_take(server, "plain", 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
}

TEST(setnx_without_ttl_excludes_ours)
{
    for (int i = 0; i < Q; i++)
        ck_assert_int_eq(node_integer(&world.nodes[i], "SETNX old 1"), 1);
    const struct answer *a = lock_acquire(server, "old", 9000, NULL);
    answer_expect(a, 409, "lock_held");
    /* held, for a time that nobody knows */
    ck_assert(!answer_has(a, "held_by.remaining_ms"));
    expect_excluded("old", Q);
    answer_expect_held(lock_inspect(server, "old"));
}

TEST(hash_as_of_redisson_excludes_ours)
{
    for (int i = 0; i < Q; i++)
        node_do(&world.nodes[i], "HSET redisson id:1 1");
    expect_excluded("redisson", Q);
    for (int i = 0; i < Q; i++)
        ck_assert_str_eq(node_text(&world.nodes[i], "TYPE redisson"), "hash");
    answer_expect_held(lock_inspect(server, "redisson"));
}

static const char *const types[] = {"LPUSH list x", "SADD set x",
                                    "ZADD zset 1 x", "XADD stream * a b",
                                    "SETBIT bits 7 1"};
static const char *const type_keys[] = {"list", "set", "zset", "stream",
                                        "bits"};

TEST_RANGE(key_of_any_type_excludes_ours, 0, sizeof types / sizeof *types)
{
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], types[_i]);
    expect_excluded(type_keys[_i], N);
    struct lock lock = {.token = MADE_UP_TOKEN};
    strcpy(lock.path, "/locks/");
    strcat(lock.path, type_keys[_i]);
    answer_expect(lock_extend(server, &lock, 9000), 409, "not_owner");
    answer_expect(lock_release(server, &lock), 409, "not_owner");
    ck_assert_int_eq(world_count_keys(&world, type_keys[_i]), N);
}

/* The value of a foreign lock is no secret of ours, but it is its token. */
TEST(foreign_value_is_never_shown)
{
    world_set(&world, 0, N, "secret", "c0ffee00c0ffee", 30000);
    const struct answer *a = lock_acquire(server, "secret", 9000, NULL);
    answer_expect(a, 409, "lock_held");
    ck_assert_lacks(a->body, "c0ffee");
    a = answer_expect_held(lock_inspect(server, "secret"));
    ck_assert_lacks(a->body, "c0ffee");
}

/* Values of keys that were never locks of ours, and of other libraries. */
static const char *const foreign_values[] = {
    "1",
    "their-value",
    "8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5",
    "0b9d1b0e-5a3c-4c2e-9d51-3a8d3f0f3c11:1",
    "1795221641865000.8f1c27a5",
    "1795221641865000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5!",
};

static void expect_refused(const struct answer *a)
{
    answer_expect(a, 400, "invalid_request");
    ck_assert_str_eq(answer_text(a, "errors.0.pointer"), "/token");
    ck_assert_has(answer_text(a, "detail"), "POST /locks");
}

/* It would be a way to delete any key whose value can be guessed. */
TEST_RANGE(story_51_a_foreign_value_is_no_token, 0,
           sizeof foreign_values / sizeof *foreign_values)
{
    const char *value = foreign_values[_i];
    struct lock lock = {.path = "/locks/theirs"};

    strcpy(lock.token, value);
    const char *body = textf("{\"token\":\"%s\"}", value);
    world_set(&world, 0, N, "theirs", value, 20000);
    expect_refused(lock_release(server, &lock));
    expect_refused(lock_extend(server, &lock, 60000));
    expect_refused(HTTP(server, .method = "DELETE", .path = "/locks/theirs",
                        .json = body));
    expect_refused(HTTP(server, .method = "PUT", .path = "/locks/theirs/extend",
                        .json = body));
    for (int i = 0; i < N; i++) {
        long long left_ms = node_integer(&world.nodes[i], "PTTL theirs");
        ck_assert_int_gt(left_ms, 0);
        ck_assert_int_le(left_ms, 20000);
    }
    world_del(&world, 0, N, "theirs");
}

TEST(ours_excludes_plain_redlock)
{
    struct lock lock;
    int granted = 0;

    lock_take(server, "ours", 30000, &lock);
    WAIT_UNTIL(5000, world_count_keys(&world, "ours") == N);
    for (int i = 0; i < N; i++)
        granted += node_text(&world.nodes[i], "SET ours v NX PX 1000") != NULL;
    ck_assert_int_eq(granted, 0);
    answer_expect(lock_release(server, &lock), 200, NULL);
    WAIT_UNTIL(5000, world_count_keys(&world, "ours") == 0);
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

    lock_take(server, "usual", 30000, &lock);
    WAIT_UNTIL(5000, world_count_keys(&world, "usual") == N);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(node_integer(&world.nodes[i], "EVAL %s 1 usual %s",
                                      script, lock.token),
                         1);
    answer_expect_free(lock_inspect(server, "usual"));
}
