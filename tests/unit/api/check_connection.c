/* SPDX-License-Identifier: MIT */
/*
 * What becomes of a grant, by what was written and when the client left.
 */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/http/connection.h"
#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "../tcp.h"
#include "pair.h"

/* A request that is held · its operation runs. */
static void hold(void)
{
    exchange_open(pair.it, &pair.service, NULL, NULL, clock_now_us());
    connection_hold(&pair.it->connection, clock_now_us());
}

static void run(enum lock_call call, engine_op op)
{
    ck_assert(op != 0);
    pair.it->request.call.kind = call;
    pair.it->request.call.op = op;
    connection_wait(&pair.it->connection);
}

/* Both. */
static void begin(enum lock_call call, engine_op op)
{
    hold();
    run(call, op);
}

static void grant(void)
{
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(pair.it->request.call.op), OUTCOME_GRANTED);
    connection_settle(&pair.it->connection);
}

SUITE(connection, .set_up = pair_begin, .tear_down = pair_end);

TEST_RANGE(only_what_was_written_whole_is_held, 0, 2)
{
    bool is_written = _i == 1;
    begin(LOCK_ACQUIRE, play_acquire());
    grant();
    pair_answer(clock_now_us());
    connection_end(&pair.it->connection, is_written);
    ck_assert(pair.it->request.call.op == 0);
    pair_leave();
    ck_assert_int_eq(play_count(CALL_RELEASE), is_written ? 0 : PLAY_NODES);
    ck_assert_uint_eq(play.metrics.undelivered_grants, !is_written);
    ck_assert_uint_eq(play.metrics.requests_answered, is_written);
    ck_assert_uint_eq(play.metrics.requests_abandoned, !is_written);
}

/* What the kernel does not count may have come, if it was sent at all. */
TEST(only_an_answered_grant_may_have_come)
{
    ck_assert(!connection_may_have_answer(&pair.it->connection));
    begin(LOCK_ACQUIRE, play_acquire());
    ck_assert(!connection_may_have_answer(&pair.it->connection));
    grant();
    ck_assert(!connection_may_have_answer(&pair.it->connection));
    pair_answer(clock_now_us());
    ck_assert(connection_may_have_answer(&pair.it->connection));
    connection_end(&pair.it->connection, true);
    ck_assert(!connection_may_have_answer(&pair.it->connection));
}

/* How much of an answer the kernel took, and what became of it: the client may
 * have it, though it be on its way, or lost in a reset. */
static const struct {
    int written; /* bytes */
    bool is_narrow, is_reset, may_have_come;
} writings[] = {
    {0, false, false, false},
    {PAIR_ANSWER_LEN / 2, false, false, false},
    {PAIR_ANSWER_LEN, false, false, false}, /* a part is the head */
    {PAIR_ANSWER_LEN + 1, false, false, true},
    {PAIR_ANSWER_LEN + 1, false, true, true},
    {PAIR_ANSWER_LEN, false, true, false},
    /* nothing of it has left yet */
    {PAIR_ANSWER_LEN, true, false, false},
    {PAIR_ANSWER_LEN + 1, true, false, true},
    {PAIR_ANSWER_LEN + 1, true, true, true},
};

