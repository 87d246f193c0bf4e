/*
 * The permission on the node: what look, admit, readmit and revoke do to a
 * real Redis server's state. Garbage in it is in check_permission_garbage.c.
 */
#include <check.h>
#include <stdio.h>

#include "permit.h"

/* ---- look ------------------------------------------------------------------
 */

START_TEST(a_node_without_state_is_empty_and_stays_so_at_a_peek)
{
    PERMIT_ASSERT_WORD(permit_peek(), LOOK_EMPTY);
    ck_assert(!permit_has_state());
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(live.mark, "");
    ck_assert_int_eq(live.reply.look.max_ttl_ms, 0);
    ck_assert(!live.reply.look.is_durable);
    ck_assert_int_eq(live.reply.look.beat_us, 0);
}
END_TEST

START_TEST(a_node_without_state_is_marked_once)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_str_eq(live.mark, LIVE_MARK);
    ck_assert_str_eq(permit_field("mark"), LIVE_MARK);
    PERMIT_ASSERT_WORD(permit_look_with("ffffffffffffffff"), LOOK_MARKED);
    ck_assert_str_eq(live.mark, LIVE_MARK);
    PERMIT_ASSERT_WORD(permit_peek(), LOOK_MARKED);
    ck_assert_int_eq(master_integer(&live.master, "HLEN " PERMIT_STATE), 1);
    ck_assert_int_eq(master_integer(&live.master, "PTTL " PERMIT_STATE), -1);
}
END_TEST

START_TEST(a_state_without_a_mark_of_this_life_is_bare)
{
    permit_set("7", "5");
    PERMIT_ASSERT_WORD(permit_peek(), LOOK_BARE);
    ck_assert_int_eq(master_integer(&live.master, "HLEN " PERMIT_STATE), 1);
    permit_set("mark", "1:older:ffffffffffffffff");
    PERMIT_ASSERT_WORD(permit_peek(), LOOK_BARE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(permit_field("mark"), LIVE_MARK);
    ck_assert_str_eq(permit_field("7"), "5");
}
END_TEST

START_TEST(the_admission_of_an_older_life_stays_as_evidence)
{
    permit_set("admit", PERMIT_OLD);
    permit_set("beat", "5");
    permit_set("durable", "1");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    ck_assert_str_eq(permit_field("admit"), PERMIT_OLD);
    ck_assert_int_eq(live.reply.look.beat_us, 5);
    ck_assert(live.reply.look.is_durable);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    ck_assert_str_eq(permit_field("beat"), "5"); /* nobody saw it admitted */
}
END_TEST

START_TEST(a_look_at_an_admitted_node_renews_its_beat)
{
    live_admit();
    permit_set("beat", "5");
    permit_set_number("max_ttl", 90000);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.beat_us, 5);
    ck_assert_int_eq(live.reply.look.max_ttl_ms, 90000);
    ck_assert_str_eq(live.admit, LIVE_ADMIT);
    ck_assert_int_eq(permit_number("beat"), live.reply.node_now_us);
    PERMIT_ASSERT_WORD(permit_peek(), LOOK_ADMITTED);
    ck_assert_int_eq(permit_number("beat"), live.reply.node_now_us);
}
END_TEST

START_TEST(a_beat_never_runs_backwards_by_a_look)
{
    live_admit();
    int64_t ahead_us = live_node_now_us() + 3600000000;
    permit_set_number("beat", ahead_us);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.beat_us, ahead_us);
    ck_assert_int_eq(permit_number("beat"), ahead_us);
}
END_TEST

START_TEST(story_29_durability_that_ended_is_written_down)
{
    live_admit();
    ck_assert_str_eq(permit_field("durable"), "1");
    struct script_call call = live_call(SCRIPT_LOOK, "", "");
    call.is_durable = false;
    call.nonce = span_of("");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert(!live.reply.look.is_durable);
    ck_assert_str_eq(permit_field("durable"), "0");
    PERMIT_ASSERT_WORD(permit_look(),
                       LOOK_ADMITTED); /* and no look writes it back */
    ck_assert(!live.reply.look.is_durable);
    ck_assert_str_eq(permit_field("durable"), "0");
}
END_TEST

