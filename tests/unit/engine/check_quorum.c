/* SPDX-License-Identifier: MIT */
/*
 * Acquires that ask a quorum first, and what follows from it: rounds that
 * widen, fills, and releases of locks that not all nodes have.
 */

#include <string.h>

#include "../../../server/engine/port/port.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "../starve.h"
#include "letters.h"

enum {
    QUICK_US = 500,
    SLOW_US = 5000,
    EARLY_REPLICATION_US = 25000,
    TICK_US = 20000,
    TTL_MS = 30000
};

static void begin_with(int64_t node_timeout_us)
{
    struct engine_settings settings = play_settings;
    settings.ask = ASK_QUORUM;
    settings.node_timeout_us = node_timeout_us;
    play_begin_with(&settings);
    play_nodes_up();
    play.sent_count = 0;
}

static void begin(void)
{
    begin_with(50000);
}

SUITE(quorum, .set_up = begin, .tear_down = play_end);

/* The token of a grant by the first three nodes; the client has its answer. */
static struct span take_granted(engine_op op)
{
    static char token[TOKEN_MAX];
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    struct span its = play_result(op)->token;
    struct span copy = {token, span_copy(token, its)};
    engine_close(play.engine, op);
    return copy;
}

static struct span grant(void)
{
    return take_granted(play_acquire());
}

static void expect_metrics(uint64_t split, uint64_t no_answer, uint64_t slow)
{
    ck_assert_uint_eq(play.metrics.widenings[WIDENING_SPLIT], split);
    ck_assert_uint_eq(play.metrics.widenings[WIDENING_NO_ANSWER], no_answer);
    ck_assert_uint_eq(play.metrics.widenings[WIDENING_SLOW], slow);
}

/* Calls to all nodes take so long. */
static void know_far_nodes(int64_t trip_us)
{
    const struct call_reply reply = {.vote = VOTE_HELD};
    for (int k = 0; k < 60; k++)
        for (int i = 0; i < PLAY_NODES; i++)
            engine_on_reply(play.engine, i, tag_plain(TAG_RELEASE), &reply,
                            play.now_us - trip_us, play.now_us);
    play_advance(TICK_US);
    play.sent_count = 0;
}

/* Which calls are slow is known from probes. */
static void know_round_trips(void)
{
    for (int i = 0; i < 20; i++) {
        play_answer_all_probes();
        play_advance(100000);
    }
    play.sent_count = 0;
}

/* ---- which nodes -------------------------------------------------------- */

TEST(an_acquire_asks_a_quorum)
{
    scene("win acquire?012 votes#3");
    expect_metrics(0, 0, 0);
}

static const char *const votings[] = {"down:1 acquire acquire?023",
                                      "down:01 acquire acquire?234"};

TEST_EACH(it_asks_nodes_that_vote, votings)
{
    scene(votings[_i]);
}

TEST(a_node_that_owes_an_answer_is_asked_last)
{
    know_round_trips();
    engine_op first = play_acquire();
    play_answer_range(CALL_ACQUIRE, 1, 3, VOTE_GRANTED);
    play_advance(SLOW_US);
    play_answer(CALL_ACQUIRE, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(first), OUTCOME_GRANTED);
    play.sent_count = 0;
    (void)play_acquire();
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "123");
}

TEST(while_no_round_trip_is_known_half_of_the_time_is_left_for_the_others)
{
    scene("acquire acquire:.gg pass:24000 acquire?012 pass:1000 acquire?01234 "
          "acquire:...g =granted");
    expect_metrics(0, 0, 1);
}

TEST(a_node_that_answers_with_errors_is_asked_last)
{
    scene("acquire");
    play_answer(CALL_ACQUIRE, 0, UNFIT(OUT_OF_MEMORY));
    scene_more("acquire:.ggg acquire acquire?01234123");
}

TEST(other_calls_ask_all)
{
    scene("extend inspect extend#5 inspect#5");
}

TEST(so_does_an_acquire_that_leaves_no_time_for_a_early_replication)
{
    play_end();
    begin_with(49000);
    (void)play_acquire();
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 5);
}

/* A third of the timeout for each: a call, as long again for a slow one, and
 * the calls to the others. */
TEST(nodes_that_are_too_far_to_wait_for_a_slow_one_are_all_asked)
{
    know_far_nodes(16000);
    (void)play_acquire();
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "012");
    know_far_nodes(17500);
    (void)play_acquire();
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "01234");
}

/* ---- rounds that widen -------------------------------------------------- */

