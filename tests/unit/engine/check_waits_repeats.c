/*
 * Repeats that wait: whoever contends for the lock, its holder has it again.
 */

#include "../../../server/engine/port/token.h"
#include "../../../server/engine/waiting/waits.h"
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

#define A span_of("order:1")
#define B span_of("order:2")
#define BOTH span_of("order:1\norder:2")
#define KEY PLAY_KEY
#define OWN PLAY_OWN(1)

static engine_op ask_for(struct span resource)
{
    return engine_acquire(play.engine,
                          &(struct engine_acquire){.resource = resource,
                                                   .key_hash = span_of(KEY),
                                                   .ttl_ms = 30000,
                                                   .wait_ms = WAITING_MS},
                          NULL);
}

static engine_op ask(void)
{
    return ask_for(PLAY_RESOURCE);
}

/* A value with the key, granted so much after this moment. */
static const char *own_after(int64_t us)
{
    static char value[TOKEN_MAX + 1];
    unsigned char random[TOKEN_RANDOM_BYTES] = {0};
    const struct token_parts parts = {
        .number = PLAY_EPOCH_US + play.now_us + us, .key_hash = span_of(KEY)};
    value[token_make(value, random, &parts)] = '\0';
    return value;
}

static void find_held_by(const char *value)
{
    for (int i = 0; i < PLAY_NODES; i++)
        if (play_find(CALL_ACQUIRE, i) != NULL)
            play_answer_held(CALL_ACQUIRE, i, value);
}

static void grant_repeat(void)
{
    play_answer_range(CALL_REPEAT, 0, PLAY_NODES, VOTE_GRANTED);
}

/* It tries, finds the lock, and takes its place. */
static void expect_repeat(engine_op op, const char *value)
{
    find_held_by(value);
    ck_assert_int_eq(play_count(CALL_REPEAT), PLAY_NODES);
    grant_repeat();
    ck_assert_int_eq(play_outcome(op), OUTCOME_GRANTED);
    ck_assert(play_result(op)->is_repeat);
}

/*
 * Whoever tries meanwhile finds this value. True: then somebody tried to take
 * its place, and none of the nodes has answered that.
 */
static bool is_repeated_within(int64_t us, const char *value)
{
    int before = play_count(CALL_REPEAT);
    for (int64_t passed_us = 0; passed_us < us; passed_us += 1000) {
        play_advance(1000);
        find_held_by(value);
        if (play_count(CALL_REPEAT) > before)
            return true;
    }
    return false;
}

/* Clocks that are 400 ms apart, and steady for long enough to be proven. */
static void begin_apart(int ahead)
{
    struct engine_settings settings = play_settings;
    settings.max_ttl_ms = 1000;
    play_begin_again(&settings);
    for (int i = 0; i < ahead; i++)
        play.offset_us[i] = 400000;
    play_nodes_up();
    play_advance(1100000);
    play_answer_all_looks();
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES);
}

SUITE(waits_repeats, .set_up = play_begin, .tear_down = play_end);

/* ---- behind others ------------------------------------------------------ */

/* Whoever contends, for more or for less, has a plan of its own. */
static const struct {
    const char *others, *repeat;
    bool is_found; /* its lock, when it comes */
} behind[] = {
    {"order:42", "order:42", true},
    {"order:42", "order:42", false},
    {"order:1\norder:2", "order:2", true},
    {"order:1\norder:2", "order:2", false},
    {"order:2", "order:1\norder:2", true},
};

TEST_EACH(story_57_a_repeat_does_not_wait_behind_others, behind)
{
    engine_op first = waiting_ask_for(span_of(behind[_i].others), WAITING_MS);
    if (behind[_i].is_found)
        find_held_by(OWN);
    engine_op repeat = ask_for(span_of(behind[_i].repeat));
    if (!behind[_i].is_found) {
        ck_assert_int_eq(waiting_attempts(), 1);
        if (names_are_several(span_of(behind[_i].others))) /* it looks */
            play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_UNANSWERED);
        find_held_by(OWN);
    }
    ck_assert_int_eq(waiting_attempts(), 2);
    expect_repeat(repeat, OWN);
    waiting_check(first);
}

