/*
 * How locks broke elsewhere: each test is named after its story in FAULTS.
 */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "http.h"
#include "node.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static struct world world;
static const struct server *const server = &world.servers[0];

/* One acquire and release; both must succeed. Returns elapsed_ms. */
static json_int_t cycle(const char *resource)
{
    struct lock lock;
    const struct answer *a = lock_take(server, resource, 9000, &lock);
    json_int_t elapsed_ms = answer_int(a, "elapsed_ms");
    answer_expect(lock_release(server, &lock), 200, NULL);
    return elapsed_ms;
}

SUITE(faults, .timeout_s = 90);

/*
 * The acquire lies in the socket of a paused node while everything that could
 * take it back dies. It runs after the resume, and must then do nothing.
 */
TEST(story_02_paused_node_leaves_no_orphan)
{
    struct node *paused = &world.nodes[0];
    struct lock lock;

    world_start(&world, 3, "--node-timeout-ms 300 --ask all");
    int before = node_count(paused, "evalsha");
    node_disconnect(paused);
    node_pause(paused);
    lock_take(server, "orphan", 30000, &lock);
    world_kill_server(&world, 0);
    /* the deadline is the node's clock's business: it must have passed */
    int64_t late_ms = harness_now_ms() + 600;
    WAIT_UNTIL(5000, harness_now_ms() > late_ms);
    node_resume(paused);
    WAIT_UNTIL(5000, node_count(paused, "evalsha") > before);
    ck_assert_int_eq(node_integer(paused, "EXISTS orphan"), 0);
    ck_assert_int_eq(world_count_keys(&world, "orphan"), 2);
    world_stop(&world);
}

TEST(story_13_one_node_with_an_error_fails_no_round)
{
    world_start(&world, 3, "");
    node_do(&world.nodes[0], "CONFIG SET maxmemory 1");
    for (int i = 0; i < 20; i++)
        cycle("error");
    node_do(&world.nodes[0], "CONFIG SET maxmemory 0");
    node_do(&world.nodes[1], "ACL SETUSER default -evalsha");
    for (int i = 0; i < 20; i++)
        cycle("error");
    world_stop(&world);
}

/* A majority of the configured nodes, no more and no less. */
TEST_RANGE(story_14_quorum_is_an_integer_majority_of_the_configured, 3, 6)
{
    int n = _i, q = n / 2 + 1;

    world_start(&world, n, "");
    for (int i = 0; i < n - q; i++) {
        node_kill(&world.nodes[i]);
        cycle("quorum");
    }
    /* one that restarts beside so few others would wait in quarantine */
    node_pause(&world.nodes[n - q]);
    answer_expect(lock_acquire(server, "quorum", 9000, NULL), 503, "no_quorum");
    node_resume(&world.nodes[n - q]);
    WAIT_UNTIL(30000, http_probe(server, "/readyz") == 200);
    WAIT_UNTIL(5000, world_count_keys(&world, "quorum") == 0);
    cycle("quorum");
    world_stop(&world);
}

#define OWN_TOKEN(digit)                                                       \
    "000000000000000" digit ".00112233445566778899aabbccddeeff01234567"

/* Without releases behind lost rounds, the partial keys would block both. */
TEST(story_15_partial_locks_are_released_between_attempts)
{
    struct lock lock;

    world_start(&world, 5, "--retry-delay-ms 20 --retry-count 1");
    for (int i = 0; i < 10; i++) {
        world_set(&world, 0, 2, "partial", OWN_TOKEN("1"), 0);
        world_set(&world, 2, 1, "partial", OWN_TOKEN("2"), 0);
        answer_expect(lock_acquire(server, "partial", 30000, NULL), 409,
                      "lock_held");
        world_del(&world, 0, 3, "partial");
        lock_take(server, "partial", 30000, &lock);
        answer_expect(lock_release(server, &lock), 200, NULL);
        WAIT_UNTIL(5000, world_count_keys(&world, "partial") == 0);
    }
    world_stop(&world);
}