static const char no_answers[] = {'l', 'u', 'k'};

TEST_EACH(a_round_that_gets_no_answer_asks_the_others_at_once, no_answers)
{
    scene(textf("acquire acquire:.%c acquire?01234 acquire:g..gg =granted",
                no_answers[_i]));
    expect_metrics(0, 1, 0);
}

TEST(a_round_that_is_open_when_all_have_answered_asks_the_others)
{
    scene("acquire acquire:Ag acquire#3 acquire:..g acquire?01234 "
          "acquire:...g =granted");
    expect_metrics(1, 0, 0);
}

TEST(a_lock_that_a_quorum_holds_needs_no_others)
{
    scene("acquire acquire:AAA =held acquire#3");
}

/* The same call: its token, number and deadline. */
TEST(a_slow_round_asks_the_others)
{
    know_round_trips();
    engine_op op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 0, 2, VOTE_GRANTED);
    play_advance(QUICK_US);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 3);
    play_advance(SLOW_US);
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "01234");
    expect_metrics(0, 0, 1);
    const struct play_call *before = &play.sent[0];
    const struct play_call *after = play_find(CALL_ACQUIRE, 4);
    ck_assert_str_eq(before->token, after->token);
    ck_assert_int_eq(before->call.number, after->call.number);
    ck_assert_int_eq(before->call.node_deadline_us,
                     after->call.node_deadline_us);
    play_answer(CALL_ACQUIRE, 4, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    engine_close(play.engine, op);
    play_advance(EARLY_REPLICATION_US + TICK_US);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 5); /* nothing to fill */
}

/* While it is asked for, and when it is granted. */
static const char *const untaken[] = {"acquire:g leave", "acquire:gg leave",
                                      "acquire:ggg leave+"};

TEST_EACH(what_nobody_took_is_released_where_it_asked, untaken)
{
    scene("acquire");
    scene_more(untaken[_i]);
    scene_more("release?012 pass:200000 acquire#3");
}

/* As a round does that begins then. */
TEST(a_node_whose_admission_is_being_read_is_asked_after_that)
{
    (void)play_acquire();
    (void)play_extend(play_token(PLAY_EPOCH_US), TTL_MS);
    play_answer(CALL_EXTEND, 3, VOTE_NOT_ADMITTED);
    play_answer(CALL_ACQUIRE, 2, VOTE_LATE);
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "0124");
    play.news[3]++;
    play_answer_probe(3, PROBE_ADMITTED, "", "");
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "01243");
}

/* ---- fills -------------------------------------------------------------- */

TEST(a_lock_that_stays_gets_onto_the_other_nodes)
{
    struct span token = grant();
    const struct call before = play.sent[0].call;
    play_advance(EARLY_REPLICATION_US - 1);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 3);
    play_advance(TICK_US + 1);
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "01234");
    const struct play_call *fill = play_find(CALL_ACQUIRE, 4);
    ck_assert_int_eq((int)strlen(fill->token), (int)token.len);
    ck_assert_mem_eq(fill->token, token.ptr, token.len);
    ck_assert_int_eq(fill->call.number, before.number);
    ck_assert_int_lt(fill->call.ttl_ms, TTL_MS);
    ck_assert_int_ge(fill->call.ttl_ms,
                     TTL_MS - (EARLY_REPLICATION_US + TICK_US) / 1000 - 1);
    /* not later than any clock of the node may say */
    ck_assert_int_le(fill->call.node_deadline_us, before.node_deadline_us);
    ck_assert_uint_eq(play.metrics.early_replications, 1);
    play_answer_range(CALL_ACQUIRE, 3, 5, VOTE_STALE);
    play_advance(10 * TICK_US);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 5);
}

/* It takes as long to get there as the acquire did. */
TEST(after_a_long_round_the_early_replication_is_sent_in_time)
{
    scene("acquire pass:14000 acquire:ggg acquire#3 close acquire?01234");
}

/* A short TTL leaves less time than the node timeout. */
TEST(a_early_replication_does_not_wait_for_earlier_grants)
{
    play_end();
    begin_with(250000);
    (void)grant();
    play.sent_count = 0;
    engine_op op = play_acquire_of(span_of("web-3"), 100);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    engine_close(play.engine, op);
    play_advance(50000 + TICK_US);
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "01234");
}