/* That was granted by a clock that is ahead. */
TEST(a_repeat_has_a_higher_number_than_its_lock)
{
    const char *value = own_after(10000000);
    (void)waiting_ask();
    find_held_by(value);
    engine_op repeat = ask();
    find_held_by(value);
    const struct call *call = &play_find(CALL_REPEAT, 0)->call;
    ck_assert_int_gt(call->number, call->seen);
    grant_repeat();
    ck_assert(play_result(repeat)->is_repeat);
}

/* Each of the two that wait wants another resource of the lock. */
TEST(story_57_a_repeat_of_several_goes_when_an_attempt_no_longer_bars_it)
{
    engine_op a = waiting_ask_for(A, WAITING_MS);
    engine_op b = waiting_ask_for(B, WAITING_MS);
    engine_op repeat = ask_for(BOTH);
    find_held_by(OWN); /* A's */
    ck_assert_int_eq(waiting_attempts(), 2);
    find_held_by(OWN); /* B's */
    ck_assert_int_eq(waiting_attempts(), 3);
    expect_repeat(repeat, OWN);
    waiting_check(a);
    waiting_check(b);
}

/* One of the two always tries; the repeat would need a moment without. */
TEST(story_57_a_repeat_that_is_due_goes_before_the_next_attempts)
{
    (void)waiting_ask_for(A, WAITING_MS);
    (void)waiting_ask_for(B, WAITING_MS);
    engine_op repeat = ask_for(BOTH);
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, OWN); /* A's */
    ck_assert_int_eq(waiting_attempts(), 2);
    (void)engine_release(play.engine, A, span_of(PLAY_TOKEN), NULL);
    ck_assert_int_eq(waiting_attempts(), 2);
    find_held_by(OWN); /* B's */
    ck_assert_int_eq(waiting_attempts(), 3);
    expect_repeat(repeat, OWN);
    play_await_round(5 * PLAY_NODES); /* A's and B's */
}

/* ---- looks -------------------------------------------------------------- */

/* Somebody contends for B who is told of the holder of A alone. */
static engine_op wait_for_both(void)
{
    engine_op both = waiting_ask_for(BOTH, WAITING_MS);
    find_held_by(WAITING_OTHERS);
    waiting_begin_to_announce(A, PLAY_NODES);
    waiting_begin_to_announce(B, PLAY_NODES);
    find_held_by(WAITING_OTHERS);
    ck_assert_int_eq(waiting_attempts(), 2);
    return both;
}

TEST(story_57_where_nobody_learns_who_has_its_lock_a_repeat_looks)
{
    engine_op both = wait_for_both();
    engine_op repeat = ask_for(B);
    ck_assert_int_eq(play_count(CALL_INSPECT), PLAY_NODES);
    ck_assert_uint_eq(play_find(CALL_INSPECT, 0)->call.resource.len, B.len);
    ck_assert_int_eq(waiting_attempts(), 2);
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, OWN);
    ck_assert_int_eq(waiting_attempts(), 3);
    expect_repeat(repeat, OWN);
    waiting_check(both);
}

/* Otherwise it would overtake the one that contends. */
TEST(a_look_that_finds_another_or_nobody_takes_nothing)
{
    wait_for_both();
    engine_op of_another = ask_for(B);
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, WAITING_OTHERS);
    engine_op of_nobody = ask_for(B);
    play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_FREE);
    play_advance(2 * CLAIM_ANEW_US);
    ck_assert_int_eq(play_count(CALL_INSPECT), 2 * PLAY_NODES);
    ck_assert_int_eq(waiting_attempts(), 2);
    waiting_check(of_another);
    waiting_check(of_nobody);
}

/* Nobody tells, or too few nodes do. */
TEST_RANGE(a_look_that_does_not_know_is_made_again, 0, 2)
{
    wait_for_both();
    for (int i = 0; _i == 1 && i < 3; i++)
        play.is_refusing[i] = true;
    engine_op repeat = ask_for(B);
    if (_i == 0)
        play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_UNREADABLE);
    else
        play_answer_range(CALL_INSPECT, 3, PLAY_NODES, VOTE_FREE);
    for (int i = 0; i < 3; i++)
        play.is_refusing[i] = false;
    int before = play_count(CALL_INSPECT);
    play_advance(CLAIM_ANEW_US - 1);
    ck_assert_int_eq(play_count(CALL_INSPECT), before);
    play_advance(1);
    ck_assert_int_eq(play_count(CALL_INSPECT), before + PLAY_NODES);
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, OWN);
    expect_repeat(repeat, OWN);
}

