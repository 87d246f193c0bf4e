/*
 * Clients that misbehave: they leave, they drip, they idle. None of them may
 * leave a lock behind that nobody owns, or keep others from working.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "delay.h"
#include "http.h"
#include "node.h"
#include "secure.h"

/* Handshakes take their time: with TLS some more than select(2) can name. */
enum { N = 3, IDLE = 5000, IDLE_TLS = 1200, DRIP_MS = 250, TEXT_SIZE = 1024 };

static struct world world;
static const struct server *const server = &world.servers[0];

/* POST /locks for resource, as bytes. */
static const char *post(const char *resource)
{
    const char *body =
        textf("{\"resource\":\"%s\",\"ttl_ms\":60000}", resource);
    return textf(
        "POST /locks HTTP/1.1\r\nHost: x\r\n"
        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
        strlen(body), body);
}

static int send_post(const char *resource)
{
    const char *text = post(resource);
    int fd = raw_connect(server);

    raw_send(fd, text, strlen(text));
    return fd;
}

/* Long before its TTL of a minute the lock must be free on every node. */
static void expect_freed(const char *resource)
{
    WAIT_UNTIL(15000, world_count_keys(&world, resource) == 0);
    answer_expect_free(lock_inspect(server, resource));
}

/* Requests that the server has taken and not yet ended. */
static double open_requests(void)
{
    return http_metric(server, "redlockd_http_requests_accepted_total") -
           http_metric(server, "redlockd_http_requests_answered_total") -
           http_metric(server, "redlockd_http_requests_abandoned_total");
}

/* ---- clients that leave -------------------------------------------------- */

static double grants_answered(void)
{
    double count = http_metric(server, "redlockd_http_requests_total{"
                                       "call=\"acquire\",status=\"201\"}");
    return count < 0 ? 0 : count; /* none is not told */
}

SUITE(clients, .timeout_s = 120);

/* No grant is answered before its client has had time to leave. */
static void start_far_from_the_nodes(void)
{
    struct server *it = &world.servers[0];
    size_t len = 0;

    world_start_nodes(&world, N);
    world_admit_nodes(&world, "");
    for (int i = 0; i < N; i++)
        len +=
            (size_t)snprintf(it->ports + len, sizeof it->ports - len, "%s%d=%d",
                             i > 0 ? "," : "", world.nodes[i].port,
                             delay_replies(&world.nodes[i], 10));
    ck_assert_uint_lt(len, sizeof it->ports);
    world_serve(&world, 0, "");
}

/*
 * One after the other is served; the key may be free between two of them. On a
 * busy machine a grant may be answered before its client comes to reset the
 * connection, and stands then: so this is tried again.
 */
TEST(reset_behind_the_request_leaves_no_lock)
{
    struct lock lock;
    double answered;
    int tries = 0;

    const char *resource;
    start_far_from_the_nodes();
    do {
        answered = grants_answered();
        resource = textf("reset-%d", ++tries);
        for (int i = 0; i < 50; i++)
            raw_reset(send_post(resource));
        /* who connects later is served when those have begun */
        lock_take(server, "later", 9000, &lock);
        WAIT_UNTIL(15000, open_requests() <= 1);
        answer_expect(lock_release(server, &lock), 200, NULL);
    } while (grants_answered() > answered + 1 && tries < 20);
    expect_freed(resource);
    world_stop(&world);
}

/* The nodes that would decide are paused, so the operation is under way. */
TEST(reset_while_the_operation_runs_leaves_no_lock)
{
    world_start(&world, N, "--node-timeout-ms 5000 --retry-count 0 " AT_SIGHT);
    world_pause_nodes(&world, 1, 3);
    int fd = send_post("running");
    WAIT_UNTIL(5000, node_integer(&world.nodes[0], "EXISTS running") == 1);
    raw_reset(fd);
    /* seen at once, not when the round ends */
    WAIT_UNTIL(4000, node_integer(&world.nodes[0], "EXISTS running") == 0);
    world_resume_nodes(&world, 1, 3);
    world_wait_ready(&world, 0);
    expect_freed("running");
    world_stop(&world);
}

