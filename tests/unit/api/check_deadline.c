/*
 * Deadlines of clients, in a time that the tests make up.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/http/connection.h"
#include "../../lib/suite/suite.h"
#include "../tcp.h"

enum { CLIENTS = 3 };

#define SECOND INT64_C(1000000)
#define START (1000 * SECOND)

static struct metrics metrics;
static struct deadlines all;
static struct deadline its[CLIENTS];
static int clients[CLIENTS]; /* the other ends */

static void set_up(void)
{
    metrics = (struct metrics){0};
    deadlines_init(&all, &metrics);
    for (int i = 0; i < CLIENTS; i++) {
        int pair[2];
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        clients[i] = pair[1];
        deadline_init(&its[i], &all, pair[0], START + i);
    }
}

static void tear_down(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        deadline_fini(&its[i]);
        close(its[i].fd);
        close(clients[i]);
    }
    ck_assert_ptr_null(TAILQ_FIRST(&all.list));
    ck_assert_ptr_null(TAILQ_LAST(&all.list, deadline_list));
}

static bool is_cut(int client)
{
    char byte;
    return recv(clients[client], &byte, 1, MSG_DONTWAIT) == 0;
}

static void expect_cut(bool first, bool second, bool third)
{
    ck_assert_int_eq(is_cut(0), first);
    ck_assert_int_eq(is_cut(1), second);
    ck_assert_int_eq(is_cut(2), third);
    ck_assert_int_eq((int)metrics.connections_cut, first + second + third);
}

/* A whole request. */
static void send_whole(struct deadline *it, int64_t at_us)
{
    deadline_begin(it, at_us);
    deadline_stop(it, at_us);
}

/* And its answer. */
static void serve(struct deadline *it, int64_t at_us)
{
    send_whole(it, at_us);
    deadline_answer(it, at_us);
    deadline_end(it);
}

SUITE(deadline, .set_up = set_up, .tear_down = tear_down);

/* ---- deadlines ---------------------------------------------------------- */

TEST(a_first_request_must_come_in_ten_seconds)
{
    deadlines_sweep(&all, START + 10 * SECOND - 1);
    expect_cut(false, false, false);
    deadlines_sweep(&all, START + 10 * SECOND + 1);
    expect_cut(true, true, false);
    /* each is cut and counted once */
    deadlines_sweep(&all, START + 10 * SECOND + 2);
    deadlines_sweep(&all, START + 10 * SECOND + 3);
    expect_cut(true, true, true);
}

TEST(a_first_head_wins_no_time)
{
    deadline_begin(&its[0], START + 9 * SECOND);
    deadlines_sweep(&all, START + 10 * SECOND);
    expect_cut(true, false, false);
}

TEST(a_whole_request_waits_for_us_without_end)
{
    for (int i = 0; i < CLIENTS; i++)
        send_whole(&its[i], START);
    deadlines_sweep(&all, START + 1000 * SECOND);
    ck_assert(!deadlines_make_room(&all, START + 1000 * SECOND));
    expect_cut(false, false, false);
}

TEST(an_answer_must_be_taken_in_ten_seconds)
{
    deadline_begin(&its[0], START);
    deadline_stop(&its[0], START + SECOND);
    deadline_answer(&its[0], START + 20 * SECOND);
    serve(&its[1], START + 20 * SECOND);
    serve(&its[2], START + 20 * SECOND);
    deadlines_sweep(&all, START + 30 * SECOND - 1);
    expect_cut(false, false, false);
    deadlines_sweep(&all, START + 30 * SECOND);
    expect_cut(true, false, false);
}

TEST(an_idle_connection_lasts_75_seconds_from_its_answer)
{
    for (int i = 0; i < CLIENTS; i++)
        serve(&its[i], START + i);
    deadlines_sweep(&all, START + 75 * SECOND - 1);
    expect_cut(false, false, false);
    deadlines_sweep(&all, START + 75 * SECOND + 1);
    expect_cut(true, true, false);
}

TEST(a_later_head_must_be_followed_by_its_body_in_ten_seconds)
{
    for (int i = 0; i < CLIENTS; i++)
        serve(&its[i], START);
    deadline_begin(&its[1], START + 30 * SECOND);
    deadlines_sweep(&all, START + 40 * SECOND - 1);
    expect_cut(false, false, false);
    deadlines_sweep(&all, START + 40 * SECOND);
    expect_cut(false, true, false);
}

/* What was answered by its head alone is no first request either. */
TEST(a_request_after_a_refused_head_has_time_of_its_own)
{
    deadline_begin(&its[0], START);
    deadline_answer(&its[0], START);
    deadline_end(&its[0]);
    deadline_begin(&its[0], START + 8 * SECOND);
    for (int i = 1; i < CLIENTS; i++)
        serve(&its[i], START);
    deadlines_sweep(&all, START + 18 * SECOND - 1);
    expect_cut(false, false, false);
    deadlines_sweep(&all, START + 18 * SECOND);
    expect_cut(true, false, false);
}

/* ---- a head that began -------------------------------------------------- */

/* The first one has a connection of which the kernel tells when data came. */
static void send_over_tcp(void)
{
    struct tcp tcp = tcp_connect();
    close(its[0].fd);
    its[0].fd = tcp.server;
    close(clients[0]);
    clients[0] = tcp.client;
    ck_assert_int_eq(send(clients[0], "GET", 3, 0), 3);
}

