/*
 * The script on a real redis-server, through a real link. What an acquire or a
 * release finds is in check_lua_rows.c, numbers of slots are in
 * check_lua_top.c.
 */
#include <stdio.h>

#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"
#include "../turns.h"
#include "live.h"

static long long pttl(const char *resource)
{
    return master_integer(&live.master, "PTTL p:%s", resource);
}

SUITE(lua, .timeout_s = 60, .set_up = live_setup, .tear_down = live_teardown);

TEST(a_lock_lives_from_acquire_to_release)
{
    live_admit();
    struct call call = live_call(CALL_ACQUIRE, "r", "A");
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(live_holder("r"), "A");
    ck_assert_int_gt(pttl("r"), LIVE_TTL_MS - 10000);
    ck_assert_int_le(pttl("r"), LIVE_TTL_MS);
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)call.number);
    ck_assert_str_eq(master_text(&live.master, "HGET p:redlockd:state 7"),
                     number);

    ck_assert_int_eq(live_run(CALL_INSPECT, "r", ""), VOTE_HELD);
    ck_assert_str_eq(live.value, "A");
    ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS - 10000);

    call = live_call(CALL_EXTEND, "r", "A");
    call.ttl_ms = 2 * LIVE_TTL_MS;
    ck_assert_int_eq(live_ask(&call), VOTE_EXTENDED);
    ck_assert_int_gt(pttl("r"), LIVE_TTL_MS);

    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 0);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live_run(CALL_INSPECT, "r", ""), VOTE_FREE);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 0);
    ck_assert_int_eq(live.downs, 0);
}

/* A probe of the link runs none of them. */
static const char *const counted[] = {"hmget",    "set", "hset",
                                      "getrange", "del", "hget"};
enum { COUNTED = sizeof counted / sizeof *counted };

/* Asks, and compares how often each of them was run. */
static void expect_counts(enum call_kind kind, const char *token, int vote,
                          const int *times)
{
    long long before[COUNTED];
    for (int i = 0; i < COUNTED; i++)
        before[i] = live_count_of(counted[i]);
    ck_assert_int_eq(live_run(kind, "r", token), vote);
    for (int i = 0; i < COUNTED; i++) {
        long long ran = live_count_of(counted[i]) - before[i];
        ck_assert_msg(ran == times[i], "%s: %lld, %d expected", counted[i], ran,
                      times[i]);
    }
}

/* Where lone.lua leaves a call to others, they repeat nothing. */
TEST(a_lone_call_runs_each_command_once)
{
    static const int granted[COUNTED] = {1, 1, 1, 0, 0, 0};
    static const int held[COUNTED] = {1, 1, 0, 1, 0, 0};
    static const int released[COUNTED] = {0, 0, 0, 1, 1, 1};
    live_admit();
    expect_counts(CALL_ACQUIRE, "A", VOTE_GRANTED, granted);
    expect_counts(CALL_ACQUIRE, "B", VOTE_HELD, held);
    expect_counts(CALL_RELEASE, "A", VOTE_DELETED, released);
    expect_counts(CALL_ACQUIRE, "B", VOTE_GRANTED, granted);
}

TEST(a_held_lock_is_held_for_others)
{
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_EXTEND,
                                           CALL_RELEASE};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(live_run(kinds[i], "r", "B"), VOTE_HELD);
        ck_assert_str_eq(live.value, "A");
        ck_assert_int_gt(live.reply.pttl_ms, LIVE_TTL_MS - 10000);
        ck_assert_str_eq(live_holder("r"), "A");
    }
    /* its own token does not take it a second time either */
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_HELD);
}

TEST(a_node_without_our_admission_is_quarantined)
{
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(live_run(CALL_INSPECT, "r", "A"), VOTE_NOT_ADMITTED);
    /* it still returns and deletes the locks that it has */
    master_text(&live.master, "SET p:r %s PX 10000", live_token("A"));
    ck_assert_int_eq(live_run(CALL_INSPECT, "r", ""), VOTE_HELD);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    struct call call = live_call(CALL_ACQUIRE, "s", "A");
    call.admit = span_of(LIVE_ADMIT); /* that is only how it begins */
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
    call.kind = CALL_EXTEND;
    call.resource = span_of("r");
    ck_assert_int_eq(live_ask(&call), VOTE_NOT_ADMITTED);
    master_text(&live.master, "FLUSHALL");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(master_integer(&live.master, "DBSIZE"), 0);
}

TEST(story_03_a_shorter_extension_shortens_nothing)
{
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    struct call call = live_call(CALL_EXTEND, "r", "A");
    for (call.ttl_ms = 0; call.ttl_ms <= 200; call.ttl_ms += 100) {
        ck_assert_int_eq(live_ask(&call), VOTE_EXTENDED);
        ck_assert_int_gt(pttl("r"), LIVE_TTL_MS - 10000);
    }
}

