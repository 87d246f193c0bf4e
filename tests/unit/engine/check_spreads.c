/* SPDX-License-Identifier: MIT */
/*
 * Spreads: what happens behind a grant or an extension that not all nodes have.
 */

#include <stdio.h>

#include "../../../server/engine/parts.h"
#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "letters.h"

enum {
    TIMEOUT_US = 50000,
    WAIT_US = TIMEOUT_US + 2 * TIMEOUT_US / 100, /* drift */
    TICK_US = 20000,
    TTL_MS = 30000
};

static void extend_for(int64_t ttl_ms)
{
    engine_op op = play_extend(play_token(PLAY_EPOCH_US), ttl_ms);
    letters_answer(CALL_EXTEND, "eeeff");
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    engine_close(play.engine, op);
}

static void extend_with(const struct engine_settings *settings)
{
    play_begin_again(settings);
    play_nodes_up();
    play.sent_count = 0;
    extend_for(TTL_MS);
}

/* Until so many extends were sent in all, which takes at least so long. */
static void await(int extends, int64_t least_us)
{
    int64_t start_us = play.now_us;
    while (play_count(CALL_EXTEND) < extends) {
        play_advance(1000);
        ck_assert_int_lt(play.now_us - start_us, 2000000);
    }
    ck_assert_int_eq(play_count(CALL_EXTEND), extends);
    ck_assert_int_ge(play.now_us - start_us, least_us);
}

/* The same, and what the nodes answer to the last ones. */
static void check_at(int extends, const char *answers)
{
    await(extends, 0);
    letters_answer(CALL_EXTEND, answers);
}

static void expect_nothing_for(int64_t us)
{
    int sent = play.sent_count;
    for (int64_t gone_us = 0; gone_us < us; gone_us += 1000)
        play_advance(1000);
    ck_assert_int_eq(play.sent_count, sent);
}

/* Until so many extends were sent in all: the last ones lengthen it. */
static void expect_end(int extends)
{
    check_at(extends, "eeeee");
    expect_nothing_for(20 * TICK_US);
}

/* An extension that two nodes lack, and the first check. */
#define EXTENDED "extend extend:eeeff =extended close "
#define CHECKED EXTENDED "extend~10 extend:eeeff "

SUITE(spreads, .set_up = play_begin, .tear_down = play_end);

TEST(story_50_a_lock_gets_where_two_checks_find_it_missing)
{
    int64_t start_us = play.now_us;
    extend_for(TTL_MS);
    await(10, WAIT_US); /* no acquire comes after it */
    const struct call *check = &play_find(CALL_EXTEND, 1)->call;
    ck_assert_int_eq(check->ttl_ms, TTL_MS - (play.now_us - start_us) / 1000);
    letters_answer(CALL_EXTEND, "eeeff");
    ck_assert_int_eq(play_count(CALL_REPLICATE), 0);
    await(15, WAIT_US); /* what deletes it has done so by then */
    play_answer_range(CALL_EXTEND, 0, 2, VOTE_EXTENDED);
    ck_assert_int_eq(play_count(CALL_REPLICATE), 0);
    int64_t check_us = play_find(CALL_EXTEND, 2)->call.node_deadline_us;
    play_answer(CALL_EXTEND, 2, VOTE_EXTENDED);
    ck_assert_int_eq(play_count(CALL_REPLICATE), 2);
    const struct play_call *replication = play_find(CALL_REPLICATE, 4);
    ck_assert_int_eq(replication->call.seen, 1);
    ck_assert_int_eq(replication->call.number, PLAY_EPOCH_US);
    ck_assert_int_eq(replication->call.ttl_ms,
                     TTL_MS - (play.now_us - start_us) / 1000);
    ck_assert_int_ge(replication->call.tombstone_ms, 4 * WAIT_US / 1000);
    ck_assert_int_lt(replication->call.node_deadline_us, check_us);
    ck_assert_int_gt(replication->call.node_deadline_us, check_us - 10000);
    ck_assert_uint_gt(replication->call.admit.len, 0);
    ck_assert_int_eq(replication->call.window_us, FENCE_WINDOW_US);
    ck_assert_str_eq(replication->token, play.sent[0].token);

    letters_answer(CALL_EXTEND, "...ff");
    letters_answer(CALL_REPLICATE, "...gg");
    expect_end(20);
    ck_assert_int_eq(play.answers, 1);
    ck_assert_uint_eq(play.metrics.locks_thin, 0);
}

