/*
 * Permits: how a free slot is found.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "pooling.h"
#include "waiting.h"

SUITE(permits, .set_up = play_begin, .tear_down = play_end);

/* ---- without waiting ---------------------------------------------------- */

TEST(a_permit_is_a_lock_on_a_slot)
{
    engine_op op = pooling_ask(10, 1, 0);
    ck_assert_int_eq(pooling_tries(), 1);
    ck_assert_int_eq(pooling_surveys(), 0);
    ck_assert(strncmp(pooling_tried(), SLOT(), 5) == 0);
    pooling_grant();
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, OUTCOME_GRANTED);
    ck_assert(span_is(result->resource, pooling_tried()));
    ck_assert(span_is(result->owner, "web-3"));
    ck_assert_int_gt(result->validity_ms, 29000);
    engine_close(play.engine, op);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_GRANTED], 1);
    ck_assert_uint_eq(play.metrics.permit_grants, 1);
}

/* What was granted here is known to be taken: no try is lost. */
TEST(each_gets_another_slot_at_the_first_try)
{
    bool is_taken[10] = {false};
    for (int i = 0; i < 10; i++) {
        const char *name = pooling_win(10);
        int slot = name[5] - '0';
        ck_assert(slot >= 0 && slot < 10 && !is_taken[slot]);
        is_taken[slot] = true;
    }
    ck_assert_int_eq(pooling_tries(), 10);
    ck_assert_int_eq(pooling_surveys(), 0);
}

/* Two clients that ask at once must not meet. */
TEST(those_under_way_try_different_slots)
{
    (void)pooling_ask(2, 1, 0);
    const char *first = textf("%s", pooling_tried());
    (void)pooling_ask(2, 1, 0);
    ck_assert_str_ne(first, pooling_tried());
}

TEST(a_full_pool_is_refused_after_a_survey)
{
    (void)pooling_win(2);
    (void)pooling_win(2);
    engine_op op = pooling_ask(2, 1, 0);
    ck_assert_int_eq(pooling_tries(), 2);
    ck_assert_int_eq(pooling_surveys(), 1);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    pooling_tell(3, "11");
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert(span_is(play_result(op)->resource, "pool"));
    ck_assert_int_eq(play_result(op)->remaining_ms, 5000);
    engine_close(play.engine, op);
    ck_assert_uint_eq(play.metrics.permit_refusals, 1);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_HELD], 1);
}

/* Its holder died, or released it through another server. */
TEST(a_slot_that_a_survey_finds_free_is_tried)
{
    (void)pooling_win(2);
    (void)pooling_win(2);
    engine_op op = pooling_ask(2, 1, 0);
    pooling_tell(3, "10");
    ck_assert_int_eq(pooling_tries(), 3);
    ck_assert_str_eq(pooling_tried(), SLOT(1));
    pooling_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

/* A survey is only a hint: whoever is there first, gets it. */
TEST(a_lost_try_is_followed_by_a_survey)
{
    engine_op op = pooling_ask(3, 1, 0);
    pooling_hold();
    ck_assert_int_eq(pooling_surveys(), 1);
    pooling_tell(3, "110");
    ck_assert_str_eq(pooling_tried(), SLOT(2));
    pooling_hold();
    ck_assert_int_eq(pooling_surveys(), 2);
    pooling_tell(3, "111");
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
}

/* Of those after a survey it says nothing. */
TEST(who_loses_most_first_tries_asks_first)
{
    int lost = 0;
    (void)pooling_ask(1, 1, 0);
    while (pooling_tries() == 1) {
        ck_assert_int_lt(lost++, 20);
        pooling_hold();
        pooling_tell(5, "0");
        pooling_grant();
        pooling_release(SLOT(0), 7);
        play_answer_range(CALL_RELEASE, 0, PLAY_NODES, VOTE_DELETED);
        play.sent_count = 0;
        (void)pooling_ask(1, 1, 0);
    }
    ck_assert_int_gt(lost, 1);
    ck_assert_int_eq(pooling_surveys(), 1);
}

/* Three of five answers that disagree are not enough. */
TEST(a_slot_that_is_free_on_a_majority_only_with_the_slow_nodes_is_found)
{
    engine_op op = pooling_ask(1, 1, 0);
    pooling_hold();
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
        ck_assert_int_eq(pooling_tries(), 1);
        pooling_tell_from(i, i == 1 || i == 2 ? "1" : "0");
    }
    ck_assert_int_eq(pooling_tries(), 2);
}