TEST_EACH(what_was_written_may_have_come, writings)
{
    static char bytes[100 * PAIR_ANSWER_LEN];
    const int room = 1;
    struct tcp tcp = tcp_connect();
    int fd = pair.it->connection.fd;
    pair.it->connection.fd = tcp.server;
    ck_assert_int_eq(send(tcp.client, "request", 7, 0), 7);
    ck_assert_int_eq(recv(tcp.server, bytes, 7, MSG_WAITALL), 7);
    if (writings[_i].is_narrow)
        ck_assert_int_eq(
            setsockopt(tcp.client, SOL_SOCKET, SO_RCVBUF, &room, sizeof room),
            0);
    /* answers before it */
    ssize_t before = writings[_i].is_narrow ? (ssize_t)sizeof bytes : 500;
    ck_assert_int_eq(send(tcp.server, bytes, (size_t)before, 0), before);
    begin(LOCK_ACQUIRE, play_acquire());
    grant();
    pair_answer(clock_now_us());
    ck_assert_int_eq(
        send(tcp.server, bytes, (size_t)writings[_i].written, MSG_NOSIGNAL),
        writings[_i].written);
    if (writings[_i].is_reset) {
        tcp_reset(tcp.client);
        ck_assert_int_eq(recv(tcp.server, bytes, 1, 0), -1); /* it has come */
        ck_assert_int_eq(send(tcp.server, "more", 4, MSG_NOSIGNAL), -1);
    } else {
        close(tcp.client);
    }
    ck_assert(connection_may_have_answer(&pair.it->connection) ==
              writings[_i].may_have_come);
    pair.it->connection.fd = fd;
    close(tcp.server);
    connection_end(&pair.it->connection, true);
}

TEST(left_before_the_acquire_runs_is_released)
{
    hold();
    pair_leave();
    run(LOCK_ACQUIRE, play_acquire());
    ck_assert_int_eq((int)pair.it->connection.state, (int)CONNECTION_GONE);
    ck_assert(pair.it->request.call.op == 0);
    connection_end(&pair.it->connection, false);
}

/* ---- bodies ------------------------------------------------------------- */

static char piece[CONNECTION_DISCARD_MAX];

static bool add(size_t len)
{
    return connection_add_body(&pair.it->connection, (struct span){piece, len});
}

GROUP(requests, .set_up = pair_begin, .tear_down = pair_end);

TEST(a_body_comes_in_pieces)
{
    exchange_open(pair.it, &pair.service, NULL, NULL, clock_now_us());
    ck_assert(connection_add_body(&pair.it->connection, span_of("{\"a\"")));
    ck_assert(connection_add_body(&pair.it->connection, span_of(":1}")));
    ck_assert_uint_eq(pair.it->connection.body_len, 7);
    ck_assert_mem_eq(pair.it->connection.body, "{\"a\":1}", 7);
    ck_assert(!pair.it->connection.body_is_too_large);
    connection_end(&pair.it->connection, false);
    ck_assert_ptr_null(pair.it->connection.body);
    ck_assert_uint_eq(pair.it->connection.body_len, 0);
    /* nor does one that waits keep it */
    exchange_open(pair.it, &pair.service, NULL, NULL, clock_now_us());
    ck_assert(connection_add_body(&pair.it->connection, span_of("{}")));
    connection_hold(&pair.it->connection, clock_now_us());
    run(LOCK_ACQUIRE, play_acquire());
    ck_assert_ptr_null(pair.it->connection.body);
}

TEST_RANGE(a_body_that_is_too_large_is_dropped, 0, 2)
{
    if (_i > 0) { /* each is counted from its start */
        exchange_open(pair.it, &pair.service, NULL, NULL, clock_now_us());
        ck_assert(add(HTTP_BODY_MAX));
        connection_end(&pair.it->connection, false);
    }
    exchange_open(pair.it, &pair.service, NULL, NULL, clock_now_us());
    ck_assert(add(HTTP_BODY_MAX));
    ck_assert(!pair.it->connection.body_is_too_large);
    ck_assert(add(1));
    ck_assert(pair.it->connection.body_is_too_large);
    ck_assert_uint_eq(pair.it->connection.body_len, HTTP_BODY_MAX);
    ck_assert(add(CONNECTION_DISCARD_MAX - HTTP_BODY_MAX - 1));
    ck_assert(!add(1));
}

/* ---- counters, deadlines ------------------------------------------------ */

