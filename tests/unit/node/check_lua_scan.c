/*
 * What a scan finds on a real node.
 */

#include "../../lib/suite/suite.h"
#include "live.h"

enum { KEYS = 500, LOOPS_MAX = 1000 };

static bool has(struct span names, const char *wanted)
{
    struct span name;
    while (call_next_name(&names, &name))
        if (span_is(name, wanted))
            return true;
    return false;
}

static struct call scan_of(const char *prefix, int count)
{
    struct call call = live_call(CALL_SCAN, prefix, "");
    call.admit = span_of("");
    call.count = count;
    return call;
}

static int count_names(struct span names)
{
    int count = 0;
    struct span name;
    while (call_next_name(&names, &name))
        count++;
    return count;
}

SUITE(lua_scan, .set_up = live_setup, .tear_down = live_teardown,
      .timeout_s = 60);

TEST(it_finds_strings_that_begin_with_the_prefix)
{
    struct call call = scan_of("a*", 100);
    master_text(&live.master, "SET p:a*b 1");
    master_text(&live.master, "SET p:aab 1");
    master_text(&live.master, "SET a*b 1");
    master_text(&live.master, "HSET p:a*hash f 1");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(live.reply.cursor, 0);
    ck_assert_int_eq(count_names(live.reply.names), 1);
    ck_assert(has(live.reply.names, "a*b"));

    call = scan_of("", 100);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(count_names(live.reply.names), 2);
    ck_assert(has(live.reply.names, "aab"));
}

TEST(it_finds_shared_locks_and_no_other_types)
{
    struct call call = scan_of("", 100);
    master_integer(&live.master, "ZADD p:readers 1 %s", live_token("~A"));
    master_integer(&live.master, "HSET p:hash f 1");
    master_integer(&live.master, "SADD p:set f");
    master_integer(&live.master, "RPUSH p:list f");
    master_text(&live.master, "SET p:writer 1");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(count_names(live.reply.names), 2);
    ck_assert(has(live.reply.names, "readers"));
    ck_assert(has(live.reply.names, "writer"));
}

TEST(special_characters_stand_for_themselves)
{
    static const char *const names[] = {"[a]", "?", "\\", "a^-]", "%1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        master_text(&live.master, "SET p:%s! 1", names[i]);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct call call = scan_of(names[i], 100);
        ck_assert_int_eq(live_ask(&call), VOTE_DONE);
        ck_assert_int_eq(count_names(live.reply.names), 1);
    }
}

TEST(it_goes_on_at_the_cursor)
{
    struct call call = scan_of("k", 20);
    int loops = 0, found = 0;
    for (int i = 0; i < KEYS; i++)
        master_text(&live.master, "SET p:k%d 1", i);
    do {
        ck_assert_int_eq(live_ask(&call), VOTE_DONE);
        found += count_names(live.reply.names);
        call.cursor = live.reply.cursor;
        ck_assert_int_lt(++loops, LOOPS_MAX);
    } while (call.cursor != 0);
    ck_assert_int_eq(found, KEYS);
    ck_assert_int_gt(loops, KEYS / 40);
}

TEST(longer_names_are_left_out)
{
    struct call call = scan_of("", 20);
    for (int len = 1020; len <= 1021; len++) {
        master_text(&live.master, "SET p:%s 1", textf("%0*d", len, 0));
    }
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(count_names(live.reply.names), 1);
}

TEST(a_node_that_denies_the_command_says_so)
{
    struct call call = scan_of("", 20);
    master_text(&live.master, "ACL SETUSER default -scan");
    ck_assert_int_eq(live_ask(&call), VOTE_KEY_REFUSED);
    ck_assert_int_eq(live_run(CALL_INSPECT, "r", ""), VOTE_NOT_ADMITTED);
}

TEST(other_calls_of_the_batch_are_answered)
{
    struct call calls[] = {
        live_call(CALL_INSPECT, "r", ""),
        scan_of("", 20),
        scan_of("", 20),
        live_call(CALL_INSPECT, "r", ""),
    };
    live_ask_all(calls, 4);
    ck_assert_int_eq(live.votes[0], VOTE_NOT_ADMITTED);
    ck_assert_int_eq(live.votes[1], VOTE_DONE);
    ck_assert_int_eq(live.votes[2], VOTE_DONE);
    ck_assert_int_eq(live.votes[3], VOTE_NOT_ADMITTED);
}
