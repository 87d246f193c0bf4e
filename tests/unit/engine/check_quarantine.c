/*
 * How nodes that may have forgotten something get their vote back if too few
 * others can be asked: by time. With others: check_eligibility.c.
 */

#include "../../../server/engine/voting/members.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

static void mark(int node, const char *mark)
{
    voters_come(node, LOOK_FRESH, "", mark);
}

/* ---- time --------------------------------------------------------------- */

static const struct {
    int64_t max_ttl_ms, us;
} lengths[] = {
    {60000, VOTERS_QUARANTINE_US},
    {1000, 8000000 + 6000000}, /* four windows of two seconds */
    {7920, 8000000 + 6000000},
    {8000, 8080000 + 6000000},
    {86400000, 87264000000 + 6000000},
};

SUITE(quarantine, .set_up = voters_begin);

TEST_EACH(it_lasts_as_long_as_locks_and_numbers_that_were_forgotten, lengths)
{
    voters.settings.max_ttl_ms = lengths[_i].max_ttl_ms;
    voters_begin_again();
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[_i].us);
}

TEST(story_05_a_node_that_came_back_empty_waits_for_a_quarantine)
{
    mark(0, VOTERS_MARK);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_give(MEMBER_ADMIT, 0);
    ck_assert_int_eq(voters_remaining_us(0), 0);
}

TEST(before_an_admission_every_node_that_is_there_is_looked_at)
{
    voters_admit_from(3);
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters_wait(); /* which is too early to count */
    voters_pass(HEARTBEAT_US);
    voters_expect(MEMBER_LOOK, 0);
    voters_expect(MEMBER_LOOK, 3);
    voters_found(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_found(3, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(MEMBER_LOOK, 4);
    voters_expect_nothing();
    voters_found(4, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(MEMBER_ADMIT, 0);
}

/* One that answers errors only would hold up all others for ever. */
TEST(a_node_that_answers_no_look_holds_up_no_other)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    voters_up(1);
    voters_expect(MEMBER_LOOK, 0);
    voters_expect(MEMBER_LOOK, 1);
    voters_found(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect_nothing();
    voters_fail(MEMBER_LOOK, 1);
    voters_expect(MEMBER_ADMIT, 0);
}

TEST(a_node_that_answers_no_look_is_not_admitted)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    for (int i = 0; i < 5; i++) {
        voters_expect(MEMBER_LOOK, 0);
        voters_fail(MEMBER_LOOK, 0);
        voters_expect_nothing();
        voters_pass(VOTERS_SECOND);
    }
    ck_assert_int_eq(voters_look_around(), 1);
    voters_expect(MEMBER_ADMIT, 0);
}

TEST(a_lost_connection_does_not_stop_the_timer)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US / 2);
    voters_down(0);
    voters_pass(VOTERS_QUARANTINE_US - VOTERS_QUARANTINE_US / 2);
    voters_come(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect(MEMBER_ADMIT, 0);
}

TEST(story_25_every_loss_has_a_timer_of_its_own)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    (void)voters_look_around();
    voters_found(0, LOOK_FRESH, "", VOTERS_OTHER_MARK); /* a FLUSHALL */
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(MEMBER_ADMIT, 0);
}

/* Any of them may know of a promise that it would wait for. */
TEST(while_a_quorum_of_others_votes_time_alone_admits_nobody)
{
    voters_admit_from(2);
    voters.memory[2].rest_us = 100 * (int64_t)VOTERS_SECOND;
    voters_pass(1);
    mark(0, VOTERS_MARK);
    voters_pass_until(MEMBER_ADMIT,
                      HEARTBEAT_US + 1 + 101 * (int64_t)VOTERS_SECOND);
}

/* What the other nodes report at the end of a quarantine counts, too. */
TEST_RANGE(story_45_news_of_a_twin_at_the_last_moment_begin_it_anew, 0, 2)
{
    voters_admit_from(3);
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    if (_i == 0)
        voters.memory[3].floor[0] = 1; /* a twin promises */
    else                               /* … or was marked */
        strcpy(voters.memory[3].latest[0], VOTERS_BIRTH(3));
    (void)voters_look_around();
    voters_expect_nothing();
    voters.memory[0].beat = 1;
    voters_found(0, LOOK_CREATED, "", VOTERS_MARK_OF(4));
    voters_pass_without(MEMBER_ADMIT, VOTERS_SECOND);
    ck_assert_int_eq(voters_remaining_us(0),
                     VOTERS_QUARANTINE_US - VOTERS_SECOND);
}

/* A node whose clock stepped by an hour says it had run for an hour. */
TEST(story_07_no_word_of_the_node_shortens_its_quarantine)
{
    voters.memory[0] = (struct voters_memory){
        .beat = INT64_MAX, .rest_us = -1, .number = INT64_MAX};
    mark(0, VOTERS_MARK);
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(MEMBER_ADMIT, 0);
}

/* ---- the greatest TTL ---------------------------------------------------- */

TEST(story_33_the_greatest_ttl_governs_every_timer)
{
    mark(0, VOTERS_MARK);
    mark(1, VOTERS_OTHER_MARK);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters.max_ttl_ms = 2 * VOTERS_TTL_MS;
    (void)voters_look_around();
    ck_assert_int_eq(rules_quarantine_us(&voters.members),
                     VOTERS_QUARANTINE_US + 60600000);
    voters_pass_until(MEMBER_ADMIT, 60600001);
    voters_expect(MEMBER_ADMIT, 0);
}

/* Whoever still names the old one may have promised by it: who is down, too. */
TEST(a_lower_ttl_counts_once_no_node_names_the_greater_one)
{
    voters.settings.max_ttl_ms = 1000;
    voters_begin_again();
    mark(0, VOTERS_MARK);
    mark(1, VOTERS_MARK);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters.max_ttl_ms = 1000;
    voters_found(0, LOOK_MARKED, "", VOTERS_MARK);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters_down(1);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters_up(1);
    voters_found(1, LOOK_MARKED, "", VOTERS_MARK);
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[1].us);
}

TEST(a_ttl_that_some_hand_wrote_counts_as_a_day_at_most)
{
    voters.max_ttl_ms = INT64_MAX;
    mark(0, VOTERS_MARK);
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[4].us);
    voters.max_ttl_ms = INT64_MIN;
    mark(1, VOTERS_MARK);
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[4].us);
}
