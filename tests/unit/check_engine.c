/*
 * The engine behind a port whose nodes are played by the test: each call is
 * recorded, each reply is given by hand.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "../../server/engine.h"
#include "../../server/log.h"
#include "../../server/token.h"

enum { CALLS_MAX = 256, NODES = 5, TIMERS = 64 };

#define RUN_ID "0123456789012345678901234567890123456789"
#define RESOURCE span_of("order:42")

static const int64_t node_epoch_us = 1795221641000000;

struct sent {
    int node;
    uint64_t tag;
    struct script_call call;
    char token[TOKEN_MAX + 1];
    bool is_answered;
};

static struct {
    struct engine *engine;
    struct metrics metrics;
    struct sent sent[CALLS_MAX];
    int sent_count;
    int64_t now_us;
    int64_t timer_us[TIMERS];
    bool is_refusing[NODES]; /* send answers VOTE_STALLED */
    unsigned char random_byte;
    int answers;
} world;

/* ---- the port ----------------------------------------------------------- */

static enum vote world_send(void *ctx, int node, const struct script_call *call,
                            uint64_t tag)
{
    (void)ctx;
    if (world.is_refusing[node])
        return VOTE_STALLED;
    ck_assert_int_lt(world.sent_count, CALLS_MAX);
    struct sent *sent = &world.sent[world.sent_count++];
    *sent = (struct sent){.node = node, .tag = tag, .call = *call};
    (void)span_copy(sent->token, call->token);
    return VOTE_PENDING;
}

static int64_t world_now(void *ctx)
{
    (void)ctx;
    return world.now_us;
}

static void world_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, world.random_byte++, len);
}

static bool world_timer(void *ctx, uint32_t slot, int64_t at_us)
{
    (void)ctx;
    ck_assert_uint_lt(slot, TIMERS);
    world.timer_us[slot] = at_us;
    return true;
}

static void world_answer(void *ctx, void *client)
{
    (void)ctx;
    (void)client;
    world.answers++;
}

/* ---- the play ----------------------------------------------------------- */

static void advance(int64_t us)
{
    int64_t until_us = world.now_us + us;
    for (;;) {
        int next = -1;
        for (int i = 0; i < TIMERS; i++)
            if (world.timer_us[i] != 0 && world.timer_us[i] <= until_us &&
                (next < 0 || world.timer_us[i] < world.timer_us[next]))
                next = i;
        if (next < 0)
            break;
        if (world.timer_us[next] > world.now_us)
            world.now_us = world.timer_us[next];
        world.timer_us[next] = 0;
        engine_on_timer(world.engine, (uint32_t)next);
    }
    world.now_us = until_us;
}

static void reply_to(struct sent *sent, struct script_reply reply)
{
    ck_assert(!sent->is_answered);
    sent->is_answered = true;
    if (reply.vote != VOTE_UNREACHABLE)
        reply.node_now_us = node_epoch_us + world.now_us;
    engine_on_reply(world.engine, sent->node, sent->tag, &reply, world.now_us,
                    world.now_us);
}

/* The oldest call of this kind to this node that has no reply yet. */
static struct sent *find_call(enum script_kind kind, int node)
{
    for (int i = 0; i < world.sent_count; i++) {
        struct sent *sent = &world.sent[i];
        if (sent->call.kind == kind && sent->node == node &&
            !sent->is_answered)
            return sent;
    }
    return NULL;
}

static void answer(enum script_kind kind, int node, enum vote vote)
{
    struct sent *sent = find_call(kind, node);
    ck_assert_msg(sent != NULL, "no %d for node %d", kind, node);
    reply_to(sent, (struct script_reply){.vote = vote});
}

static void answer_held(enum script_kind kind, int node, const char *value)
{
    struct sent *sent = find_call(kind, node);
    ck_assert(sent != NULL);
    reply_to(sent, (struct script_reply){.vote = VOTE_HELD,
                                         .pttl_ms = 5000,
                                         .value = span_of(value)});
}