/*
 * The nodes have granted, and their replies lie in the server's sockets beside
 * the news that the client left.
 */
static bool leave_granted(void (*leave)(int fd), const char *resource)
{
    world_pause_nodes(&world, 1, 3);
    int fd = send_post(resource);
    WAIT_UNTIL(5000, node_integer(&world.nodes[0], "EXISTS %s", resource) == 1);
    /* what is answered now is behind the turn that asked all nodes */
    ck_assert_int_eq(http_probe(server, "/livez"), 200);
    server_pause(server);
    world_resume_nodes(&world, 1, 3);
    int64_t until_ms = harness_now_ms() + 2000;
    bool is_granted = false;
    while (!is_granted && harness_now_ms() < until_ms)
        is_granted = world_count_keys(&world, resource) > N / 2;
    leave(fd);
    server_resume(server);
    expect_freed(resource);
    return is_granted;
}

static void leave_politely(int fd)
{
    close(fd);
}

static void (*const leaves[])(int fd) = {raw_reset, leave_politely};

/* A slow machine may resume the nodes when the call's number is too old. */
TEST_EACH(story_18_leaving_before_the_answer_releases_the_grant, leaves)
{
    bool is_granted = false;
    world_start(&world, N, "--node-timeout-ms 5000 --retry-count 0 " AT_SIGHT);
    for (int i = 0; i < 10 && !is_granted; i++)
        is_granted = leave_granted(leaves[_i], textf("granted-%d", i));
    ck_assert(is_granted);
    world_stop(&world);
}

/* ---- clients that leave behind their answer ------------------------------ */

/* How a connection may end behind a grant. */
struct ending {
    const char *name;
    bool is_second;      /* not the connection's first answer */
    bool is_unread;      /* the grant stays in the client's buffer */
    const char *next;    /* is sent behind it, or NULL */
    bool is_half_closed; /* before the end */
    bool is_reset;       /* by SO_LINGER; not: closed */
};

static const struct ending endings[] = {
    {.name = "read, closed"},
    {.name = "read, reset", .is_reset = true},
    {.name = "read, reset before its kernel acknowledged", /* it takes 40 ms */
     .is_second = true,
     .is_reset = true},
    {.name = "read, half closed, reset",
     .is_second = true,
     .is_half_closed = true,
     .is_reset = true},
    {.name = "read, another request begun, reset",
     .next = "PUT /locks/next/ext",
     .is_reset = true},
    {.name = "read, another request, reset",
     .next = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
     .is_reset = true},
    {.name = "in its buffer, closed", /* its kernel resets */
     .is_unread = true},
    {.name = "in its buffer, reset", .is_unread = true, .is_reset = true},
    {.name = "in its buffer, half closed, reset",
     .is_unread = true,
     .is_half_closed = true,
     .is_reset = true},
};

static void wait_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    ck_assert_int_eq(poll(&wait, 1, 20000), 1);
}

/* Acquires resource, and ends the connection so. */
static void acquire_and_end(const struct ending *ending, const char *resource)
{
    static const char first[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    char out[4096];
    const char *text = post(resource);
    int fd = raw_connect(server);

    if (ending->is_second) {
        raw_send(fd, first, strlen(first));
        raw_read(fd, out, sizeof out, "}\n", 20000);
    }
    raw_send(fd, text, strlen(text));
    wait_readable(fd);
    if (!ending->is_unread) {
        raw_read(fd, out, sizeof out, "}\n", 20000);
        ck_assert_has(out, " 201 ");
    }
    if (ending->next)
        raw_send(fd, ending->next, strlen(ending->next));
    if (ending->is_half_closed)
        shutdown(fd, SHUT_WR);
    if (ending->is_reset)
        raw_reset(fd);
    else
        close(fd);
}

TEST_EACH(story_36_what_was_answered_is_held_however_the_connection_ends,
          endings)
{
    const struct ending *ending = &endings[_i];

    world_start(&world, N, "");
    for (int i = 0; i < 10; i++) {
        acquire_and_end(ending, textf("ended-%d", i));
    }
    WAIT_UNTIL(5000, http_metric(server, "redlockd_connections") <= 1);
    WAIT_UNTIL(5000, open_requests() <= 1);
    harness_pause_ms(200);
    for (int i = 0; i < 10; i++) {
        const struct answer *a =
            lock_acquire(server, textf("ended-%d", i), 60000, NULL);
        ck_assert_msg(a->status == 409, "%s: %s", ending->name, a->body);
    }
    ck_assert_double_eq(
        http_metric(server, "redlockd_undelivered_grants_total"), 0);
    world_stop(&world);
}

/* ---- clients that drip --------------------------------------------------- */

/* Enough answers that no socket buffer takes them all. */
static void ask_and_never_read(int fd)
{
    static const char text[] = "GET /openapi.yaml HTTP/1.1\r\nHost: x\r\n\r\n";
    for (int i = 0; i < 500; i++)
        if (!raw_send_now(fd, text, sizeof text - 1))
            break;
}

/* Whether the server has ended it: what was not read comes before that. */
static bool is_cut_off(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLRDHUP};
    return poll(&look, 1, 0) == 1;
}