TEST(nobody_waits_for_a_silent_minority)
{
    (void)pooling_win(1);
    engine_op op = pooling_ask(1, 1, 0);
    pooling_tell(2, "1");
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    pooling_tell_from(4, "1");
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
}

TEST(without_answers_there_is_no_quorum)
{
    (void)pooling_win(1);
    engine_op op = pooling_ask(1, 1, 0);
    pooling_tell(2, "0");
    play_advance(play_settings.node_timeout_us + 1000);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(play_result(op)->votes[4].vote, VOTE_UNANSWERED);
    engine_close(play.engine, op);
}

TEST(without_nodes_there_is_no_quorum)
{
    (void)pooling_win(1);
    play_nodes_down(3);
    engine_op op = pooling_ask(1, 1, 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    engine_op other = pooling_ask(2, 1, 0);
    ck_assert_int_eq(play_outcome(other), OUTCOME_NO_QUORUM);
    ck_assert(span_is(play_result(other)->resource, "pool"));
}

TEST(a_key_that_an_acl_denies_is_told)
{
    engine_op op = pooling_ask(1, 1, 0);
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_KEY_REFUSED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_KEY_REFUSED);
    engine_op other = pooling_ask(1, 1, POOLING_WAIT_MS);
    play_answer_range(CALL_ACQUIRE, 0, 5, VOTE_KEY_REFUSED);
    ck_assert_int_eq(play_outcome(other), OUTCOME_KEY_REFUSED);
}

/* ---- whose survey is next ------------------------------------------------ */

/* With a key, so that a survey is needed. */
static engine_op ask_as(int asker, const char *pool, int limit)
{
    static int keys;
    char key_hash[KEY_HASH_LEN + 1];
    snprintf(key_hash, sizeof key_hash, "%02d%020d", asker, ++keys);
    return waiting_acquire(
        (struct engine_acquire){.resource = span_of(pool),
                                .key_hash = span_of(key_hash),
                                .limit = limit,
                                .permits = 1,
                                .asker = asker});
}

/* Each for a large pool of its own. */
static void ask_for_many(int asker, int count, engine_op ops[])
{
    for (int i = 0; i < count; i++) {
        ops[i] = ask_as(asker, textf("large:%d:%d", asker, i), POOL_SLOTS_MAX);
    }
}

/* The pool that the newest survey asks about. */
static const struct play_call *newest_survey(void)
{
    const struct play_call *it = &play.sent[play.sent_count - 1];
    ck_assert_int_eq(it->call.kind, CALL_SLOTS);
    return it;
}

/* So many of the letter. */
static const char *repeated(char letter, int count)
{
    static char letters[POOL_SLOTS_MAX + 1];
    memset(letters, letter, (size_t)count);
    letters[count] = '\0';
    return letters;
}

/* All nodes answer the oldest survey that is open: no slot is free. */
static void tell_of_large(void)
{
    pooling_tell(PLAY_NODES, repeated('1', POOL_SLOTS_MAX));
}

/* Of each server, whoever causes them: they take the nodes' time. */
TEST(surveys_of_many_large_pools_take_turns)
{
    enum { POOLS = 6 };
    engine_op ops[POOLS];
    ask_for_many(0, POOLS, ops);
    for (int i = 1; i <= 3; i++) { /* one after the other */
        ck_assert_int_eq(pooling_surveys(), i);
        tell_of_large();
        play_advance(1);
    }
    ck_assert_int_eq(pooling_surveys(), 3);
    play_advance(11000);
    ck_assert_int_eq(pooling_surveys(), 4);
    play_advance(11000); /* the nodes are slow */
    ck_assert_int_eq(pooling_surveys(), 4);
    tell_of_large();
    play_advance(1);
    ck_assert_int_eq(pooling_surveys(), 5);
    tell_of_large();
    play_advance(11000);
    tell_of_large();
    ck_assert_int_eq(play.answers, POOLS);
    play_advance(1000000); /* nothing is left to do */
    ck_assert_int_eq(pooling_surveys(), POOLS);
}

