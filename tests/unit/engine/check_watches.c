/* SPDX-License-Identifier: MIT */
/*
 * Clients that wait for another version of a lock.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

enum { EACH_US = 1000000, SOON_US = 100000 };

SUITE(watches, .set_up = play_begin, .tear_down = play_end);

static const char *const stories[] = {
    /* it is answered when the holder is another; then nobody inspects */
    ("a?1 soon:1 pass:500000 inspections=1 later:1 answers=0 later:2 answers=1 "
     "a~2 pass:3000000 inspections=3"),
    /* or when there is none, or is one again */
    "a?1 b?free soon:- answers=1 a~free later:- later:3 answers=2 b~3",
    /* many share an inspection */
    "a?1 b?2 c?1 d?2 soon:2 answers=2 a~2 c~2 later:1 answers=4 b~1 d~1",
    /* one that began before tells a client nothing, who may know more than it
     */
    ("a?2 pass:20000 inspections=1 pass:5000 b?2 seen answers=1 a~1 soon:2 "
     "answers=1 later:- b~free"),
    /* without a quorum it waits */
    ("a?1,1500 down:3 pass:1400000 answers=0 pass:200000 answers=1 a=no_quorum "
     "a."),
};

TEST_EACH(another_version_is_told, stories)
{
    waiting_play(stories[_i]);
}

/* How many inspections there are in this time; each finds the lock free. */
static int inspections_within(int64_t us)
{
    int count = 0;
    for (; us > 0; us -= WAITING_TICK_US) {
        play_advance(WAITING_TICK_US);
        int calls = play_count(CALL_INSPECT);
        for (int i = 0; i < calls / PLAY_NODES; i++)
            play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
        count += calls / PLAY_NODES;
        play.sent_count = 0;
    }
    return count;
}

/* So many locks of 16 names each, all of them free. */
static void watch_many(int locks)
{
    static const char names[] = "\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np";
    for (int i = 1; i <= locks; i++) {
        struct span lock = span_of(textf("a%03d%s", i, names));
        ck_assert_uint_ne(
            engine_watch(play.engine, lock, span_of("free"), WAITING_MS, NULL),
            0);
        if (i % 10 == 0)
            ck_assert_int_eq(inspections_within(2 * WAITING_TICK_US), 10);
    }
}

/* A node examines each. So locks of many names are inspected as rarely as so
 * many locks of one. */
TEST(each_name_has_a_share_of_the_inspections)
{
    enum { LOCKS = 80 }; /* with 1280 names */
    watch_many(LOCKS);
    (void)inspections_within(2 * EACH_US);
    int count = inspections_within(4 * EACH_US);
    ck_assert_int_ge(count, LOCKS * 3 - LOCKS / 2);
    ck_assert_int_le(count, LOCKS * 3 + LOCKS / 2);
}

TEST(at_the_end_of_its_time_it_tells_what_was_found_last)
{
    waiting_play("a?1,1500 soon:1 later:1 pass:520000 answers=1");
    const struct engine_result *result = play_result(waiting_op('a'));
    ck_assert_int_ge(result->waited_ms, 1500);
    /* it was 5 s, half a second ago */
    ck_assert_int_ge(result->remaining_ms, 4400);
    ck_assert_int_le(result->remaining_ms, 4600);
    waiting_play("a~1 " /* also if that takes longer than its time */
                 "b?free,1 soon:- pass:20000 answers=2 b~free");
}

/* Many locks share the inspections, so the last one of a lock may be old. */
TEST(at_the_end_of_its_time_it_tells_nothing_that_is_old)
{
    watch_many(200); /* each is inspected after 3.2 s */
    waiting_play("a?1,2200 soon:1");
    play.sent_count = 0;
    (void)inspections_within(2200000 - SOON_US);
    waiting_play("answers=0");
    (void)inspections_within(SOON_US + 2 * WAITING_TICK_US);
    waiting_play("answers=1 a~free");
}

/* What passes through this server may change the holder. */
TEST(a_grant_and_a_release_are_followed_at_once)
{
    waiting_play("a?free soon:-");
    engine_op grant = play_win();
    ck_assert_int_eq(play_result(grant)->outcome, OUTCOME_GRANTED);
    waiting_play("soon:1 a~1 b?1 soon:1");
    engine_op release = play_release(play_result(grant)->token);
    waiting_play("soon:- b~free");
    engine_close(play.engine, grant);
    ck_assert(!engine_abandon(play.engine, release));
}

TEST(one_of_several_resources_is_enough)
{
    waiting_play("a?1 soon:1");
    engine_release(play.engine, span_of("order:41\norder:42"), play_token(1),
                   NULL);
    waiting_play("soon:- a~free");
}

/* ---- versions ------------------------------------------------------------ */

/* What a node tells: free, a value, or so many readers. */
struct told {
    const char *value;
    int64_t readers;
};

static void answer_one(int node, struct told told)
{
    if (told.readers > 0)
        PLAY_REPLY(CALL_INSPECT, node, .vote = VOTE_HELD, .pttl_ms = 1000,
                   .holders = told.readers);
    else if (told.value != NULL)
        PLAY_REPLY(CALL_INSPECT, node, .vote = VOTE_HELD, .pttl_ms = 1000,
                   .value = span_of(told.value));
    else
        PLAY_REPLY(CALL_INSPECT, node, .vote = VOTE_FREE);
}

