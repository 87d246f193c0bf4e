/*
 * The numbers of shared locks on a real redis-server: what a reader needs, what
 * a writer needs, what the slot keeps of both.
 */

#include "../../lib/suite/suite.h"
#include "holders.h"
#include "permit.h"

/* So much before now that each number below is lower than that of a call that
 * takes the present time, however soon it comes. */
#define BEFORE_US 1000000

static int64_t base_us;

static void setup(void)
{
    live_setup_admitted();
    base_us = live_node_now_us() - BEFORE_US;
}

/* "<number in the slot>:<writer's number>", both counted from base_us on; 0 is
 * 0. */
static const char *numbers(int64_t slot_us, int64_t writer_us)
{
    return textf("%lld:%lld", (long long)(slot_us == 0 ? 0 : base_us + slot_us),
                 (long long)(writer_us == 0 ? 0 : base_us + writer_us));
}

static int write_lock(const char *token, int64_t offset_us)
{
    int vote = holders_acquire(0, token, base_us + offset_us);
    if (vote == VOTE_GRANTED)
        ck_assert_int_eq(several_run(CALL_RELEASE, "a", token), VOTE_DELETED);
    return vote;
}

static int read_lock(const char *token, int64_t offset_us)
{
    return holders_acquire(0, token, base_us + offset_us);
}

SUITE(lua_shared_numbers, .timeout_s = 60, .set_up = setup,
      .tear_down = live_teardown);

TEST(a_reader_needs_a_number_above_the_last_writer)
{
    ck_assert_int_eq(write_lock("W", 1000), VOTE_GRANTED);
    for (int64_t offset_us = 999; offset_us <= 1000; offset_us++) {
        ck_assert_int_eq(read_lock("~A", offset_us), VOTE_STALE);
        ck_assert_int_eq(live.reply.highest, base_us + 1000);
    }
    ck_assert_int_eq(several_pttl(0), -2);
    ck_assert_str_eq(holders_numbers(0), "");
    ck_assert_int_eq(read_lock("~A", 1001), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(1001, 1000));
}

TEST(but_not_above_other_readers)
{
    ck_assert_int_eq(write_lock("W", 1), VOTE_GRANTED);
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_GRANTED);
    ck_assert_int_eq(several_slot(0), base_us + 1000);
    ck_assert_int_eq(read_lock("~B", 500), VOTE_GRANTED);
    ck_assert_int_eq(read_lock("~C", 1000), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(1000, 1));
    ck_assert_int_eq(read_lock("~D", 2000), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(2000, 1));
    ck_assert_int_eq(master_integer(&live.master, "ZCARD p:a"), 4);
}

TEST(a_writer_needs_a_number_above_all)
{
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_GRANTED);
    ck_assert_int_eq(read_lock("~B", 500), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(1000, 0));
    master_integer(&live.master, "DEL p:a");
    ck_assert_int_eq(write_lock("W", 1000), VOTE_STALE);
    ck_assert_int_eq(live.reply.highest, base_us + 1000);
    ck_assert_int_eq(write_lock("W", 1001), VOTE_GRANTED);
    /* what the readers left does not count any more */
    ck_assert_str_eq(holders_numbers(0), numbers(1000, 0));
    ck_assert_int_eq(read_lock("~C", 1001), VOTE_STALE);
    ck_assert_int_eq(live.reply.highest, base_us + 1001);
    ck_assert_int_eq(read_lock("~C", 1002), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(1002, 1001));
}

/* A repair of a writer's lock counts like the writer, … */
TEST(readers_need_a_number_above_a_repair)
{
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_GRANTED);
    master_integer(&live.master, "DEL p:a");
    struct call repair = several_call(CALL_REPAIR, "a", "W");
    int64_t above_us = repair.number - base_us;
    ck_assert_int_eq(live_ask(&repair), VOTE_GRANTED);
    ck_assert_int_eq(several_slot(0), repair.number);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "W"), VOTE_DELETED);
    ck_assert_int_eq(read_lock("~B", above_us), VOTE_STALE);
    ck_assert_int_eq(read_lock("~B", above_us + 1), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(above_us + 1, above_us));
}

/* … and that of a reader's like the reader. */
TEST(but_not_above_that_of_another_reader)
{
    ck_assert_int_eq(write_lock("W", 1), VOTE_GRANTED);
    struct call repair = several_call(CALL_REPAIR, "a", "~A");
    int64_t above_us = repair.number - base_us;
    ck_assert_int_eq(live_ask(&repair), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(above_us, 1));
    ck_assert_int_eq(read_lock("~B", above_us - 1), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(above_us, 1));
}

/* After a downgrade, too. */
TEST(readers_need_a_number_above_a_writer_that_became_one)
{
    ck_assert_int_eq(read_lock("W", 1000), VOTE_GRANTED);
    ck_assert_int_eq(several_run(CALL_EXTEND, "a", "~W"), VOTE_EXTENDED);
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_STALE);
    ck_assert_int_eq(read_lock("~A", 1001), VOTE_GRANTED);
    ck_assert_str_eq(holders_of(0), "WA");
}

TEST(held_is_told_before_stale)
{
    ck_assert_int_eq(read_lock("W", 1000), VOTE_GRANTED);
    ck_assert_int_eq(read_lock("~A", 500), VOTE_HELD);
}

