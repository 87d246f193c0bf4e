/*
 * What becomes of a grant, by what was written and when the client left.
 */
#include <check.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/connection.h"
#include "../../../server/base/clock.h"
#include "../play.h"
#include "../turns.h"

Suite *check_connection(void);

static struct loop *loop;
static struct connections all;
static struct connection *it;
static int client; /* the other end */
static int wakes;

static void on_wake(void *ctx, struct connection *woken)
{
    ck_assert_ptr_eq(ctx, &wakes);
    ck_assert_ptr_eq(woken, it);
    wakes++;
}

static void set_up(void)
{
    int pair[2];

    play_begin();
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    ck_assert(connections_init(&all, loop, play.engine, &play.metrics));
    all.wake = on_wake;
    all.ctx = &wakes;
    wakes = 0;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    client = pair[1];
    it = connection_new(&all, pair[0], NULL);
    ck_assert_ptr_nonnull(it);
}

static void tear_down(void)
{
    int fd = it->deadline.fd;

    connection_free(it);
    close(fd);
    if (client >= 0)
        close(client);
    ck_assert_int_eq(all.in_flight, 0);
    ck_assert_uint_eq(play.metrics.requests_accepted,
                      play.metrics.requests_answered +
                          play.metrics.requests_abandoned);
    connections_fini(&all);
    loop_free(loop);
    play_end();
}

static bool has_left(void *arg)
{
    (void)arg;
    return it->has_left;
}

static void leave(void)
{
    close(client);
    client = -1;
    turns_until(loop, has_left, NULL);
}

/* A request whose operation runs. */
static void begin(enum lock_call call, engine_op op)
{
    ck_assert(op != 0);
    connection_begin(it, clock_now_us());
    connection_hold(it, clock_now_us());
    it->request.call = call;
    it->request.op = op;
    connection_wait(it);
}

static void grant(void)
{
    for (int node = 0; node < 3; node++)
        play_answer(CALL_ACQUIRE, node, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(it->request.op), OUTCOME_GRANTED);
    connection_settle(it);
}

START_TEST(written_whole_is_held_however_the_connection_ends)
{
    begin(LOCK_ACQUIRE, play_acquire());
    grant();
    connection_answer(it, clock_now_us());
    connection_end(it, true);
    ck_assert(it->request.op == 0);
    leave();
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_GRANTED], 1);
    ck_assert_uint_eq(play.metrics.undelivered_grants, 0);
    ck_assert_uint_eq(play.metrics.requests_answered, 1);
}
END_TEST

START_TEST(not_written_whole_is_released)
{
    begin(LOCK_ACQUIRE, play_acquire());
    grant();
    connection_answer(it, clock_now_us());
    connection_end(it, false);
    ck_assert(it->request.op == 0);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    ck_assert_uint_eq(play.metrics.undelivered_grants, 1);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
}
END_TEST

START_TEST(left_between_grant_and_answer_is_released)
{
    begin(LOCK_ACQUIRE, play_acquire());
    grant();
    leave();
    ck_assert_int_eq((int)it->state, (int)CONNECTION_SETTLED);
    ck_assert_int_eq(wakes, 1);
    connection_end(it, false);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    ck_assert_uint_eq(play.metrics.undelivered_grants, 1);
}
END_TEST

START_TEST(left_while_the_acquire_runs_is_released)
{
    begin(LOCK_ACQUIRE, play_acquire());
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    leave();
    ck_assert_int_eq((int)it->state, (int)CONNECTION_GONE);
    ck_assert_int_eq(wakes, 1);
    ck_assert_int_ge(play_count(CALL_RELEASE), 1);
    connection_end(it, false);
    /* it was granted nothing */
    ck_assert_uint_eq(play.metrics.undelivered_grants, 0);
}
END_TEST

START_TEST(left_before_the_acquire_runs_is_released)
{
    connection_begin(it, clock_now_us());
    connection_hold(it, clock_now_us());
    leave();
    it->request.call = LOCK_ACQUIRE;
    it->request.op = play_acquire();
    connection_wait(it);
    ck_assert_int_eq((int)it->state, (int)CONNECTION_GONE);
    ck_assert(it->request.op == 0);
    connection_end(it, false);
}
END_TEST

START_TEST(inspection_goes_on_without_its_client)
{
    begin(LOCK_INSPECT, engine_inspect(play.engine, PLAY_RESOURCE, NULL));
    leave();
    ck_assert_int_eq((int)it->state, (int)CONNECTION_WAITING);
    ck_assert_int_eq(wakes, 0);
    connection_end(it, false);
}
END_TEST

/* ---- bodies ------------------------------------------------------------- */

static char piece[HTTP_DISCARD_MAX];

static bool add(size_t len)
{
    return connection_add_body(it, (struct span){piece, len});
}

START_TEST(a_body_comes_in_pieces)
{
    connection_begin(it, clock_now_us());
    ck_assert(connection_add_body(it, span_of("{\"a\"")));
    ck_assert(connection_add_body(it, span_of(":1}")));
    ck_assert_uint_eq(it->request.body.len, 7);
    ck_assert_mem_eq(it->request.body.ptr, "{\"a\":1}", 7);
    ck_assert(!it->request.body_is_too_large);
    connection_end(it, false);
    ck_assert_ptr_null(it->body);
    connection_begin(it, clock_now_us());
    ck_assert_uint_eq(it->request.body.len, 0);
    ck_assert(connection_add_body(it, span_of("x")));
    ck_assert_uint_eq(it->request.body.len, 1);
}
END_TEST

