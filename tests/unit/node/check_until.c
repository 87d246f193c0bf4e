/*
 * Until when a real Redis server has promised something: the field that each
 * promise moves, in whatever batch it comes, and what a look tells of it.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "permit.h"
#include "several.h"

enum {
    SHORT_MS = 5000,
    LONG_MS = 90000,
    SLACK_US = 3000000,
    STEP_US = 100000, /* it is rounded up to */
};

/* Acquires of several locks end where repeats do. */
static const struct {
    enum call_kind kind;
    const char *names;
    enum vote vote;
} promises[] = {
    {CALL_ACQUIRE, "a", VOTE_GRANTED}, {CALL_ACQUIRE, "a\nb\nc", VOTE_GRANTED},
    {CALL_REPEAT, "a", VOTE_GRANTED},  {CALL_REPEAT, "a\nb\nc", VOTE_GRANTED},
    {CALL_EXTEND, "a", VOTE_EXTENDED}, {CALL_EXTEND, "a\nb\nc", VOTE_EXTENDED},
};

enum { PROMISES = sizeof promises / sizeof *promises };

static void set_all(void)
{
    for (int i = 0; i < SEVERAL; i++)
        several_set(i, "A", SHORT_MS);
}

/* Such a promise, for so long. */
static void promise(int which, int64_t ttl_ms)
{
    master_integer(&live.master, "DEL p:a p:b p:c");
    if (promises[which].kind == CALL_EXTEND)
        set_all();
    struct call call =
        several_call(promises[which].kind, promises[which].names, "A");
    call.ttl_ms = ttl_ms;
    ck_assert_int_eq(live_ask(&call), promises[which].vote);
}

/* The end is so far from now, as a look tells, too. */
static void expect_rest(int64_t ttl_ms)
{
    int64_t left_us = permit_number("until") - live_node_now_us();
    ck_assert_int_le(left_us, ttl_ms * 1000 + 1000000);
    ck_assert_int_gt(left_us, ttl_ms * 1000 - SLACK_US);
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_le(live.reply.look.rest_us, ttl_ms * 1000 + STEP_US);
    ck_assert_int_gt(live.reply.look.rest_us, ttl_ms * 1000 - SLACK_US);
}

SUITE(until, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

/* ---- one promise --------------------------------------------------------- */

TEST_RANGE(it_is_when_the_promise_ends, 0, PROMISES)
{
    ck_assert_str_eq(permit_field("until"), "0");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.rest_us, 0);
    promise(_i, LIVE_TTL_MS);
    expect_rest(LIVE_TTL_MS);
    /* in ms, by the same clock */
    ck_assert_int_ge(permit_number("until"),
                     master_integer(&live.master, "PEXPIRETIME p:a") * 1000);
}

TEST_RANGE(it_is_the_greatest_of_all_ends, 0, PROMISES *PROMISES)
{
    int first = _i / PROMISES, second = _i % PROMISES;
    promise(first, LIVE_TTL_MS);
    long long until_us = permit_number("until");
    promise(second, SHORT_MS);
    ck_assert_int_eq(permit_number("until"), until_us);
    promise(first, LONG_MS);
    promise(second, LIVE_TTL_MS);
    expect_rest(LONG_MS);
}

/* Even if its lock is released: another majority may have heard nothing. */
TEST(a_release_does_not_lower_it)
{
    promise(0, LIVE_TTL_MS);
    ck_assert_int_eq(several_run(CALL_RELEASE, "a", "A"), VOTE_DELETED);
    expect_rest(LIVE_TTL_MS);
}

/* A lock lives longer than what is promised now: so it was promised before. */
TEST(an_extension_that_shortens_nothing_does_not_lower_it)
{
    promise(0, LIVE_TTL_MS);
    struct call call = several_call(CALL_EXTEND, "a", "A");
    for (call.ttl_ms = 0; call.ttl_ms <= 200; call.ttl_ms += 100)
        ck_assert_int_eq(live_ask(&call), VOTE_EXTENDED);
    expect_rest(LIVE_TTL_MS);
}

/* It counts in no majority, but what is there was promised. */
TEST_RANGE(a_repair_promises_what_it_sets, 0, 2)
{
    ck_assert_int_eq(several_run(CALL_REPAIR, _i == 0 ? "a" : "a\nb", "A"),
                     VOTE_GRANTED);
    expect_rest(LIVE_TTL_MS);
}

TEST(what_has_ended_is_no_rest)
{
    permit_set_number("until", live_node_now_us() - 1);
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.rest_us, 0);
}

/* ---- promises in one batch ----------------------------------------------- */

/* A row, what is no row, and more. An extension and locks in between. */
static const char places[] = "aaaeAaagaraaEaaa";

enum { PLACES = sizeof places - 1 };

static struct call call_at(int place, int64_t ttl_ms)
{
    static char names[PLACES][8];
    char letter = places[place];
    bool is_several = letter == 'A' || letter == 'E';
    enum call_kind kind = letter == 'r'                    ? CALL_RELEASE
                          : letter == 'g'                  ? CALL_REPEAT
                          : letter == 'e' || letter == 'E' ? CALL_EXTEND
                                                           : CALL_ACQUIRE;
    if (kind == CALL_EXTEND)
        PRINT_TO(names[place], is_several ? "a\nb" : "a");
    else
        PRINT_TO(names[place], is_several ? "n%d\nm%d" : "n%d", place, place);
    struct call call =
        live_call(kind, names[place], kind == CALL_EXTEND ? "A" : "B");
    call.slots[0] = (uint16_t)(100 + 2 * place);
    call.slots[1] = (uint16_t)(101 + 2 * place);
    call.ttl_ms = ttl_ms;
    return call;
}