TEST(slow_drip_in_head_and_body_is_cut)
{
    static const char head[] = "GET /livez HTTP/1.1\r\nHost: x\r\nX-Long: ";
    static const char body[] = "POST /locks HTTP/1.1\r\nHost: x\r\n"
                               "Content-Type: application/json\r\n"
                               "Content-Length: 5000\r\n\r\n";
    enum { HEAD, BODY, SECOND_HEAD, SILENT, READS_NOTHING, KINDS };
    char out[1024];
    int fds[KINDS];
    int cut = 0;

    world_start(&world, 1, "");
    for (int i = 0; i < KINDS; i++)
        fds[i] = raw_connect(server);
    raw_send(fds[SECOND_HEAD], "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", 32);
    raw_read(fds[SECOND_HEAD], out, sizeof out, "}\n", 20000);
    harness_pause_ms(100); /* what comes now is no part of the first */
    raw_send(fds[HEAD], head, strlen(head));
    raw_send(fds[BODY], body, strlen(body));
    raw_send(fds[SECOND_HEAD], head, strlen(head));
    ask_and_never_read(fds[READS_NOTHING]);
    int64_t deadline_ms = harness_now_ms() + 40000; /* an idle one has 75 s */
    while (cut < KINDS) {
        cut = 0;
        for (int i = 0; i < KINDS; i++) {
            cut += is_cut_off(fds[i]);
            if (i <= SECOND_HEAD)
                raw_send(fds[i], " ", 1);
        }
        ck_assert_msg(harness_now_ms() < deadline_ms, "%d are cut", cut);
        harness_pause_ms(DRIP_MS);
    }
    ck_assert_double_ge(http_metric(server, "redlockd_connections_cut_total"),
                        KINDS);
    for (int i = 0; i < KINDS; i++)
        close(fds[i]);
    world_stop(&world);
}

/* ---- many clients -------------------------------------------------------- */

static void raise_descriptors(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_gt(limit.rlim_cur, IDLE + 100);
}

TEST(five_thousand_idle_connections_hinder_nobody)
{
    static int fds[IDLE];
    const int idle = secure_is_wanted() ? IDLE_TLS : IDLE;
    struct lock lock;
    char out[4096];

    raise_descriptors();
    world_start(&world, N, "");
    for (int i = 0; i < idle; i++)
        fds[i] = raw_connect(server);
    for (int i = 0; i < 200; i++) {
        lock_take(server, "busy", 9000, &lock);
        answer_expect(lock_release(server, &lock), 200, NULL);
    }
    /* an idle one works too */
    const char *text = post("idle");
    raw_send(fds[idle - 1], text, strlen(text));
    raw_read(fds[idle - 1], out, sizeof out, "}\n", 20000);
    ck_assert_has(out, " 201 ");
    for (int i = 0; i < idle; i++)
        close(fds[i]);
    WAIT_UNTIL(20000, http_metric(server, "redlockd_connections") < 10);
    world_stop(&world);
}