static int count_calls(enum script_kind kind)
{
    int count = 0;
    for (int i = 0; i < world.sent_count; i++)
        count += world.sent[i].call.kind == kind;
    return count;
}

/* Lets the random delay before the next round pass. */
static void await_round(int calls)
{
    for (int ms = 0; ms <= 200 && count_calls(SCRIPT_ACQUIRE) < calls; ms++)
        advance(1000);
    ck_assert_int_eq(count_calls(SCRIPT_ACQUIRE), calls);
}

static void node_up(int node)
{
    engine_on_node_up(world.engine, node,
                      &(struct engine_node_facts){
                          .run_id = RUN_ID,
                          .node_now_us = node_epoch_us + world.now_us,
                          .sent_us = world.now_us,
                          .received_us = world.now_us,
                      });
    answer(SCRIPT_ADMIT, node, VOTE_DONE);
}

static void node_down(int node)
{
    for (int i = 0; i < world.sent_count; i++)
        if (world.sent[i].node == node && !world.sent[i].is_answered)
            reply_to(&world.sent[i],
                     (struct script_reply){.vote = VOTE_UNREACHABLE});
    engine_on_node_down(world.engine, node, VOTE_UNREACHABLE, "reset");
}

static void setup(void)
{
    memset(&world, 0, sizeof world);
    world.now_us = 1000000;
    log_set_level(LOG_OFF);
    struct engine_settings settings = {
        .nodes = NODES,
        .node_names = {"a", "b", "c", "d", "e"},
        .node_timeout_us = 50000,
        .max_ttl_ms = 60000,
        .max_hold_ms = 100000,
        .retry_delay_us = 200000,
        .retry_count = 3,
        .drift_factor = 0.01,
        .fingerprint = "0011223344556677",
    };
    struct engine_port port = {
        .send = world_send,
        .now = world_now,
        .random = world_random,
        .timer = world_timer,
        .answer = world_answer,
    };
    world.engine = engine_new(&settings, &port, &world.metrics);
    for (int i = 0; i < NODES; i++)
        node_up(i);
    world.sent_count = 0;
}

static void teardown(void)
{
    engine_free(world.engine);
}

static engine_op acquire(void)
{
    return engine_acquire(world.engine, RESOURCE, span_of("web-3"), 30000,
                          NULL);
}

static enum outcome outcome_of(engine_op op)
{
    return engine_result(world.engine, op)->outcome;
}

/* ---- acquire ------------------------------------------------------------ */

START_TEST(granted_by_a_majority_at_once)
{
    engine_op op = acquire();
    ck_assert_int_eq(count_calls(SCRIPT_ACQUIRE), 5);
    answer(SCRIPT_ACQUIRE, 0, VOTE_GRANTED);
    answer(SCRIPT_ACQUIRE, 4, VOTE_GRANTED);
    ck_assert_int_eq(world.answers, 0);
    answer(SCRIPT_ACQUIRE, 2, VOTE_GRANTED);
    ck_assert_int_eq(world.answers, 1);

    const struct engine_result *result = engine_result(world.engine, op);
    ck_assert_int_eq(result->outcome, OUTCOME_GRANTED);
    ck_assert_int_eq(result->number, node_epoch_us + 1000000);
    ck_assert_uint_eq(result->owner.len, 5);
    ck_assert_int_eq(result->votes_for, 3);
    ck_assert_int_eq(engine_validity_ms(world.engine, op, world.now_us),
                     29693);
    engine_close(world.engine, op);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 0);
    ck_assert_int_eq(engine_in_flight(world.engine), 0);
}
END_TEST

START_TEST(stragglers_of_a_won_round_count_nowhere)
{
    engine_op op = acquire();
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    engine_close(world.engine, op);
    engine_op next = acquire();
    answer(SCRIPT_ACQUIRE, 3, VOTE_GRANTED); /* of the first round */
    answer(SCRIPT_ACQUIRE, 4, VOTE_GRANTED);
    ck_assert_int_eq(outcome_of(next), OUTCOME_PENDING);
    answer(SCRIPT_ACQUIRE, 0, VOTE_GRANTED);
    answer(SCRIPT_ACQUIRE, 1, VOTE_GRANTED);
    ck_assert_int_eq(outcome_of(next), OUTCOME_PENDING);
}
END_TEST

