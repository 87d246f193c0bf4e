/*
 * A link and what a real redis-server refuses.
 */
#include <check.h>
#include <stdio.h>

#include "live.h"
#include "turns.h"

START_TEST(errors_of_a_node_have_their_names)
{
    live_admit();
    ck_assert_str_eq(master_text(&live.master, "CONFIG SET maxmemory 1"), "OK");
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_OUT_OF_MEMORY);
    master_text(&live.master, "CONFIG SET maxmemory 0");
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    master_text(&live.master, "CONFIG SET maxmemory 1");
    ck_assert_int_eq(live_run(SCRIPT_RELEASE, "r", "A"), VOTE_DELETED);
    master_text(&live.master, "CONFIG SET maxmemory 0");
    master_text(&live.master, "REPLICAOF 127.0.0.1 1");
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_READ_ONLY);
    master_text(&live.master, "CLIENT KILL TYPE normal SKIPME yes");
    turns_until_count(live.loop, &live.downs, 2);
    ck_assert_int_eq(live.reason, VOTE_READ_ONLY);
    ck_assert_str_eq(live.detail, "is a replica of 127.0.0.1:1");
    master_text(&live.master, "REPLICAOF NO ONE");
    turns_until_count(live.loop, &live.ups, 2);
}
END_TEST

START_TEST(flushed_scripts_come_back)
{
    live_admit();
    master_text(&live.master, "SCRIPT FLUSH");
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_NO_SCRIPT);
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_eq(live.downs, 0);
}
END_TEST

START_TEST(a_node_at_its_maxclients_is_named)
{
    master_text(&live.master, "CONFIG SET maxclients 1");
    master_text(&live.master, "CLIENT KILL TYPE normal SKIPME yes");
    turns_until_count(live.loop, &live.downs, 2);
    ck_assert_msg(live.reason == VOTE_TOO_MANY, "%s", live.detail);
    master_text(&live.master, "CONFIG SET maxclients 100");
    turns_until_count(live.loop, &live.ups, 2);
}
END_TEST

START_TEST(passwords_and_databases_work)
{
    master_text(&live.master, "CONFIG SET requirepass s3cret");
    live_reconnect();
    turns_until_count(live.loop, &live.downs, 1);
    ck_assert_int_eq(live.reason, VOTE_NO_PERMISSION);
    snprintf(live.config.password, sizeof live.config.password, "wrong");
    turns_until_count(live.loop, &live.downs, 3);
    ck_assert_int_eq(live.reason, VOTE_NO_PERMISSION);
    snprintf(live.config.password, sizeof live.config.password, "s3cret");
    live.config.db = 5;
    turns_until_count(live.loop, &live.ups, 2);
    live_admit();
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 0);
    master_text(&live.master, "SELECT 5");
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 1);
}
END_TEST

Suite *check_link_live(void);

Suite *check_link_live(void)
{
    Suite *suite = suite_create("link_live");
    TCase *tcase = tcase_create("link_live");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, live_setup, live_teardown);
    tcase_add_test(tcase, errors_of_a_node_have_their_names);
    tcase_add_test(tcase, flushed_scripts_come_back);
    tcase_add_test(tcase, a_node_at_its_maxclients_is_named);
    tcase_add_test(tcase, passwords_and_databases_work);
    suite_add_tcase(suite, tcase);
    return suite;
}
