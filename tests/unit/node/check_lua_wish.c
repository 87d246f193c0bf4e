/*
 * The wish of a writer that readers keep out, on a real node: while it is there
 * no more readers get in, and the lock is the next writer's.
 */

#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "holders.h"

enum { WISH_MS = 500, A = 0 };

static void begin(void)
{
    live_setup_admitted();
    ck_assert_int_eq(holders_acquire(A, "~A", 0), VOTE_GRANTED);
}

SUITE(lua_wish, .set_up = begin, .tear_down = live_teardown);

static int inspect(void)
{
    return several_run(CALL_INSPECT, "a", "");
}

/* ---- left --------------------------------------------------------------- */

static const struct {
    enum call_kind kind;
    const char *names;
} writers[] = {
    {CALL_ACQUIRE, "a"},
    {CALL_ACQUIRE, "a\nb"},
    {CALL_REPEAT, "a"},
};

TEST_EACH(a_writer_that_is_kept_out_keeps_readers_out, writers)
{
    ck_assert_int_eq(several_run(writers[_i].kind, writers[_i].names, "B"),
                     VOTE_HELD);
    ck_assert_int_gt(holders_wish_ms(A), 0);
    ck_assert_int_le(holders_wish_ms(A), WISH_MS);
    ck_assert_int_eq(holders_acquire(A, "~C", 0), VOTE_HELD);
    ck_assert_int_eq(live.reply.holders, 1);
    ck_assert_str_eq(holders_of(A), "A");
    ck_assert(holders_are_told(A, 1, 0, LIVE_TTL_MS));
}

TEST(those_who_are_in_stay_in)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "B"), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~A"), VOTE_EXTENDED);
}

TEST(who_only_looks_leaves_no_wish)
{
    ck_assert_int_eq(inspect(), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "B"), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "B"), VOTE_HELD);
    ck_assert_int_eq(holders_acquire(A, "~C", 0), VOTE_GRANTED);
}

TEST(a_wish_ends)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "B"), VOTE_HELD);
    while (holders_wish_ms(A) >= 0)
        usleep(10000);
    ck_assert_int_eq(holders_acquire(A, "~C", 0), VOTE_GRANTED);
}

/* ---- fulfilled ---------------------------------------------------------- */

static void leave(void)
{
    ck_assert_int_eq(several_run(CALL_ACQUIRE, "a", "B"), VOTE_HELD);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "~A"), VOTE_DELETED);
}

TEST(a_lock_that_is_only_wished_for_is_free)
{
    leave();
    ck_assert_int_eq(inspect(), VOTE_FREE);
    ck_assert_int_eq(holders_acquire(A, "~C", 0), VOTE_HELD);
    ck_assert_int_gt(live.reply.holders, 0);
    ck_assert(!holders_let_in(A)); /* others wait until the wish has ended */
}

TEST_EACH(a_writer_takes_it, writers)
{
    leave();
    ck_assert_int_eq(several_run(writers[_i].kind, writers[_i].names, "C"),
                     VOTE_GRANTED);
    ck_assert_int_eq(inspect(), VOTE_HELD);
    ck_assert_str_eq(live.value, "C");
}

/* It is missing there, and is set: nobody holds it. */
TEST_RANGE(what_a_writer_holds_elsewhere_is_spread_over_it, 0, 2)
{
    const char *names = _i == 0 ? "a" : "a\nb";
    struct call repair = several_call(CALL_REPAIR, names, "B");
    leave();
    ck_assert_int_eq(several_run(CALL_EXTEND, names, "B"), VOTE_FREE);
    ck_assert_int_eq(live.reply.highest, _i == 0 ? 1 : 3);
    repair.seen = live.reply.highest;
    ck_assert_int_eq(live_ask(&repair), VOTE_GRANTED);
    ck_assert_int_eq(inspect(), VOTE_HELD);
    ck_assert_str_eq(live.value, "B");
}

TEST(a_writer_of_a_row_takes_it)
{
    leave();
    struct call calls[] = {several_call(CALL_ACQUIRE, "a", "C"),
                           several_call(CALL_ACQUIRE, "b", "D")};
    calls[1].number++;
    live_ask_all(calls, 2);
    ck_assert_int_eq(live.votes[0], VOTE_GRANTED);
    ck_assert_int_eq(live.votes[1], VOTE_GRANTED);
    ck_assert_int_eq(inspect(), VOTE_HELD);
    ck_assert_str_eq(live.value, "C");
}

TEST(it_goes_when_its_time_is_up)
{
    leave();
    while (master_integer(&live.master, "EXISTS p:a") == 1)
        usleep(10000);
    ck_assert_int_eq(holders_acquire(A, "~C", 0), VOTE_GRANTED);
}

/* Alone, of several, and in a row. */
TEST_RANGE(whoever_released_it_before_finds_it_free, 0, 3)
{
    leave();
    struct call calls[] = {several_call(CALL_RELEASE, "a", "D"),
                           several_call(CALL_RELEASE, "b", "D"),
                           several_call(CALL_RELEASE, "c", "D")};
    calls[1].slots[0]++;
    calls[2].slots[0] += 2;
    if (_i == 1)
        calls[0].resource = span_of("a\nb");
    live_ask_all(calls, _i < 2 ? 1 : 3);
    ck_assert_int_eq(live.votes[0], VOTE_FREE);
    ck_assert_int_gt(holders_wish_ms(A), 0);
}

/* It says what others cannot do about a lock, not about what is not ours. */
TEST(a_wish_without_an_end_keeps_nobody_out)
{
    master_integer(&live.master, "PERSIST p:a");
    holders_add(A, HOLDERS_WISH, WISH_MS);
    master_integer(&live.master, "PERSIST p:a");
    ck_assert_int_eq(holders_acquire(A, "~C", 0), VOTE_GRANTED);
    ck_assert_int_eq(live.downs, 0);
}
