/* SPDX-License-Identifier: MIT */
/*
 * Repeats that wait: whoever contends for the lock, its holder has it again.
 */

#include "../../../server/engine/port/token.h"
#include "../../../server/engine/waiting/waits.h"
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "waiting.h"

#define B span_of("order:2")
#define KEY PLAY_KEY
#define OWN PLAY_OWN(1)

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

/*
 * Whoever tries meanwhile finds this value. True: then somebody tried to take
 * its place, and none of the nodes has answered that.
 */
static bool is_repeated_within(int64_t us, const char *value)
{
    int before = play_count(CALL_REPEAT);
    for (int64_t passed_us = 0; passed_us < us; passed_us += 1000) {
        play_advance(1000);
        waiting_find(value);
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
    play_answer_all_probes();
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES);
}

SUITE(waits_repeats, .set_up = play_begin, .tear_down = play_end);

/* ---- behind others ------------------------------------------------------ */

/* Whoever contends, for more or for less, has a plan of its own. */
static const struct {
    const char *others, *repeat;
    bool is_found; /* its lock, when it comes */
} behind[] = {{"", "", true},
              {"", "", false},
              {"1+2", "2", true},
              {"1+2", "2", false},
              {"2", "1+2", true}};

TEST_EACH(story_57_a_repeat_does_not_wait_behind_others, behind)
{
    bool is_found = behind[_i].is_found;
    waiting_play(textf("a@%s %s b@%s,k %s tries=2 own repeat b=repeated "
                       "a=pending",
                       behind[_i].others, is_found ? "own" : "",
                       behind[_i].repeat, is_found ? "" : "tries=1 own"));
}

/* That was granted by a clock that is ahead. */
TEST(a_repeat_has_a_higher_number_than_its_lock)
{
    const char *value = own_after(10000000);
    waiting_play("a@");
    waiting_find(value);
    waiting_play("b@,k");
    waiting_find(value);
    const struct call *call = &play_find(CALL_REPEAT, 0)->call;
    ck_assert_int_gt(call->number, call->seen);
    waiting_play("repeat b=repeated");
}

/* Each of the two that wait wants another resource of the lock. */
TEST(story_57_a_repeat_of_several_goes_when_an_attempt_no_longer_bars_it)
{
    waiting_play("a@1 b@2 c@1+2,k own tries=2 own tries=3 own repeat "
                 "c=repeated a=pending b=pending");
}

/* One of the two always tries; the repeat would need a moment without. */
TEST(story_57_a_repeat_that_is_due_goes_before_the_next_attempts)
{
    waiting_play("a@1 b@2 c@1+2,k");
    play_hold_range(CALL_ACQUIRE, 0, PLAY_NODES, OWN); /* a's */
    waiting_play("tries=2 free@1 tries=2 own tries=3 own repeat c=repeated "
                 "round:5");
}

/* ---- inspections --------------------------------------------------------- */

/* a contends for B, and is told of the holder of A alone. */
static void wait_for_both(void)
{
    waiting_play("a@1+2 held news@1 news@2 held tries=2");
}

TEST(story_57_where_nobody_learns_who_has_its_lock_a_repeat_inspects)
{
    wait_for_both();
    waiting_play("b@2,k inspections=1");
    ck_assert_uint_eq(play_find(CALL_INSPECT, 0)->call.resource.len, B.len);
    waiting_play("tries=2 seen tries=3 own repeat b=repeated a=pending");
}

/* Otherwise it would overtake the one that contends. */
TEST(an_inspection_that_finds_another_or_nobody_takes_nothing)
{
    wait_for_both();
    waiting_play("b@2,k");
    play_hold_range(CALL_INSPECT, 0, PLAY_NODES, WAITING_OTHERS);
    waiting_play("c@2,k nothing pass:1000000 inspections=2 tries=2 b=pending "
                 "c=pending");
}