/* A heartbeat that comes more often than checks does not hold them up. */
TEST(extends_in_between_do_not_begin_anew)
{
    scene(CHECKED "pass:25000 extend extend:eeeff close "
                  "extend~20 extend:eeeff replicate#2");
}

/* What all nodes tell of a shorter time is not for all of the longer one. */
TEST(a_longer_extend_counts)
{
    extend_for(TTL_MS / 2);
    await(10, 0);
    struct play_call *late[2];
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
    for (int i = 0; i < 2; i++) {
        late[i] = play_find(CALL_EXTEND, 3 + i);
        late[i]->is_answered = true; /* below */
    }
    extend_for(TTL_MS);
    for (int i = 0; i < 2; i++) {
        late[i]->is_answered = false;
        play_reply(late[i], (struct call_reply){.vote = VOTE_EXTENDED});
    }
    await(20, 0);
    ck_assert_int_gt(play_find(CALL_EXTEND, 0)->call.ttl_ms, TTL_MS / 2);
}

/* What is answered to two checks, and what is created behind them. */
static const struct {
    const char *first, *second;
    const char *created; /* a letter "g" for each node that is to get it */
    int missing;         /* node 4: which names are, a bit each */
    bool is_gone;        /* nobody searches for it any more */
} pairs[] = {
    {"eeefe", "eee.f", "...g.", 0, false}, /* missing at one check only */
    {"eeeff", "eee.f", "...gg", 1, false},
    {"eeeff", "eefff", ".....", 0, true},
    {"eeeff", "eeeff", "...gg", 1, false},
    {"eeeeA", "eeeeA", "....g", 1, false}, /* something else is there */
    /* It may be among readers, as one: then a release drops it there. */
    {"eeeeh", "eeeeh", "....g", 0, false},
};

TEST_EACH(what_two_checks_find_to_be_missing_is_created, pairs)
{
    scene(textf(EXTENDED "extend~10 extend:%s extend~15 extend:%s",
                pairs[_i].first, pairs[_i].second));
    for (int i = 0; i < PLAY_NODES; i++)
        ck_assert((play_find(CALL_REPLICATE, i) != NULL) ==
                  (pairs[_i].created[i] == 'g'));
    if (play_find(CALL_REPLICATE, 4) != NULL)
        ck_assert_int_eq((int)play_find(CALL_REPLICATE, 4)->call.seen,
                         pairs[_i].missing);
    if (pairs[_i].is_gone)
        expect_nothing_for(20 * TICK_US);
}

/* Else it could be over before a server that extended it for longer checks, and
 * would leave that one its tombstone only. */
TEST_RANGE(what_ends_soon_is_not_created, 0, 2)
{
    extend_for(_i == 0 ? 4 * TIMEOUT_US / 1000 : 5 * TIMEOUT_US / 1000);
    await(10, WAIT_US);
    letters_answer(CALL_EXTEND, "eeeff");
    await(15, WAIT_US);
    letters_answer(CALL_EXTEND, "eeeff");
    ck_assert_int_eq(play_count(CALL_REPLICATE), _i == 0 ? 0 : 2);
}

/* A server that stood still between two checks begins again. */
TEST(a_second_check_that_is_late_is_a_first_one)
{
    scene(CHECKED);
    play.now_us += 4 * TIMEOUT_US;
    scene_more("extend~15 extend:eeeff replicate#0");
    await(20, WAIT_US);
    scene_more("extend:eeeff replicate#2");
}

TEST(a_quorum_that_comes_late_creates_nothing)
{
    scene(CHECKED "extend~15 extend:ee");
    play.now_us += TIMEOUT_US;
    scene_more("extend:..e replicate#0");
}

