/*
 * How nodes that may have forgotten something get their vote back: by time.
 */

#include "../../../server/engine/eligibility.h"
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
    {1000, 4000000 + 6050000}, /* four windows of a second */
    {100, 4000000 + 6050000},
    {4000, 4040000 + 6050000},
    {86400000, 87264000000 + 6050000},
};

SUITE(quarantine, .set_up = voters_begin);

TEST_EACH(it_lasts_as_long_as_locks_and_numbers_that_were_forgotten, lengths)
{
    voters.settings.max_ttl_ms = lengths[_i].max_ttl_ms;
    voters_begin_again();
    ck_assert_int_eq(eligibility_quarantine_us(&voters.admission),
                     lengths[_i].us);
}

TEST(story_05_a_node_that_came_back_empty_waits_for_a_quarantine)
{
    mark(0, VOTERS_MARK);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters_wait();
    ck_assert_int_eq(voters_remaining_us(0), 1);
    voters_pass(1);
    ck_assert_int_eq(voters_look_around(), 1); /* the second look */
    voters_give(ADMISSION_ADMIT, 0);
    ck_assert_int_eq(voters_remaining_us(0), 0);
}

TEST(before_an_admission_every_node_that_is_there_is_looked_at)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_down(4);
    (void)voters_look_around();
    voters_found(0, LOOK_FRESH, "", VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters_wait(); /* which is too early to count */
    voters_pass(1);
    for (int i = 0; i < 3; i++)
        voters_expect(ADMISSION_LOOK, i);
    voters_found(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_found(1, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_found(2, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(ADMISSION_LOOK, 3);
    voters_expect_nothing();
    voters_found(3, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(ADMISSION_ADMIT, 0);
}

/* One that answers errors only would hold up all others for ever. */
TEST(a_node_that_answers_no_look_holds_up_no_other)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    voters_up(1);
    voters_expect(ADMISSION_LOOK, 0);
    voters_expect(ADMISSION_LOOK, 1);
    voters_found(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect_nothing();
    voters_fail(ADMISSION_LOOK, 1);
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST(a_node_that_answers_no_look_is_not_admitted)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    for (int i = 0; i < 5; i++) {
        voters_expect(ADMISSION_LOOK, 0);
        voters_fail(ADMISSION_LOOK, 0);
        voters_expect_nothing();
        voters_pass(VOTERS_SECOND);
    }
    ck_assert_int_eq(voters_look_around(), 1);
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST(a_lost_connection_does_not_stop_the_timer)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US / 2);
    voters_down(0);
    voters_pass(VOTERS_QUARANTINE_US - VOTERS_QUARANTINE_US / 2);
    voters_come(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST(story_25_every_loss_has_a_timer_of_its_own)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    (void)voters_look_around();
    voters_found(0, LOOK_FRESH, "", VOTERS_OTHER_MARK); /* a FLUSHALL */
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters_wait();
    voters_pass(1);
    ck_assert_int_eq(voters_look_around(), 1);
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST(story_06_memory_lost_on_a_live_connection_is_a_loss_like_any_other)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    admission_on_quarantined(&voters.admission, 1, voters.now_us);
    voters_expect(ADMISSION_LOOK, 1);
    voters_found(1, LOOK_FRESH, "", VOTERS_MARK);
    VOTERS_ASSERT_REFUSAL(1, STATE_QUARANTINED);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters_wait();
    voters_pass(1);
    ck_assert_int_eq(voters_look_around(), VOTERS_NODES);
    voters_expect(ADMISSION_ADMIT, 1);
}

/* What the other nodes report at the end of a quarantine counts, too. */
TEST_RANGE(story_45_news_of_a_twin_at_the_last_moment_begin_it_anew, 0, 2)
{
    int64_t born_us = voters.now_us;
    voters_admit_from(1, 0);
    voters_come(0, LOOK_FRESH, "", voters_mark_of(born_us));
    voters_pass(VOTERS_QUARANTINE_US);
    if (_i == 0)
        voters.memory[3].floor[0] = 1; /* a twin promises */
    else
        voters.memory[3].latest_us[0] = born_us + 1; /* … or was marked */
    (void)voters_look_around();
    voters_expect_nothing();
    voters.memory[0].beat = 1;
    voters_found(0, LOOK_CREATED, "", voters_mark_of(voters.now_us));
    voters_pass_without(ADMISSION_ADMIT, VOTERS_SECOND);
    ck_assert_int_eq(voters_remaining_us(0),
                     VOTERS_QUARANTINE_US - VOTERS_SECOND);
}

/* S2 takes the vote away, S1 comes back with its timer run out long ago. */
TEST(story_26_an_old_timer_admits_no_node_that_was_lost_again)
{
    mark(0, VOTERS_MARK);
    voters_down(0);
    voters_pass(10 * (int64_t)VOTERS_QUARANTINE_US);
    voters_come(0, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    voters_wait();
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
}

TEST(an_admission_that_came_too_late_begins_with_a_look)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    (void)voters_look_around();
    voters_do(ADMISSION_ADMIT, 0);
    VOTERS_ASSERT_PHASE(0, ADMISSION_UNSEEN);
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    voters_expect(ADMISSION_LOOK, 0);
    voters_found(0, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    voters_wait();
}

TEST(an_admission_without_an_answer_is_looked_at_and_tried_again)
{
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US);
    (void)voters_look_around();
    voters_expect(ADMISSION_ADMIT, 0);
    voters_fail(ADMISSION_ADMIT, 0);
    VOTERS_ASSERT_PHASE(0, ADMISSION_UNSEEN);
    voters_expect_nothing();
    voters_pass(VOTERS_SECOND);
    voters_expect(ADMISSION_LOOK, 0);
    voters_found(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect(ADMISSION_ADMIT, 0);
}

/* A node whose clock stepped by an hour says it had run for an hour. */
TEST(story_07_no_word_of_the_node_shortens_its_quarantine)
{
    voters.memory[0] = (struct voters_memory){
        .beat = INT64_MAX, .seen_us = 3600000000, .voted_us = 3600000000};
    mark(0, VOTERS_MARK);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters_wait();
    voters_pass(1);
    (void)voters_look_around();
    voters_expect(ADMISSION_ADMIT, 0);
}

/* ---- the greatest TTL ---------------------------------------------------- */

TEST(story_33_the_greatest_ttl_governs_every_timer)
{
    mark(0, VOTERS_MARK);
    mark(1, VOTERS_OTHER_MARK);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters.max_ttl_ms = 2 * VOTERS_TTL_MS;
    (void)voters_look_around();
    ck_assert_int_eq(eligibility_quarantine_us(&voters.admission),
                     VOTERS_QUARANTINE_US + 60600000);
    voters_pass(60600000);
    voters_wait();
    voters_pass(1);
    (void)voters_look_around();
    voters_expect(ADMISSION_ADMIT, 0);
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
    ck_assert_int_eq(eligibility_quarantine_us(&voters.admission),
                     lengths[1].us);
}

TEST(a_ttl_that_some_hand_wrote_counts_as_a_day_at_most)
{
    voters.max_ttl_ms = INT64_MAX;
    mark(0, VOTERS_MARK);
    ck_assert_int_eq(eligibility_quarantine_us(&voters.admission),
                     lengths[4].us);
    voters.max_ttl_ms = INT64_MIN;
    mark(1, VOTERS_MARK);
    ck_assert_int_eq(eligibility_quarantine_us(&voters.admission),
                     lengths[4].us);
}

/* ---- the birth of a mark ------------------------------------------------- */

/* Servers that are restarted every few seconds would never end one else. */
TEST(story_48_a_quarantine_goes_on_when_servers_are_restarted)
{
    int64_t born_us = voters.now_us;
    const char *made = voters_mark_of(born_us);
    for (int i = 0; i < 13; i++) {
        voters_begin_again();
        mark(0, made);
        ck_assert_int_eq(voters_remaining_us(0),
                         born_us + VOTERS_QUARANTINE_US - voters.now_us);
        voters_pass_without(ADMISSION_ADMIT, 5 * VOTERS_SECOND);
    }
    voters_pass_until(ADMISSION_ADMIT,
                      born_us + VOTERS_QUARANTINE_US - voters.now_us);
    voters_expect(ADMISSION_ADMIT, 0);
}

static const char *const strange[] = {
    "1:" VOTERS_LIFE ":0:aaaaaaaaaaaaaaaa", /* who made it knew no time */
    "1:" VOTERS_LIFE,
    "1:" VOTERS_LIFE ":",
    "1:" VOTERS_LIFE ":9223372036854775807:a", /* is yet to come */
    "1:" VOTERS_LIFE ":99999999999999999999999999999999:a",
    "",
};

TEST_EACH(a_birth_that_says_nothing_counts_from_the_first_sight, strange)
{
    if (strange[_i][0] == '\0') /* a good one, but no clocks to read it by */
        admission_on_median(&voters.admission, false, VOTERS_EPOCH_US, 0);
    mark(0, strange[_i][0] != '\0' ? strange[_i] : voters_mark_of(1));
    int64_t left_us = voters_remaining_us(0);
    ck_assert_int_eq(left_us, VOTERS_QUARANTINE_US);
    voters_pass_without(ADMISSION_ADMIT, VOTERS_QUARANTINE_US - 1);
}

/* Sooner it is not known whether another server sees it vote. */
TEST(story_45_a_mark_of_long_ago_is_watched_for_three_heartbeats)
{
    mark(0, voters_mark_of(1));
    ck_assert_int_eq(voters_remaining_us(0), 3 * HEARTBEAT_US);
    voters_pass_until(ADMISSION_ADMIT, 3 * HEARTBEAT_US);
    voters_expect(ADMISSION_ADMIT, 0);
}

/* Two servers know the median as well as the clocks lie together. */
TEST(a_birth_counts_as_late_as_it_may_have_been)
{
    int64_t born_us = voters.now_us - 10 * VOTERS_SECOND;
    voters_spread_clocks(7 * VOTERS_SECOND);
    mark(0, voters_mark_of(born_us));
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US -
                                                 10 * VOTERS_SECOND +
                                                 7 * VOTERS_SECOND);
    mark(1, voters_mark_of(born_us + 5 * VOTERS_SECOND));
    ck_assert_int_eq(voters_remaining_us(1), VOTERS_QUARANTINE_US);
}