START_TEST(each_call_carries_admission_deadline_window_and_slot)
{
    (void)acquire();
    const struct script_call *call = &world.sent[0].call;
    ck_assert(strncmp(call->admit.ptr, "1:0011223344556677:" RUN_ID,
                      call->admit.len) == 0);
    ck_assert_int_eq(call->node_deadline_us, node_epoch_us + 1050000 + 250);
    ck_assert_int_eq(call->window_us, 15000000);
    ck_assert_int_ge(call->slot, 0);
    ck_assert_int_eq(call->ttl_ms, 30000);
}
END_TEST

START_TEST(fault_01_every_round_has_a_token_of_its_own)
{
    engine_op op = acquire();
    char first[TOKEN_MAX + 1];
    strcpy(first, find_call(SCRIPT_ACQUIRE, 0)->token);
    answer(SCRIPT_ACQUIRE, 0, VOTE_GRANTED);
    answer(SCRIPT_ACQUIRE, 1, VOTE_GRANTED);
    answer_held(SCRIPT_ACQUIRE, 2, "x");
    answer_held(SCRIPT_ACQUIRE, 3, "y");
    answer_held(SCRIPT_ACQUIRE, 4, "z");
    ck_assert_int_eq(outcome_of(op), OUTCOME_PENDING);
    ck_assert_str_eq(find_call(SCRIPT_RELEASE, 0)->token, first);
    await_round(10);
    struct sent *again = find_call(SCRIPT_ACQUIRE, 0);
    ck_assert(again != NULL);
    ck_assert_str_ne(again->token, first);
}
END_TEST

START_TEST(fault_15_a_lost_round_is_released_where_it_may_have_granted)
{
    (void)acquire();
    answer(SCRIPT_ACQUIRE, 0, VOTE_GRANTED);
    answer_held(SCRIPT_ACQUIRE, 1, "x");
    answer_held(SCRIPT_ACQUIRE, 2, "x");
    answer(SCRIPT_ACQUIRE, 3, VOTE_FAILED);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 0);
    advance(50000);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 3);
    ck_assert(find_call(SCRIPT_RELEASE, 0) != NULL);
    ck_assert(find_call(SCRIPT_RELEASE, 3) != NULL);
    ck_assert(find_call(SCRIPT_RELEASE, 4) != NULL); /* silent */
}
END_TEST

START_TEST(held_by_one_value_tells_the_holder)
{
    static const char value[] =
        "1795221641865000.00112233445566778899aabbccddeeff01234567.web-9";
    engine_op op = acquire();
    for (int i = 0; i < 3; i++)
        answer_held(SCRIPT_ACQUIRE, i, value);
    const struct engine_result *result = engine_result(world.engine, op);
    ck_assert_int_eq(result->outcome, OUTCOME_HELD);
    ck_assert(result->has_holder);
    ck_assert_int_eq(result->number, 1795221641865000);
    ck_assert_int_eq(result->remaining_ms, 5000);
    ck_assert(strncmp(result->owner.ptr, "web-9", result->owner.len) == 0);
    ck_assert_uint_eq(result->token.len, 0);
}
END_TEST

START_TEST(stale_is_tried_again_at_once_with_a_higher_number)
{
    engine_op op = acquire();
    int64_t highest = node_epoch_us + 9000000;
    for (int i = 0; i < 3; i++)
        reply_to(find_call(SCRIPT_ACQUIRE, i),
                 (struct script_reply){.vote = VOTE_STALE,
                                       .highest = highest + i});
    ck_assert_int_eq(count_calls(SCRIPT_ACQUIRE), 10);
    ck_assert_int_eq(find_call(SCRIPT_ACQUIRE, 0)->call.number, highest + 3);
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    ck_assert_int_eq(outcome_of(op), OUTCOME_GRANTED);
    ck_assert_int_eq(engine_result(world.engine, op)->number, highest + 3);
}
END_TEST