/* Somebody else wants it, and is there for a moment. */
TEST(it_is_tried_again_where_something_else_is)
{
    scene(EXTENDED "extend~10 extend:eeeeA extend~15 extend:eeeeA replicate#1 "
                   "replicate:....A pass:20000 replicate#2 replicate:....g");
    expect_end(20);
}

/* One node has something else, until so many creations there are answered.
 * Returns how long the last one took. */
static int64_t create_in_vain(int creations, enum vote answer)
{
    int64_t start_us = 0;
    for (int i = 0; i < creations; i++) {
        start_us = play.now_us;
        while (play_find(CALL_REPLICATE, 4) == NULL) {
            await(play_count(CALL_EXTEND) + PLAY_NODES, 0);
            letters_answer(CALL_EXTEND, "eeeeA");
        }
        play_answer(CALL_REPLICATE, 4, (int)answer);
    }
    return play.now_us - start_us;
}

/* What held it up may be gone: the pauses, which were long, begin anew. */
TEST(a_change_between_two_checks_ends_the_long_pauses)
{
    extend_for(TTL_MS);
    ck_assert_int_gt(create_in_vain(10, VOTE_LATE), 400000);
    ck_assert_int_gt(create_in_vain(1, VOTE_CHANGED), 400000);
    ck_assert_int_lt(create_in_vain(1, VOTE_LATE), 250000);
}

/* The nodes answer what they were asked. Node 4 has something else until
 * gone_us; true: it got the lock. */
static bool answer_all(int64_t gone_us)
{
    bool is_gone = play.now_us >= gone_us;
    const struct play_call *created = play_find(CALL_REPLICATE, 4);
    if (play_find(CALL_EXTEND, 0) != NULL)
        letters_answer(CALL_EXTEND, is_gone ? "eeeef" : "eeeeA");
    if (created == NULL)
        return false;
    bool is_granted = is_gone && created->call.seen != 0;
    play_answer(CALL_REPLICATE, 4,
                is_granted ? VOTE_GRANTED
                : is_gone  ? VOTE_CHANGED
                           : VOTE_HELD);
    play.sent_count = 0;
    return is_granted;
}

/* However long something else was there, and whenever it goes. */
TEST_RANGE(a_second_after_something_else_has_gone_it_is_there, 0, 60)
{
    struct engine_settings settings = play_settings;
    settings.node_timeout_us = 250000;
    extend_with(&settings);
    int64_t gone_us = play.now_us + 8000000 + _i * 25000;
    while (!answer_all(gone_us))
        play_advance(1000);
    ck_assert_int_lt(play.now_us - gone_us, 1000000);
}

/* ---- answers and their checks -------------------------------------------- */

/* Answers a call of a batch that had begun so long ago. */
static void answer_batched(int node, uint64_t tag, enum vote vote,
                           int64_t ago_us)
{
    struct call_reply reply = {
        .vote = vote,
        .node_now_us = PLAY_EPOCH_US + play.now_us,
        .highest = vote == VOTE_FREE,
    };
    engine_on_reply(play.engine, node, tag, &reply, play.now_us - ago_us,
                    play.now_us);
}

/* The calls of a batch have the time of its first one. In the turn of a check
 * that may be another call, say the acquire of a client that has waited. */
TEST(a_check_counts_in_a_batch_that_began_before_it)
{
    extend_for(TTL_MS);
    for (int check = 1; check <= 2; check++) {
        await(play_count(CALL_EXTEND) + PLAY_NODES, 0);
        for (int i = 0; i < PLAY_NODES; i++) {
            struct play_call *sent = play_find(CALL_EXTEND, i);
            sent->is_answered = true;
            answer_batched(i, sent->tag, i < 3 ? VOTE_EXTENDED : VOTE_FREE,
                           TICK_US / 2);
        }
    }
    ck_assert_int_eq(play_count(CALL_REPLICATE), 2);
}

