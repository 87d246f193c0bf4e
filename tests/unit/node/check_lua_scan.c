/*
 * What a scan finds on a real node.
 */
#include <check.h>
#include <stdio.h>

#include "live.h"

Suite *check_lua_scan(void);

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

START_TEST(it_finds_strings_that_begin_with_the_prefix)
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
END_TEST

START_TEST(special_characters_stand_for_themselves)
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
END_TEST

START_TEST(it_goes_on_at_the_cursor)
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
END_TEST

START_TEST(longer_names_are_left_out)
{
    struct call call = scan_of("", 20);
    char name[1100];
    for (int len = 1020; len <= 1021; len++) {
        snprintf(name, sizeof name, "%0*d", len, 0);
        master_text(&live.master, "SET p:%s 1", name);
    }
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(count_names(live.reply.names), 1);
}
END_TEST

START_TEST(a_node_that_denies_the_command_says_so)
{
    struct call call = scan_of("", 20);
    master_text(&live.master, "ACL SETUSER default -scan");
    ck_assert_int_eq(live_ask(&call), VOTE_KEY_REFUSED);
    ck_assert_int_eq(live_run(CALL_INSPECT, "r", ""), VOTE_QUARANTINED);
}
END_TEST

START_TEST(other_calls_of_the_batch_are_answered)
{
    struct call calls[] = {
        live_call(CALL_INSPECT, "r", ""),
        scan_of("", 20),
        scan_of("", 20),
        live_call(CALL_INSPECT, "r", ""),
    };
    live_ask_all(calls, 4);
    ck_assert_int_eq(live.votes[0], VOTE_QUARANTINED);
    ck_assert_int_eq(live.votes[1], VOTE_DONE);
    ck_assert_int_eq(live.votes[2], VOTE_DONE);
    ck_assert_int_eq(live.votes[3], VOTE_QUARANTINED);
}
END_TEST

Suite *check_lua_scan(void)
{
    Suite *suite = suite_create("lua_scan");
    TCase *tcase = tcase_create("lua_scan");
    tcase_add_checked_fixture(tcase, live_setup, live_teardown);
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, it_finds_strings_that_begin_with_the_prefix);
    tcase_add_test(tcase, special_characters_stand_for_themselves);
    tcase_add_test(tcase, it_goes_on_at_the_cursor);
    tcase_add_test(tcase, longer_names_are_left_out);
    tcase_add_test(tcase, a_node_that_denies_the_command_says_so);
    tcase_add_test(tcase, other_calls_of_the_batch_are_answered);
    suite_add_tcase(suite, tcase);
    return suite;
}