/* An inspection comes soon; its nodes tell these. */
static void find_each(const struct told told[PLAY_NODES])
{
    waiting_await_inspection(EACH_US + WAITING_TICK_US);
    for (int i = 0; i < PLAY_NODES; i++)
        answer_one(i, told[i]);
}

#define VALUE(text)                                                            \
    {                                                                          \
        .value = (text)                                                        \
    }
#define READERS(count)                                                         \
    {                                                                          \
        .readers = (count)                                                     \
    }
#define A VALUE(PLAY_TOKEN_OF(1))
#define B VALUE(PLAY_TOKEN_OF(2))
#define NONE READERS(0)

static const struct {
    const char *version;
    struct told told[PLAY_NODES];
} states[] = {
    {"free", {NONE}},
    {"free", {A, NONE, NONE, B}}, /* leftovers */
    {"1", {A, A, A}},
    {"shared", {READERS(1), READERS(1), READERS(1)}},
    {"shared", {READERS(3), READERS(2), READERS(7)}},
    {"foreign-af63f54c86021707", {VALUE("x"), VALUE("x"), VALUE("x")}},
    {"foreign", {VALUE(""), VALUE(""), VALUE("")}}, /* no text, or too long */
    {"foreign", {VALUE("x"), VALUE("y"), VALUE("z")}}, /* one on each node */
    {"split", {A, B, NONE, VALUE("x"), NONE}},
    {"split", {READERS(1), READERS(1), B, NONE, NONE}},
};

static void expect_version(engine_op op, const char *version)
{
    ck_assert_str_eq(play_result(op)->version.text, version);
    engine_close(play.engine, op);
}

static engine_op watch(const char *known)
{
    return engine_watch(play.engine, PLAY_RESOURCE, span_of(known), WAITING_MS,
                        NULL);
}

TEST_EACH(each_state_has_a_version, states)
{
    engine_op op = engine_inspect(play.engine, PLAY_RESOURCE, NULL);
    for (int i = 0; i < PLAY_NODES; i++)
        answer_one(i, states[_i].told[i]);
    ck_assert_int_eq(play.answers, 1);
    expect_version(op, states[_i].version);
}

/* Whichever other version a client knows; a state that may pass is found twice
 * before it counts. */
TEST_EACH(a_watch_waits_for_another_version, states)
{
    const char *own = states[_i].version;
    bool may_pass = strcmp(own, "split") == 0 || strcmp(own, "foreign") == 0;
    int count = sizeof states / sizeof *states;
    engine_op same = watch(own), ops[sizeof states / sizeof *states];
    for (int i = 0; i < count; i++)
        ops[i] = watch(states[i].version);
    find_each(states[_i].told);
    ck_assert_int_eq(play.answers == 0, may_pass);
    find_each(states[_i].told);
    for (int i = 0; i < count; i++) {
        if (strcmp(states[i].version, own) != 0)
            expect_version(ops[i], own);
        else
            ck_assert_int_eq(play_result(ops[i])->outcome, OUTCOME_PENDING);
    }
    ck_assert_int_eq(play_result(same)->outcome, OUTCOME_PENDING);
}

TEST(readers_who_come_and_go_wake_nobody)
{
    waiting_play("a?shared");
    for (int64_t readers = 1; readers < 4; readers++) {
        struct told told[PLAY_NODES];
        for (int i = 0; i < PLAY_NODES; i++)
            told[i] = (struct told){.readers = 1 + (readers + i) % 3};
        find_each(told);
    }
    waiting_play("answers=0 later:3 a~3");
}

/* While a lock changes hands, no value may have a majority. */
TEST(a_state_that_passes_is_not_told)
{
    static const struct told split[PLAY_NODES] = {A, B, A, B, NONE};
    waiting_play("a?1");
    find_each(split);
    waiting_play("later:1");
    find_each(split);
    waiting_play("answers=0");
    find_each(split);
    waiting_play("answers=1 a~split");
}

TEST(a_version_that_was_never_told_is_another_one)
{
    char longest[VERSION_MAX + 1] = "";
    memset(longest, 'z', VERSION_MAX);
    waiting_play(textf("a?%s soon:- a~free", longest));
}

TEST(a_key_that_is_refused_is_told_at_once)
{
    waiting_play("a?1 pass:20000");
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_KEY_REFUSED);
    waiting_play("answers=1 a=refused");
}

/* ---- the end ------------------------------------------------------------ */

static const char *const ends[] = {
    "a- pass:20000 nothing", /* a reply comes to nobody */
    "stop a=stopped a. pass:20000",
};

TEST_EACH(story_64_nobody_is_left_while_an_inspection_is_under_way, ends)
{
    waiting_play("a?1 pass:20000 inspections=1");
    waiting_play(ends[_i]);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
    waiting_play("pass:3000000 inspections=1");
}

/* Whichever allocation fails: it is refused, or has its answer later. */
TEST(without_memory_no_watch_is_left_behind)
{
    for (int n = 1;; n++) {
        play_begin_again(&play_settings);
        play_nodes_up();
        play.sent_count = 0;
        starve = (struct starve){.is_on = true, .left = n};
        engine_op op = watch("1");
        play_advance(WAITING_TICK_US);
        starve.is_on = false;
        if (starve.left > 0)
            break;
        if (op != 0) {
            waiting_play("later:2");
            expect_version(op, "2");
        }
        play_advance(3 * EACH_US);
        waiting_play(op != 0 ? "inspections=1" : "inspections=0");
        waiting_play("a?1 soon:- a~free");
    }
}