/* The tags of checks come round again. */
TEST(an_answer_to_a_much_earlier_check_does_not_count)
{
    extend_for(TTL_MS);
    await(10, 0);
    const uint64_t tag = play_find(CALL_EXTEND, 4)->tag;
    const int64_t sent_us = play.now_us;
    do {
        letters_answer(CALL_EXTEND, "eeeeA");
        extend_for(TTL_MS); /* without pauses */
        play.sent_count = 0;
        await(5, 0);
    } while (play_find(CALL_EXTEND, 4)->tag != tag);
    ck_assert_int_gt(play.now_us - sent_us, 10 * TIMEOUT_US);
    play_answer_range(CALL_EXTEND, 0, 4, VOTE_EXTENDED);
    answer_batched(4, tag, VOTE_EXTENDED, play.now_us - sent_us);
    await(10, 0); /* it is searched for there */
}

/* Another server was told less, and was there first: it ended there. */
TEST(what_a_creation_found_is_checked)
{
    scene(CHECKED "extend~15 extend:eeeff replicate:...gg extend~20");
    ck_assert_int_gt(play_find(CALL_EXTEND, 3)->call.ttl_ms, TTL_MS - 1000);
    scene_more(
        "extend:eeefe extend~25 extend:eeefe replicate#3 replicate:...g");
    expect_end(30);
}

/* What one node tells of several: whether readers are there, too. */
static void answer_other(int node, int missing, int holders)
{
    PLAY_REPLY(CALL_EXTEND, node, .vote = VOTE_HELD,
               .value = span_of(holders == 0 ? "another" : ""),
               .holders = holders, .highest = missing);
}

/* Of several resources others may have any on a node, for a moment. */
TEST_RANGE(of_several_what_others_have_is_missing, 0, 2)
{
    engine_op op =
        engine_extend(play.engine, span_of("a\nb\nc"),
                      play_token(PLAY_EPOCH_US), TTL_MS, false, NULL);
    letters_answer(CALL_EXTEND, "eeeff");
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    engine_close(play.engine, op);
    for (int check = 2; check <= 3; check++) {
        await(5 * check, 0);
        play_answer_range(CALL_EXTEND, 0, 4, VOTE_EXTENDED);
        answer_other(4, 5, _i);
    }
    ck_assert_int_eq(play_count(CALL_REPLICATE), 1);
    ck_assert_int_eq((int)play_find(CALL_REPLICATE, 4)->call.seen, 5);
}

TEST(what_does_not_vote_is_not_asked)
{
    scene(EXTENDED "down:34");
    expect_nothing_for(30 * TICK_US);
    scene_more("up:4 extend~9");
}

TEST(votes_that_count_nowhere_count_here_neither)
{
    scene(CHECKED "extend~15 extend:ee");
    play.offset_us[2] = 1000000; /* its clock stepped */
    scene_more("extend:..e pass:60000 replicate#0");
}

/* What nobody got onto a node that votes is told. */
TEST(with_the_validity_all_ends)
{
    extend_for(150);
    check_at(10, "eeeff");
    for (int i = 0; i < 200; i++)
        play_advance(1000);
    ck_assert_uint_eq(play.metrics.locks_thin, 1);
    expect_nothing_for(20 * TICK_US);
    ck_assert_int_eq(play_count(CALL_REPLICATE), 0);
}

TEST(a_release_ends_it)
{
    scene(CHECKED "release release:ddd =released close pass:300000 "
                  "extend#10 replicate#0");
}

/* Nor one whose client left, or that all nodes have answered. */
static const char *const ended[] = {
    "extend extend:eefff =not_found close",
    "extend extend:....f extend:ee leave extend:..ee",
    "extend extend:....f extend:eee leave extend:...e",
    "extend extend:eeeee close under_way#0 win close acquire:...gg",
};

TEST_EACH(a_failed_extend_begins_none, ended)
{
    scene(ended[_i]);
    expect_nothing_for(20 * TICK_US);
}

