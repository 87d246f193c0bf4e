/*
 * Clients that wait for another version of a lock.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

enum { TICK_US = 20000, EACH_US = 1000000, SOON_US = 100000, WAIT_MS = 10000 };

SUITE(watches, .set_up = play_begin, .tear_down = play_end);

static engine_op watch(const char *known)
{
    return engine_watch(play.engine, PLAY_RESOURCE, span_of(known), WAIT_MS,
                        NULL);
}

/* An inspection comes within so long; all nodes tell this value. */
static void find(int64_t within_us, const char *value)
{
    int before = play_count(CALL_INSPECT);
    for (int64_t us = 0; us < within_us && play_count(CALL_INSPECT) == before;
         us += TICK_US)
        play_advance(TICK_US);
    ck_assert_int_eq(play_count(CALL_INSPECT), before + PLAY_NODES);
    if (value != NULL)
        play_hold_range(CALL_INSPECT, 0, PLAY_NODES, value);
    else
        play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    play.sent_count = 0;
}

static void expect(engine_op op, enum outcome outcome, int64_t number)
{
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, outcome);
    ck_assert_int_eq(result->number, number);
    engine_close(play.engine, op);
}

TEST(it_is_answered_when_the_holder_is_another)
{
    engine_op op = watch("1");
    find(SOON_US, PLAY_TOKEN_OF(1));
    play_advance(EACH_US / 2);
    ck_assert_int_eq(play_count(CALL_INSPECT), 0);
    find(EACH_US, PLAY_TOKEN_OF(1));
    ck_assert_int_eq(play.answers, 0);
    find(EACH_US + TICK_US, PLAY_TOKEN_OF(2));
    ck_assert_int_eq(play.answers, 1);
    expect(op, OUTCOME_FOUND, 2);
    /* nobody is left to inspect it for */
    play_advance(3 * EACH_US);
    ck_assert_int_eq(play_count(CALL_INSPECT), 0);
}

TEST(or_when_there_is_none_or_is_one_again)
{
    engine_op freed = watch("1"), taken = watch("free");
    find(SOON_US, NULL);
    ck_assert_int_eq(play.answers, 1);
    expect(freed, OUTCOME_NOT_FOUND, 0);
    find(EACH_US + TICK_US, NULL);
    find(EACH_US + TICK_US, PLAY_TOKEN_OF(3));
    ck_assert_int_eq(play.answers, 2);
    expect(taken, OUTCOME_FOUND, 3);
}

TEST(many_share_an_inspection)
{
    engine_op ops[50];
    for (int i = 0; i < 50; i++)
        ops[i] = watch(i % 2 == 0 ? "1" : "2");
    find(SOON_US, PLAY_TOKEN_OF(2));
    ck_assert_int_eq(play.answers, 25);
    for (int i = 0; i < 50; i += 2)
        expect(ops[i], OUTCOME_FOUND, 2);
    find(EACH_US + TICK_US, PLAY_TOKEN_OF(1));
    ck_assert_int_eq(play.answers, 50);
    for (int i = 1; i < 50; i += 2)
        expect(ops[i], OUTCOME_FOUND, 1);
}

/* How many inspections there are in this time; each finds the lock free. */
static int inspections_within(int64_t us)
{
    int count = 0;
    for (; us > 0; us -= TICK_US) {
        play_advance(TICK_US);
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
            engine_watch(play.engine, lock, span_of("free"), WAIT_MS, NULL), 0);
        if (i % 10 == 0)
            ck_assert_int_eq(inspections_within(2 * TICK_US), 10);
    }
}

/* A node looks at each. So locks of many names are inspected as rarely as so
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

/* The client may know more than it. */
TEST(an_inspection_that_began_before_tells_a_client_nothing)
{
    engine_op early = watch("2");
    play_advance(TICK_US);
    ck_assert_int_eq(play_count(CALL_INSPECT), PLAY_NODES);
    play_advance(TICK_US / 4);
    engine_op late = watch("2");
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, PLAY_TOKEN_OF(1));
    ck_assert_int_eq(play.answers, 1);
    expect(early, OUTCOME_FOUND, 1);
    play.sent_count = 0;
    find(SOON_US, PLAY_TOKEN_OF(2));
    ck_assert_int_eq(play.answers, 1);
    find(EACH_US + TICK_US, NULL);
    expect(late, OUTCOME_NOT_FOUND, 0);
}

TEST(at_the_end_of_its_time_it_tells_what_was_found_last)
{
    engine_op op =
        engine_watch(play.engine, PLAY_RESOURCE, span_of("1"), 1500, NULL);
    find(SOON_US, PLAY_TOKEN_OF(1));
    find(EACH_US + TICK_US, PLAY_TOKEN_OF(1));
    play_advance(EACH_US / 2 + TICK_US);
    ck_assert_int_eq(play.answers, 1);
    ck_assert_int_ge(play_result(op)->waited_ms, 1500);
    /* it was 5 s, half a second ago */
    ck_assert_int_ge(play_result(op)->remaining_ms, 4400);
    ck_assert_int_le(play_result(op)->remaining_ms, 4600);
    expect(op, OUTCOME_FOUND, 1);
    /* also if that takes longer than its time */
    op = engine_watch(play.engine, PLAY_RESOURCE, span_of("free"), 1, NULL);
    find(SOON_US, NULL);
    play_advance(TICK_US);
    ck_assert_int_eq(play.answers, 2);
    expect(op, OUTCOME_NOT_FOUND, 0);
}

