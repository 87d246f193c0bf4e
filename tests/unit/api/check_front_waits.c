/* SPDX-License-Identifier: MIT */
/*
 * Requests that wait for their outcome: held at first, suspended if it takes
 * long.
 */
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "../tcp.h"
#include "served.h"

enum { DEBT_US = 500000 }; /* a node that is back has what it owed by then */

/* Granted later than now, so that it may be extended. */
#define TOKEN "1895221641000000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"
#define WITH_TOKEN "Host: x\r\nX-Lock-Token: " TOKEN "\r\n\r\n"
#define EXTEND "PUT /locks/a/extend HTTP/1.1\r\n" WITH_TOKEN
#define RELEASE "DELETE /locks/a HTTP/1.1\r\n" WITH_TOKEN

/* To all nodes that are up. */
static bool has_sent(void *arg)
{
    const enum call_kind *kind = arg;
    return play_count(*kind) >= PLAY_NODES - 1;
}

/* A connection that has served. */
static int connect_alive(void)
{
    int fd = served_ask(SERVED_GET("/livez"));
    (void)served_read(fd, "alive");
    return fd;
}

/* On one. */
static int ask(const char *text, enum call_kind kind)
{
    int fd = connect_alive();
    served_send(fd, text);
    turns_until(served.loop, has_sent, &kind);
    return fd;
}

/* How often the library looked for what has come: once in each run. */
static int runs;

enum { LIBUV_EVENTS = 1024 }; /* for which libuv asks at once; it alone */

/* Stands in front of the C library's, whose names for parameters are reserved.
 * NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int epoll_wait(int fd, struct epoll_event *events, int count, int timeout_ms)
{
    static int (*real)(int, struct epoll_event *, int, int);
    if (real == NULL) {
        void *symbol = dlsym(RTLD_NEXT, "epoll_wait");
        memcpy(&real, &symbol, sizeof real);
    }
    runs += count != LIBUV_EVENTS;
    return real(fd, events, count, timeout_ms);
}

SUITE(front_waits, .set_up = served_begin, .tear_down = served_end);

/* ---- how often the library runs ------------------------------------------ */

/* Of an acquire by this client, until it is sent to the nodes. */
static int count_runs(int fd)
{
    enum call_kind kind = CALL_ACQUIRE;
    served_pass();
    runs = 0;
    served_send(fd, SERVED_ACQUIRE);
    turns_until(served.loop, has_sent, &kind);
    int count = runs;
    served_grant();
    (void)served_read(fd, " 201 Created");
    return count;
}

/* No other client can send anything. */
TEST(a_lone_request_is_read_in_one_run)
{
    int fd = connect_alive();
    ck_assert_int_eq(count_runs(fd), 1);
    close(fd);
}

/* What the other sends meanwhile goes to the nodes with it. */
TEST(beside_another_client_it_runs_once_more)
{
    int other = connect_alive();
    int fd = connect_alive();
    ck_assert_int_gt(count_runs(fd), 1);
    close(fd);
    close(other);
}

/* ---- how long it takes -------------------------------------------------- */

TEST(what_waits_for_long_costs_nothing_and_is_answered)
{
    int fd = ask(SERVED_ACQUIRE, CALL_ACQUIRE);
    turns_expect_rest(served.loop);
    served_grant();
    ck_assert_has(served_read(fd, "}\n"), " 201 Created\r\n");
    close(fd);
}

TEST(what_was_sent_behind_it_is_answered_after_it)
{
    static const char both[] = SERVED_ACQUIRE SERVED_GET("/livez");
    int fd = ask(both, CALL_ACQUIRE);
    served_send(fd, SERVED_GET("/nope"));
    served_pass();
    ck_assert_uint_eq(play.metrics.requests_accepted, 2);
    served_grant();
    const char *answers = served_read(fd, " 404 ");
    const char *granted = strstr(answers, " 201 Created\r\n");
    ck_assert_ptr_nonnull(granted);
    ck_assert_has(granted, "alive");
    close(fd);
}

/* ---- resets ------------------------------------------------------------- */

TEST(an_extension_goes_on_when_its_client_resets)
{
    int fd = ask(EXTEND, CALL_EXTEND);
    play_answer(CALL_EXTEND, 0, VOTE_EXTENDED);
    tcp_reset(fd);
    served_pass();
    ck_assert_int_eq(front_in_flight(served.front), 1);
    play_answer_range(CALL_EXTEND, 1, PLAY_NODES, VOTE_EXTENDED);
    served_await_leave();
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_EXTEND][OUTCOME_EXTENDED], 1);
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
}

/* It would get no answer: what it sends is over. */
static int half_close(int fd)
{
    return shutdown(fd, SHUT_WR);
}

/* More ways to leave are in tests/integration/check_clients.c; from its second
 * request on the library watches a connection. */
static int (*const leaves[])(int fd) = {close, half_close, tcp_reset};

TEST_EACH(an_acquire_ends_when_its_client_leaves, leaves)
{
    int fd = ask(SERVED_ACQUIRE, CALL_ACQUIRE);
    served_await_acquires(1);
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    leaves[_i](fd);
    served_await_leave();
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
    ck_assert_int_eq(front_in_flight(served.front), 0);
}

/* A node that was unreachable gets it when it is back. */
TEST(a_release_reaches_all_nodes_when_its_client_resets)
{
    play_node_down(4);
    int fd = ask(RELEASE, CALL_RELEASE);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES - 1);
    tcp_reset(fd);
    served_await_leave();
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
    for (int i = 0; i < PLAY_NODES - 1; i++)
        play_answer(CALL_RELEASE, i, VOTE_DELETED);
    play_node_up(4);
    play_advance(DEBT_US);
    ck_assert_ptr_nonnull(play_find(CALL_RELEASE, 4));
}