/* Nobody tells, or too few nodes do. */
TEST_RANGE(an_inspection_that_does_not_know_is_made_again, 0, 2)
{
    wait_for_both();
    for (int i = 0; _i == 1 && i < 3; i++)
        play.is_refusing[i] = true;
    waiting_play("b@2,k");
    if (_i == 0)
        play_answer_range(CALL_INSPECT, 0, PLAY_NODES, VOTE_UNREADABLE);
    else
        play_answer_range(CALL_INSPECT, 3, PLAY_NODES, VOTE_FREE);
    for (int i = 0; i < 3; i++)
        play.is_refusing[i] = false;
    int before = play_count(CALL_INSPECT);
    play_advance(CLAIM_ANEW_US - 1);
    ck_assert_int_eq(play_count(CALL_INSPECT), before);
    waiting_play("pass:1 seen own repeat b=repeated");
    ck_assert_int_eq(play_count(CALL_INSPECT), before + PLAY_NODES);
}

TEST(who_leaves_inspections_no_longer)
{
    wait_for_both();
    waiting_play("b@2,k b- seen pass:1000000 tries=2 waits=1");
}

TEST(who_contends_by_then_inspections_no_longer)
{
    wait_for_both();
    waiting_play("b@2,k a- round:3 own repeat b=repeated seen pass:1000000 "
                 "answers=1");
}

/* Without a key, or where one contends for this alone. */
TEST(who_has_no_reason_to_inspection_does_not)
{
    wait_for_both();
    waiting_play(
        "b@2 b=pending c@ c=pending held d@,k d=pending inspections=0");
}

/* ---- numbers from other clocks ------------------------------------------ */

TEST_RANGE(story_58_a_grant_that_seems_newer_is_asked_for_anew, 0, 2)
{
    waiting_play(_i == 1 ? "a@ b@,k" : "b@,k");
    const char *value = own_after(45000);
    waiting_find(value);
    ck_assert(!is_repeated_within(CLAIM_ANEW_US - 1000, value));
    ck_assert(is_repeated_within(100000, value));
    waiting_play(_i == 1 ? "repeat b=repeated a=pending" : "repeat b=repeated");
}

static const struct {
    int64_t after_us;
    bool is_open;
} grants[] = {{450000, true}, {600000, false}};

TEST_EACH(story_58_clocks_that_are_apart_leave_more_open, grants)
{
    begin_apart(1);
    waiting_play("a@,k");
    const char *value = own_after(grants[_i].after_us);
    ck_assert_int_eq(is_repeated_within(2 * CLAIM_ANEW_US, value),
                     grants[_i].is_open);
    waiting_play("a=pending");
}

/* Both copies of one request waited for somebody else's lock. */
TEST(a_grant_after_an_inspection_that_missed_it_is_not_repeated)
{
    waiting_play("a@,k held");
    const char *value = own_after(-1000); /* by a clock that is behind */
    ck_assert(!is_repeated_within(2 * CLAIM_ANEW_US, value));
    waiting_play("a=pending");
}

/* The same, but the inspection was another one's. */
TEST_RANGE(a_grant_after_an_inspection_of_another_is_not_repeated, 0, 2)
{
    /* the inspection begins before the repeat comes, or not */
    waiting_play(_i == 0 ? "a@ held b@,k" : "a@ b@,k");
    const char *value = own_after(45000);
    waiting_play(_i == 0 ? "round:2 held" : "held");
    ck_assert_int_eq(is_repeated_within(2 * CLAIM_ANEW_US, value), _i == 1);
    waiting_play("a=pending b=pending");
}

/* The first of two that came together keeps what it gets. */
TEST_RANGE(a_grant_while_it_waits_is_not_repeated, 0, 2)
{
    waiting_play(_i == 0 ? "a@,k b@,k pass:1000" : "a@,k b@,k pass:40000");
    const char *value = textf("%s", play_find(CALL_ACQUIRE, 0)->token);
    waiting_play("grant a=granted tries=1");
    ck_assert(!is_repeated_within(2 * CLAIM_ANEW_US, value));
    waiting_play("b=pending");
}

/* Its own numbers are ahead of the clocks that it reaches now. */
TEST(story_58_on_one_server_a_later_request_is_later_whatever_the_clocks)
{
    begin_apart(3);
    waiting_play("a@,k");
    const char *value = textf("%s", play_find(CALL_ACQUIRE, 0)->token);
    waiting_play("grant a.");
    play_node_down(0);
    waiting_play("b@,k");
    waiting_find(value);
    ck_assert_int_eq(play_count(CALL_REPEAT), 4);
    play_answer_range(CALL_REPEAT, 1, PLAY_NODES, VOTE_GRANTED);
    waiting_play("b=repeated");
}