/* No end is longer than any. */
TEST(a_lock_without_ttl_is_held_and_keeps_none)
{
    live_admit();
    master_text(&live.master, "SET p:r %s", live_token("A"));
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "B"), VOTE_HELD);
    ck_assert_int_eq(live.reply.pttl_ms, -1);
    ck_assert_str_eq(live.value, "A");
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_EXTENDED);
    ck_assert_int_eq(pttl("r"), -1);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
}

/* It would be a later holder's resource, with a lower number. */
TEST(story_04_an_extension_creates_no_key)
{
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    master_text(&live.master, "DEL p:r");
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(pttl("r"), -2);
}

static const char *const foreign[] = {
    "HSET p:r field 1", "RPUSH p:r x",    "SADD p:r x",
    "ZADD p:r 1 x",     "XADD p:r * f v",
};

TEST_EACH(a_key_of_another_type_is_held, foreign)
{
    static const enum call_kind kinds[] = {CALL_ACQUIRE, CALL_EXTEND,
                                           CALL_RELEASE, CALL_INSPECT};
    live_admit();
    master_text(&live.master, foreign[_i]);
    for (int with_ttl = 0; with_ttl <= 1; with_ttl++) {
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(live_run(kinds[i], "r", "A"), VOTE_HELD);
            ck_assert_str_eq(live.value, "");
            ck_assert(with_ttl ? live.reply.pttl_ms > LIVE_TTL_MS
                               : live.reply.pttl_ms == -1);
        }
        master_integer(&live.master, "PEXPIRE p:r %d", 2 * LIVE_TTL_MS);
    }
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 1);
    ck_assert_int_eq(live.downs, 0);
}

TEST(a_long_value_is_cut_and_equals_no_token)
{
    char token[VALUE_MAX + 1];
    memset(token, 'x', sizeof token - 1);
    token[VALUE_MAX] = '\0';
    live_admit();
    master_text(&live.master, "SET p:r %s%s PX %d", token, "y", LIVE_TTL_MS);
    token[TOKEN_MAX] = '\0';
    ck_assert_int_eq(live_run(CALL_INSPECT, "r", ""), VOTE_HELD);
    ck_assert_uint_eq(strlen(live.value), VALUE_MAX);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", token), VOTE_HELD);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", token), VOTE_HELD);
    master_text(&live.master, "SET p:r %s PX %d", token, LIVE_TTL_MS);
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", token), VOTE_EXTENDED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", token), VOTE_DELETED);
    master_text(&live.master, "SET p:r %s", "");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_HELD);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_HELD);
}

TEST(a_user_without_a_command_gets_no_vote_not_held)
{
    live_admit();
    master_text(&live.master, "SET p:r x");
    master_text(&live.master, "ACL SETUSER default -getrange");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), UNFIT(NO_PERMISSION));
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), UNFIT(NO_PERMISSION));
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), UNFIT(NO_PERMISSION));
    ck_assert_int_eq(live_run(CALL_INSPECT, "r", "A"), UNFIT(NO_PERMISSION));
}

/* Calls that need a vote, and those that give it, go in batches of their own.
 */
TEST(batches_run_in_their_order)
{
    static const enum vote votes[] = {VOTE_NOT_ADMITTED, VOTE_DONE,
                                      VOTE_DONE,         VOTE_GRANTED,
                                      VOTE_DONE,         VOTE_NOT_ADMITTED};
    ck_assert_int_eq(live_run(CALL_LOOK, "", ""), VOTE_DONE);
    live_make_admission(live.admission, live.marked, 0);
    struct call calls[] = {
        live_call(CALL_ACQUIRE, "r", "A"), live_call(CALL_LOOK, "", ""),
        live_call(CALL_ADMIT, "", ""),     live_call(CALL_ACQUIRE, "r", "A"),
        live_call(CALL_REVOKE, "", ""),    live_call(CALL_ACQUIRE, "s", "A"),
    };
    enum { CALLS = sizeof calls / sizeof *calls };
    live_ask_all(calls, CALLS);
    for (int i = 0; i < CALLS; i++)
        ck_assert_int_eq(live.votes[i], votes[i]);
}

/* As long a reply as any; more than one read of the link. */
TEST(a_full_batch_of_long_values_is_read)
{
    struct call calls[BATCH_CALLS_MAX];
    char value[VALUE_MAX + 1];
    memset(value, 'v', VALUE_MAX);
    value[VALUE_MAX] = '\0';
    master_text(&live.master, "SET p:r %s", value);
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        calls[i] = live_call(CALL_INSPECT, "r", "");
    live_ask_all(calls, BATCH_CALLS_MAX);
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        ck_assert_int_eq(live.votes[i], VOTE_HELD);
    ck_assert_str_eq(live.value, value);
    ck_assert_int_eq(live.downs, 0);
}