static void split_votes(void)
{
    for (int i = 0; i < 2; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    answer_held(SCRIPT_ACQUIRE, 2, "x");
    answer_held(SCRIPT_ACQUIRE, 3, "x");
    answer_held(SCRIPT_ACQUIRE, 4, "y");
}

START_TEST(split_votes_use_up_the_rounds_and_end_as_held)
{
    engine_op op = acquire();
    for (int round = 1; round <= 4; round++) {
        await_round(5 * round);
        ck_assert_int_eq(outcome_of(op), OUTCOME_PENDING);
        split_votes();
    }
    ck_assert_int_eq(outcome_of(op), OUTCOME_HELD);
    ck_assert(!engine_result(world.engine, op)->has_holder);
    ck_assert_int_eq(world.answers, 1);
}
END_TEST

START_TEST(stale_rounds_used_up_end_without_quorum)
{
    engine_op op = acquire();
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < 5; i++)
            answer(SCRIPT_ACQUIRE, i, VOTE_STALE);
    ck_assert_int_eq(count_calls(SCRIPT_ACQUIRE), 20);
    ck_assert_int_eq(outcome_of(op), OUTCOME_NO_QUORUM);
}
END_TEST

START_TEST(no_quorum_is_told_without_a_retry)
{
    engine_op op = acquire();
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_LOADING);
    ck_assert_int_eq(outcome_of(op), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(count_calls(SCRIPT_ACQUIRE), 5);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 2); /* who did not answer */
}
END_TEST

START_TEST(unsendable_nodes_are_known_before_the_call_returns)
{
    for (int i = 0; i < 3; i++)
        world.is_refusing[i] = true;
    engine_op op = acquire();
    ck_assert_int_eq(world.answers, 1);
    ck_assert_int_eq(outcome_of(op), OUTCOME_NO_QUORUM);
    ck_assert_int_eq(engine_result(world.engine, op)->votes[0], VOTE_STALLED);
}
END_TEST

START_TEST(nothing_is_asked_of_nodes_without_admission)
{
    node_down(0);
    engine_on_node_up(world.engine, 0,
                      &(struct engine_node_facts){
                          .run_id = RUN_ID,
                          .node_now_us = node_epoch_us,
                          .sent_us = world.now_us,
                          .received_us = world.now_us});
    engine_op op = acquire();
    ck_assert_int_eq(count_calls(SCRIPT_ACQUIRE), 4);
    for (int i = 1; i < 4; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    ck_assert_int_eq(engine_result(world.engine, op)->votes[0],
                     VOTE_QUARANTINED);
}
END_TEST

START_TEST(a_lost_admission_is_renewed_at_once)
{
    (void)acquire();
    answer(SCRIPT_ACQUIRE, 0, VOTE_QUARANTINED);
    ck_assert(find_call(SCRIPT_ADMIT, 0) != NULL);
    ck_assert_int_eq(engine_voting(world.engine), 4);
    answer(SCRIPT_ADMIT, 0, VOTE_DONE);
    ck_assert_int_eq(engine_voting(world.engine), 5);
}
END_TEST

START_TEST(votes_that_come_past_the_validity_win_nothing)
{
    engine_op op =
        engine_acquire(world.engine, RESOURCE, (struct span){0}, 100, NULL);
    world.now_us += 49000; /* within the deadline, but … */
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    ck_assert_int_eq(outcome_of(op), OUTCOME_GRANTED);
    ck_assert_int_eq(engine_validity_ms(world.engine, op, 1093000), 0);
    ck_assert_int_eq(outcome_of(op), OUTCOME_VALIDITY_EXHAUSTED);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 5);
    ck_assert_uint_eq(engine_result(world.engine, op)->token.len, 0);
}
END_TEST

/* ---- gone clients ------------------------------------------------------- */

