/* SPDX-License-Identifier: MIT */
/*
 * Deadlines of clients, and who gives way to others, in a time that the tests
 * make up.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/http/connection.h"
#include "../../lib/suite/suite.h"
#include "../tcp.h"

enum { CLIENTS = 3, ALL = CLIENTS, STEPS_MAX = 9 };

#define SECOND INT64_C(1000000)
#define START (1000 * SECOND)

static struct metrics metrics;
static struct loop *loop;
static struct connections all;
static struct connection *its[CLIENTS];
static int ends[CLIENTS][2]; /* ours, and the client's */

static void on_end(struct connection *it, bool is_answered)
{
    (void)it, (void)is_answered;
}

static void connect_all(void)
{
    for (int i = 0; i < CLIENTS; i++) {
        its[i] = connection_new(&all, ends[i][0], NULL, NULL, START);
        ck_assert_ptr_nonnull(its[i]);
    }
}

static void disconnect_all(void)
{
    for (int i = 0; i < CLIENTS; i++)
        connection_free(its[i]);
}

static void set_up(void)
{
    static const struct connection_events events = {.end = on_end};
    metrics = (struct metrics){0};
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    ck_assert(connections_init(&all, loop, &metrics));
    all.events = &events;
    all.size = sizeof(struct connection);
    for (int i = 0; i < CLIENTS; i++)
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
    connect_all();
}

static void tear_down(void)
{
    disconnect_all();
    for (int i = 0; i < CLIENTS; i++) {
        close(ends[i][0]);
        close(ends[i][1]);
    }
    connections_fini(&all);
    loop_free(loop);
}

static const char *story = ""; /* the one that is played */

/* An 'x' for each that was cut, as in "-x-"; each is counted once. */
static void expect_cut(const char *expected)
{
    char cut[CLIENTS + 1] = "---", byte;
    int count = 0;
    for (int i = 0; i < CLIENTS; i++) {
        bool is_cut = recv(ends[i][1], &byte, 1, MSG_DONTWAIT) == 0;
        cut[i] = is_cut ? 'x' : '-';
        count += is_cut;
    }
    ck_assert_msg(strcmp(cut, expected) == 0, "%s: %s", story, cut);
    ck_assert_uint_eq(metrics.connections_cut, (uint64_t)count);
}

/* ---- stories ------------------------------------------------------------ */

/* What happens: to a client, or to all; or somebody looks. */
enum act {
    NOTHING,
    HEAD,    /* it has come */
    WHOLE,   /* so has the body */
    ANSWER,  /* is on its way */
    TAKEN,   /* the client has it */
    SERVE,   /* all of that */
    SWEEP,   /* then those are cut */
    ROOM,    /* is made: likewise */
    NO_ROOM, /* can be made: likewise */
};

static void act_on(enum act act, struct connection *it, int64_t at_us)
{
    if (act == HEAD || act == SERVE)
        connection_begin(it, at_us);
    if (act == WHOLE || act == SERVE)
        connection_hold(it, at_us);
    if (act == ANSWER || act == SERVE)
        connection_answer(it, 0, at_us);
    if (act == TAKEN || act == SERVE)
        connection_end(it, true);
}

static void act_step(enum act act, int who, int64_t at_us)
{
    if (act == SWEEP)
        connections_sweep(&all, at_us);
    else if (act == ROOM || act == NO_ROOM)
        ck_assert(connections_make_room(&all, at_us) == (act == ROOM));
    for (int i = 0; i < CLIENTS; i++)
        if (who == ALL || who == i)
            act_on(act, its[i], at_us);
}

static const struct {
    const char *name;
    struct {
        enum act act;
        int who, at_ms;
        const char *cut; /* NULL: nobody looks */
    } steps[STEPS_MAX];
} stories[] = {
    {"a first request must come in ten seconds",
     {{SWEEP, ALL, 9999, "---"},
      {SWEEP, ALL, 10000, "xxx"},
      {SWEEP, ALL, 10001, "xxx"}}},
    {"a first head wins no time",
     {{SERVE, 1, 0, 0},
      {SERVE, 2, 0, 0},
      {HEAD, 0, 9000, 0},
      {SWEEP, ALL, 10000, "x--"}}},
    {"a whole request waits for us without end",
     {{HEAD, ALL, 0, 0},
      {WHOLE, ALL, 0, 0},
      {SWEEP, ALL, 1000000, "---"},
      {NO_ROOM, ALL, 1000000, "---"}}},
    {"an answer must be taken in ten seconds",
     {{HEAD, 0, 0, 0},
      {WHOLE, 0, 1000, 0},
      {ANSWER, 0, 20000, 0},
      {SERVE, 1, 20000, 0},
      {SERVE, 2, 20000, 0},
      {SWEEP, ALL, 29999, "---"},
      {SWEEP, ALL, 30000, "x--"}}},
    {"an idle connection lasts 75 seconds from its answer",
     {{SERVE, 0, 0, 0},
      {SERVE, 1, 1, 0},
      {SERVE, 2, 2, 0},
      {SWEEP, ALL, 74999, "---"},
      {SWEEP, ALL, 75001, "xx-"}}},
    {"a later head must be followed by its body in ten seconds",
     {{SERVE, ALL, 0, 0},
      {HEAD, 1, 30000, 0},
      {SWEEP, ALL, 39999, "---"},
      {SWEEP, ALL, 40000, "-x-"}}},
    {"the longest idle gives way",
     {{ROOM, ALL, 3, "x--"},
      {SERVE, 1, 4, 0},
      {ROOM, ALL, 5, "x-x"},
      {ROOM, ALL, 6, "xxx"},
      {NO_ROOM, ALL, 7, "xxx"}}},
    {"a request has one second before it gives way",
     {{HEAD, ALL, 500, 0},
      {NO_ROOM, ALL, 999, "---"},
      {ROOM, ALL, 1000, "x--"}}},
    {"an answer has one second before it gives way",
     {{HEAD, ALL, 0, 0},
      {WHOLE, ALL, 0, 0},
      {ANSWER, 1, 5000, 0},
      {NO_ROOM, ALL, 5999, "---"},
      {ROOM, ALL, 6000, "-x-"}}},
    /* who takes an answer or sends a head goes to the end of the list */
    {"who was busy last gives way last",
     {{SERVE, ALL, 0, 0},
      {HEAD, 0, 1000, 0},
      {SERVE, 1, 1000, 0},
      {ROOM, ALL, 3000, "--x"},
      {ROOM, ALL, 3000, "x-x"},
      {ROOM, ALL, 3000, "xxx"}}},
    {"who took its answer last gives way last",
     {{HEAD, 0, 0, 0},
      {WHOLE, 0, 0, 0},
      {ANSWER, 0, 0, 0},
      {SERVE, 1, 0, 0},
      {SERVE, 2, 0, 0},
      {TAKEN, 0, 0, 0},
      {ROOM, ALL, 1, "-x-"}}},
};

