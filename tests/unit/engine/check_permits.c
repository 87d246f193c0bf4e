/*
 * Permits: how a free slot is found.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "pooling.h"
#include "waiting.h"

SUITE(permits, .set_up = play_begin, .tear_down = play_end);

#define KEY "0123456789012345678901"

/* ---- what follows what ----------------------------------------------------
 */

enum repeating { NO_KEY, HAS_KEY, ONLY_REPEATS };

static engine_op ask_for(int limit, int permits, enum repeating repeating)
{
    return waiting_acquire((struct engine_acquire){
        .resource = span_of("pool"),
        .key_hash = span_of(repeating == NO_KEY ? "" : KEY),
        .limit = limit,
        .permits = permits,
        .only_repeats = repeating == ONLY_REPEATS});
}

/*
 * So many slots are taken from here when it asks for permits. Then, word by
 * word: digits, it asks the nodes, and three of them tell this; ">1", it tries
 * this slot; "held", others have it; "granted"; and what comes of it.
 */
static const struct {
    int taken, limit, permits;
    enum repeating repeating;
    const char *story;
    enum outcome outcome;
} stories[] = {
    /* each gets another slot at the first try, as the others are known */
    {0, 1, 1, NO_KEY, ">0 granted", OUTCOME_GRANTED},
    /* a query is only a hint: the first that is there gets it */
    {0, 3, 1, NO_KEY, ">* held 110 >2 held 111", OUTCOME_HELD},
    /* its holder died, or released it through another server */
    {2, 2, 1, NO_KEY, "10 >1 granted", OUTCOME_GRANTED},
    /* all or none */
    {1, 3, 3, NO_KEY, "100", OUTCOME_HELD},
    /* others had a node, and one was slow: its own slot seemed lost */
    {0, 4, 1, HAS_KEY, "0021 >2 held 0021 >2", OUTCOME_PENDING},
    {0, 4, 1, ONLY_REPEATS, "0001", OUTCOME_HELD},
    {0, 4, 1, ONLY_REPEATS, "0021 >2 held", OUTCOME_HELD},
};

static void play_word(struct span word, int *tries, int *queries)
{
    if (span_is(word, "held")) {
        pooling_hold();
    } else if (span_is(word, "granted")) {
        pooling_grant();
    } else if (word.ptr[0] == '>') {
        ++*tries;
        if (word.ptr[1] != '*')
            ck_assert_str_eq(pooling_tried(),
                             textf("pool" NAMES_SLOT "%c", word.ptr[1]));
    } else {
        ++*queries;
        ck_assert_int_eq(pooling_queries(), *queries);
        pooling_tell(3, textf("%.*s", (int)word.len, word.ptr));
    }
}

TEST_EACH(tries_follow_queries_until_there_is_no_free_slot, stories)
{
    int tries = stories[_i].taken, queries = 0;
    struct span rest = span_of(stories[_i].story);
    for (int i = 0; i < stories[_i].taken; i++)
        (void)pooling_win(stories[_i].limit);
    engine_op op =
        ask_for(stories[_i].limit, stories[_i].permits, stories[_i].repeating);
    while (rest.len > 0) {
        ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
        play_word(span_take(&rest, ' '), &tries, &queries);
    }
    ck_assert_int_eq(pooling_tries(), tries);
    ck_assert_int_eq(pooling_queries(), queries);
    ck_assert_int_eq(play_outcome(op), stories[_i].outcome);
}

/* ---- without waiting ---------------------------------------------------- */

TEST(a_permit_is_a_lock_on_a_slot)
{
    engine_op op = pooling_ask(10, 1, 0);
    ck_assert_int_eq(pooling_tries(), 1);
    ck_assert_int_eq(pooling_queries(), 0);
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
    ck_assert_int_eq(pooling_queries(), 0);
}

/* Two clients that ask at once must not meet. */
TEST(those_under_way_try_different_slots)
{
    (void)pooling_ask(2, 1, 0);
    const char *first = textf("%s", pooling_tried());
    (void)pooling_ask(2, 1, 0);
    ck_assert_str_ne(first, pooling_tried());
}