/* Alone and in a row: a reader raises the top as well. */
TEST(no_number_is_above_the_top)
{
    struct call calls[3];
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("top"), base_us + 1000);
    ck_assert_int_eq(read_lock("~B", 1001), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("top"), base_us + 1001);
    master_integer(&live.master, "DEL p:a");
    ck_assert_int_eq(write_lock("W", 1001), VOTE_STALE);
    static const char *const names[] = {"b", "a", "c"};
    for (int i = 0; i < 3; i++) {
        calls[i] = live_call(CALL_ACQUIRE, names[i], "W");
        calls[i].number = base_us + 1001;
        calls[i].slots[0] = (uint16_t)(names[i][0] - 'a' + 7);
    }
    live_ask_all(calls, 3);
    ck_assert_int_eq(live.votes[0], VOTE_GRANTED);
    ck_assert_int_eq(live.votes[1], VOTE_STALE);
    ck_assert_int_eq(live.votes[2], VOTE_GRANTED);
}

/* A state that lost it has none before the next admission. */
TEST(no_top_is_made)
{
    permit_drop("top");
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_GRANTED);
    ck_assert_str_eq(permit_field("top"), "");
    permit_set_number("top", base_us + 5000);
    ck_assert_int_eq(read_lock("~B", 2000), VOTE_GRANTED);
    ck_assert_int_eq(permit_number("top"), base_us + 5000);
}

TEST(a_reader_needs_a_number_above_the_bar)
{
    permit_set_number("bar", base_us + 1000);
    permit_set_number("top", base_us + 1000);
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_STALE);
    ck_assert_int_eq(live.reply.highest, base_us + 1000);
    ck_assert_int_eq(several_pttl(0), -2);
    ck_assert_int_eq(read_lock("~A", 1001), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(1001, 0));
    permit_set("bar", "spoilt");
    ck_assert_int_eq(read_lock("~B", 2000), UNFIT(FAILED));
    ck_assert_str_eq(holders_of(0), "A");
}

/* Nobody knows what the highest was. */
TEST_RANGE(a_spoilt_slot_grants_no_reader, 0, 4)
{
    static const char *const spoilt[] = {"spoilt", "nan", "1e300",
                                         "9007199254740992"};
    live_write_slot(7, spoilt[_i]);
    ck_assert_int_eq(read_lock("~A", 0), UNFIT(FAILED));
    ck_assert_int_eq(several_pttl(0), -2);
    ck_assert_str_eq(holders_numbers(0), "");
    ck_assert_int_eq(live.downs, 0);
}

/* Then any number may be a writer's. */
TEST_RANGE(without_the_writers_number_the_slots_counts, 0, 5)
{
    static const char *const spoilt[] = {"spoilt", "", "7", ":", "7:1"};
    ck_assert_int_eq(read_lock("~A", 1000), VOTE_GRANTED);
    permit_set("7s", spoilt[_i]);
    ck_assert_int_eq(read_lock("~B", 1000), VOTE_STALE);
    ck_assert_int_eq(live.reply.highest, base_us + 1000);
    ck_assert_int_eq(read_lock("~B", 1001), VOTE_GRANTED);
    ck_assert_str_eq(holders_numbers(0), numbers(1001, 1000));
}

/* What was promised is known, as with a writer. */
TEST(a_grant_is_a_promise)
{
    long long beat = several_beat();
    ck_assert_int_eq(read_lock("~A", 0), VOTE_GRANTED);
    ck_assert_int_eq(several_beat(), beat + 1);
    ck_assert_int_eq(live.reply.beat, beat + 1);
    ck_assert_int_ge(permit_number("until"),
                     1000 * master_integer(&live.master, "PEXPIRETIME p:a"));
    ck_assert_int_eq(holders_ask(CALL_EXTEND, 0, "~A", 2 * LIVE_TTL_MS),
                     VOTE_EXTENDED);
    ck_assert_int_eq(several_beat(), beat + 2);
    ck_assert_int_ge(permit_number("until"),
                     1000 * master_integer(&live.master, "PEXPIRETIME p:a"));
}

/* Late, with a number far ahead or far below, without the admission. */
TEST_RANGE(whoever_may_not_changes_nothing, 0, 2)
{
    enum { FAR_US = LIVE_WINDOW_US + 1000000 };
    const enum call_kind kind = _i == 0 ? CALL_ACQUIRE : CALL_REPEAT;
    const struct call good = several_call(kind, "a", "~A");
    struct call call = good;
    call.node_deadline_us = live_node_now_us() - 1000000;
    ck_assert_int_eq(live_ask(&call), VOTE_LATE);
    call = good;
    call.admit = span_of(LIVE_ADMIT); /* that is only how it begins */
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
    call = good;
    call.number += FAR_US;
    ck_assert_int_eq(live_ask(&call), VOTE_OUT_OF_RANGE);
    call.number -= 2 * (int64_t)FAR_US;
    ck_assert_int_eq(live_ask(&call), VOTE_OUT_OF_RANGE);
    ck_assert_int_eq(several_pttl(0), -2);
    ck_assert_int_eq(several_slot(0), 0);
    ck_assert_str_eq(holders_numbers(0), "");
    ck_assert_int_eq(live_ask(&good), VOTE_GRANTED);
}