TEST(an_extend_finds_the_lock_on_all_nodes)
{
    struct span token = grant();
    (void)play_extend(token, TTL_MS);
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "01234");
    ck_assert_int_eq(play_count(CALL_EXTEND), 5);
    ck_assert_int_lt(play_find(CALL_ACQUIRE, 3) - play.sent,
                     play_find(CALL_EXTEND, 3) - play.sent);
    play_advance(10 * TICK_US);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 5);
}

/* Whose place another token takes. */
TEST(a_lock_that_is_repeated_is_not_filled)
{
    const struct engine_acquire acquire = {
        .resource = PLAY_RESOURCE,
        .key_hash = span_of("abcdefghijklmnopqrstuv"),
        .ttl_ms = TTL_MS,
    };
    engine_op op = engine_acquire(play.engine, &acquire, NULL);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    char token[TOKEN_MAX + 1];
    strcpy(token, play.sent[0].token);
    engine_close(play.engine, op);
    play.now_us += 1000;
    (void)engine_acquire(play.engine, &acquire, NULL);
    play_hold_range(CALL_ACQUIRE, 0, 3, token);
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "012012");
    ck_assert_str_eq(letters_asked(CALL_REPEAT), "01234");
    play_advance(EARLY_REPLICATION_US + TICK_US);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 6);
}

TEST_RANGE(
    without_memory_or_by_a_server_that_stops_a_early_replication_is_sent_at_once,
    0, 2)
{
    engine_op op = play_win();
    starve = (struct starve){.is_on = _i == 0, .left = 1};
    engine_close(play.engine, op);
    starve.is_on = false;
    if (_i == 1)
        engine_stop(play.engine);
    ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "01234");
}

/* ---- releases ----------------------------------------------------------- */

TEST(a_release_before_the_early_replication_asks_the_nodes_that_have_the_lock)
{
    (void)play_release(grant());
    scene("release?012 release:ddd owed#0 pass:200000 acquire#3 release#3");
}

/* Who has them hears that the lock is lost. */
TEST(nor_after_one_of_several_is_released)
{
    static const char *const parts[] = {"a", "b", "a\nb", "b\nc"};
    const struct engine_acquire acquire = {.resource = span_of("a\nb"),
                                           .owner = span_of("web-3"),
                                           .ttl_ms = TTL_MS};
    for (int i = 0; i < 4; i++) {
        play.sent_count = 0;
        struct span token =
            take_granted(engine_acquire(play.engine, &acquire, NULL));
        (void)engine_release(play.engine, span_of(parts[i]), token, NULL);
        play_advance(EARLY_REPLICATION_US + TICK_US);
        ck_assert_str_eq(letters_asked(CALL_ACQUIRE), "012");
    }
}

/* Even if that takes long. */
TEST(an_early_replication_is_not_sent_after_the_release)
{
    (void)play_release(grant());
    play_advance(10 * TICK_US);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), 3);
}

/* The extend of another server may have found it missing on the others, or, if
 * the answers come late, may have probed by then: since the grant. */
TEST_RANGE(a_release_that_found_too_little_in_time_asks_all_later, 0, 2)
{
    struct span token = grant();
    play_advance(_i == 0 ? 0 : EARLY_REPLICATION_US - 1000);
    (void)play_release(token);
    play_advance(_i == 0 ? 0 : 50000 - EARLY_REPLICATION_US + 2000);
    letters_answer(CALL_RELEASE, _i == 0 ? "ddf" : "ddd");
    play_advance(10 * TICK_US);
    ck_assert_str_eq(letters_asked(CALL_RELEASE), "01201234");
}

/* The server was stopped. */
TEST(a_release_long_after_the_grant_asks_all)
{
    struct span token = grant();
    play.now_us += 50000;
    (void)play_release(token);
    ck_assert_str_eq(letters_asked(CALL_RELEASE), "01234");
}

TEST(after_the_early_replication_a_release_asks_all)
{
    struct span token = grant();
    play_advance(EARLY_REPLICATION_US + TICK_US);
    scene("acquire:...gg pass:200000");
    (void)play_release(token);
    scene("release?01234 release:ddddd owed#0");
}

/* Its fill may be under way where it is missing. */
TEST(a_young_lock_of_another_server_is_released_everywhere)
{
    engine_op op = play_release(play_token(PLAY_EPOCH_US + play.now_us));
    scene("release?01234 release:ddd");
    ck_assert_int_eq(play_outcome(op), OUTCOME_RELEASED);
    engine_close(play.engine, op);
    scene("release:...ff owed#1 pass:49999 release#5 pass:400000 "
          "release?0123434 release:...df owed#0 pass:400000 release#7");
}
