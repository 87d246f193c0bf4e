/*
 * The bar on a real redis-server: no number that the node may have forgotten is
 * above it, so new locks need a higher one.
 */
#include "../../lib/suite/suite.h"
#include "permit.h"

enum { SLOT = 7, OTHER_SLOT = 8, ROW = 3, FAR_US = 1000 };

static int64_t bar_us; /* the bar; the top is far above it */

/* The node's numbers are compared only if they are not above its top. */
static void raise_top(void)
{
    struct call call = live_call(CALL_ACQUIRE, "top", "T");
    call.slots[0] = 99;
    call.number = bar_us + FAR_US;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
}

static void setup(void)
{
    live_setup();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    struct call call = live_call(CALL_ADMIT, "", "");
    bar_us = live_node_now_us();
    call.number = bar_us;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    raise_top();
}

/* The ways in which a lock is set, each by a part of the script of its own. */
static const struct way {
    enum call_kind kind;
    const char *names;
    int calls; /* in the batch; the others are about other locks */
} ways[] = {
    {CALL_ACQUIRE, "r", 1},    {CALL_ACQUIRE, "r", 2}, {CALL_ACQUIRE, "r", ROW},
    {CALL_ACQUIRE, "r\ns", 1}, {CALL_REPEAT, "r", 1},  {CALL_REPEAT, "r\ns", 1},
};

enum { WAYS = sizeof ways / sizeof *ways };

/* The vote on a lock that has this number; all others are above the top. */
static int ask(int way, int64_t number)
{
    static const char *const others[] = {"", "x", "y"};
    struct call calls[ROW];
    int64_t now_us = live_node_now_us();
    master_integer(&live.master, "DEL p:r p:s p:x p:y");
    calls[0] = live_call(ways[way].kind, ways[way].names, "A");
    calls[0].slots[0] = SLOT;
    calls[0].slots[1] = OTHER_SLOT;
    calls[0].number = number;
    for (int i = 1; i < ways[way].calls; i++) {
        calls[i] = live_call(CALL_ACQUIRE, others[i], "B");
        calls[i].slots[0] = (uint16_t)(20 + i);
        calls[i].number = (number > now_us ? number : now_us) + 1000000;
        calls[i].node_deadline_us = calls[0].node_deadline_us;
    }
    live_ask_all(calls, ways[way].calls);
    for (int i = 1; i < ways[way].calls; i++)
        ck_assert_int_eq(live.votes[i], VOTE_GRANTED);
    return live.votes[0];
}

SUITE(bar, .timeout_s = 60, .set_up = setup, .tear_down = live_teardown);

/* ---- what is above it ---------------------------------------------------- */

TEST_RANGE(a_number_must_be_above_it, 0, WAYS)
{
    for (int below = 0; below <= 5; below += 5) {
        ck_assert_int_eq(ask(_i, bar_us - below), VOTE_STALE);
        ck_assert_int_eq(live.answers[0].highest, bar_us);
        ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r p:s"), 0);
        ck_assert_str_eq(permit_field("7"), "");
    }
    ck_assert_int_eq(ask(_i, bar_us + 1), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("7"), bar_us + 1);
}

/* Whichever is the higher one decides, and is told. */
TEST_RANGE(a_number_must_be_above_its_slot_too, 0, WAYS)
{
    permit_set_number("7", bar_us - 5);
    ck_assert_int_eq(ask(_i, bar_us - 3), VOTE_STALE);
    ck_assert_int_eq(live.answers[0].highest, bar_us);
    permit_set_number("7", bar_us + 5);
    ck_assert_int_eq(ask(_i, bar_us + 3), VOTE_STALE);
    ck_assert_int_eq(live.answers[0].highest, bar_us + 5);
    ck_assert_int_eq(ask(_i, bar_us + 6), VOTE_GRANTED);
}

/* A memory that was converted has none. */
TEST_RANGE(without_one_the_slot_decides, 0, WAYS)
{
    permit_drop("bar");
    ck_assert_int_eq(ask(_i, bar_us - 5), VOTE_GRANTED);
    ck_assert_int_eq(ask(_i, bar_us - 5), VOTE_STALE);
    ck_assert_int_eq(live.answers[0].highest, bar_us - 5);
}

/* Their locks are not new: a majority has them. */
TEST_RANGE(repairs_and_extensions_need_not_be_above_it, 0, 2)
{
    const char *names = _i == 0 ? "r" : "r\ns";
    struct call call = live_call(CALL_REPAIR, names, "A");
    call.number = bar_us - 5;
    call.slots[1] = OTHER_SLOT;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("7"), bar_us - 5);
    call.kind = CALL_EXTEND;
    ck_assert_int_eq(live_ask(&call), VOTE_EXTENDED);
}

/* Nobody knows what it was: this fails, other calls of the batch do not. */
TEST_RANGE(one_that_is_no_number_is_above_all, 0, 6 * WAYS)
{
    static const char *const texts[] = {"spoilt", "nan", "1e300",
                                        "-5",     "",    "9007199254740992"};
    int way = _i % WAYS;
    permit_set("bar", texts[_i / WAYS]);
    ck_assert_int_eq(ask(way, bar_us + 1), UNFIT(FAILED));
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r p:s"), 0);
    ck_assert_str_eq(permit_field("7"), "");
    if (ways[way].kind == CALL_ACQUIRE && strlen(ways[way].names) == 1)
        ck_assert_int_eq(ask(way, live_node_now_us() + 2000000), VOTE_GRANTED);
    ck_assert_int_eq(live.downs, 0);
}

/* ---- where it comes from ------------------------------------------------- */

/* The highest number that the others tell; the top is never below it. */
TEST_RANGE(an_admission_writes_it, 0, 3)
{
    static const int64_t tops_us[] = {-5, 0, 5};
    int64_t number = live_node_now_us(), top = number + tops_us[_i];
    ck_assert_int_eq(permit_number("bar"), bar_us);
    ck_assert_int_eq(permit_number("top"), bar_us + FAR_US);
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    permit_set_number("top", top);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    struct call call = live_call(CALL_ADMIT, "", "");
    call.number = number;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("bar"), number);
    ck_assert_int_eq(permit_number("top"), top > number ? top : number);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.number, top > number ? top : number);
}

TEST(a_readmission_keeps_it)
{
    permit_restart(7);
    permit_set_number("bar", bar_us);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_DONE);
    ck_assert_int_eq(permit_number("bar"), bar_us);
}

/* ---- what is told -------------------------------------------------------- */

/* The highest number that it has accepted, or may have forgotten. */
TEST(a_look_tells_the_highest_of_top_and_bar)
{
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.number, bar_us + FAR_US);
    permit_set_number("top", bar_us - 5);
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.number, bar_us);
    permit_drop("bar");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.number, bar_us - 5);
}
