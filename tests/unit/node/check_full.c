/*
 * A real node above maxmemory: what is about locks that are there, and the
 * node's own state, goes on; nothing new is set, whatever else is in the batch.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "holders.h"
#include "permit.h"

#define HEX "0123456789abcdef0123456789abcdef01234567"
#define HASH "abcdefghijklmnopqrst-_"
#define FIRST "1700000000000005." HEX "+" HASH
#define SECOND "." HEX "+" HASH ".me"

enum { SHORT_MS = 5000, LONG_MS = 90000, SEEN_US = 1000000 };

static void fill(void)
{
    ck_assert_str_eq(master_text(&live.master, "CONFIG SET maxmemory 1"), "OK");
}

static void free_memory(void)
{
    ck_assert_str_eq(master_text(&live.master, "CONFIG SET maxmemory 0"), "OK");
}

static long long keys(void)
{
    return master_integer(&live.master, "DBSIZE");
}

SUITE(full, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

/* ---- holders ------------------------------------------------------------- */

/* What is promised is recorded, as on any node. */
static void expect_promise(long long beat)
{
    int64_t left_us = permit_number("until") - live_node_now_us();
    ck_assert_int_gt(left_us, (LONG_MS - SHORT_MS) * 1000);
    ck_assert_int_eq(permit_number("beat"), beat + 1);
    ck_assert_int_eq(live.reply.beat, beat + 1);
}

/* The first lock, for longer, once the node is full. */
static void extend_full(const char *token)
{
    long long beat = permit_number("beat");
    fill();
    ck_assert_int_eq(holders_ask(CALL_EXTEND, 0, token, LONG_MS),
                     VOTE_EXTENDED);
    expect_promise(beat);
}

TEST(a_lock_is_extended)
{
    several_set(0, "A", SHORT_MS);
    extend_full("A");
    ck_assert_int_gt(several_pttl(0), LONG_MS - SHORT_MS);
}

/* Nothing that needs no memory is written before its record. */
TEST(an_extension_that_adds_nothing_is_recorded)
{
    several_set(0, "A", 2 * LONG_MS);
    extend_full("A");
}

TEST(locks_of_several_resources_are_extended)
{
    for (int i = 0; i < SEVERAL; i++)
        several_set(i, "A", SHORT_MS);
    struct call call = several_call(CALL_EXTEND, "a\nb\nc", "A");
    call.ttl_ms = LONG_MS;
    long long beat = permit_number("beat");
    fill();
    ck_assert_int_eq(live_ask(&call), VOTE_EXTENDED);
    expect_promise(beat);
    for (int i = 0; i < SEVERAL; i++)
        ck_assert_int_gt(several_pttl(i), LONG_MS - SHORT_MS);
}

TEST(a_reader_is_extended)
{
    holders_add(0, "~A", SHORT_MS);
    holders_add(0, "~B", SHORT_MS);
    extend_full("~A");
    ck_assert_str_eq(holders_of(0), "BA");
}

TEST(a_lock_is_downgraded)
{
    several_set(0, "A", SHORT_MS);
    extend_full("~A");
    ck_assert_str_eq(holders_of(0), "A");
}

TEST(locks_are_released)
{
    several_set(0, "A", SHORT_MS);
    several_set(1, "A", SHORT_MS);
    holders_add(2, "~A", SHORT_MS);
    fill();
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "A"), VOTE_DELETED);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "A"), VOTE_FREE);
    ck_assert_int_eq(several_run(CALL_RELEASE, "b", "A"), VOTE_DELETED);
    ck_assert_int_eq(several_run(CALL_RELEASE, "c", "~A"), VOTE_DELETED);
    ck_assert_int_eq(keys(), 1); /* the state */
}

/* A repair may come when there is memory again. */
TEST(a_forced_release_leaves_its_tombstone)
{
    several_set(0, "A", SHORT_MS);
    fill();
    struct call call = several_call(CALL_RELEASE, "a", "A");
    call.tombstone_ms = LIVE_TOMBSTONE_MS;
    ck_assert_int_eq(live_ask(&call), VOTE_DELETED);
    free_memory();
    ck_assert_int_eq(several_run(CALL_REPAIR, "a", "A"), VOTE_CHANGED);
}

/* ---- the node itself ------------------------------------------------------
 */