TEST(story_17_release_of_an_expired_lock_is_one_clear_answer)
{
    struct lock lock;

    world_start(&world, 3, "--retry-delay-ms 5000");
    WAIT_UNTIL(5000,
               lock_acquire(server, "expired", 100, &lock)->status == 201);
    WAIT_UNTIL(5000, world_count_keys(&world, "expired") == 0);
    int64_t start_ms = harness_now_ms();
    answer_expect(lock_release(server, &lock), 404, "lock_not_found");
    ck_assert_int_lt(harness_now_ms() - start_ms, 1000);
    world_stop(&world);
}

static const struct {
    const char *banner, *reply;
} garbage[] = {
    {"+OK\r\n+OK\r\n+OK\r\n", "+OK\r\n"}, /* replies that nobody asked for */
    {NULL, "+OK\r\n+OK\r\n"},             /* two for each command */
    {NULL, "HTTP/1.1 400 Bad Request\r\n\r\n"},
    {NULL, "$999999999\r\n"},
    {NULL, "$-5\r\n"},
    {NULL, "*1000000\r\n"},
    {NULL, "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"},
    {NULL, ":99999999999999999999\r\n"},
    {NULL, "*-1\r\n"},
    {NULL, "%1\r\n+a\r\n+b\r\n>1\r\n+message\r\n"},
    {"\r\n\r\n", "\r\n"},
    {NULL, "+"},
};

TEST_EACH(story_20_garbage_from_a_node_does_not_end_the_server, garbage)
{
    world_start_nodes(&world, 2);
    fake_start(&world, garbage[_i].banner, garbage[_i].reply);
    world_start_server(&world, 0, AT_SIGHT);
    WAIT_UNTIL(20000, http_probe(server, "/readyz") == 200);
    for (int i = 0; i < 20; i++)
        cycle("garbage");
    const struct answer *a = HTTP(server, .method = "GET", .path = "/nodes");
    ck_assert_int_eq(answer_int(a, "voting"), 2);
    world_stop(&world);
}

/* Nobody waits for a paused minority, and it is not torn from the rest. */
TEST(story_21_paused_minority_stops_no_acquire)
{
    world_start(&world, 5, "--node-timeout-ms 3000 " AT_SIGHT);
    node_pause(&world.nodes[0]);
    for (int i = 0; i < 50; i++)
        ck_assert_int_lt(cycle("paused"), 2000);
    node_pause(&world.nodes[3]);
    for (int i = 0; i < 50; i++)
        ck_assert_int_lt(cycle("paused"), 2000);
    node_resume(&world.nodes[0]);
    node_resume(&world.nodes[3]);
    world_wait_ready(&world, 0);
    WAIT_UNTIL(5000, world_count_keys(&world, "paused") == 0);
    world_stop(&world);
}

TEST(story_21_paused_majority_is_no_quorum_and_heals)
{
    world_start(&world, 5, "--node-timeout-ms 300");
    world_pause_nodes(&world, 0, 3);
    for (int i = 0; i < 5; i++)
        answer_expect(lock_acquire(server, "heal", 60000, NULL), 503,
                      "no_quorum");
    world_resume_nodes(&world, 0, 3);
    world_wait_ready(&world, 0);
    WAIT_UNTIL(20000, world_count_keys(&world, "heal") == 0);
    cycle("heal");
    world_stop(&world);
}

/* It is carried out when the nodes are back: the old validity is worth nothing,
   and the answer must not say that it stands. */
TEST(story_21_release_without_quorum_ends_the_validity)
{
    struct lock lock, next;

    world_start(&world, 3, "--node-timeout-ms 300");
    lock_take(server, "ends", 60000, &lock);
    world_pause_nodes(&world, 0, 2);
    const struct answer *a = lock_release(server, &lock);
    answer_expect(a, 503, "no_quorum");
    ck_assert_lacks(answer_text(a, "detail"), "stands");
    ck_assert_has(answer_text(a, "detail"), "treat the lock as gone");
    world_resume_nodes(&world, 0, 2);
    WAIT_UNTIL(10000,
               lock_acquire(server, "ends", 60000, &next)->status == 201);
    answer_expect(lock_release(server, &next), 200, NULL);
    world_stop(&world);
}

