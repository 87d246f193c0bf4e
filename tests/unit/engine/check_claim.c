/* SPDX-License-Identifier: MIT */
#include "../../../server/engine/waiting/waits.h"
#include "../../lib/suite/suite.h"

enum { ASKED_US = 1000000, APART_US = 100000, NOW_US = 5000 };

static struct claim claim;

static void set_up(void)
{
    claim_init(&claim);
    claim_date(&claim, ASKED_US, APART_US);
}

/* It tries now, and may take the place of what has these numbers. */
static void expect_due(int64_t now_us, int64_t number)
{
    ck_assert(claim_is_due(&claim, now_us));
    ck_assert_int_gt(claim_try(&claim, now_us), number);
    ck_assert(!claim_is_due(&claim, INT64_MAX));
}

static void expect_none(void)
{
    ck_assert(!claim_is_due(&claim, INT64_MAX));
}

SUITE(claim, .set_up = set_up);

TEST(a_lower_number_is_earlier)
{
    claim_find(&claim, ASKED_US - 1, NOW_US);
    expect_due(NOW_US, ASKED_US - 1);
    ck_assert_int_eq(claim_try(&claim, NOW_US), ASKED_US);
}

TEST(a_number_that_no_clocks_explain_is_later)
{
    claim_find(&claim, ASKED_US + APART_US, NOW_US);
    expect_none();
    ck_assert_int_eq(claim_try(&claim, INT64_MAX), ASKED_US);
}

TEST_RANGE(story_58_what_clocks_leave_open_is_asked_for_anew, 0, 2)
{
    int64_t number = ASKED_US + (_i == 0 ? 0 : APART_US - 1);
    claim_find(&claim, number, NOW_US);
    ck_assert(!claim_is_due(&claim, NOW_US + CLAIM_ANEW_US - 1));
    ck_assert_int_eq(claim_try(&claim, NOW_US), ASKED_US);
    claim_find(&claim, number, NOW_US + 1000); /* by another attempt */
    expect_due(NOW_US + CLAIM_ANEW_US, number);
    ck_assert_int_eq(claim_try(&claim, NOW_US), number + 1);
}

TEST(it_is_dated_once_when_the_clocks_are_known)
{
    claim_init(&claim);
    claim_date(&claim, 0, APART_US);
    claim_date(&claim, ASKED_US, APART_US);
    claim_date(&claim, ASKED_US + APART_US, APART_US);
    claim_find(&claim, ASKED_US + APART_US, NOW_US);
    expect_none();
    ck_assert_int_eq(claim_try(&claim, NOW_US), ASKED_US);
}

/* The one that was found was there before that. */
TEST(only_the_first_that_is_found_is_in_doubt)
{
    claim_find(&claim, ASKED_US + 1, NOW_US);
    claim_find(&claim, ASKED_US + 2, NOW_US + 1);
    expect_due(NOW_US + CLAIM_ANEW_US, ASKED_US + 1);
    ck_assert_int_eq(claim_try(&claim, NOW_US), ASKED_US + 2);
    claim_find(&claim, ASKED_US + 2, NOW_US + CLAIM_ANEW_US + 1);
    expect_none();
}

TEST(one_that_was_known_is_earlier_whatever_its_number)
{
    claim_know(&claim, ASKED_US + 5 * APART_US, NOW_US);
    expect_due(NOW_US, ASKED_US + 5 * APART_US);
}

/* What was known was old: meanwhile another repeat has had it. */
TEST(after_one_that_was_known_another_may_be_in_doubt)
{
    claim_know(&claim, ASKED_US - 5, NOW_US);
    expect_due(NOW_US, ASKED_US - 5);
    claim_find(&claim, ASKED_US + 5, NOW_US);
    expect_due(NOW_US + CLAIM_ANEW_US, ASKED_US + 5);
}

TEST(after_a_probe_that_missed_it_every_grant_is_later)
{
    claim_find(&claim, ASKED_US - 1, NOW_US);
    claim_miss(&claim);
    expect_none();
    claim_find(&claim, ASKED_US - 2, NOW_US);
    expect_none();
    ck_assert_int_eq(claim_try(&claim, NOW_US), 0);
}

TEST(a_date_takes_nothing_back)
{
    claim_init(&claim);
    claim_know(&claim, ASKED_US + APART_US, NOW_US);
    claim_date(&claim, ASKED_US, APART_US);
    expect_due(NOW_US, ASKED_US + APART_US);
}

/* Otherwise it would try again and again while another attempt is under way. */
TEST(what_it_has_tried_it_tries_again_later)
{
    claim_find(&claim, ASKED_US - 1, NOW_US);
    expect_due(NOW_US, ASKED_US - 1);
    claim_find(&claim, ASKED_US - 1, NOW_US);
    ck_assert(!claim_is_due(&claim, NOW_US + CLAIM_ANEW_US - 1));
    expect_due(NOW_US + CLAIM_ANEW_US, ASKED_US - 1);
}