START_TEST(fault_19_an_abandoned_grant_is_released)
{
    engine_op op = acquire();
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    engine_abandon(world.engine, op);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 5);
    ck_assert_int_eq(engine_in_flight(world.engine), 0);
}
END_TEST

START_TEST(abandoned_in_the_middle_of_a_round)
{
    engine_op op = acquire();
    answer(SCRIPT_ACQUIRE, 0, VOTE_GRANTED);
    answer_held(SCRIPT_ACQUIRE, 1, "x");
    engine_abandon(world.engine, op);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 4);
    answer(SCRIPT_ACQUIRE, 2, VOTE_GRANTED); /* finds nobody */
    ck_assert_int_eq(world.answers, 0);
    ck_assert_int_eq(engine_in_flight(world.engine), 0);
}
END_TEST

START_TEST(abandoned_between_rounds_needs_no_release)
{
    engine_op op = acquire();
    split_votes();
    int released = count_calls(SCRIPT_RELEASE);
    engine_abandon(world.engine, op);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), released);
    advance(400000);
    ck_assert_int_eq(count_calls(SCRIPT_ACQUIRE), 5);
}
END_TEST

/* ---- releases ----------------------------------------------------------- */

START_TEST(a_node_out_of_reach_gets_the_release_when_it_is_back)
{
    engine_op op = acquire();
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    node_down(4); /* it may have set the key */
    engine_abandon(world.engine, op);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 4);
    for (int i = 0; i < 4; i++)
        answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    node_up(4);
    ck_assert_msg(find_call(SCRIPT_RELEASE, 4) == NULL,
                  "the old connection may still carry the acquire");
    advance(100000 + 200000);
    ck_assert(find_call(SCRIPT_RELEASE, 4) != NULL);
    answer(SCRIPT_RELEASE, 4, VOTE_DELETED);
    ck_assert_uint_eq(world.metrics.releases_pending, 0);
}
END_TEST

START_TEST(an_owed_release_ends_with_the_ttl)
{
    engine_op op = acquire();
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_ACQUIRE, i, VOTE_GRANTED);
    node_down(4);
    engine_abandon(world.engine, op);
    for (int i = 0; i < 4; i++)
        answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    ck_assert_uint_eq(world.metrics.releases_pending, 1);
    advance(30200000);
    ck_assert_uint_eq(world.metrics.releases_pending, 0);
    world.sent_count = 0;
    node_up(4);
    advance(1000000);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 0);
}
END_TEST

START_TEST(release_asks_every_node_and_outlives_its_answer)
{
    engine_op op =
        engine_release(world.engine, RESOURCE, span_of("token"), NULL);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 5);
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    ck_assert_int_eq(outcome_of(op), OUTCOME_RELEASED);
    engine_close(world.engine, op);
    answer(SCRIPT_RELEASE, 3, VOTE_DELETED);
    answer(SCRIPT_RELEASE, 4, VOTE_MISCONFIGURED);
    ck_assert_uint_eq(world.metrics.releases_pending, 1);
    advance(700000);
    answer(SCRIPT_RELEASE, 4, VOTE_DELETED);
    ck_assert_uint_eq(world.metrics.releases_pending, 0);
}
END_TEST

START_TEST(release_without_quorum_is_repeated_behind_the_503)
{
    for (int i = 0; i < 3; i++)
        node_down(i);
    engine_op op =
        engine_release(world.engine, RESOURCE, span_of("token"), NULL);
    ck_assert_int_eq(outcome_of(op), OUTCOME_NO_QUORUM);
    engine_close(world.engine, op);
    node_up(0);
    advance(400000);
    ck_assert(find_call(SCRIPT_RELEASE, 0) != NULL);
}
END_TEST

static engine_op release_of(int64_t number)
{
    char token[TOKEN_MAX];
    unsigned char random[TOKEN_RANDOM_BYTES] = {0};
    size_t len = token_make(token, number, random, span_of("me"));
    return engine_release(world.engine, RESOURCE, (struct span){token, len},
                          NULL);
}