/* The longest of them stands at each place once. */
TEST_RANGE(the_greatest_end_in_a_batch_counts, 0, PLACES)
{
    struct call calls[PLACES];
    set_all();
    for (int i = 0; i < PLACES; i++)
        calls[i] = call_at(i, i == _i ? LONG_MS : SHORT_MS + 100 * i);
    /* or a busy machine would part the batch: they would be too far apart */
    for (int i = 1; i < PLACES; i++)
        calls[i].node_deadline_us = calls[0].node_deadline_us;
    long long beat = permit_number("beat");
    live_ask_all(calls, PLACES);
    for (int i = 0; i < PLACES; i++)
        ck_assert_int_eq(live.votes[i], places[i] == 'r'   ? VOTE_FREE
                                        : places[i] == 'e' ? VOTE_EXTENDED
                                        : places[i] == 'E' ? VOTE_EXTENDED
                                                           : VOTE_GRANTED);
    ck_assert_int_eq(permit_number("beat"), beat + 1); /* so it was one batch */
    expect_rest(places[_i] == 'r' ? SHORT_MS + 100 * (PLACES - 1) : LONG_MS);
}

/* A longer end from before stays. */
TEST_RANGE(no_batch_lowers_it, 0, PLACES)
{
    struct call calls[PLACES];
    promise(0, LONG_MS);
    long long until_us = permit_number("until");
    set_all();
    for (int i = 0; i <= _i; i++)
        calls[i] = call_at(i, SHORT_MS);
    live_ask_all(calls, _i + 1);
    ck_assert_int_eq(permit_number("until"), until_us);
}

/* In a row, too, what is not granted promises nothing. */
TEST(only_what_a_row_grants_counts)
{
    struct call calls[4];
    ck_assert_str_eq(master_text(&live.master, "SET p:n1 foreign"), "OK");
    for (int i = 0; i < 4; i++)
        calls[i] = call_at(i % 3, i == 1 ? LONG_MS : SHORT_MS);
    calls[3].resource = span_of("x");
    calls[3].slots[0] = 90;
    live_ask_all(calls, 4);
    ck_assert_int_eq(live.votes[0], VOTE_GRANTED);
    ck_assert_int_eq(live.votes[1], VOTE_HELD);
    ck_assert_int_eq(live.votes[3], VOTE_GRANTED);
    expect_rest(SHORT_MS);
}

/* ---- what changes the permission ----------------------------------------- */

TEST(an_admission_begins_without_promises)
{
    promise(0, LIVE_TTL_MS);
    long long until_us = permit_number("until");
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    ck_assert_int_eq(permit_number("until"), until_us);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_int_gt(live.reply.look.rest_us, 0);
    ck_assert_int_eq(permit_number("until"), until_us);
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    ck_assert_str_eq(permit_field("until"), "0");
    promise(0, SHORT_MS);
    expect_rest(SHORT_MS);
}

TEST(a_readmission_keeps_its_promises)
{
    permit_restart(7);
    permit_set_number("until", live_node_now_us() + LIVE_TTL_MS * 1000);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_DONE);
    expect_rest(LIVE_TTL_MS);
}

/* ---- what could not be written ------------------------------------------- */

/*
 * Nor its beat: a server that heard of one that the node does not have would
 * take the node for an older memory.
 */
TEST_RANGE(a_promise_that_was_not_written_is_not_counted, 0, PROMISES + 2)
{
    struct call calls[3];
    bool is_batch = _i >= PROMISES; /* a single call in it, or a row */
    set_all();
    if (!is_batch && promises[_i].kind != CALL_EXTEND)
        master_integer(&live.master, "DEL p:a p:b p:c");
    for (int i = 0; i < 3; i++)
        calls[i] =
            is_batch ? call_at(_i == PROMISES ? 3 + i : i, SHORT_MS)
                     : several_call(promises[_i].kind, promises[_i].names, "A");
    long long beat = permit_number("beat");
    master_text(&live.master, "ACL SETUSER default -hset");
    live_ask_all(calls, is_batch ? 3 : 1);
    ck_assert_int_eq(live.votes[0], UNFIT(NO_PERMISSION));
    ck_assert_int_eq(live.reply.beat, 0);
    master_text(&live.master, "ACL SETUSER default +hset");
    ck_assert_int_eq(permit_number("beat"), beat);
    ck_assert_str_eq(permit_field("until"), "0");
    PERMIT_ASSERT_WORD(permit_look_above(beat, LIVE_NONCE), LOOK_ADMITTED);
}

/* It extends and deletes what it is asked to, and what it promises is recorded.
 */
TEST(a_full_node_tells_its_beat_beside_a_release)
{
    set_all();
    struct call calls[] = {several_call(CALL_EXTEND, "a", "A"),
                           several_call(CALL_RELEASE, "b", "A")};
    long long beat = permit_number("beat");
    master_text(&live.master, "CONFIG SET maxmemory 1");
    live_ask_all(calls, 2);
    master_text(&live.master, "CONFIG SET maxmemory 0");
    ck_assert_int_eq(live.votes[0], VOTE_EXTENDED);
    ck_assert_int_eq(live.votes[1], VOTE_DELETED);
    ck_assert_int_eq(live.reply.beat, beat + 1);
    ck_assert_int_eq(permit_number("beat"), beat + 1);
}