TEST(requests_and_connections_are_counted)
{
    ck_assert_uint_eq(play.metrics.connections, 1);
    ck_assert_int_eq(pair.all.in_flight, 0);
    exchange_open(pair.it, &pair.service, NULL, NULL, clock_now_us());
    ck_assert_uint_eq(play.metrics.requests_accepted, 1);
    ck_assert_int_eq(pair.all.in_flight, 1);
    connection_hold(&pair.it->connection, clock_now_us());
    pair_answer(clock_now_us());
    ck_assert_uint_eq(play.metrics.requests_answered, 0);
    connection_end(&pair.it->connection, true);
    ck_assert_uint_eq(play.metrics.requests_answered, 1);
    ck_assert_int_eq(pair.all.in_flight, 0);
    connection_end(&pair.it->connection, true); /* it has no request */
    ck_assert_uint_eq(play.metrics.requests_answered, 1);
}

/* The library closes in the middle of a request if epoll fails. */
TEST(a_request_whose_connection_is_closed_is_abandoned)
{
    begin(LOCK_ACQUIRE, play_acquire());
    pair_close();
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
    ck_assert_int_eq(pair.all.in_flight, 0);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
    pair_open();
}

/* The library may say so of an answer that never was one. */
TEST(what_was_not_answered_is_abandoned)
{
    exchange_open(pair.it, &pair.service, NULL, NULL, clock_now_us());
    connection_end(&pair.it->connection, true);
    ck_assert_uint_eq(play.metrics.requests_answered, 0);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
}

static bool is_quiet(void *arg)
{
    (void)arg;
    return !pair.all.is_sweeping;
}

static bool is_cut(void *arg)
{
    (void)arg;
    return play.metrics.connections_cut > 0;
}

/* Sweeps end with the last connection, and begin anew with the next. */
TEST(a_later_connection_is_swept_too)
{
    pair_close();
    ck_assert_uint_eq(play.metrics.connections, 0);
    turns_until(pair.loop, is_quiet, NULL);
    pair_open();
    ck_assert(pair.all.is_sweeping);
    pair.it->connection.at_us = 1;
    turns_until(pair.loop, is_cut, NULL);
}

/* ---- refusals that come late -------------------------------------------- */

static const struct connection *woken[2];
static int woken_count;

static void on_wake(struct connection *it)
{
    woken[woken_count++] = it;
}

static void on_end(struct connection *it, bool is_answered)
{
    (void)it, (void)is_answered;
}

TEST(each_refusal_is_due_in_its_turn_and_not_before)
{
    static const struct connection_events events = {.wake = on_wake,
                                                    .end = on_end};
    int64_t now_us = clock_now_us();
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    struct connection *its[2] = {
        &pair.it->connection,
        connection_new(&pair.all, ends[0], NULL, NULL, now_us)};
    pair.all.events = &events;
    pair.all.delayed_most = 2;
    for (int i = 0; i < 2; i++) {
        connection_begin(its[i], now_us);
        ck_assert(connection_delay(its[i], now_us - CONNECTION_DELAY_US +
                                               20000 * (i + 1)));
    }
    for (int i = 0; i < 2; i++) {
        turns_until_count(pair.loop, &woken_count, i + 1);
        ck_assert_int_ge(clock_now_us(), now_us + 20000 * (i + 1));
        ck_assert_ptr_eq(woken[i], its[i]);
    }
    ck_assert_int_eq(pair.all.delayed_count, 0);
    connection_free(its[1]);
    close(ends[0]);
    close(ends[1]);
}

/* ---- crowds -------------------------------------------------------------- */

GROUP(crowds);

/* How many are there at each look; '+' where memory is given back. */
static const struct {
    int looks, counts[7];
    const char *given;
} crowds[] = {
    {4, {99, 10, 0, 0}, "...."}, /* too few */
    {5, {60, 100, 51, 50, 10}, "...++"},
    {6, {300, 20, 20, 20, 0, 0}, ".++..."}, /* once more for those that stay */
    {7, {300, 300, 300, 300, 200, 200, 150}, "......+"},
};

TEST_EACH(memory_is_given_back_when_half_of_a_crowd_has_left, crowds)
{
    struct crowd crowd = {0};
    for (int i = 0; i < crowds[_i].looks; i++)
        ck_assert(crowd_note(&crowd, (uint64_t)crowds[_i].counts[i]) ==
                  (crowds[_i].given[i] == '+'));
}