/* The survey of a pool that nobody uses any more ends, too. */
TEST(a_survey_without_answers_holds_up_no_other_for_long)
{
    engine_op ops[2];
    ask_for_many(1, 2, ops);
    (void)engine_abandon(play.engine, ops[0]);
    ck_assert_int_eq(pooling_surveys(), 1);
    play_advance(play_settings.node_timeout_us + 1000);
    ck_assert_int_eq(pooling_surveys(), 2);
    ck_assert_int_eq(play_outcome(ops[1]), OUTCOME_PENDING);
}

TEST(an_identity_that_asks_for_much_holds_up_no_other)
{
    engine_op ops[10];
    ask_for_many(1, 10, ops);
    ck_assert_int_eq(pooling_surveys(), 1);
    (void)ask_as(2, "small", 3);
    ck_assert_int_eq(pooling_surveys(), 2);
    (void)ask_as(3, "large", POOL_SLOTS_MAX);
    ck_assert_int_eq(pooling_surveys(), 3);
    ck_assert_str_eq(newest_survey()->resource, "large" NAMES_SLOT);
}

/* Each has half as many as if it were alone. */
TEST(identities_share_the_nodes_time)
{
    engine_op ops[20];
    int surveys[2] = {0, 0};
    ask_for_many(1, 10, ops);
    ask_for_many(2, 10, ops + 10);
    for (int ms = 0; ms < 100; ms++) {
        while (play_find(CALL_SLOTS, 0) != NULL) {
            surveys[play_find(CALL_SLOTS, 0)->resource[6] - '1']++;
            tell_of_large();
        }
        play.sent_count = 0;
        play_advance(1000);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_ge(surveys[i], 6);
        ck_assert_int_le(surveys[i], 8);
    }
}

/* It pays for the survey, which asks for its key. */
TEST(an_identity_that_asks_for_much_holds_up_no_other_in_its_pool)
{
    engine_op ops[10];
    ask_for_many(1, 10, ops);
    (void)ask_as(1, "large:1:9", POOL_SLOTS_MAX);
    ck_assert_int_eq(pooling_surveys(), 1);
    (void)ask_as(2, "large:1:9", POOL_SLOTS_MAX);
    ck_assert_int_eq(pooling_surveys(), 2);
    ck_assert_str_eq(newest_survey()->resource, "large:1:9" NAMES_SLOT);
    ck_assert_int_eq(newest_survey()->call.key_hash.ptr[1], '2');
}

/* In the order in which they came; those that left cost nobody a turn. */
TEST(a_pool_whose_clients_left_loses_its_turn)
{
    engine_op ops[4];
    ask_for_many(1, 4, ops);
    for (int i = 1; i < 3; i++)
        (void)engine_abandon(play.engine, ops[i]);
    tell_of_large();
    play_advance(1);
    ck_assert_int_eq(pooling_surveys(), 2);
    ck_assert_str_eq(newest_survey()->resource, "large:1:3" NAMES_SLOT);
}

/* ---- several permits ---------------------------------------------------- */

TEST(several_permits_are_one_lock_of_several_slots)
{
    engine_op op = pooling_ask(12, 12, 0);
    ck_assert_str_eq(
        pooling_tried(),
        SLOT(0) "\n" SLOT(1) "\n" SLOT(10) "\n" SLOT(11) "\n" SLOT(2) "\n" SLOT(3) "\n" SLOT(
            4) "\n" SLOT(5) "\n" SLOT(6) "\n" SLOT(7) "\n" SLOT(8) "\n" SLOT(9));
    pooling_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
}

TEST(all_permits_are_granted_or_none)
{
    (void)pooling_win(3);
    engine_op op = pooling_ask(3, 3, 0);
    ck_assert_int_eq(pooling_tries(), 1);
    pooling_tell(3, "100");
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
}

/* ---- a repeat ----------------------------------------------------------- */

#define KEY "0123456789012345678901"

