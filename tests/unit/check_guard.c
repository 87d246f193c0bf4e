#include <check.h>
#include <string.h>

#include "../../server/guard.h"

#define RUN_ID "0123456789012345678901234567890123456789"
#define FINGERPRINT "00112233445566ff"

static struct guard guard;

static void setup(void)
{
    guard_init(&guard);
}

static void up(void)
{
    ck_assert(guard_on_up(&guard, 1, FINGERPRINT, RUN_ID));
}

START_TEST(starts_without_a_vote)
{
    ck_assert(!guard_may_vote(&guard));
    ck_assert_str_eq(guard_state(&guard), "connecting");
    ck_assert_int_eq(guard_refusal(&guard), VOTE_UNREACHABLE);
}
END_TEST

START_TEST(votes_once_it_carries_the_admission)
{
    up();
    ck_assert_str_eq(guard.admit, "1:" FINGERPRINT ":" RUN_ID);
    ck_assert_str_eq(guard_state(&guard), "admitting");
    ck_assert(!guard_may_vote(&guard));
    ck_assert_int_eq(guard_refusal(&guard), VOTE_QUARANTINED);
    ck_assert(guard_on_admit(&guard, VOTE_DONE));
    ck_assert(guard_is_voting(&guard));
    ck_assert_str_eq(guard_state(&guard), "voting");
    ck_assert(!guard_on_admit(&guard, VOTE_DONE));
}
END_TEST

START_TEST(a_refused_admission_has_a_name)
{
    up();
    ck_assert(guard_on_admit(&guard, VOTE_OUT_OF_MEMORY));
    ck_assert(!guard_may_vote(&guard));
    ck_assert_str_eq(guard_state(&guard), "out_of_memory");
    ck_assert_int_eq(guard_refusal(&guard), VOTE_OUT_OF_MEMORY);
    ck_assert(!guard_on_admit(&guard, VOTE_OUT_OF_MEMORY));
    ck_assert(guard_on_admit(&guard, VOTE_DONE));
    ck_assert(guard_is_voting(&guard));
}
END_TEST

START_TEST(a_lost_admission_ends_the_right_to_vote)
{
    up();
    (void)guard_on_admit(&guard, VOTE_DONE);
    ck_assert(guard_on_vote(&guard, VOTE_QUARANTINED));
    ck_assert(!guard_may_vote(&guard));
    ck_assert(!guard_on_vote(&guard, VOTE_QUARANTINED));
}
END_TEST

START_TEST(a_nodes_condition_is_shown_until_the_next_admission)
{
    up();
    (void)guard_on_admit(&guard, VOTE_DONE);
    ck_assert(guard_on_vote(&guard, VOTE_MISCONFIGURED));
    ck_assert_str_eq(guard_state(&guard), "misconfigured");
    ck_assert(guard_may_vote(&guard));
    ck_assert(!guard_is_voting(&guard));
    ck_assert(guard_on_admit(&guard, VOTE_DONE));
    ck_assert(guard_is_voting(&guard));
}
END_TEST

START_TEST(votes_about_one_lock_change_nothing)
{
    static const enum vote votes[] = {VOTE_GRANTED, VOTE_HELD,
                                      VOTE_STALE,   VOTE_LATE,
                                      VOTE_SKEWED,  VOTE_UNREACHABLE};
    up();
    (void)guard_on_admit(&guard, VOTE_DONE);
    for (size_t i = 0; i < sizeof votes / sizeof *votes; i++)
        ck_assert(!guard_on_vote(&guard, votes[i]));
    ck_assert(guard_is_voting(&guard));
}
END_TEST

START_TEST(down_says_why)
{
    up();
    (void)guard_on_admit(&guard, VOTE_DONE);
    ck_assert(guard_on_down(&guard, VOTE_SILENT, "no reply for 1000 ms"));
    ck_assert_str_eq(guard_state(&guard), "silent");
    ck_assert_str_eq(guard.detail, "no reply for 1000 ms");
    ck_assert(!guard_on_down(&guard, VOTE_SILENT, "no reply for 1000 ms"));
    ck_assert(!guard_on_admit(&guard, VOTE_DONE));
    ck_assert(!guard_on_vote(&guard, VOTE_BUSY));
    ck_assert_int_eq(guard_refusal(&guard), VOTE_SILENT);
}
END_TEST

START_TEST(fingerprint_depends_on_the_set_not_on_its_order)
{
    static const char *const names[] = {"a:1/0", "b:1/0", "c:1/0"};
    static const char *const turned[] = {"c:1/0", "a:1/0", "b:1/0"};
    static const char *const other[] = {"a:1/0", "b:1/0", "c:2/0"};
    char first[GUARD_FINGERPRINT_LEN + 1];
    char second[GUARD_FINGERPRINT_LEN + 1];
    guard_fingerprint(first, names, 3, 2, 60000);
    guard_fingerprint(second, turned, 3, 2, 60000);
    ck_assert_uint_eq(strlen(first), GUARD_FINGERPRINT_LEN);
    ck_assert_str_eq(first, second);
    guard_fingerprint(second, other, 3, 2, 60000);
    ck_assert_str_ne(first, second);
    guard_fingerprint(second, names, 3, 2, 60001);
    ck_assert_str_ne(first, second);
    guard_fingerprint(second, names, 3, 3, 60000);
    ck_assert_str_ne(first, second);
    guard_fingerprint(second, names, 2, 2, 60000);
    ck_assert_str_ne(first, second);
}
END_TEST

Suite *check_guard(void);

Suite *check_guard(void)
{
    Suite *suite = suite_create("guard");
    TCase *tc = tcase_create("guard");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, starts_without_a_vote);
    tcase_add_test(tc, votes_once_it_carries_the_admission);
    tcase_add_test(tc, a_refused_admission_has_a_name);
    tcase_add_test(tc, a_lost_admission_ends_the_right_to_vote);
    tcase_add_test(tc, a_nodes_condition_is_shown_until_the_next_admission);
    tcase_add_test(tc, votes_about_one_lock_change_nothing);
    tcase_add_test(tc, down_says_why);
    tcase_add_test(tc, fingerprint_depends_on_the_set_not_on_its_order);
    suite_add_tcase(suite, tc);
    return suite;
}