/* Just now, for this test. */
TEST(a_head_that_began_must_be_whole_in_ten_seconds)
{
    send_over_tcp();
    for (int i = 0; i < CLIENTS; i++)
        serve(&its[i], START);
    /* what came with the last request, as far as the kernel can tell */
    deadlines_sweep(&all, START + 15000);
    ck_assert_int_eq(its[0].at_us, START + 75 * SECOND);
    deadlines_sweep(&all, START + 64 * SECOND);
    ck_assert_int_eq(its[0].at_us, START + 74 * SECOND);
    ck_assert_int_eq(its[1].at_us, START + 75 * SECOND);
    deadlines_sweep(&all, START + 70 * SECOND);
    ck_assert_int_eq(its[0].at_us, START + 74 * SECOND);
    deadlines_sweep(&all, START + 74 * SECOND - 1);
    ck_assert_uint_eq(metrics.connections_cut, 0);
    deadlines_sweep(&all, START + 74 * SECOND);
    ck_assert_uint_eq(metrics.connections_cut, 1);
}

TEST(what_came_with_the_last_request_begins_no_other)
{
    enum { AGO_US = 60000 }; /* or longer */
    send_over_tcp();
    usleep(AGO_US);
    serve(&its[0], START);
    deadlines_sweep(&all, START + AGO_US);
    ck_assert_int_eq(its[0].at_us, START + 75 * SECOND);
}

/* ---- room --------------------------------------------------------------- */

TEST(the_longest_idle_gives_way)
{
    ck_assert(deadlines_make_room(&all, START + 3));
    expect_cut(true, false, false);
    serve(&its[1], START + 4);
    ck_assert(deadlines_make_room(&all, START + 5));
    expect_cut(true, false, true);
    ck_assert(deadlines_make_room(&all, START + 6));
    expect_cut(true, true, true);
    ck_assert(!deadlines_make_room(&all, START + 7));
}

TEST(a_request_has_one_second_before_it_gives_way)
{
    for (int i = 0; i < CLIENTS; i++)
        deadline_begin(&its[i], START + SECOND / 2);
    ck_assert(!deadlines_make_room(&all, START + SECOND - 1));
    ck_assert(deadlines_make_room(&all, START + SECOND));
    expect_cut(true, false, false);
    ck_assert(!deadlines_make_room(&all, START + SECOND));
}

TEST(an_answer_has_one_second_before_it_gives_way)
{
    for (int i = 0; i < CLIENTS; i++)
        send_whole(&its[i], START);
    deadline_answer(&its[1], START + 5 * SECOND);
    ck_assert(!deadlines_make_room(&all, START + 6 * SECOND - 1));
    ck_assert(deadlines_make_room(&all, START + 6 * SECOND));
    expect_cut(false, true, false);
}

/* Those that wait for us are passed once, not for each newcomer. */
TEST(who_waits_for_us_goes_to_the_end)
{
    for (int i = 0; i < 2; i++)
        send_whole(&its[i], START);
    ck_assert_ptr_eq(TAILQ_FIRST(&all.list), &its[0]);
    ck_assert(deadlines_make_room(&all, START + SECOND));
    expect_cut(false, false, true);
    ck_assert_ptr_eq(TAILQ_FIRST(&all.list), &its[2]);
    ck_assert_ptr_eq(TAILQ_NEXT(&its[2], link), &its[0]);
    ck_assert_ptr_eq(TAILQ_LAST(&all.list, deadline_list), &its[1]);
    ck_assert(!deadlines_make_room(&all, START + SECOND));
    expect_cut(false, false, true);
    deadline_answer(&its[0], START + SECOND);
    deadline_answer(&its[1], START + SECOND);
    ck_assert(deadlines_make_room(&all, START + 2 * SECOND));
    expect_cut(true, false, true);
}

TEST(nobody_gives_way_where_nobody_is)
{
    for (int i = 0; i < CLIENTS; i++)
        deadline_fini(&its[i]);
    ck_assert(!deadlines_make_room(&all, START));
    for (int i = 0; i < CLIENTS; i++)
        deadline_init(&its[i], &all, its[i].fd, START);
}

/* In turn: who takes an answer or sends a head goes to the end of the list. */
TEST(who_was_busy_last_gives_way_last)
{
    for (int i = 0; i < CLIENTS; i++)
        serve(&its[i], START);
    deadline_begin(&its[0], START + SECOND);
    serve(&its[1], START + SECOND);
    ck_assert(deadlines_make_room(&all, START + 3 * SECOND));
    expect_cut(false, false, true);
    ck_assert(deadlines_make_room(&all, START + 3 * SECOND));
    expect_cut(true, false, true);
    ck_assert(deadlines_make_room(&all, START + 3 * SECOND));
    expect_cut(true, true, true);
}

/* The answer took long to be taken; the others are asked first. */
TEST(who_took_its_answer_last_gives_way_last)
{
    send_whole(&its[0], START);
    deadline_answer(&its[0], START);
    serve(&its[1], START);
    serve(&its[2], START);
    deadline_end(&its[0]);
    ck_assert(deadlines_make_room(&all, START + 1));
    expect_cut(false, true, false);
}