TEST(nor_one_that_only_asked)
{
    play.now_us += 101000000; /* beyond max_hold_ms */
    for (int i = 0; i < PLAY_NODES; i++)
        play_confirm(i);
    scene("extend extend:eeeff =max_hold_reached close");
    expect_nothing_for(20 * TICK_US);
}

/* It may have the exclusive form: a check makes a reader of it. */
TEST(a_downgrade_that_a_node_has_missed_comes_with_the_check)
{
    engine_op op = engine_extend(play.engine, PLAY_RESOURCE,
                                 play_token(PLAY_EPOCH_US), TTL_MS, true, NULL);
    play_answer_range(CALL_EXTEND, 0, 4, VOTE_EXTENDED);
    play_answer(CALL_EXTEND, 4, VOTE_LATE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    engine_close(play.engine, op);
    await(10, WAIT_US);
    ck_assert_int_eq(play_find(CALL_EXTEND, 4)->token[TOKEN_NUMBER_LEN],
                     TOKEN_SHARED);
    play_answer_range(CALL_EXTEND, 0, 5, VOTE_EXTENDED);
    expect_nothing_for(20 * TICK_US);
}

/* ---- grants -------------------------------------------------------------- */

TEST(a_grant_that_some_refused_is_checked_for)
{
    scene("win close acquire:...ll");
    await(5, WAIT_US / 2);
    letters_answer(CALL_EXTEND, "eeeff");
    await(10, WAIT_US);
    scene_more("extend:eeeff replicate#2");
}

/* Nobody knows which nodes have it: those that were asked. */
TEST(stragglers_that_are_silent_are_checked_for)
{
    scene("win close");
    await(5, WAIT_US);
    expect_end(5);
}

/* A silent node keeps each of them for a node timeout: but not those that the
 * next ones need. What it has is searched for then. */
TEST_RANGE(stragglers_refuse_nobody, 0, 2)
{
    struct entries *entries = &play.engine->operations.entries;
    entries->limit = 8;
    for (int i = 0; i < 20; i++) {
        engine_op op = _i == 0
                           ? play_acquire()
                           : play_extend(play_token(PLAY_EPOCH_US + i), TTL_MS);
        ck_assert_uint_ne(op, 0);
        play_answer_range(_i == 0 ? CALL_ACQUIRE : CALL_EXTEND, 0, 3,
                          _i == 0 ? VOTE_GRANTED : VOTE_EXTENDED);
        engine_close(play.engine, op);
        play.sent_count = 0;
    }
    ck_assert_uint_ge(entries->used, 4);
    ck_assert_uint_ge(play.engine->spreads.entries.used, 20 - entries->used);
}

/* ---- many, and fast ones ------------------------------------------------- */

/* Two checks may be two ticks apart, however short the node timeout is. */
TEST(short_node_timeouts_create_too)
{
    struct engine_settings settings = play_settings;
    settings.node_timeout_us = 5000;
    extend_with(&settings);
    play.sent_count = 0;
    for (int ms = 0; ms < 900 && play_count(CALL_REPLICATE) == 0; ms++) {
        play_advance(1000);
        if (play_find(CALL_EXTEND, 0) != NULL)
            letters_answer(CALL_EXTEND, "eeeff");
    }
    ck_assert_int_eq(play_count(CALL_REPLICATE), 2);
}

/* Clocks that differ by half leave a window as well. */
TEST(clocks_of_any_speed_leave_time_to_create)
{
    struct engine_settings settings = play_settings;
    settings.drift_factor = 0.5;
    extend_with(&settings);
    await(10, 2 * TIMEOUT_US);
    letters_answer(CALL_EXTEND, "eeeff");
    await(15, 2 * TIMEOUT_US);
    int64_t check_us = play_find(CALL_EXTEND, 0)->call.node_deadline_us;
    letters_answer(CALL_EXTEND, "eeeff");
    ck_assert_int_eq(play_count(CALL_REPLICATE), 2);
    int64_t window_us = play_find(CALL_REPLICATE, 3)->call.node_deadline_us -
                        check_us + TIMEOUT_US;
    ck_assert_int_gt(window_us, TIMEOUT_US / 4);
    ck_assert_int_le(window_us, TIMEOUT_US / 2);
}

enum { ACTIVE = 1024 };

static void extend_one_for(int number, int64_t ttl_ms)
{
    const char *name = textf("lock:%d", number);
    engine_op op =
        engine_extend(play.engine, span_of(name),
                      play_token(PLAY_EPOCH_US + number), ttl_ms, false, NULL);
    play_answer_range(CALL_EXTEND, 0, 4, VOTE_EXTENDED);
    if (play.is_up[4])
        letters_answer(CALL_EXTEND, "....f");
    ck_assert_int_eq(play_outcome(op), OUTCOME_EXTENDED);
    engine_close(play.engine, op);
    play.sent_count = 0;
}

static void extend_one(int number)
{
    extend_one_for(number, TTL_MS);
}

/* No check is answered: none of them ever has an end. */
TEST(those_that_get_nowhere_leave_their_place_to_others)
{
    for (int i = 0; i <= ACTIVE; i++)
        extend_one(i);
    const struct spread *last =
        TAILQ_LAST(&play.engine->spreads.waiting.all, spread_queue);
    ck_assert_uint_eq(last->check, 0);
    for (int i = 0; i < PLAY_NODES; i++)
        play.is_refusing[i] = true;
    for (int i = 0; i < 300 && last->check == 0; i++)
        play_advance(20000);
    ck_assert_uint_gt(last->check, 0);
}

/* Then the client still has its lock. */
TEST(a_release_for_which_there_is_no_room_ends_none)
{
    extend_for(TTL_MS);
    ck_assert_uint_eq(play.engine->spreads.entries.used, 1);
    uint32_t limit = play.engine->releases.entries.limit;
    play.engine->releases.entries.limit = 0;
    ck_assert_uint_eq(play_release(play_token(PLAY_EPOCH_US)), 0);
    play.engine->releases.entries.limit = limit;
    ck_assert_uint_eq(play.engine->spreads.entries.used, 1);
}

/* The locks that wait for their nodes: their numbers, from the first on. */
static const char *those_that_wait(void)
{
    static char text[256];
    size_t len = 0;
    const struct spread *it;
    text[0] = '\0';
    TAILQ_FOREACH(it, &play.engine->spreads.waiting.all, link)
    {
        struct span name = texts_first(&it->texts);
        len += (size_t)snprintf(text + len, sizeof text - len, " %.*s",
                                (int)name.len - 5, name.ptr + 5);
    }
    return text;
}

/* A node is away for longer than there is room: that of the one that ends first
 * goes to the last, and is counted. */
TEST(the_latest_of_too_many_take_the_place_of_those_that_end_soon)
{
    struct entries *entries = &play.engine->spreads.entries;
    entries->limit = 4;
    play_node_down(4);
    static const int64_t ttls_ms[] = {30000, 20000, 30000, 25000};
    for (int i = 0; i < 4; i++)
        extend_one_for(i, ttls_ms[i]);
    ck_assert_str_eq(those_that_wait(), " 0 1 2 3");
    ck_assert_uint_eq(play.metrics.locks_thin, 0);
    extend_one_for(4, 30000);
    ck_assert_str_eq(those_that_wait(), " 0 2 3 4");
    ck_assert_uint_eq(play.metrics.locks_thin, 1);
    extend_one_for(5, 30000);
    ck_assert_str_eq(those_that_wait(), " 0 2 4 5");
    ck_assert_uint_eq(play.metrics.locks_thin, 2);
    extend_one_for(5, 30000); /* it has its place */
    ck_assert_uint_eq(play.metrics.locks_thin, 2);
    ck_assert_uint_eq(entries->used, 4);
}

/* Nobody gives way while all are searched for. */
TEST(one_for_which_there_is_no_room_is_counted)
{
    play.engine->spreads.entries.limit = 2;
    for (int i = 0; i < 3; i++)
        extend_one(i);
    ck_assert_uint_eq(play.engine->spreads.entries.used, 2);
    ck_assert_uint_eq(play.metrics.locks_thin, 1);
}