TEST(story_22_resource_cannot_overwrite_the_bookkeeping)
{
    struct lock lock;

    world_start(&world, 1, "");
    cycle("a");
    long long fields = node_integer(&world.nodes[0], "HLEN redlockd:state");
    answer_expect(lock_acquire(server, "redlockd:state", 9000, NULL), 400,
                  "invalid_request");
    lock_take(server, "a:fence", 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
    ck_assert_int_ge(node_integer(&world.nodes[0], "HLEN redlockd:state"),
                     fields);
    world_stop(&world);
}

/* A lock where another installation is about to keep its bookkeeping. */
TEST(story_22_resource_cannot_take_the_place_of_anothers_bookkeeping)
{
    world_start(&world, 1, "");
    answer_expect(lock_acquire(server, "other:redlockd:state", 60000, NULL),
                  400, "invalid_request");
    ck_assert_int_eq(world_count_keys(&world, "other:redlockd:state"), 0);
    world_serve(&world, 1, "--key-prefix other:");
    answer_expect(lock_inspect(server, "other:redlockd:state"), 400,
                  "invalid_request");
    lock_expect_cycle(&world.servers[1], "a");
    world_stop(&world);
}

/* Whatever some hand writes into a slot: that slot fails, nothing else does. */
static const char *const poisons[] = {"9007199254740991", "9007199254740992",
                                      "99999999999999999999", "x"};

TEST(story_22_poisoned_slot_stops_nothing_else)
{
    world_start(&world, 3, "");
    for (size_t i = 0; i < COUNT(poisons); i++) {
        for (int node = 0; node < 3; node++) /* CRC-16 of "poison" */
            node_do(&world.nodes[node],
                    "HSET redlockd:state 1080 %s max_token %s", poisons[i],
                    poisons[i]);
        answer_expect(lock_acquire(server, "poison", 9000, NULL), 503,
                      "no_quorum");
        cycle("healthy");
    }
    for (int node = 0; node < 3; node++)
        node_do(&world.nodes[node], "HDEL redlockd:state 1080 max_token");
    cycle("poison");
    world_stop(&world);
}

/* ---- fault 24: errors of real nodes -------------------------------------- */

/* break and fix are commands for the only node. */
static const struct {
    const char *damage, *fix, *vote;
} errors[] = {
    {"CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", "out_of_memory"},
    {"ACL SETUSER default -evalsha", "ACL SETUSER default +evalsha",
     "no_permission"},
    {"CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0",
     "failed"},
    {"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "read_only"},
};

TEST_EACH(story_24_error_of_a_node_is_named_and_never_held, errors)
{
    world_start(&world, 1, "");
    cycle("named");
    node_do(&world.nodes[0], errors[_i].damage);
    const struct answer *a = lock_acquire(server, "named", 9000, NULL);
    answer_expect(a, 503, "no_quorum");
    ck_assert_str_eq(answer_text(a, "nodes.0.vote"), errors[_i].vote);
    node_do(&world.nodes[0], errors[_i].fix);
    struct lock lock;
    WAIT_UNTIL(10000,
               lock_acquire(server, "named", 9000, &lock)->status == 201);
    answer_expect(lock_release(server, &lock), 200, NULL);
    world_stop(&world);
}

/* Nobody may take it, but the nodes are as well as ever. */
TEST(story_24_a_refused_key_is_told_and_stops_nothing_else)
{
    struct lock lock;

    world_start(&world, 3, "");
    for (int i = 0; i < 3; i++)
        node_do(&world.nodes[i],
                "ACL SETUSER default resetkeys ~redlockd:* ~app:*");
    for (int i = 0; i < 5; i++) {
        const struct answer *a = lock_acquire(server, "other", 9000, NULL);
        answer_expect(a, 403, "key_refused");
        ck_assert_has(a->body, "\"vote\":\"key_refused\"");
        ck_assert_has(answer_text(a, "detail"), "ACL");
        ck_assert_int_eq(http_probe(server, "/readyz"), 200);
        cycle("app:1");
    }
    answer_expect(lock_inspect(server, "other"), 403, "key_refused");
    lock_take(server, "app:2", 9000, &lock);
    for (int i = 0; i < 3; i++)
        node_do(&world.nodes[i], "ACL SETUSER default resetkeys ~redlockd:*");
    answer_expect(lock_extend(server, &lock, 9000), 403, "key_refused");
    answer_expect(lock_release(server, &lock), 403, "key_refused");
    /* the nodes still owe the release */
    for (int i = 1; i < 3; i++)
        node_do(&world.nodes[i], "ACL SETUSER default allkeys");
    WAIT_UNTIL(5000, node_integer(&world.nodes[1], "EXISTS app:2") == 0);
    cycle("other"); /* a minority that refuses stops nobody */
    world_stop(&world);
}

static void flush_scripts(void)
{
    for (int i = 0; i < world.nodes_count; i++)
        node_do(&world.nodes[i], "SCRIPT FLUSH");
}

/* On all nodes at once, and in the midst of each call. */
TEST(story_24_flushed_scripts_fail_no_call)
{
    struct lock lock;

    world_start(&world, 3, "--retry-count 0");
    for (int i = 0; i < 20; i++) {
        flush_scripts();
        lock_take(server, "noscript", 9000, &lock);
        flush_scripts();
        answer_expect(lock_extend(server, &lock, 9000), 200, NULL);
        flush_scripts();
        answer_expect(lock_inspect(server, "noscript"), 200, NULL);
        flush_scripts();
        answer_expect(HTTP(server, .method = "GET", .path = "/locks"), 200,
                      NULL);
        flush_scripts();
        answer_expect(lock_release(server, &lock), 200, NULL);
        WAIT_UNTIL(5000, world_count_keys(&world, "noscript") == 0);
        flush_scripts();
        answer_expect(HTTP(server, .method = "POST", .path = "/locks",
                           .json = "{\"resource\":\"pool\",\"limit\":100,"
                                   "\"ttl_ms\":9000}"),
                      201, NULL);
    }
    world_stop(&world);
}

/* A script without end: the node says BUSY to everything but SCRIPT KILL. */
TEST(story_24_busy_node_is_named)
{
    struct lock lock;

    world_start(&world, 1, "");
    node_do(&world.nodes[0], "CONFIG SET busy-reply-threshold 1");
    redisContext *other = node_connect(&world.nodes[0]);
    ck_assert(other && !other->err);
    redisAppendCommand(other, "EVAL %s 0", "while true do end");
    int is_written = 0;
    while (!is_written)
        ck_assert_int_eq(redisBufferWrite(other, &is_written), REDIS_OK);
    const redisReply *reply = NULL;
    WAIT_UNTIL(10000, (reply = node_try(&world.nodes[0], "GET x")) &&
                          reply->type == REDIS_REPLY_ERROR);
    const struct answer *a = lock_acquire(server, "busy", 9000, NULL);
    answer_expect(a, 503, "no_quorum");
    ck_assert_str_eq(answer_text(a, "nodes.0.vote"), "busy");
    node_do(&world.nodes[0], "SCRIPT KILL");
    WAIT_UNTIL(10000, lock_acquire(server, "busy", 9000, &lock)->status == 201);
    redisFree(other);
    world_stop(&world);
}

/* ---- fault 24: errors that only a handshake meets ------------------------ */

static const struct {
    const char *reply, *state;
} handshakes[] = {
    {"-LOADING Redis is loading the dataset in memory\r\n", "loading"},
    {"-NOAUTH Authentication required.\r\n", "no_permission"},
    {"-NOPERM this user has no permissions\r\n", "no_permission"},
    {"-ERR max number of clients reached\r\n", "too_many_clients"},
    {"-MISCONF Errors writing to the AOF file\r\n", "misconfigured"},
    {"-OOM command not allowed\r\n", "out_of_memory"},
    {"-BUSY Redis is busy running a script\r\n", "busy"},
    {"-READONLY You can't write against a read only replica.\r\n", "read_only"},
    {"-WHATEVER else\r\n", "failed"},
};

static bool has_state(int node, const char *state)
{
    char path[32];
    const struct answer *a = HTTP(server, .method = "GET", .path = "/nodes");

    snprintf(path, sizeof path, "nodes.%d.state", node);
    return strcmp(answer_text(a, path), state) == 0;
}

TEST_EACH(story_24_error_in_the_handshake_is_named, handshakes)
{
    world_start_nodes(&world, 2);
    fake_start(&world, NULL, handshakes[_i].reply);
    world_start_server(&world, 0, AT_SIGHT);
    WAIT_UNTIL(20000, http_probe(server, "/readyz") == 200);
    WAIT_UNTIL(10000, has_state(2, handshakes[_i].state));
    for (int i = 0; i < 10; i++)
        cycle("handshake");
    world_stop(&world);
}