TEST(a_repeat_gets_the_slot_that_it_has)
{
    engine_op op = pooling_ask_with_key(4, 1, KEY);
    ck_assert_int_eq(pooling_tries(), 0);
    ck_assert(span_is(play_find(CALL_SLOTS, 0)->call.key_hash, KEY));
    pooling_tell(3, "0021");
    ck_assert_str_eq(pooling_tried(), SLOT(2));
    static const char value[] = PLAY_TOKEN "+" KEY;
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, value);
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert(play_result(op)->is_repeat);
    ck_assert(span_is(play_result(op)->resource, SLOT(2)));
}

/* A second slot would be lost until its TTL ends. */
TEST(a_repeat_gets_the_slot_that_most_nodes_know)
{
    engine_op op = pooling_ask_with_key(4, 1, KEY);
    pooling_tell(2, "0020");
    for (int i = 2; i < PLAY_NODES; i++) { /* one was away */
        ck_assert_int_eq(pooling_tries(), 0);
        pooling_tell_from(i, i == 2 ? "2000" : i == 3 ? "0000" : "0020");
    }
    ck_assert_str_eq(pooling_tried(), SLOT(2));
    ck_assert(!engine_abandon(play.engine, op));
}

/* Another one had a node, and one was slow: its own slot seemed lost. */
TEST(a_repeat_that_loses_its_slot_looks_again)
{
    engine_op op = pooling_ask_with_key(4, 1, KEY);
    pooling_tell(3, "0021");
    pooling_hold();
    ck_assert_int_eq(pooling_tries(), 1);
    ck_assert_int_eq(pooling_surveys(), 2);
    ck_assert(span_is(play_find(CALL_SLOTS, 0)->call.key_hash, KEY));
    pooling_tell(3, "0021");
    ck_assert_int_eq(pooling_tries(), 2);
    ck_assert_str_eq(pooling_tried(), SLOT(2));
    ck_assert(!engine_abandon(play.engine, op));
}

/* What few nodes have, after a loss, is left from a lost try. */
TEST(a_repeat_tries_a_leftover_once)
{
    engine_op op = pooling_ask_with_key(4, 1, KEY);
    pooling_tell(PLAY_NODES, "1121");
    pooling_hold();
    pooling_tell(2, "1120");
    for (int i = 2; i < PLAY_NODES; i++) {
        ck_assert_int_eq(pooling_tries(), 1);
        pooling_tell_from(i, "1110");
    }
    ck_assert_int_eq(pooling_tries(), 2);
    ck_assert_str_eq(pooling_tried(), SLOT(3));
    ck_assert(!engine_abandon(play.engine, op));
}

/* So that two at the same moment meet, and one of them repeats. */
TEST(the_same_key_tries_the_same_slot)
{
    engine_op op = pooling_ask_with_key(100, 1, KEY);
    pooling_tell(3, repeated('0', 100));
    const char *first = textf("%s", pooling_tried());
    ck_assert_int_eq(pooling_tries(), 1);
    ck_assert(!engine_abandon(play.engine, op));
    (void)pooling_ask_with_key(100, 1, KEY);
    pooling_tell(3, repeated('0', 100));
    ck_assert_int_eq(pooling_tries(), 2);
    ck_assert_str_eq(pooling_tried(), first);
}

static engine_op only_repeat(void)
{
    return waiting_acquire((struct engine_acquire){.resource = span_of("pool"),
                                                   .key_hash = span_of(KEY),
                                                   .limit = 4,
                                                   .permits = 1,
                                                   .only_repeats = true});
}

TEST(one_that_may_only_repeat_gets_the_slot_that_it_has)
{
    engine_op op = only_repeat();
    pooling_tell(3, "0021");
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, PLAY_TOKEN "+" KEY);
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert(span_is(play_result(op)->resource, SLOT(2)));
}

TEST(one_that_may_only_repeat_takes_no_other_slot)
{
    engine_op op = only_repeat();
    pooling_tell(3, "0001");
    ck_assert_int_eq(pooling_tries(), 0);
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    op = only_repeat();
    pooling_tell(3, "0021");
    pooling_hold(); /* by another one, meanwhile */
    ck_assert_int_eq(pooling_tries(), 1);
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
}

