/* SPDX-License-Identifier: MIT */
/*
 * How locks broke elsewhere: each test is named after its story in FAULTS.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

/* ---- a node that is none --------------------------------------------------
 */

enum { FAKE_CONNECTIONS = 64 };

static int listen_on(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    return fd;
}

static bool send_text(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) > 0;
}

/* False: the connection has ended. */
static bool answer(int fd, const char *reply)
{
    char data[16384];
    ssize_t got = recv(fd, data, sizeof data, 0);

    if (got <= 0)
        return false;
    for (ssize_t i = 0; i < got; i++)
        if (data[i] == '*' && (i == 0 || data[i - 1] == '\n') &&
            !send_text(fd, reply))
            return false;
    return true;
}

/* polls[0] listens; a new connection takes the first free place. */
static void greet(struct pollfd *polls, const char *banner)
{
    int fd = accept(polls[0].fd, NULL, NULL);

    for (int i = 1; i < FAKE_CONNECTIONS && fd >= 0; i++) {
        if (polls[i].fd >= 0)
            continue;
        polls[i] = (struct pollfd){.fd = fd, .events = POLLIN};
        if (banner)
            send_text(fd, banner);
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void serve(int listener, const char *banner, const char *reply)
{
    struct pollfd polls[FAKE_CONNECTIONS];

    for (int i = 0; i < FAKE_CONNECTIONS; i++)
        polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    polls[0].fd = listener;
    while (poll(polls, FAKE_CONNECTIONS, -1) >= 0) {
        if (polls[0].revents)
            greet(polls, banner);
        for (int i = 1; i < FAKE_CONNECTIONS; i++) {
            if (polls[i].fd < 0 || !polls[i].revents ||
                answer(polls[i].fd, reply))
                continue;
            close(polls[i].fd);
            polls[i].fd = -1;
        }
    }
}

/*
 * Becomes the next node, before the server is started. Each read is answered
 * with reply, once per command that can be seen in it ("*" begins one); banner,
 * if not NULL, is sent unasked on each connection.
 */
static void fake_start(const char *banner, const char *reply)
{
    struct node *node = &world.nodes[world.nodes_count];

    ck_assert_int_lt(world.nodes_count, WORLD_NODES);
    node->port = harness_free_port();
    int listener = listen_on(node->port);
    node->pid = harness_fork();
    if (node->pid == 0) {
        serve(listener, banner, reply);
        _exit(0);
    }
    close(listener);
    world.nodes_count++;
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
    pause_ms(600); /* the deadline is the node's clock's business */
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

/* Four such nodes beside five good ones. */
TEST_RANGE(story_20_garbage_from_a_node_does_not_end_the_server, 0, 3)
{
    world_start_nodes(5);
    for (int i = 4 * _i; i < 4 * _i + 4; i++)
        fake_start(garbage[i].banner, garbage[i].reply);
    world_start_server(0, AT_SIGHT);
    world_await(0, "/readyz");
    for (int i = 0; i < 20; i++)
        lock_expect_cycle(here, "garbage");
    const struct answer *a = HTTP(here, .method = "GET", .path = "/nodes");
    ck_assert_int_eq(answer_int(a, "voting"), 5);
    world_stop();
}

/* ---- fault 22: what lies on the nodes ------------------------------------ */

/* Whatever some hand writes into a slot: that slot fails, nothing else does. */
TEST(story_22_poisoned_slot_stops_nothing_else)
{
    static const char *const poisons[] = {
        "9007199254740991", "9007199254740992", "99999999999999999999", "x"};
    world_start(3, "");
    for (int i = 0; i < 4; i++) {
        for (int node = 0; node < 3; node++) /* CRC-16 of "poison" */
            node_do(&world.nodes[node],
                    "HSET redlockd:state 1080 %s max_token %s", poisons[i],
                    poisons[i]);
        answer_expect(lock_acquire(here, "poison", 9000, NULL), 503,
                      "no_quorum");
        lock_expect_cycle(here, "healthy");
    }
    for (int node = 0; node < 3; node++)
        node_do(&world.nodes[node], "HDEL redlockd:state 1080 max_token");
    lock_expect_cycle(here, "poison");
    world_stop();
}

/* ---- fault 24: errors of real nodes -------------------------------------- */

static void flush_scripts(void)
{
    for (int i = 0; i < world.nodes_count; i++)
        node_do(&world.nodes[i], "SCRIPT FLUSH");
}

/* On all nodes at once, before each call. */
TEST(story_24_flushed_scripts_fail_no_call)
{
    struct lock lock;
    world_start(3, "--retry-count 0");
    for (int i = 0; i < 5; i++) {
        flush_scripts();
        lock_take(here, "noscript", 9000, &lock);
        flush_scripts();
        expect_ok(lock_extend(here, &lock, 9000));
        flush_scripts();
        answer_expect_held(lock_inspect(here, "noscript"));
        flush_scripts();
        expect_ok(HTTP(here, .method = "GET", .path = "/locks"));
        flush_scripts();
        lock_drop(here, &lock);
        expect_keys("noscript", 0);
    }
    world_stop();
}

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
        lock_expect_cycle(here, "app:1");
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
    lock_expect_cycle(here, "other"); /* a minority that refuses stops nobody */
    world_stop();
}