START_TEST(story_06_a_flush_takes_permission_and_mark)
{
    live_admit();
    master_text(&live.master, "FLUSHALL");
    PERMIT_ASSERT_WORD(permit_peek(), LOOK_EMPTY);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_str_eq(permit_field("admit"), "");
}
END_TEST

/* ---- configurations
 * ------------------------------------------------------------ */

static const struct {
    const char *admit, *mark;
    enum script_look_word word;
} others[] = {
    {"2:fingerprint:run", "", LOOK_SUPERSEDED},
    {"", "2:run:n", LOOK_SUPERSEDED},
    {LIVE_ADMIT, "2:run:n", LOOK_SUPERSEDED},
    {"10:fingerprint:run", "", LOOK_SUPERSEDED},
    {"99999999999999999999:f:run", "", LOOK_SUPERSEDED},
    {"1:another:run", "", LOOK_FOREIGN},
    {"1:fingerprintx:run", "", LOOK_FOREIGN},
    {"1:another:run", LIVE_MARK, LOOK_FOREIGN},
    {"01:fingerprint:run", "", LOOK_FOREIGN},
};

START_TEST(story_10_another_configuration_is_never_touched)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        master_text(&live.master, "FLUSHALL");
        char before[256];
        if (others[i].admit[0] != '\0')
            permit_set("admit", others[i].admit);
        if (others[i].mark[0] != '\0')
            permit_set("mark", others[i].mark);
        permit_set("beat", "5");
        snprintf(before, sizeof before, "%s", permit_field("mark"));
        PERMIT_ASSERT_WORD(permit_look(), others[i].word);
        ck_assert_str_eq(live.admit, others[i].admit);
        ck_assert_str_eq(live.mark, others[i].mark);
        ck_assert_str_eq(permit_field("admit"), others[i].admit);
        ck_assert_str_eq(permit_field("mark"), before);
        ck_assert_str_eq(permit_field("beat"), "5");
        ck_assert_int_eq(permit_admit(LIVE_MARK), strcmp(before, LIVE_MARK) == 0
                                                      ? VOTE_DONE
                                                      : VOTE_CHANGED);
    }
}
END_TEST

START_TEST(story_32_a_lower_epoch_is_marked_and_has_no_vote_from_then_on)
{
    permit_set("admit", "1:fingerprint:run");
    permit_set("mark", "1:run:n");
    permit_set("durable", "1");
    struct script_call call = live_call(SCRIPT_LOOK, "", "");
    call.admit = span_of("2:fingerprint:run");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    PERMIT_ASSERT_WORD(live.reply.look.word, LOOK_CREATED);
    ck_assert_str_eq(live.admit, "1:fingerprint:run"); /* as it was */
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_str_eq(permit_field("mark"), "2:run:" LIVE_NONCE);
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_QUARANTINED);
    ck_assert_int_eq(live_run(SCRIPT_LOOK, "", ""), VOTE_DONE);
    PERMIT_ASSERT_WORD(live.reply.look.word, LOOK_SUPERSEDED);
}
END_TEST

/* ---- admit
 * ------------------------------------------------------------------------ */

START_TEST(an_admission_ends_the_quarantine)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_admit(LIVE_MARK), VOTE_DONE);
    ck_assert_str_eq(permit_field("admit"), LIVE_ADMIT);
    ck_assert_str_eq(permit_field("mark"), "");
    ck_assert_str_eq(permit_field("durable"), "1");
    ck_assert_int_eq(permit_number("max_ttl"), LIVE_TTL_MS);
    ck_assert_int_eq(permit_number("beat"), live.reply.node_now_us);
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
}
END_TEST