/* It came when no node was reached. */
TEST_RANGE(without_a_clock_a_repeat_is_dated_later, 0, 2)
{
    const char *value = textf("%s", own_after(_i == 0 ? -1000 : 200000));
    play_nodes_down(PLAY_NODES);
    waiting_play("a@,k pass:1000000");
    play_nodes_up();
    ck_assert_int_eq(is_repeated_within(2 * CLAIM_ANEW_US, value), _i == 0);
    waiting_play("a=pending");
}

/* ---- a repeat that fails ------------------------------------------------ */

/* Nor does anybody else learn, without a quorum, who has the lock. */
TEST_RANGE(a_repeat_that_loses_is_tried_again, 0, 2)
{
    waiting_play("a@ own b@,k tries=2");
    if (_i == 0) {
        waiting_play("own");
        play_hold_range(CALL_REPEAT, 0, PLAY_NODES, OWN);
    } else {
        play_answer_range(CALL_ACQUIRE, 0, PLAY_NODES, VOTE_UNREADABLE);
    }
    ck_assert(!is_repeated_within(CLAIM_ANEW_US - 1000, OWN));
    ck_assert(is_repeated_within(_i == 0 ? 100000 : 2000, OWN));
    waiting_play("repeat b=granted");
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
        repeat =
            engine_acquire(play.engine,
                           &(struct engine_acquire){.resource = resource,
                                                    .key_hash = span_of(KEY),
                                                    .ttl_ms = 30000,
                                                    .wait_ms = WAITING_MS},
                           NULL);
        starve.is_on = false;
        ck_assert_int_eq(starve.left, 0);
    }
    return repeat;
}

TEST(a_repeat_that_has_no_memory_is_tried_again)
{
    waiting_play("a@ own news@ own");
    engine_op op = ask_without_memory(PLAY_RESOURCE);
    play_advance(CLAIM_ANEW_US - 1);
    waiting_play("tries=2 pass:1 tries=3 own repeat a=pending");
    ck_assert(play_result(op)->is_repeat);
}

TEST(an_inspection_that_has_no_memory_is_made_later)
{
    wait_for_both();
    engine_op op = ask_without_memory(B);
    play_advance(CLAIM_ANEW_US - 1);
    waiting_play("inspections=0 pass:1 inspections=1 seen own repeat");
    ck_assert(play_result(op)->is_repeat);
}

/* ---- readers ------------------------------------------------------------ */

/* Or each would have a token of its own, and one reader be several. */
TEST(of_readers_with_one_key_at_once_one_is_granted)
{
    waiting_play("a@,r,k b@,r,k d@,r,K c@,r,k repeat a=granted b=held c=held");
    ck_assert(play_result(waiting_op('b'))->is_shared);
    waiting_play("repeat d=granted");
}

/* ---- clients that have left, which nothing tells ------------------------- */

/* Not every proxy passes a close on: the client asks again, without a wait. */
static const char *const given_up[] = {"", "1+2", ""};

TEST_EACH(story_75_who_asks_again_without_a_wait_waits_no_more, given_up)
{
    const char *names = given_up[_i];
    const char *how = _i == 2 ? ",r" : "";
    waiting_play(textf("a@%s held b@%s,k%s c@%s d@%s,k,0%s b=held a=pending "
                       "c=pending waits=2 b.",
                       names, names, how, names, names, how));
}

/* It contends, and what it tries is under way. */
TEST(story_75_what_it_tries_is_released)
{
    waiting_play("a@,k b@ tries=1 c@,k,0 a=held");
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
    /* its own, and that of the next one, which is behind the release */
    waiting_play("tries=3 b=pending a.");
}

TEST(story_75_others_go_on_waiting)
{
    waiting_play("a@ held g@,K b@1,k c@,k,0 a=pending b=pending g=pending "
                 /* nor does one that waits itself end a wait */
                 "d@,k e@,k d=pending e=pending f@,k,0 d=held e=held");
}
