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

/* One acquire and release; both must succeed. Returns elapsed_ms. */
static json_int_t cycle(const char *resource)
{
    struct lock lock;
    const struct answer *a = lock_take(here, resource, 9000, &lock);
    json_int_t elapsed_ms = answer_int(a, "elapsed_ms");
    lock_drop(here, &lock);
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

    world_start(3, "--node-timeout-ms 300 --ask all");
    int before = node_count(paused, "evalsha");
    node_disconnect(paused);
    node_pause(paused);
    lock_take(here, "orphan", 30000, &lock);
    world_kill_server(0);
    /* the deadline is the node's clock's business: it must have passed */
    int64_t late_ms = harness_now_ms() + 600;
    WAIT_UNTIL(5000, harness_now_ms() > late_ms);
    node_resume(paused);
    WAIT_UNTIL(5000, node_count(paused, "evalsha") > before);
    ck_assert_int_eq(node_integer(paused, "EXISTS orphan"), 0);
    ck_assert_int_eq(count_keys("orphan"), 2);
    world_stop();
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
    world_start_nodes(2);
    fake_start(garbage[_i].banner, garbage[_i].reply);
    world_start_server(0, AT_SIGHT);
    AWHILE(http_probe(here, "/readyz") == 200);
    for (int i = 0; i < 20; i++)
        cycle("garbage");
    const struct answer *a = HTTP(here, .method = "GET", .path = "/nodes");
    ck_assert_int_eq(answer_int(a, "voting"), 2);
    world_stop();
}

/* ---- fault 24: errors of real nodes -------------------------------------- */

/* Nobody may take it, but the nodes are as well as ever. */
TEST(story_24_a_refused_key_is_told_and_stops_nothing_else)
{
    struct lock lock;

    world_start(3, "");
    for (int i = 0; i < 3; i++)
        node_do(&world.nodes[i],
                "ACL SETUSER default resetkeys ~redlockd:* ~app:*");
    for (int i = 0; i < 5; i++) {
        const struct answer *a = lock_acquire(here, "other", 9000, NULL);
        answer_expect(a, 403, "key_refused");
        ck_assert_has(a->body, "\"vote\":\"key_refused\"");
        ck_assert_has(answer_text(a, "detail"), "ACL");
        ck_assert_int_eq(http_probe(here, "/readyz"), 200);
        cycle("app:1");
    }
    answer_expect(lock_inspect(here, "other"), 403, "key_refused");
    lock_take(here, "app:2", 9000, &lock);
    for (int i = 0; i < 3; i++)
        node_do(&world.nodes[i], "ACL SETUSER default resetkeys ~redlockd:*");
    answer_expect(lock_extend(here, &lock, 9000), 403, "key_refused");
    answer_expect(lock_release(here, &lock), 403, "key_refused");
    /* the nodes still owe the release */
    for (int i = 1; i < 3; i++)
        node_do(&world.nodes[i], "ACL SETUSER default allkeys");
    WAIT_UNTIL(5000, node_integer(&world.nodes[1], "EXISTS app:2") == 0);
    cycle("other"); /* a minority that refuses stops nobody */
    world_stop();
}