START_TEST(story_26_an_admission_that_comes_late_does_nothing)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    if (_i == 0) {
        ck_assert_int_eq(permit_admit(LIVE_MARK), VOTE_DONE);
        ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    } else {
        master_text(&live.master, "FLUSHALL");
        if (_i == 2)
            PERMIT_ASSERT_WORD(permit_look_with("ffffffffffffffff"),
                               LOOK_FRESH);
    }
    ck_assert_int_eq(permit_admit(LIVE_MARK), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_str_eq(permit_field("mark"), _i == 1 ? "" : PERMIT_OTHER_MARK);
    ck_assert(permit_has_state() == (_i != 1));
}
END_TEST

START_TEST(the_second_of_two_admissions_does_nothing)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_admit(LIVE_MARK), VOTE_DONE);
    ck_assert_int_eq(permit_admit(LIVE_MARK), VOTE_CHANGED);
    ck_assert_int_eq(permit_admit(""), VOTE_CHANGED);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
}
END_TEST

START_TEST(story_33_the_greatest_ttl_only_rises)
{
    static const int ttls[] = {5000, 90000, 60000};
    static const int greatest[] = {5000, 90000, 90000};
    for (int i = 0; i < 3; i++) {
        struct script_call call = live_call(SCRIPT_ADMIT, "", "");
        PERMIT_ASSERT_WORD(permit_look(), i == 0 ? LOOK_FRESH : LOOK_MARKED);
        call.found = span_of(i == 0 ? LIVE_MARK : PERMIT_OTHER_MARK);
        call.max_ttl_ms = ttls[i];
        ck_assert_int_eq(live_ask(&call), VOTE_DONE);
        ck_assert_int_eq(permit_number("max_ttl"), greatest[i]);
        ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    }
}
END_TEST

/* ---- readmit
 * ------------------------------------------------------------------------ */

START_TEST(a_durable_node_gets_its_permission_back)
{
    int64_t beat_us = permit_restarted(_i == 0 ? 1000000 : 59000000);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD, beat_us), VOTE_DONE);
    ck_assert_str_eq(permit_field("admit"), LIVE_ADMIT);
    ck_assert_str_eq(permit_field("mark"), "");
    ck_assert_str_eq(permit_field("durable"), "1");
    ck_assert_int_eq(permit_number("beat"), live.reply.node_now_us);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD, beat_us), VOTE_CHANGED);
}
END_TEST

static void readmit_after(int change)
{
    master_text(&live.master, "FLUSHALL");
    int64_t beat_us = permit_restarted(1000000);
    switch (change) {
    case 0: /* a life without durability was seen */
        permit_set("durable", "0");
        break;
    case 1: /* a backup, or a long sleep */
        permit_set_number("beat", live_node_now_us() - 60100000);
        break;
    case 2: /* older than what was seen before */
        beat_us++;
        break;
    case 3: /* its clock ran backwards */
        permit_set_number("beat", live_node_now_us() + 60000000);
        break;
    case 4:
        permit_set("admit", "1:fingerprint:older");
        break;
    case 5:
        master_integer(&live.master, "HDEL " PERMIT_STATE " admit");
        break;
    case 6:
        master_integer(&live.master, "HDEL " PERMIT_STATE " beat");
        break;
    case 7:
        master_integer(&live.master, "HDEL " PERMIT_STATE " durable");
        break;
    case 8:
        master_text(&live.master, "FLUSHALL");
        break;
    default:
        break;
    }
    ck_assert_int_eq(permit_readmit(PERMIT_OLD, beat_us), VOTE_CHANGED);
    ck_assert_str_ne(permit_field("admit"), LIVE_ADMIT);
}

START_TEST(story_29_old_memory_gives_nothing_back)
{
    for (int change = 0; change < 9; change++)
        readmit_after(change);
}
END_TEST

/* ---- revoke
 * ------------------------------------------------------------------------- */

