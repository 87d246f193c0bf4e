/*
 * What needs bad luck, seen from outside once: a grant that comes too late, one
 * that is not delivered, a node that owes too many replies.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

enum {
    N = 3,
    SOON_MS = 20000,
    TTL_MS = 2000,
    /* then drift leaves nothing of it, but the number is not too old yet */
    LATE_MS = TTL_MS / 2,
    TRIES = 5,
    CLIENTS = 60,
    CALLS = 280, /* of each client: together more than a node may owe */
};

static struct world world;
static const struct server *const server = &world.servers[0];

static int send_post(int ttl_ms)
{
    char text[512], body[128];
    int len = snprintf(body, sizeof body,
                       "{\"resource\":\"order:42\",\"ttl_ms\":%d}", ttl_ms);
    int fd = raw_connect(server);

    len = snprintf(text, sizeof text,
                   "POST /locks HTTP/1.1\r\nHost: x\r\n"
                   "Content-Type: application/json\r\n"
                   "Content-Length: %d\r\n\r\n%s",
                   len, body);
    raw_send(fd, text, (size_t)len);
    return fd;
}

static void pause_nodes(void)
{
    world_pause_nodes(&world, 0, N);
}

static void resume_nodes(void)
{
    world_resume_nodes(&world, 0, N);
}

/* ---- too late ----------------------------------------------------------- */

/* The answer to an acquire whose nodes stand for LATE_MS. */
static void acquire_late(char answer[ANSWER_HEAD])
{
    pause_nodes();
    int fd = send_post(TTL_MS);
    harness_pause_ms(LATE_MS);
    resume_nodes();
    raw_read(fd, answer, ANSWER_HEAD, "}\n", SOON_MS);
    close(fd);
}

SUITE(rare, .timeout_s = 120);

/* On a busy machine it may be later still, and no_quorum. */
TEST(a_grant_that_comes_too_late_is_validity_exhausted)
{
    char answer[ANSWER_HEAD];
    bool is_seen = false;

    world_start(&world, N,
                AT_SIGHT " --drift-factor 0.5 --node-timeout-ms 4000");
    for (int i = 0; i < TRIES && !is_seen; i++) {
        acquire_late(answer);
        ck_assert_msg(strstr(answer, "HTTP/1.1 503 "), "%s", answer);
        is_seen = strstr(answer, "\"code\":\"validity_exhausted\"");
    }
    ck_assert_msg(is_seen, "%s", answer);
    ck_assert_has(answer, "\"retry_after_ms\":");
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "order:42") == 0);
    lock_expect_cycle(server, "order:42");
    ck_assert(http_metric(server,
                          "redlockd_operations_total{operation=\"acquire\","
                          "outcome=\"validity_exhausted\"}") >= 1);
    world_stop(&world);
}

/* ---- not delivered ------------------------------------------------------ */

static double undelivered(void)
{
    return http_metric(server, "redlockd_undelivered_grants_total");
}

/*
 * The votes lie in the server's sockets when the client resets its: it finds
 * both in one turn.
 */
static void leave_unread(void)
{
    double before = undelivered();
    pause_nodes();
    int fd = send_post(60000);
    /* what is answered now is behind the turn that sent the acquire */
    for (int i = 0; i < 2; i++)
        ck_assert(undelivered() == before);
    server_pause(server);
    resume_nodes();
    /* for nodes on a busy machine the acquire may come too late */
    int64_t until_ms = harness_now_ms() + SOON_MS;
    while (world_count_keys(&world, "order:42") < N &&
           harness_now_ms() < until_ms)
        harness_pause_ms(5);
    raw_reset(fd);
    server_resume(server);
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "order:42") == 0);
}

/*
 * A server that is stopped in the middle of a turn finds the reset first, and
 * abandons the acquire: that is released too, and was never granted.
 */
TEST(a_grant_whose_client_has_left_is_undelivered_and_released)
{
    world_start(&world, N, AT_SIGHT " --node-timeout-ms 10000");
    for (int i = 0; i < TRIES && undelivered() == 0; i++)
        leave_unread();
    WAIT_UNTIL(SOON_MS, undelivered() == 1);
    world_stop(&world);
}

/* ---- back-pressure ------------------------------------------------------ */

/* Inspections in a row on each connection, and all their answers. */
static void inspect_many(void)
{
    static const char form[] = "GET /locks/a HTTP/1.1\r\nHost: x\r\n\r\n";
    static const char last[] =
        "GET /locks/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    static char answers[CALLS * 1024];
    char *text = harness_repeat("#", form, CALLS);
    int fds[CLIENTS];

    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = raw_connect(server);
        raw_send(fds[i], text, strlen(text));
        raw_send(fds[i], last, sizeof last - 1);
    }
    for (int i = 0; i < CLIENTS; i++) {
        raw_read(fds[i], answers, sizeof answers, NULL, 60000);
        ck_assert_has(answers, "\"version\":\"free\"");
        close(fds[i]);
    }
    free(text);
}

/* Why the paused node does not vote, once it owes many replies. */
static const char *owe_many(void)
{
    struct lock lock;
    world_start(&world, N, AT_SIGHT " --node-timeout-ms 10000");
    node_do(&world.nodes[0], "CLIENT PAUSE 120000 WRITE");
    inspect_many();
    node_kill(&world.nodes[1]);
    const struct answer *answer = answer_expect(
        lock_acquire(server, "order:42", 60000, &lock), 503, "no_quorum");
    return answer_text(answer, "nodes.0.vote");
}

/*
 * It gets no more, and is named. Then it answers, and votes as before. All must
 * be sent within 20 s of silence, so many clients send few each; a machine that
 * is too slow for that tries again.
 */
TEST(a_node_that_owes_too_many_replies_is_stalled)
{
    struct lock lock;
    const char *vote = owe_many();
    for (int i = 1; i < TRIES && strcmp(vote, "silent") == 0; i++) {
        world_stop(&world);
        vote = owe_many();
    }
    ck_assert_str_eq(vote, "stalled");
    node_do(&world.nodes[0], "CLIENT UNPAUSE");
    WAIT_UNTIL(SOON_MS,
               lock_acquire(server, "order:42", 60000, &lock)->status == 201);
    answer_expect(lock_release(server, &lock), 200, NULL);
    world_stop(&world);
}