TEST(who_leaves_looks_no_longer)
{
    wait_for_both();
    ck_assert(!engine_abandon(play.engine, ask_for(B)));
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, OWN);
    play_advance(2 * CLAIM_ANEW_US);
    ck_assert_int_eq(waiting_attempts(), 2);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 1);
}

TEST(who_contends_by_then_looks_no_longer)
{
    engine_op both = wait_for_both();
    engine_op repeat = ask_for(B);
    ck_assert(!engine_abandon(play.engine, both));
    play_await_round(3 * PLAY_NODES);
    expect_repeat(repeat, OWN);
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, OWN);
    play_advance(2 * CLAIM_ANEW_US);
    ck_assert_int_eq(play.answers, 1);
}

/* Without a key, or where one contends for this alone. */
TEST(who_has_no_reason_to_look_does_not)
{
    wait_for_both();
    waiting_check(waiting_ask_for(B, WAITING_MS));
    waiting_check(waiting_ask());
    find_held_by(WAITING_OTHERS);
    waiting_check(ask());
    ck_assert_int_eq(play_count(CALL_INSPECT), 0);
}

/* ---- numbers from other clocks ------------------------------------------ */

TEST_RANGE(story_58_a_grant_that_seems_newer_is_asked_for_anew, 0, 2)
{
    engine_op other = _i == 1 ? waiting_ask() : 0;
    engine_op repeat = ask();
    const char *value = own_after(45000);
    find_held_by(value);
    ck_assert(!is_repeated_within(CLAIM_ANEW_US - 1000, value));
    ck_assert(is_repeated_within(100000, value));
    grant_repeat();
    ck_assert_int_eq(play_outcome(repeat), OUTCOME_GRANTED);
    ck_assert(play_result(repeat)->is_repeat);
    if (other != 0)
        waiting_check(other);
}

static const struct {
    int64_t after_us;
    bool is_open;
} grants[] = {{450000, true}, {600000, false}};

TEST_EACH(story_58_clocks_that_are_apart_leave_more_open, grants)
{
    begin_apart(1);
    engine_op repeat = ask();
    const char *value = own_after(grants[_i].after_us);
    ck_assert_int_eq(is_repeated_within(2 * CLAIM_ANEW_US, value),
                     grants[_i].is_open);
    waiting_check(repeat);
}

/* Both copies of one request waited for somebody else's lock. */
TEST(a_grant_after_a_look_that_missed_it_is_not_repeated)
{
    engine_op op = ask();
    find_held_by(WAITING_OTHERS);
    const char *value = own_after(-1000); /* by a clock that is behind */
    ck_assert(!is_repeated_within(2 * CLAIM_ANEW_US, value));
    waiting_check(op);
}

/* The same, but the look was another one's. */
TEST_RANGE(a_grant_after_a_look_of_another_is_not_repeated, 0, 2)
{
    engine_op other = waiting_ask();
    if (_i == 0) /* it begins before the repeat comes */
        find_held_by(WAITING_OTHERS);
    engine_op op = ask();
    const char *value = own_after(45000);
    if (_i == 0)
        play_await_round(2 * PLAY_NODES);
    find_held_by(WAITING_OTHERS);
    ck_assert_int_eq(is_repeated_within(2 * CLAIM_ANEW_US, value), _i == 1);
    waiting_check(op);
    waiting_check(other);
}

/* The first of two that came together keeps what it gets. */
TEST_RANGE(a_grant_while_it_waits_is_not_repeated, 0, 2)
{
    engine_op first = ask();
    engine_op second = ask();
    play_advance(_i == 0 ? 1000 : 40000);
    const struct play_call *call = play_find(CALL_ACQUIRE, 0);
    const char *value = textf("%s", call->token);
    waiting_grant();
    ck_assert_int_eq(play_outcome(first), OUTCOME_GRANTED);
    ck_assert_int_eq(waiting_attempts(), 1);
    ck_assert(!is_repeated_within(2 * CLAIM_ANEW_US, value));
    waiting_check(second);
}