START_TEST(a_revocation_takes_the_permission_and_leaves_a_new_mark)
{
    live_admit();
    ck_assert_int_eq(live_run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_str_eq(permit_field("mark"), PERMIT_OTHER_MARK);
    ck_assert_int_eq(live_run(SCRIPT_EXTEND, "r", "A"), VOTE_QUARANTINED);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 1);
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
}
END_TEST

START_TEST(a_spent_mark_that_is_back_is_replaced)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_revoke(PERMIT_OTHER_MARK), VOTE_CHANGED);
    ck_assert_int_eq(permit_revoke(LIVE_MARK), VOTE_DONE);
    ck_assert_str_eq(permit_field("mark"), PERMIT_OTHER_MARK);
}
END_TEST

START_TEST(a_revocation_touches_no_other_state)
{
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
    ck_assert(!permit_has_state());
    permit_set("admit", PERMIT_OLD);
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
    ck_assert_int_eq(permit_revoke(LIVE_MARK), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("admit"), PERMIT_OLD);
    ck_assert_str_eq(permit_field("mark"), "");
}
END_TEST

/* In one batch the calls behind it know of it. */
START_TEST(what_changes_the_permission_is_known_to_the_calls_behind_it)
{
    static const enum vote votes[] = {VOTE_GRANTED, VOTE_DONE, VOTE_QUARANTINED,
                                      VOTE_CHANGED, VOTE_QUARANTINED};
    live_admit();
    struct script_call calls[] = {
        live_call(SCRIPT_ACQUIRE, "r", "A"), live_call(SCRIPT_REVOKE, "", ""),
        live_call(SCRIPT_ACQUIRE, "s", "A"), live_call(SCRIPT_ADMIT, "", ""),
        live_call(SCRIPT_ACQUIRE, "s", "A"),
    };
    calls[1].nonce = span_of("ffffffffffffffff");
    live_ask_all(calls, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(live.votes[i], votes[i]);
}
END_TEST

static void add_admissions(TCase *tc)
{
    tcase_add_test(tc, an_admission_ends_the_quarantine);
    tcase_add_loop_test(tc, story_26_an_admission_that_comes_late_does_nothing,
                        0, 3);
    tcase_add_test(tc, the_second_of_two_admissions_does_nothing);
    tcase_add_test(tc, story_33_the_greatest_ttl_only_rises);
    tcase_add_loop_test(tc, a_durable_node_gets_its_permission_back, 0, 2);
    tcase_add_test(tc, story_29_old_memory_gives_nothing_back);
    tcase_add_test(tc, a_revocation_takes_the_permission_and_leaves_a_new_mark);
    tcase_add_test(tc, a_spent_mark_that_is_back_is_replaced);
    tcase_add_test(tc, a_revocation_touches_no_other_state);
    tcase_add_test(tc,
                   what_changes_the_permission_is_known_to_the_calls_behind_it);
}

Suite *check_permission(void);

Suite *check_permission(void)
{
    Suite *suite = suite_create("permission");
    TCase *tc = tcase_create("permission");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, live_setup, live_teardown);
    tcase_add_test(tc, a_node_without_state_is_empty_and_stays_so_at_a_peek);
    tcase_add_test(tc, a_node_without_state_is_marked_once);
    tcase_add_test(tc, a_state_without_a_mark_of_this_life_is_bare);
    tcase_add_test(tc, the_admission_of_an_older_life_stays_as_evidence);
    tcase_add_test(tc, a_look_at_an_admitted_node_renews_its_beat);
    tcase_add_test(tc, a_beat_never_runs_backwards_by_a_look);
    tcase_add_test(tc, story_29_durability_that_ended_is_written_down);
    tcase_add_test(tc, story_06_a_flush_takes_permission_and_mark);
    tcase_add_test(tc, story_10_another_configuration_is_never_touched);
    tcase_add_test(
        tc, story_32_a_lower_epoch_is_marked_and_has_no_vote_from_then_on);
    add_admissions(tc);
    suite_add_tcase(suite, tc);
    return suite;
}
