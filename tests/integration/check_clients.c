/* SPDX-License-Identifier: MIT */
/*
 * Clients that misbehave: they leave, they drip, they idle. None of them may
 * leave a lock behind that nobody owns, or keep others from working.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "node.h"
#include "secure.h"
#include "waiter.h"
#include "ways.h"

/* Handshakes take their time: with TLS some more than select(2) can name. */
enum { N = 3, TTL_MS = 60000, IDLE = 5000, IDLE_TLS = 1200, DRIP_MS = 250 };

WORLD(world_start, N, "--node-timeout-ms 5000 --retry-count 0 " AT_SIGHT);

/* Long before its TTL the lock must be free on every node. */
static void expect_freed(const char *resource)
{
    AWHILE(count_keys(resource) == 0);
    answer_expect_free(lock_inspect(here, resource));
}

static int send_post(const char *resource)
{
    return waiter_send(here, resource, TTL_MS, 0);
}

static void pause_majority(void)
{
    world_pause_nodes(1, N);
}

static void resume_majority(void)
{
    world_resume_nodes(1, N);
    world_wait_ready(0);
}

/* ---- ways to leave ------------------------------------------------------- */

static void close_half(int fd)
{
    shutdown(fd, SHUT_WR);
}

/* It has sent more than the request that waits. */
static void close_behind_another(int fd)
{
    raw_send(fd, RAW_LIVEZ, strlen(RAW_LIVEZ));
    close(fd);
}

static void say_goodbye_and_close(int fd)
{
    secure_say_goodbye(fd);
    close(fd);
}

static void say_goodbye_behind_another(int fd)
{
    raw_send(fd, RAW_LIVEZ, strlen(RAW_LIVEZ));
    say_goodbye_and_close(fd);
}

/* Those with priorities are of TLS: 1.2 and 1.3 say goodbye in records of
 * different kinds. */
#define OLD "NORMAL:-VERS-ALL:+VERS-TLS1.2"
#define NEW "NORMAL"

static const struct {
    void (*leave)(int fd);
    const char *priorities;
} leavings[] = {
    {raw_close, NULL},
    {raw_reset, NULL},
    {close_half, NULL},
    {close_behind_another, NULL},
    {secure_say_goodbye, NEW}, /* and keeps the connection */
    {secure_say_goodbye, OLD},
    {say_goodbye_and_close, NEW},
    {say_goodbye_and_close, OLD},
    {say_goodbye_behind_another, NEW},
    {raw_reset, OLD},
};

/* False: this way is not to be had. Later connections speak so. */
static bool may_leave(int way)
{
    if (leavings[way].priorities == NULL)
        return true;
    if (!secure_is_wanted())
        return false;
    secure_set_client(
        &(struct secure_client){.authority = secure_client()->authority,
                                .priorities = leavings[way].priorities});
    return true;
}

/* Whatever a test that failed has left. */
static void recover(void)
{
    server_resume(here);
    world_resume_nodes(0, N);
    world_wait_ready(0);
}

SUITE(clients, .timeout_s = 120, .set_up = recover, WORLD_ONCE);

TEST_EACH(who_leaves_while_it_waits_is_forgotten_at_once, leavings)
{
    struct lock held;
    if (!may_leave(_i))
        return;
    lock_take(here, "w", TTL_MS, &held);
    int fd = waiter_send(here, "w", TTL_MS, 45000);
    waiter_expect_count(here, 1);
    leavings[_i].leave(fd);
    waiter_expect_count(here, 0);
    lock_drop(here, &held);
    expect_freed("w");
}

/* It pipelines, and has not left: the requests are answered in their order. */
TEST(more_data_is_no_goodbye)
{
    char out[4096];
    struct lock held;
    lock_take(here, "more", TTL_MS, &held);
    int fd = waiter_send(here, "more", TTL_MS, 45000);
    waiter_expect_count(here, 1);
    raw_send(fd, RAW_LIVEZ, strlen(RAW_LIVEZ));
    pause_ms(300);
    waiter_expect_count(here, 1);
    lock_drop(here, &held);
    raw_read(fd, out, sizeof out, "{\"status\":\"alive\"}\n", 9000);
    ck_assert_int_eq(strncmp(out, "HTTP/1.1 201 ", 13), 0);
    close(fd);
}

/* The nodes that would decide are paused, so the operation is under way. */
TEST_EACH(who_leaves_while_the_nodes_are_asked_leaves_no_lock, leavings)
{
    const char *name = textf("asked:%d", _i);
    if (!may_leave(_i))
        return;
    pause_majority();
    int fd = send_post(name);
    SOON(node_integer(&world.nodes[0], "EXISTS %s", name) == 1);
    leavings[_i].leave(fd);
    /* seen at once, not when the round ends */
    WAIT_UNTIL(4000, node_integer(&world.nodes[0], "EXISTS %s", name) == 0);
    resume_majority();
    expect_freed(name);
}

/*
 * The nodes have granted, and their replies lie in the server's sockets beside
 * the news that the client left. False: a slow machine resumed the nodes when
 * the call's number was too old.
 */
static bool leave_granted(int way, const char *name)
{
    pause_majority();
    int fd = send_post(name);
    SOON(node_integer(&world.nodes[0], "EXISTS %s", name) == 1);
    /* what is answered now is behind the turn that asked all nodes */
    ck_assert_int_eq(http_probe(here, "/livez"), 200);
    server_pause(here);
    world_resume_nodes(1, N);
    bool is_granted = false;
    for (int i = 0; i < 400 && !is_granted; i++) {
        is_granted = count_keys(name) > N / 2;
        pause_ms(5);
    }
    leavings[way].leave(fd);
    server_resume(here);
    world_wait_ready(0);
    expect_freed(name);
    return is_granted;
}

