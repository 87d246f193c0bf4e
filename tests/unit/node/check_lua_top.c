/*
 * The top of the state, on a real redis-server: no slot has a number above it,
 * so most acquires need not read theirs.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "permit.h"

enum { SLOT = 7, OTHER_SLOT = 8, ROW = 4 };

static int64_t base_us; /* before all numbers that the tests give */

static void setup(void)
{
    live_setup_admitted();
    base_us = live_node_now_us();
}

static struct call call_with(enum call_kind kind, const char *resource,
                             const char *token, int64_t number)
{
    struct call call = live_call(kind, resource, token);
    call.number = number;
    call.slots[1] = OTHER_SLOT;
    return call;
}

/*
 * The vote on an acquire of this slot with this number. Unless it is alone, it
 * is in a row with three of other slots and lower numbers.
 */
static int acquire(int slot, int64_t number, bool is_alone)
{
    static const char *const names[ROW] = {"r", "s", "t", "u"};
    static const char *const tokens[ROW] = {"A", "B", "C", "D"};
    struct call calls[ROW];
    for (int i = 0; i < ROW; i++) {
        master_integer(&live.master, "DEL p:%s", names[i]);
        calls[i] = call_with(CALL_ACQUIRE, names[i], tokens[i], number - i);
        calls[i].slots[0] = (uint16_t)(slot + 100 * i);
    }
    live_ask_all(calls, is_alone ? 1 : ROW);
    return live.votes[0];
}

/* ---- what raises it ------------------------------------------------------ */

static const struct {
    enum call_kind kind;
    const char *resource;
} setters[] = {
    {CALL_ACQUIRE, "r"},   {CALL_ACQUIRE, "r\ns"}, {CALL_REPEAT, "r"},
    {CALL_REPEAT, "r\ns"}, {CALL_REPAIR, "r"},     {CALL_REPAIR, "r\ns"},
};

enum { SETTERS = sizeof setters / sizeof *setters };

SUITE(lua_top, .timeout_s = 60, .set_up = setup, .tear_down = live_teardown);

TEST_RANGE(it_is_the_highest_number_that_was_set, 0, SETTERS)
{
    struct call call =
        call_with(setters[_i].kind, setters[_i].resource, "A", base_us);
    ck_assert_int_eq(permit_number("top"), 0);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("top"), base_us);
    ck_assert_int_eq(permit_number("7"), base_us);
    /* what has a lower number leaves it */
    call.resource = span_of(call.resource.len == 1 ? "t" : "t\nu");
    call.token = span_of("B");
    call.slots[0] = 20;
    call.slots[1] = 21;
    call.number--;
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("top"), base_us);
    ck_assert_int_eq(permit_number("20"), base_us - 1);
}

/* Not the last one of the row, but the highest. */
TEST(a_row_raises_it_to_its_highest_number)
{
    ck_assert_int_eq(acquire(SLOT, base_us, false), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("top"), base_us);
    ck_assert_int_eq(permit_number("307"), base_us - 3);
}

/* Its own acquire was long ago: the slot may have a higher number. */
TEST_RANGE(a_repair_raises_it_only_above_its_slot, 0, 2)
{
    struct call repair = live_call(CALL_REPAIR, "r\ns\nt", "A");
    int64_t highest_us = repair.number + (_i == 0 ? 5 : -5);
    int64_t higher_us = _i == 0 ? highest_us : repair.number;
    ck_assert_int_eq(acquire(SLOT, highest_us, true), VOTE_GRANTED);
    ck_assert_int_eq(acquire(OTHER_SLOT, highest_us, true), VOTE_GRANTED);
    master_integer(&live.master, "DEL p:r");
    repair.slots[1] = SLOT; /* two locks share it */
    repair.slots[2] = OTHER_SLOT;
    ck_assert_int_eq(live_ask(&repair), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("7"), higher_us);
    ck_assert_int_eq(permit_number("8"), higher_us);
    ck_assert_int_eq(permit_number("top"), higher_us);
}

TEST(what_is_not_granted_does_not_raise_it)
{
    struct call calls[ROW];
    master_text(&live.master, "SET p:r foreign");
    for (int count = 1; count <= ROW; count += ROW - 1) {
        for (int i = 0; i < ROW; i++) {
            calls[i] = call_with(CALL_ACQUIRE, "r", "A", base_us + i);
            calls[i].slots[0] = (uint16_t)(SLOT + i); /* so they make a row */
        }
        live_ask_all(calls, count);
        ck_assert_int_eq(live.votes[count - 1], VOTE_HELD);
        ck_assert_int_eq(permit_number("top"), 0);
    }
}

/* ---- what it decides ----------------------------------------------------- */

/* At the top or below it, the number in the slot decides, as without a top. */
TEST_RANGE(a_number_that_is_not_above_it_is_compared_with_its_slot, 0, 4)
{
    bool is_alone = _i % 2 == 0, has_top = _i < 2;
    ck_assert_int_eq(acquire(SLOT, base_us, true), VOTE_GRANTED);
    if (!has_top)
        master_integer(&live.master, "HDEL " PERMIT_STATE " top");
    ck_assert_int_eq(acquire(SLOT, base_us, is_alone), VOTE_STALE);
    ck_assert_int_eq(live.answers[0].highest, base_us);
    ck_assert_int_eq(acquire(SLOT, base_us - 10, is_alone), VOTE_STALE);
    ck_assert_int_eq(live.answers[0].highest, base_us);
    ck_assert_int_eq(acquire(OTHER_SLOT, base_us, is_alone), VOTE_GRANTED);
    ck_assert_int_eq(acquire(OTHER_SLOT + 1, base_us - 20, is_alone),
                     VOTE_GRANTED);
    ck_assert_int_eq(acquire(SLOT, base_us + 10, is_alone), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("7"), base_us + 10);
    /* nothing makes a top where other slots may have any number */
    ck_assert_int_eq(permit_number("top"), has_top ? base_us + 10 : 0);
}

/* ---- where it comes from ------------------------------------------------- */

/* Before it, no slot has a number. */
TEST_RANGE(an_admission_begins_it, 0, 2)
{
    struct call call = live_call(CALL_ADMIT, "", "");
    master_text(&live.master, "FLUSHALL");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_str_eq(permit_field("top"), "");
    call.mark = span_of(live.marked);
    call.number = _i == 0 ? 0 : base_us;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("top"), call.number);
    ck_assert_str_ne(permit_field("top"), "");
}

TEST(a_state_that_is_there_keeps_its_own)
{
    ck_assert_int_eq(acquire(SLOT, base_us, true), VOTE_GRANTED);
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    ck_assert_int_eq(permit_number("top"), base_us);
    ck_assert_int_eq(permit_admit(permit_mark_of(PERMIT_OTHER_NONCE)),
                     VOTE_DONE);
    ck_assert_int_eq(permit_number("top"), base_us);
    PERMIT_ASSERT_WORD(permit_look_above(base_us + 1000000000, LIVE_NONCE),
                       LOOK_CREATED);
    ck_assert_int_eq(permit_number("top"), base_us);
}