TEST(a_full_pool_is_refused_after_a_query)
{
    (void)pooling_win(2);
    (void)pooling_win(2);
    engine_op op = pooling_ask(2, 1, 0);
    ck_assert_int_eq(pooling_tries(), 2);
    ck_assert_int_eq(pooling_queries(), 1);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    pooling_tell(3, "11");
    ck_assert_int_eq(play_outcome(op), OUTCOME_HELD);
    ck_assert(span_is(play_result(op)->resource, "pool"));
    ck_assert_int_eq(play_result(op)->remaining_ms, 5000);
    engine_close(play.engine, op);
    ck_assert_uint_eq(play.metrics.permit_refusals, 1);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_ACQUIRE][OUTCOME_HELD], 1);
}

/* Of those after a query it says nothing. */
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
    ck_assert_int_eq(pooling_queries(), 1);
}

/* Without answers, or without nodes. */
TEST_RANGE(without_answers_there_is_no_quorum, 0, 2)
{
    (void)pooling_win(1);
    if (_i == 1)
        play_nodes_down(3);
    engine_op op = pooling_ask(1, 1, 0);
    if (_i == 0) {
        pooling_tell(2, "0");
        play_advance(play_settings.node_timeout_us + 1000);
        ck_assert_int_eq(play_result(op)->votes[4].vote, VOTE_UNANSWERED);
    }
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    ck_assert(span_is(play_result(op)->resource, "pool"));
    engine_close(play.engine, op);
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

/* ---- whose query is next ------------------------------------------------ */

/* With a key, so that a query is needed. */
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

/* The pool that the newest query asks about. */
static const struct play_call *newest_query(void)
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

/* All nodes answer the oldest query that is open: no slot is free. */
static void tell_of_large(void)
{
    pooling_tell(PLAY_NODES, repeated('1', POOL_SLOTS_MAX));
}

/* Of each server, whoever causes them: they take the nodes' time. */
TEST(queries_of_many_large_pools_take_turns)
{
    enum { POOLS = 6 };
    engine_op ops[POOLS];
    ask_for_many(0, POOLS, ops);
    for (int i = 1; i <= 3; i++) { /* one after the other */
        ck_assert_int_eq(pooling_queries(), i);
        tell_of_large();
        play_advance(1);
    }
    ck_assert_int_eq(pooling_queries(), 3);
    play_advance(11000);
    ck_assert_int_eq(pooling_queries(), 4);
    play_advance(11000); /* the nodes are slow */
    ck_assert_int_eq(pooling_queries(), 4);
    tell_of_large();
    play_advance(1);
    ck_assert_int_eq(pooling_queries(), 5);
    tell_of_large();
    play_advance(11000);
    tell_of_large();
    ck_assert_int_eq(play.answers, POOLS);
    play_advance(1000000); /* nothing is left to do */
    ck_assert_int_eq(pooling_queries(), POOLS);
}

/* The query of a pool that nobody uses any more ends, too. */
TEST(a_query_without_answers_holds_up_no_other_for_long)
{
    engine_op ops[2];
    ask_for_many(1, 2, ops);
    (void)engine_abandon(play.engine, ops[0]);
    ck_assert_int_eq(pooling_queries(), 1);
    play_advance(play_settings.node_timeout_us + 1000);
    ck_assert_int_eq(pooling_queries(), 2);
    ck_assert_int_eq(play_outcome(ops[1]), OUTCOME_PENDING);
}

TEST(an_identity_that_asks_for_much_holds_up_no_other)
{
    engine_op ops[10];
    ask_for_many(1, 10, ops);
    ck_assert_int_eq(pooling_queries(), 1);
    (void)ask_as(2, "small", 3);
    ck_assert_int_eq(pooling_queries(), 2);
    (void)ask_as(3, "large", POOL_SLOTS_MAX);
    ck_assert_int_eq(pooling_queries(), 3);
    ck_assert_str_eq(newest_query()->resource, "large" NAMES_SLOT);
}

/* Each has half as many as if it were alone. */
TEST(identities_share_the_nodes_time)
{
    engine_op ops[20];
    int queries[2] = {0, 0};
    ask_for_many(1, 10, ops);
    ask_for_many(2, 10, ops + 10);
    for (int ms = 0; ms < 100; ms++) {
        while (play_find(CALL_SLOTS, 0) != NULL) {
            queries[play_find(CALL_SLOTS, 0)->resource[6] - '1']++;
            tell_of_large();
        }
        play.sent_count = 0;
        play_advance(1000);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_ge(queries[i], 6);
        ck_assert_int_le(queries[i], 8);
    }
}

/* It pays for the query, which asks for its key. */
TEST(an_identity_that_asks_for_much_holds_up_no_other_in_its_pool)
{
    engine_op ops[10];
    ask_for_many(1, 10, ops);
    (void)ask_as(1, "large:1:9", POOL_SLOTS_MAX);
    ck_assert_int_eq(pooling_queries(), 1);
    (void)ask_as(2, "large:1:9", POOL_SLOTS_MAX);
    ck_assert_int_eq(pooling_queries(), 2);
    ck_assert_str_eq(newest_query()->resource, "large:1:9" NAMES_SLOT);
    ck_assert_int_eq(newest_query()->call.key_hash.ptr[1], '2');
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
    ck_assert_int_eq(pooling_queries(), 2);
    ck_assert_str_eq(newest_query()->resource, "large:1:3" NAMES_SLOT);
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

/* ---- a repeat ----------------------------------------------------------- */

/* Also one that gets no other. */
TEST_RANGE(a_repeat_gets_the_slot_that_it_has, HAS_KEY, ONLY_REPEATS + 1)
{
    engine_op op = ask_for(4, 1, (enum repeating)_i);
    ck_assert_int_eq(pooling_tries(), 0);
    ck_assert(span_is(play_find(CALL_SLOTS, 0)->call.key_hash, KEY));
    pooling_tell(3, "0021");
    ck_assert_str_eq(pooling_tried(), SLOT(2));
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, PLAY_TOKEN "+" KEY);
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert(play_result(op)->is_repeat);
    ck_assert(span_is(play_result(op)->resource, SLOT(2)));
}

/* What few nodes have, after a loss, is left from a lost try. */
TEST(a_repeat_tries_a_leftover_once)
{
    engine_op op = ask_for(4, 1, HAS_KEY);
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
    engine_op op = ask_for(100, 1, HAS_KEY);
    pooling_tell(3, repeated('0', 100));
    const char *first = textf("%s", pooling_tried());
    ck_assert_int_eq(pooling_tries(), 1);
    ck_assert(!engine_abandon(play.engine, op));
    (void)ask_for(100, 1, HAS_KEY);
    pooling_tell(3, repeated('0', 100));
    ck_assert_int_eq(pooling_tries(), 2);
    ck_assert_str_eq(pooling_tried(), first);
}

TEST(what_it_would_repeat_has_just_expired)
{
    engine_op op = ask_for(4, 1, ONLY_REPEATS);
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
    engine_op op = ask_for(4, 1, ONLY_REPEATS);
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

/* While it is tried, or when it is granted. */
TEST_RANGE(a_client_that_left_gives_its_slot_back, 0, 2)
{
    engine_op op = pooling_ask(1, 1, 0);
    if (_i == 1)
        pooling_grant();
    ck_assert(engine_abandon(play.engine, op) == (_i == 1));
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    if (_i == 0)
        pooling_grant();
    ck_assert_str_eq(pooling_win(1), SLOT(0));
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
TEST(story_63_a_query_outlives_the_last_that_asked)
{
    for (int i = 0; i < 3; i++) {
        engine_op op = ask_for(3, 1, HAS_KEY);
        ck_assert(!engine_abandon(play.engine, op));
        pooling_tell(3, "110");
        /* it is told to the next, too */
        ck_assert_int_eq(pooling_queries(), i + 1);
    }
    ck_assert_str_eq(pooling_win(3), SLOT(2));
}

/* Both lists use the same link. A pool that is in the idle list twice stays
 * there when a client waits for it: the next idle pool joins the wrong list. */
TEST(story_63_a_pool_that_is_used_again_is_not_idle)
{
    ck_assert(!engine_abandon(play.engine, ask_for(3, 1, HAS_KEY)));
    pooling_tell(3, "110");
    engine_op op = pooling_ask(3, 1, POOLING_WAIT_MS);
    engine_op other = waiting_acquire((struct engine_acquire){
        .resource = span_of("other"), .limit = 1, .permits = 1});
    ck_assert(!engine_abandon(play.engine, other));
    play_advance(100000); /* looks at all pools that are waited for */
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 1);
}