START_TEST(a_release_that_may_have_overtaken_its_acquire_is_repeated)
{
    engine_op op = release_of(node_epoch_us + world.now_us - 20000);
    for (int i = 0; i < 4; i++)
        answer(SCRIPT_RELEASE, i, VOTE_DELETED);
    answer(SCRIPT_RELEASE, 4, VOTE_FREE); /* the acquire is still coming */
    ck_assert_int_eq(outcome_of(op), OUTCOME_RELEASED);
    advance(400000);
    answer(SCRIPT_RELEASE, 4, VOTE_DELETED);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 6);
    ck_assert_uint_eq(world.metrics.releases_pending, 0);
}
END_TEST

START_TEST(a_release_of_an_older_lock_is_not_repeated)
{
    (void)release_of(node_epoch_us + world.now_us - 200000);
    for (int i = 0; i < 5; i++)
        answer(SCRIPT_RELEASE, i, i < 3 ? VOTE_DELETED : VOTE_FREE);
    ck_assert_uint_eq(world.metrics.releases_pending, 0);
}
END_TEST

/* ---- extend ------------------------------------------------------------- */

static engine_op extend(int64_t number)
{
    char token[TOKEN_MAX];
    unsigned char random[TOKEN_RANDOM_BYTES] = {0};
    size_t len = token_make(token, number, random, span_of("me"));
    return engine_extend(world.engine, RESOURCE, (struct span){token, len},
                         30000, NULL);
}

START_TEST(extended_by_a_majority_that_had_the_token)
{
    engine_op op = extend(node_epoch_us);
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_EXTEND, i, VOTE_EXTENDED);
    const struct engine_result *result = engine_result(world.engine, op);
    ck_assert_int_eq(result->outcome, OUTCOME_EXTENDED);
    ck_assert_int_eq(result->number, node_epoch_us);
    ck_assert_int_eq(result->ttl_ms, 30000);
    ck_assert_uint_gt(result->token.len, 0);
}
END_TEST

START_TEST(fault_16_a_failed_extend_changes_nothing)
{
    engine_op op = extend(node_epoch_us);
    answer(SCRIPT_EXTEND, 0, VOTE_EXTENDED);
    answer(SCRIPT_EXTEND, 1, VOTE_EXTENDED);
    advance(50000);
    ck_assert_int_eq(outcome_of(op), OUTCOME_NO_QUORUM);
    engine_abandon(world.engine, op);
    ck_assert_int_eq(count_calls(SCRIPT_RELEASE), 0);
}
END_TEST

START_TEST(held_too_long_is_refused_without_lengthening)
{
    engine_op op = extend(node_epoch_us + world.now_us - 71000000);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(find_call(SCRIPT_EXTEND, i)->call.ttl_ms, 0);
    for (int i = 0; i < 3; i++)
        answer(SCRIPT_EXTEND, i, VOTE_EXTENDED);
    ck_assert_int_eq(outcome_of(op), OUTCOME_MAX_HOLD);

    op = extend(node_epoch_us + world.now_us - 69000000);
    ck_assert_int_eq(find_call(SCRIPT_EXTEND, 0)->call.ttl_ms, 30000);
}
END_TEST

START_TEST(held_too_long_is_told_to_the_holder_only)
{
    engine_op op = extend(node_epoch_us + world.now_us - 71000000);
    for (int i = 0; i < 5; i++)
        answer(SCRIPT_EXTEND, i, VOTE_FREE);
    ck_assert_int_eq(outcome_of(op), OUTCOME_NOT_FOUND);
}
END_TEST

/* ---- inspect, nodes ----------------------------------------------------- */

START_TEST(inspect_tells_number_owner_and_remaining_but_no_token)
{
    engine_op op = engine_inspect(world.engine, RESOURCE, NULL);
    for (int i = 0; i < 3; i++)
        answer_held(SCRIPT_INSPECT, i,
                    "0000000000000009.00112233445566778899aabbccddeeff01234567"
                    ".bob");
    const struct engine_result *result = engine_result(world.engine, op);
    ck_assert_int_eq(result->outcome, OUTCOME_FOUND);
    ck_assert_int_eq(result->number, 9);
    ck_assert_int_eq(result->remaining_ms, 5000);
    ck_assert_uint_eq(result->token.len, 0);
}
END_TEST