TEST_EACH(story_18_leaving_before_the_answer_releases_the_grant, leavings)
{
    bool is_granted = !may_leave(_i);
    for (int i = 0; i < 10 && !is_granted; i++)
        is_granted = leave_granted(_i, textf("granted:%d:%d", _i, i));
    ck_assert(is_granted);
}

/* ---- clients that leave behind their answer ------------------------------ */

/* How a connection may end behind a grant. */
static const struct ending {
    bool is_second;      /* not the connection's first answer */
    bool is_unread;      /* the grant stays in the client's buffer */
    const char *next;    /* is sent behind it, or NULL */
    bool is_half_closed; /* before the end */
    int way;             /* of leavings */
} endings[] = {
    {.way = 0},
    {.way = 1},
    {.is_second = true, .way = 1}, /* its kernel acknowledges 40 ms later */
    {.is_second = true, .is_half_closed = true, .way = 1},
    {.next = "PUT /locks/next/ext", .way = 1},
    {.next = RAW_LIVEZ, .way = 1},
    {.is_unread = true, .way = 0}, /* its kernel resets */
    {.is_unread = true, .is_half_closed = true, .way = 1},
    {.way = 4},
    {.way = 7},
    {.way = 8},
};

/* Acquires resource, and ends the connection so. */
static void acquire_and_end(const struct ending *ending, const char *resource)
{
    int fd = raw_ask(here, RAW_LIVEZ);
    if (ending->is_second) {
        raw_expect(fd, "alive");
    } else {
        close(fd);
        fd = raw_connect(here);
    }
    const char *text = raw_post_text(
        textf("{\"resource\":\"%s\",\"ttl_ms\":60000}", resource), "");
    raw_send(fd, text, strlen(text));
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, 20000), 1);
    if (!ending->is_unread)
        raw_expect(fd, " 201 ");
    if (ending->next)
        raw_send(fd, ending->next, strlen(ending->next));
    if (ending->is_half_closed)
        shutdown(fd, SHUT_WR);
    leavings[ending->way].leave(fd);
}

TEST_EACH(story_36_what_was_answered_is_held_however_the_connection_ends,
          endings)
{
    if (!may_leave(endings[_i].way))
        return;
    double lost = http_metric(here, "redlockd_undelivered_grants_total");
    for (int i = 0; i < 10; i++)
        acquire_and_end(&endings[_i], textf("ended:%d:%d", _i, i));
    SOON(http_metric(here, "redlockd_connections") <= 1 &&
         http_open_requests(here) <= 1);
    for (int i = 0; i < 10; i++)
        answer_expect(
            lock_acquire(here, textf("ended:%d:%d", _i, i), TTL_MS, NULL), 409,
            "lock_held");
    ck_assert_double_eq(http_metric(here, "redlockd_undelivered_grants_total"),
                        lost);
}

static double grants_answered(void)
{
    double count = http_metric(here, "redlockd_http_requests_total{"
                                     "call=\"acquire\",status=\"201\"}");
    return count < 0 ? 0 : count; /* none is not told */
}

GROUP(own, .timeout_s = 120);

/*
 * One after the other is served; the key may be free between two of them. On a
 * busy machine a grant may be answered before its client comes to reset the
 * connection, and stands then: so this is tried again. No grant is answered
 * before its client has had time to leave: the nodes are far.
 */
TEST(reset_behind_the_request_leaves_no_lock)
{
    const char *resource;
    struct lock lock;
    double answered;
    int tries = 0;
    world_start_nodes(N);
    world_admit_nodes("");
    ways_slow(here, 0, N, 10);
    world_serve(0, "");
    do {
        answered = grants_answered();
        resource = textf("reset-%d", ++tries);
        for (int i = 0; i < 50; i++)
            raw_reset(send_post(resource));
        /* who connects later is served when those have begun */
        lock_take(here, "later", 9000, &lock);
        AWHILE(http_open_requests(here) <= 1);
        lock_drop(here, &lock);
    } while (grants_answered() > answered + 1 && tries < 20);
    expect_freed(resource);
    world_stop();
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
    int fds[KINDS], cut = 0;

    world_start(1, "");
    for (int i = 0; i < KINDS; i++)
        fds[i] = raw_connect(here);
    raw_send(fds[SECOND_HEAD], RAW_LIVEZ, strlen(RAW_LIVEZ));
    raw_expect(fds[SECOND_HEAD], "alive");
    SOON(http_open_requests(here) <=
         1); /* what comes now is no part of the first */
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
        pause_ms(DRIP_MS);
    }
    ck_assert_double_ge(http_metric(here, "redlockd_connections_cut_total"),
                        KINDS);
    for (int i = 0; i < KINDS; i++)
        close(fds[i]);
    world_stop();
}

/* ---- many clients -------------------------------------------------------- */

TEST(five_thousand_idle_connections_hinder_nobody)
{
    static int fds[IDLE];
    const int idle = secure_is_wanted() ? IDLE_TLS : IDLE;
    harness_raise_descriptors();
    world_start(N, "");
    for (int i = 0; i < idle; i++)
        fds[i] = raw_connect(here);
    for (int i = 0; i < 200; i++)
        lock_expect_cycle(here, "busy");
    /* an idle one works too */
    const char *text = raw_post_text("{\"resource\":\"idle\"}", "");
    raw_send(fds[idle - 1], text, strlen(text));
    raw_expect(fds[idle - 1], " 201 ");
    for (int i = 0; i < idle; i++)
        close(fds[i]);
    AWHILE(http_metric(here, "redlockd_connections") < 10);
    world_stop();
}