/* Its own numbers are ahead of the clocks that it reaches now. */
TEST(story_58_on_one_server_a_later_request_is_later_whatever_the_clocks)
{
    begin_apart(3);
    engine_op first = ask();
    const char *value = textf("%s", play_find(CALL_ACQUIRE, 0)->token);
    waiting_grant();
    engine_close(play.engine, first);
    play_node_down(0);
    engine_op repeat = ask();
    find_held_by(value);
    ck_assert_int_eq(play_count(CALL_REPEAT), 4);
    play_answer_range(CALL_REPEAT, 1, PLAY_NODES, VOTE_GRANTED);
    ck_assert(play_result(repeat)->is_repeat);
}

/* It came when no node was reached. */
TEST_RANGE(without_a_clock_a_repeat_is_dated_later, 0, 2)
{
    const char *value = textf("%s", own_after(_i == 0 ? -1000 : 200000));
    play_nodes_down(PLAY_NODES);
    engine_op repeat = ask();
    play_advance(1000000);
    play_nodes_up();
    ck_assert_int_eq(is_repeated_within(2 * CLAIM_ANEW_US, value), _i == 0);
    waiting_check(repeat);
}

/* ---- a repeat that fails ------------------------------------------------ */

/* Nor does anybody else learn, without a quorum, who has the lock. */
TEST_RANGE(a_repeat_that_loses_is_tried_again, 0, 2)
{
    (void)waiting_ask();
    find_held_by(OWN);
    engine_op repeat = ask();
    ck_assert_int_eq(waiting_attempts(), 2);
    if (_i == 0) {
        find_held_by(OWN);
        play_hold_range(CALL_REPEAT, 0, PLAY_NODES, OWN);
    } else {
        play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_UNREADABLE);
    }
    ck_assert(!is_repeated_within(CLAIM_ANEW_US - 1000, OWN));
    ck_assert(is_repeated_within(_i == 0 ? 100000 : 2000, OWN));
    grant_repeat();
    ck_assert_int_eq(play_outcome(repeat), OUTCOME_GRANTED);
}

/* ---- without memory ----------------------------------------------------- */

/* It waits, but what it does first needs memory, and there is none. */
static engine_op ask_without_memory(struct span resource)
{
    enum { CHUNK = 64 }; /* operations that are allocated together */
    for (int i = 0; i < PLAY_NODES; i++)
        play.is_refusing[i] = true;
    for (int i = 0; i < CHUNK; i++) /* they end at once, but stay */
        ck_assert(engine_inspect(play.engine, PLAY_RESOURCE, NULL) != 0);
    for (int i = 0; i < PLAY_NODES; i++)
        play.is_refusing[i] = false;
    engine_op repeat = 0;
    for (int n = 1; repeat == 0; n++) {
        starve = (struct starve){.is_on = true, .left = n};
        repeat = ask_for(resource);
        starve.is_on = false;
        ck_assert_int_eq(starve.left, 0);
    }
    return repeat;
}

TEST(a_repeat_that_has_no_memory_is_tried_again)
{
    engine_op first = waiting_ask();
    find_held_by(OWN);
    waiting_begin_to_announce(PLAY_RESOURCE, PLAY_NODES);
    find_held_by(OWN);
    engine_op repeat = ask_without_memory(PLAY_RESOURCE);
    play_advance(CLAIM_ANEW_US - 1);
    ck_assert_int_eq(waiting_attempts(), 2);
    play_advance(1);
    ck_assert_int_eq(waiting_attempts(), 3);
    expect_repeat(repeat, OWN);
    waiting_check(first);
}

TEST(a_look_that_has_no_memory_is_made_later)
{
    wait_for_both();
    engine_op repeat = ask_without_memory(B);
    play_advance(CLAIM_ANEW_US - 1);
    ck_assert_int_eq(play_count(CALL_INSPECT), 0);
    play_advance(1);
    ck_assert_int_eq(play_count(CALL_INSPECT), PLAY_NODES);
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, OWN);
    expect_repeat(repeat, OWN);
}