SUITE(deadline, .set_up = set_up, .tear_down = tear_down);

TEST_EACH(the_client_has_its_time_and_no_more, stories)
{
    story = stories[_i].name;
    for (int i = 0; i < STEPS_MAX; i++) {
        enum act act = stories[_i].steps[i].act;
        const char *cut = stories[_i].steps[i].cut;
        act_step(act, stories[_i].steps[i].who,
                 START + stories[_i].steps[i].at_ms * (SECOND / 1000));
        if (cut != NULL)
            expect_cut(cut);
    }
}

/* Those that wait for us are passed once, not for each newcomer. */
TEST(who_waits_for_us_goes_to_the_end)
{
    for (int i = 0; i < 2; i++) {
        connection_begin(its[i], START);
        connection_hold(its[i], START);
    }
    ck_assert_ptr_eq(TAILQ_FIRST(&all.list), its[0]);
    ck_assert(connections_make_room(&all, START + SECOND));
    expect_cut("--x");
    ck_assert_ptr_eq(TAILQ_FIRST(&all.list), its[2]);
    ck_assert_ptr_eq(TAILQ_NEXT(its[2], link), its[0]);
    ck_assert_ptr_eq(TAILQ_LAST(&all.list, connection_list), its[1]);
    ck_assert(!connections_make_room(&all, START + SECOND));
    connection_answer(its[0], 0, START + SECOND);
    connection_answer(its[1], 0, START + SECOND);
    ck_assert(connections_make_room(&all, START + 2 * SECOND));
    expect_cut("x-x");
}

TEST(nobody_gives_way_where_nobody_is)
{
    disconnect_all();
    ck_assert(!connections_make_room(&all, START));
    connect_all();
}

/* ---- a head that began -------------------------------------------------- */

/* The first one has a connection of which the kernel tells when data came. */
static void send_over_tcp(void)
{
    struct tcp tcp = tcp_connect();
    disconnect_all();
    close(ends[0][0]);
    close(ends[0][1]);
    ends[0][0] = tcp.server;
    ends[0][1] = tcp.client;
    connect_all();
    ck_assert_int_eq(send(ends[0][1], "GET", 3, 0), 3);
}

static void expect_times(int64_t at_us, int64_t first_us, int64_t second_us)
{
    connections_sweep(&all, at_us);
    ck_assert_int_eq(its[0]->at_us, first_us);
    ck_assert_int_eq(its[1]->at_us, second_us);
}

/* Just now, for this test. */
TEST(a_head_that_began_must_be_whole_in_ten_seconds)
{
    const int64_t idle_us = START + 75 * SECOND;
    send_over_tcp();
    act_step(SERVE, ALL, START);
    /* what came with the last request, as far as the kernel can tell */
    expect_times(START + 15000, idle_us, idle_us);
    expect_times(START + 64 * SECOND, START + 74 * SECOND, idle_us);
    expect_times(START + 70 * SECOND, START + 74 * SECOND, idle_us);
    expect_times(START + 74 * SECOND - 1, START + 74 * SECOND, idle_us);
    ck_assert_uint_eq(metrics.connections_cut, 0);
    expect_times(START + 74 * SECOND, 0, idle_us);
    ck_assert_uint_eq(metrics.connections_cut, 1);
}

TEST(what_came_with_the_last_request_begins_no_other)
{
    enum { AGO_US = 60000 }; /* or longer */
    send_over_tcp();
    usleep(AGO_US);
    act_on(SERVE, its[0], START);
    connections_sweep(&all, START + AGO_US);
    ck_assert_int_eq(its[0]->at_us, START + 75 * SECOND);
}