TEST(what_it_would_repeat_has_just_expired)
{
    engine_op op = only_repeat();
    pooling_tell(3, "0021");
    pooling_grant();
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert_int_gt(play_count(CALL_RELEASE), 0);
    ck_assert(span_is(play_result(op)->resource, "pool"));
    engine_close(play.engine, op);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_GRANTED], 0);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_HELD], 1);
    ck_assert_uint_eq(play.metrics.permit_refusals, 1);
    (void)pooling_win(4);
}

/* What two nodes have is no permit that counts. */
TEST(one_that_may_only_repeat_gets_nothing_that_few_nodes_have)
{
    engine_op op = only_repeat();
    pooling_tell(2, "0021");
    for (int i = 2; i < PLAY_NODES; i++) {
        ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
        pooling_tell_from(i, "0001");
    }
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert_int_eq(pooling_tries(), 0);
}

/* ---- without memory ------------------------------------------------------ */

/* It is refused at once, or answered; nothing is left behind. */
TEST(without_memory_nothing_is_begun)
{
    for (int64_t wait_ms = 0; wait_ms <= 1000; wait_ms += 1000)
        for (int n = 1;; n++) {
            play_begin_again(&play_settings);
            play_nodes_up();
            const struct engine_acquire acquire = {.resource = span_of("pool"),
                                                   .ttl_ms = 30000,
                                                   .wait_ms = wait_ms,
                                                   .limit = 3,
                                                   .permits = 2};
            starve = (struct starve){.is_on = true, .left = n};
            engine_op op = engine_acquire(play.engine, &acquire, NULL);
            starve.is_on = false;
            if (starve.left > 0)
                break;
            ck_assert_uint_eq(metrics_waiters(&play.metrics),
                              op != 0 && wait_ms > 0);
            if (op == 0)
                continue;
            if (wait_ms > 0) {
                play_await_round(PLAY_NODES);
                pooling_grant();
                ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
            } else {
                ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
            }
            engine_close(play.engine, op);
        }
}

/* ---- the end ------------------------------------------------------------ */

TEST(a_client_that_left_gives_its_slot_back)
{
    engine_op op = pooling_ask(1, 1, 0);
    ck_assert(!engine_abandon(play.engine, op));
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    pooling_grant();
    const char *name = pooling_win(1);
    ck_assert_str_eq(name, SLOT(0));
}

TEST(a_grant_without_a_client_is_released)
{
    engine_op op = pooling_ask(1, 1, 0);
    pooling_grant();
    ck_assert(engine_abandon(play.engine, op));
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
}

TEST(a_grant_that_is_taken_too_late_is_none)
{
    engine_op op = pooling_ask(1, 1, 0);
    pooling_grant();
    play_advance(31000000);
    ck_assert_int_eq(play_outcome(op), OUTCOME_VALIDITY_EXHAUSTED);
    ck_assert(span_is(play_result(op)->resource, "pool"));
    engine_close(play.engine, op);
}

/* Nobody is left in its pool when the nodes answer: it is idle, and once. */
TEST(story_63_a_survey_outlives_the_last_that_asked)
{
    for (int i = 0; i < 3; i++) {
        engine_op op = pooling_ask_with_key(3, 1, KEY);
        ck_assert(!engine_abandon(play.engine, op));
        pooling_tell(3, "110");
        /* it is told to the next, too */
        ck_assert_int_eq(pooling_surveys(), i + 1);
    }
    ck_assert_str_eq(pooling_win(3), SLOT(2));
}

/* Both lists use the same link. A pool that is in the idle list twice stays
 * there when a client waits for it: the next idle pool joins the wrong list. */
TEST(story_63_a_pool_that_is_used_again_is_not_idle)
{
    ck_assert(!engine_abandon(play.engine, pooling_ask_with_key(3, 1, KEY)));
    pooling_tell(3, "110");
    engine_op op = pooling_ask(3, 1, POOLING_WAIT_MS);
    engine_op other = waiting_acquire((struct engine_acquire){
        .resource = span_of("other"), .limit = 1, .permits = 1});
    ck_assert(!engine_abandon(play.engine, other));
    play_advance(100000); /* looks at all pools that are waited for */
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 1);
}