TEST(a_look_beats_and_tells_of_it)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert(!live.reply.look.is_full);
    long long beat = permit_number("beat");
    fill();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert(live.reply.look.is_full);
    ck_assert_int_eq(permit_number("beat"), beat + 1);
    free_memory();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert(!live.reply.look.is_full);
}

TEST(a_look_behind_releases_tells_of_it)
{
    struct call calls[] = {several_call(CALL_RELEASE, "a", "A"),
                           several_call(CALL_RELEASE, "b", "A"),
                           several_call(CALL_RELEASE, "c", "A"),
                           live_call(CALL_LOOK, "", "")};
    several_set(0, "A", SHORT_MS);
    fill();
    live_ask_all(calls, 4);
    ck_assert_int_eq(live.votes[0], VOTE_DELETED);
    ck_assert_int_eq(live.votes[3], VOTE_DONE);
    ck_assert(live.reply.look.is_full);
}

TEST(a_node_is_marked_and_admitted)
{
    master_text(&live.master, "FLUSHALL");
    fill();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(live_run(CALL_ADMIT, "", ""), VOTE_DONE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
}

TEST(announcements_go_on)
{
    fill();
    live_listen(SEEN_US);
    ck_assert_int_gt(permit_number("listened_until"), live_node_now_us());
}

/* ---- what is new ----------------------------------------------------------
 */

static struct call shared_call(const char *name, const char *token)
{
    struct call call = several_call(CALL_ACQUIRE, name, token);
    call.readers_max = 100;
    return call;
}

/* The calls that would set something: a row of each, and of both. */
static struct call new_call(int which)
{
    switch (which) {
    case 0:
        return several_call(CALL_ACQUIRE, "a", "A");
    case 1:
        return several_call(CALL_ACQUIRE, "a\nb", "A");
    case 2:
        return several_call(CALL_REPEAT, "a", "A");
    case 3:
        return shared_call("a", "~A");
    case 4:
        return shared_call("c", "~A"); /* beside others */
    default:
        return several_call(CALL_REPAIR, "a", "A");
    }
}

enum { NEW = 6 };

TEST_RANGE(nothing_new_is_set, 0, NEW)
{
    struct call call = new_call(_i);
    holders_add(2, "~C", LONG_MS);
    holders_add(2, "~D", -1000);
    long long beat = permit_number("beat"), before = keys();
    fill();
    ck_assert_int_eq(live_ask(&call), UNFIT(OUT_OF_MEMORY));
    ck_assert_int_eq(keys(), before);
    ck_assert_int_eq(permit_number("beat"), beat);
    ck_assert_int_eq(several_slot(0), 0);
    ck_assert_str_eq(holders_numbers(2), "");
    free_memory();
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
}

/* Each of the others writes, and so would open the way. */
static struct call other_call(int which)
{
    switch (which) {
    case 0:
        return several_call(CALL_RELEASE, "b", "B");
    case 1:
        return several_call(CALL_EXTEND, "b", "B");
    case 2: {
        struct call call = several_call(CALL_RELEASE, "b", "B");
        call.tombstone_ms = LIVE_TOMBSTONE_MS;
        return call;
    }
    case 3:
        return several_call(CALL_RELEASE, "c", "~C");
    default:
        return live_call(CALL_LOOK, "", "");
    }
}

static const int other_votes[] = {VOTE_DELETED, VOTE_EXTENDED, VOTE_DELETED,
                                  VOTE_DELETED, VOTE_DONE};

enum { OTHERS = sizeof other_votes / sizeof *other_votes };

/* Calls of one slot are in no row together. */
static void part(struct call *calls, int count)
{
    enum { OTHER_SLOT = 20 };
    for (int i = 0; i < count; i++)
        if (calls[i].kind == CALL_RELEASE)
            calls[i].slots[0] = (uint16_t)(OTHER_SLOT + i);
}

/* Each has its own answer, in any order, and in rows. */
TEST_RANGE(neighbours_in_a_batch_change_nothing, 0, NEW *OTHERS * 3)
{
    int which = _i % NEW, other = _i / NEW % OTHERS, order = _i / NEW / OTHERS;
    struct call new = new_call(which), it = other_call(other);
    if (which == 1) /* not of the other's lock */
        new = several_call(CALL_ACQUIRE, "a", "A");
    struct call calls[4] = {it, new};
    if (order == 1) {
        calls[0] = new;
        calls[1] = it;
    }
    struct call row[] = {several_call(CALL_RELEASE, "d", "D"), it,
                         several_call(CALL_RELEASE, "e", "D"), new};
    several_set(1, "B", LONG_MS);
    holders_add(2, "~C", LONG_MS);
    holders_add(2, "~E", LONG_MS);
    part(calls, 2);
    part(row, 4);
    fill();
    live_ask_all(order == 2 ? row : calls, order == 2 ? 4 : 2);
    int at = order == 2 ? 1 : order;
    ck_assert_int_eq(live.votes[at], other_votes[other]);
    ck_assert_int_eq(live.votes[order == 2 ? 3 : 1 - at], UNFIT(OUT_OF_MEMORY));
    ck_assert_int_eq(several_pttl(0), -2);
    ck_assert_str_eq(holders_of(2), other == 3 ? "E" : "CE");
}

/* What keeps it out says more than that memory is short. */
TEST_RANGE(a_lock_that_is_held_is_told, 0, 4)
{
    several_set(0, "B", LONG_MS);
    holders_add(2, "~C", LONG_MS);
    struct call calls[] = {several_call(CALL_RELEASE, "b", "B"),
                           several_call(CALL_ACQUIRE, "a", "A"),
                           several_call(CALL_RELEASE, "d", "B")};
    if (_i == 1)
        calls[1] = several_call(CALL_ACQUIRE, "b\na", "A");
    else if (_i == 2)
        calls[1] = several_call(CALL_ACQUIRE, "c", "A");
    else if (_i == 3)
        calls[1] = shared_call("a", "~A");
    part(calls, 3);
    fill();
    ck_assert_int_eq(live_ask(&calls[1]), VOTE_HELD);
    live_ask_all(calls, 3);
    ck_assert_int_eq(live.votes[1], VOTE_HELD);
    ck_assert_int_eq(holders_wish_ms(2) > 0, false);
}

/* Nobody has it: a writer would be let in. */
TEST_RANGE(a_lock_that_is_only_wished_for_is_not_held, 0, 3)
{
    master_integer(&live.master, "ZADD p:c %lld " HOLDERS_WISH,
                   (long long)live_node_now_us() / 1000 + LONG_MS);
    master_integer(&live.master, "PEXPIRE p:c %d", LONG_MS);
    struct call calls[] = {several_call(CALL_RELEASE, "a", "B"),
                           several_call(CALL_ACQUIRE, "c", "A"),
                           several_call(CALL_RELEASE, "d", "B")};
    if (_i == 1)
        calls[1] = several_call(CALL_ACQUIRE, "b\nc", "A");
    part(calls, 3);
    fill();
    if (_i == 2)
        live_ask_all(calls, 3);
    else
        live.votes[1] = live_ask(&calls[1]);
    ck_assert_int_eq(live.votes[1], UNFIT(OUT_OF_MEMORY));
    ck_assert_int_gt(holders_wish_ms(2), 0);
}

/* ---- repeats --------------------------------------------------------------
 */

/* It takes the room of what it replaces. */
TEST_RANGE(a_repeat_replaces_its_own_lock, 0, 2)
{
    struct call call = several_call(CALL_REPEAT, "a", SECOND);
    struct call calls[] = {several_call(CALL_RELEASE, "b", "B"), call};
    calls[1].seen = call.seen = INT64_C(1700000000000005);
    several_set(0, FIRST, LONG_MS);
    fill();
    if (_i == 0)
        live.votes[1] = live_ask(&call);
    else
        live_ask_all(calls, 2);
    ck_assert_int_eq(live.votes[1], VOTE_GRANTED);
    ck_assert_int_eq(several_slot(0), call.number);
}

TEST(a_repeat_sets_nothing_new)
{
    struct call call = several_call(CALL_REPEAT, "a\nb", SECOND);
    call.seen = INT64_C(1700000000000005);
    several_set(0, FIRST, LONG_MS);
    fill();
    ck_assert_int_eq(live_ask(&call), UNFIT(OUT_OF_MEMORY));
    ck_assert_str_eq(several_value(0), FIRST);
    ck_assert_int_eq(several_pttl(1), -2);
}