START_TEST(a_body_that_is_too_large_is_dropped)
{
    connection_begin(it, clock_now_us());
    ck_assert(add(HTTP_BODY_MAX));
    ck_assert(!it->request.body_is_too_large);
    ck_assert(add(1));
    ck_assert(it->request.body_is_too_large);
    ck_assert_uint_eq(it->request.body.len, HTTP_BODY_MAX);
    ck_assert(add(HTTP_DISCARD_MAX - HTTP_BODY_MAX - 1));
    ck_assert(!add(1));
}
END_TEST

START_TEST(each_body_is_counted_from_its_start)
{
    for (int i = 0; i < 2; i++) {
        connection_begin(it, clock_now_us());
        ck_assert(add(HTTP_BODY_MAX));
        ck_assert(!it->request.body_is_too_large);
        connection_end(it, false);
    }
}
END_TEST

/* ---- counters, deadlines ------------------------------------------------ */

START_TEST(requests_and_connections_are_counted)
{
    ck_assert_uint_eq(play.metrics.connections, 1);
    ck_assert_int_eq(all.in_flight, 0);
    connection_begin(it, clock_now_us());
    ck_assert_uint_eq(play.metrics.requests_accepted, 1);
    ck_assert_int_eq(all.in_flight, 1);
    connection_hold(it, clock_now_us());
    connection_answer(it, clock_now_us());
    ck_assert_uint_eq(play.metrics.requests_answered, 0);
    connection_end(it, true);
    ck_assert_uint_eq(play.metrics.requests_answered, 1);
    ck_assert_int_eq(all.in_flight, 0);
    connection_end(it, true); /* it has no request */
    ck_assert_uint_eq(play.metrics.requests_answered, 1);
}
END_TEST

/* The library closes in the middle of a request if epoll fails. */
START_TEST(a_request_whose_connection_is_closed_is_abandoned)
{
    int fd = it->deadline.fd;
    begin(LOCK_ACQUIRE, play_acquire());
    connection_free(it);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
    ck_assert_int_eq(all.in_flight, 0);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
    it = connection_new(&all, fd, NULL);
}
END_TEST

/* The library may say so of an answer that never was one. */
START_TEST(what_was_not_answered_is_abandoned)
{
    connection_begin(it, clock_now_us());
    connection_end(it, true);
    ck_assert_uint_eq(play.metrics.requests_answered, 0);
    ck_assert_uint_eq(play.metrics.requests_abandoned, 1);
}
END_TEST

START_TEST(the_deadline_follows_the_request)
{
    ck_assert(it->deadline.is_idle);
    ck_assert_int_ne(it->deadline.at_us, 0);
    connection_begin(it, 1000);
    ck_assert(!it->deadline.is_idle);
    connection_hold(it, 2000);
    ck_assert_int_eq(it->deadline.at_us, 0);
    ck_assert_int_eq(it->deadline.whole_us, 2000);
    connection_answer(it, 3000);
    ck_assert_int_eq(it->deadline.since_us, 3000);
    ck_assert_int_gt(it->deadline.at_us, 3000);
    connection_end(it, true);
    ck_assert(it->deadline.is_idle);
}
END_TEST

static bool is_quiet(void *arg)
{
    (void)arg;
    return !all.is_sweeping;
}

static bool is_cut(void *arg)
{
    (void)arg;
    return play.metrics.connections_cut > 0;
}

START_TEST(a_connection_whose_deadline_passed_is_cut)
{
    char byte;
    it->deadline.at_us = 1;
    turns_until(loop, is_cut, NULL);
    ck_assert_int_eq(recv(client, &byte, 1, MSG_DONTWAIT), 0);
}
END_TEST

/* Sweeps end with the last connection, and begin anew with the next. */
START_TEST(a_later_connection_is_swept_too)
{
    int fd = it->deadline.fd;
    connection_free(it);
    ck_assert_uint_eq(play.metrics.connections, 0);
    turns_until(loop, is_quiet, NULL);
    it = connection_new(&all, fd, NULL);
    ck_assert(all.is_sweeping);
    it->deadline.at_us = 1;
    turns_until(loop, is_cut, NULL);
}
END_TEST

START_TEST(requests_that_wait_are_woken)
{
    connections_wake(&all);
    ck_assert_int_eq(wakes, 0);
    begin(LOCK_INSPECT, engine_inspect(play.engine, PLAY_RESOURCE, NULL));
    connections_wake(&all);
    ck_assert_int_eq(wakes, 1);
}
END_TEST

Suite *check_connection(void)
{
    Suite *suite = suite_create("connection");
    TCase *tc = tcase_create("connection");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, written_whole_is_held_however_the_connection_ends);
    tcase_add_test(tc, not_written_whole_is_released);
    tcase_add_test(tc, left_between_grant_and_answer_is_released);
    tcase_add_test(tc, left_while_the_acquire_runs_is_released);
    tcase_add_test(tc, left_before_the_acquire_runs_is_released);
    tcase_add_test(tc, inspection_goes_on_without_its_client);
    suite_add_tcase(suite, tc);
    tc = tcase_create("requests");
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, a_body_comes_in_pieces);
    tcase_add_test(tc, a_body_that_is_too_large_is_dropped);
    tcase_add_test(tc, each_body_is_counted_from_its_start);
    tcase_add_test(tc, requests_and_connections_are_counted);
    tcase_add_test(tc, a_request_whose_connection_is_closed_is_abandoned);
    tcase_add_test(tc, what_was_not_answered_is_abandoned);
    tcase_add_test(tc, the_deadline_follows_the_request);
    tcase_add_test(tc, a_connection_whose_deadline_passed_is_cut);
    tcase_add_test(tc, a_later_connection_is_swept_too);
    tcase_add_test(tc, requests_that_wait_are_woken);
    suite_add_tcase(suite, tc);
    return suite;
}