START_TEST(heartbeats_keep_the_admissions)
{
    advance(3000000);
    for (int i = 0; i < NODES; i++)
        answer(SCRIPT_ADMIT, i, VOTE_DONE);
    ck_assert_int_eq(count_calls(SCRIPT_ADMIT), NODES);
    advance(1200000);
    ck_assert_int_eq(count_calls(SCRIPT_ADMIT), 2 * NODES);
}
END_TEST

START_TEST(numbers_follow_the_median_of_the_nodes_clocks)
{
    node_down(4);
    engine_on_node_up(world.engine, 4,
                      &(struct engine_node_facts){
                          .run_id = RUN_ID,
                          .node_now_us = node_epoch_us + 3600000000,
                          .sent_us = world.now_us,
                          .received_us = world.now_us});
    (void)acquire();
    ck_assert_int_eq(find_call(SCRIPT_ACQUIRE, 0)->call.number,
                     node_epoch_us + world.now_us);
    (void)acquire();
    ck_assert_int_eq(world.sent[world.sent_count - 1].call.number,
                     node_epoch_us + world.now_us + 1);
}
END_TEST

Suite *check_engine(void);

Suite *check_engine(void)
{
    Suite *suite = suite_create("engine");
    TCase *tc = tcase_create("engine");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, granted_by_a_majority_at_once);
    tcase_add_test(tc, stragglers_of_a_won_round_count_nowhere);
    tcase_add_test(tc, each_call_carries_admission_deadline_window_and_slot);
    tcase_add_test(tc, fault_01_every_round_has_a_token_of_its_own);
    tcase_add_test(tc,
                   fault_15_a_lost_round_is_released_where_it_may_have_granted);
    tcase_add_test(tc, held_by_one_value_tells_the_holder);
    tcase_add_test(tc, stale_is_tried_again_at_once_with_a_higher_number);
    tcase_add_test(tc, split_votes_use_up_the_rounds_and_end_as_held);
    tcase_add_test(tc, stale_rounds_used_up_end_without_quorum);
    tcase_add_test(tc, no_quorum_is_told_without_a_retry);
    tcase_add_test(tc, unsendable_nodes_are_known_before_the_call_returns);
    tcase_add_test(tc, nothing_is_asked_of_nodes_without_admission);
    tcase_add_test(tc, a_lost_admission_is_renewed_at_once);
    tcase_add_test(tc, votes_that_come_past_the_validity_win_nothing);
    tcase_add_test(tc, fault_19_an_abandoned_grant_is_released);
    tcase_add_test(tc, abandoned_in_the_middle_of_a_round);
    tcase_add_test(tc, abandoned_between_rounds_needs_no_release);
    tcase_add_test(tc, a_node_out_of_reach_gets_the_release_when_it_is_back);
    tcase_add_test(tc, an_owed_release_ends_with_the_ttl);
    tcase_add_test(tc, release_asks_every_node_and_outlives_its_answer);
    tcase_add_test(tc, release_without_quorum_is_repeated_behind_the_503);
    tcase_add_test(
        tc, a_release_that_may_have_overtaken_its_acquire_is_repeated);
    tcase_add_test(tc, a_release_of_an_older_lock_is_not_repeated);
    tcase_add_test(tc, extended_by_a_majority_that_had_the_token);
    tcase_add_test(tc, fault_16_a_failed_extend_changes_nothing);
    tcase_add_test(tc, held_too_long_is_refused_without_lengthening);
    tcase_add_test(tc, held_too_long_is_told_to_the_holder_only);
    tcase_add_test(tc, inspect_tells_number_owner_and_remaining_but_no_token);
    tcase_add_test(tc, heartbeats_keep_the_admissions);
    tcase_add_test(tc, numbers_follow_the_median_of_the_nodes_clocks);
    suite_add_tcase(suite, tc);
    return suite;
}