/* ---- readers ------------------------------------------------------------ */

static engine_op read_with(const char *key)
{
    return engine_acquire(play.engine,
                          &(struct engine_acquire){.resource = PLAY_RESOURCE,
                                                   .key_hash = span_of(key),
                                                   .ttl_ms = 30000,
                                                   .wait_ms = WAITING_MS,
                                                   .is_shared = true},
                          NULL);
}

/* Or each would have a token of its own, and one reader be several. */
TEST(of_readers_with_one_key_at_once_one_is_granted)
{
    engine_op first = read_with(KEY), second = read_with(KEY);
    engine_op other = read_with("-_0123456789abcdefghij");
    engine_op third = read_with(KEY);
    grant_repeat();
    ck_assert_int_eq(play_outcome(first), OUTCOME_GRANTED);
    ck_assert_int_eq(play_outcome(second), OUTCOME_HELD);
    ck_assert(play_result(second)->is_shared);
    ck_assert_int_eq(play_outcome(third), OUTCOME_HELD);
    grant_repeat();
    ck_assert_int_eq(play_outcome(other), OUTCOME_GRANTED);
}

/* ---- clients that have left, which nothing tells ------------------------- */

/* Not every proxy passes a close on: the client asks again, without a wait. */
static engine_op give_up(struct span resource, bool is_shared)
{
    return waiting_acquire((struct engine_acquire){.resource = resource,
                                                   .key_hash = span_of(KEY),
                                                   .is_shared = is_shared});
}

static const struct {
    const char *waits, *leaves;
    bool is_shared;
} given_up[] = {
    {"order:42", "order:42", false},
    {"order:1\norder:2", "order:1\norder:2", false},
    {"order:42", "order:42", true},
};

TEST_EACH(story_75_who_asks_again_without_a_wait_waits_no_more, given_up)
{
    struct span resource = span_of(given_up[_i].waits);
    engine_op first = waiting_ask_for(resource, WAITING_MS);
    waiting_find_held();
    engine_op ghost = waiting_acquire(
        (struct engine_acquire){.resource = resource,
                                .key_hash = span_of(KEY),
                                .wait_ms = WAITING_MS,
                                .is_shared = given_up[_i].is_shared});
    engine_op next = waiting_ask_for(resource, WAITING_MS);
    (void)give_up(resource, given_up[_i].is_shared);
    ck_assert_int_eq(play_outcome(ghost), OUTCOME_HELD);
    waiting_check(first);
    waiting_check(next);
    ck_assert_uint_eq(metrics_waiters(&play.metrics), 2);
    engine_close(play.engine, ghost);
}

/* It contends, and what it tries is under way. */
TEST(story_75_what_it_tries_is_released)
{
    engine_op ghost = ask();
    engine_op next = waiting_ask();
    ck_assert_int_eq(waiting_attempts(), 1);
    (void)give_up(PLAY_RESOURCE, false);
    ck_assert_int_eq(play_outcome(ghost), OUTCOME_HELD);
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    /* its own, and that of the next one, which is behind the release */
    ck_assert_int_eq(waiting_attempts(), 3);
    waiting_check(next);
    engine_close(play.engine, ghost);
}

TEST(story_75_others_go_on_waiting)
{
    engine_op first = waiting_ask();
    waiting_find_held();
    engine_op other = waiting_acquire(
        (struct engine_acquire){.resource = PLAY_RESOURCE,
                                .key_hash = span_of("-_0123456789abcdefghij"),
                                .wait_ms = WAITING_MS});
    engine_op elsewhere = ask_for(A);
    (void)give_up(PLAY_RESOURCE, false);
    waiting_check(first);
    waiting_check(other);
    waiting_check(elsewhere);
    /* nor does one that waits itself end a wait */
    engine_op one = ask(), two = ask();
    waiting_check(one);
    waiting_check(two);
    (void)give_up(PLAY_RESOURCE, false);
    ck_assert_int_eq(play_outcome(one), OUTCOME_HELD);
    ck_assert_int_eq(play_outcome(two), OUTCOME_HELD);
}