/* Many locks share the inspections, so the last one of a lock may be old. */
TEST(at_the_end_of_its_time_it_tells_nothing_that_is_old)
{
    watch_many(200); /* each is inspected after 3.2 s */
    engine_op op =
        engine_watch(play.engine, PLAY_RESOURCE, span_of("1"), 2200, NULL);
    find(SOON_US, PLAY_TOKEN_OF(1));
    (void)inspections_within(2200000 - SOON_US);
    ck_assert_int_eq(play.answers, 0);
    (void)inspections_within(SOON_US + 2 * TICK_US);
    ck_assert_int_eq(play.answers, 1);
    expect(op, OUTCOME_NOT_FOUND, 0);
}

/* What passes through this server may change the holder. */
TEST(a_grant_and_a_release_are_followed_at_once)
{
    engine_op taken = watch("free");
    find(SOON_US, NULL);
    engine_op grant = play_win();
    ck_assert_int_eq(play_result(grant)->outcome, OUTCOME_GRANTED);
    find(SOON_US, PLAY_TOKEN_OF(1));
    expect(taken, OUTCOME_FOUND, 1);
    engine_op freed = watch("1");
    find(SOON_US, PLAY_TOKEN_OF(1));
    engine_op release = play_release(play_result(grant)->token);
    find(SOON_US, NULL);
    expect(freed, OUTCOME_NOT_FOUND, 0);
    engine_close(play.engine, grant);
    ck_assert(!engine_abandon(play.engine, release));
}

TEST(one_of_several_resources_is_enough)
{
    engine_op op = watch("1");
    find(SOON_US, PLAY_TOKEN_OF(1));
    engine_release(play.engine, span_of("order:41\norder:42"), play_token(1),
                   NULL);
    find(SOON_US, NULL);
    expect(op, OUTCOME_NOT_FOUND, 0);
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
    for (int64_t us = 0; us <= EACH_US && play_count(CALL_INSPECT) == 0;
         us += TICK_US)
        play_advance(TICK_US);
    for (int i = 0; i < PLAY_NODES; i++)
        answer_one(i, told[i]);
    play.sent_count = 0;
}

#define VALUE(text)                                                            \
    {                                                                          \
        .value = text                                                          \
    }
#define READERS(count)                                                         \
    {                                                                          \
        .readers = count                                                       \
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
    engine_op op = watch("shared");
    for (int64_t readers = 1; readers < 4; readers++) {
        struct told told[PLAY_NODES];
        for (int i = 0; i < PLAY_NODES; i++)
            told[i] = (struct told){.readers = 1 + (readers + i) % 3};
        find_each(told);
    }
    ck_assert_int_eq(play.answers, 0);
    find(EACH_US + TICK_US, PLAY_TOKEN_OF(3));
    expect_version(op, "3");
}

/* While a lock changes hands, no value may have a majority. */
TEST(a_state_that_passes_is_not_told)
{
    static const struct told split[PLAY_NODES] = {A, B, A, B, NONE};
    engine_op op = watch("1");
    find_each(split);
    find(EACH_US + TICK_US, PLAY_TOKEN_OF(1));
    find_each(split);
    ck_assert_int_eq(play.answers, 0);
    find_each(split);
    ck_assert_int_eq(play.answers, 1);
    expect_version(op, "split");
}

TEST(a_version_that_was_never_told_is_another_one)
{
    char longest[VERSION_MAX + 1] = "";
    memset(longest, 'z', VERSION_MAX);
    engine_op op = watch(longest);
    find(SOON_US, NULL);
    expect_version(op, "free");
}

TEST(without_a_quorum_it_waits)
{
    engine_op op =
        engine_watch(play.engine, PLAY_RESOURCE, span_of("1"), 1500, NULL);
    play_nodes_down(3);
    play_advance(1400000);
    ck_assert_int_eq(play.answers, 0);
    play_advance(200000);
    ck_assert_int_eq(play.answers, 1);
    expect(op, OUTCOME_NO_QUORUM, 0);
}

TEST(a_key_that_is_refused_is_told_at_once)
{
    engine_op op = watch("1");
    play_advance(TICK_US);
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_KEY_REFUSED);
    ck_assert_int_eq(play.answers, 1);
    expect(op, OUTCOME_KEY_REFUSED, 0);
}

/* ---- the end ------------------------------------------------------------ */

/* A reply comes to nobody. */
TEST(story_64_the_last_leaves_while_an_inspection_is_under_way)
{
    engine_op op = watch("1");
    play_advance(TICK_US);
    ck_assert_int_eq(play_count(CALL_INSPECT), PLAY_NODES);
    ck_assert(!engine_abandon(play.engine, op));
    play_advance(TICK_US);
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    play_advance(3 * EACH_US);
    ck_assert_int_eq(play_count(CALL_INSPECT), PLAY_NODES);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

TEST(story_64_the_server_stops_while_an_inspection_is_under_way)
{
    engine_op op = watch("1");
    play_advance(TICK_US);
    engine_stop_waiting(play.engine);
    expect(op, OUTCOME_STOPPED, 0);
    play_advance(TICK_US);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
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
        play_advance(TICK_US);
        starve.is_on = false;
        if (starve.left > 0)
            break;
        if (op != 0) {
            find(2 * EACH_US, PLAY_TOKEN_OF(2));
            expect(op, OUTCOME_FOUND, 2);
        }
        play_advance(3 * EACH_US);
        ck_assert_int_eq(play_count(CALL_INSPECT), 0);
        op = watch("1");
        ck_assert(op != 0);
        find(SOON_US, NULL);
        expect(op, OUTCOME_NOT_FOUND, 0);
    }
}
