/*
 * Two servers over five nodes that lose their memory, with calls that come
 * late or never, and servers that stop or begin anew in the middle.
 *
 * Whatever the order: a node that forgot what it had granted is admitted by
 * nobody before a quarantine has passed since; and once all is calm, every
 * node is admitted. One node keeps its memory once it was admitted: all N that
 * lose it look like a first start, which durable nodes or the operator answer
 * for.
 *
 * RIVALS_SEEDS=n plays more, RIVALS_SEED=n one again.
 */
#include <check.h>
#include <stdlib.h>

#include "rivals.h"

enum { SECOND = 1000000, SEEDS = 400 };

static void expect_all_admitted(int first)
{
    for (int i = 0; i < RIVALS_NODES; i++)
        for (int j = first; j < RIVALS; j++)
            ck_assert_msg(
                rivals.server[j].guard.node[i].phase == GUARD_ADMITTED,
                "seed %u: node %d is not admitted by server %d: %d",
                rivals.seed, i, j, (int)rivals.server[j].guard.node[i].phase);
}

static unsigned first_seed(void)
{
    const char *text = getenv("RIVALS_SEED");
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 0;
}

static unsigned count_seeds(void)
{
    const char *text = getenv("RIVALS_SEEDS");
    if (getenv("RIVALS_SEED") != NULL)
        return 1;
    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : SEEDS;
}

static void play(unsigned seed, int other_epoch)
{
    rivals_begin(seed, other_epoch);
    rivals_play_faults();
    for (int i = 0; i < RIVALS; i++)
        rivals.server[i].wakes_us = 0;
    /* the last call may come 30 s later, and the timer begin anew with it */
    rivals_run_until(RIVALS_FAULTS_END_US + 40 * SECOND +
                     2 * guard_quarantine_us(&rivals.server[0].guard));
}

START_TEST(stories_25_to_28_no_node_that_forgot_is_admitted_too_early)
{
    int admissions = 0;
    for (unsigned i = 0; i < count_seeds(); i++) {
        play(first_seed() + i, 1);
        expect_all_admitted(0);
        admissions += rivals.admissions;
    }
    ck_assert_int_ge(admissions, (int)count_seeds() * RIVALS_NODES);
}
END_TEST

START_TEST(story_32_a_higher_epoch_comes_in_and_never_beside_the_lower)
{
    for (unsigned i = 0; i < count_seeds(); i++) {
        play(first_seed() + i, 2);
        expect_all_admitted(1);
        ck_assert_int_eq(rivals.server[0].guard.superseded_by, 2);
    }
}
END_TEST

/* With nobody to disturb it, the first start takes no second. */
START_TEST(an_undisturbed_first_start_is_quick)
{
    for (unsigned i = 0; i < count_seeds(); i++) {
        rivals_begin(first_seed() + i, 1);
        rivals.server[1].wakes_us = INT64_MAX;
        rivals.now_us = RIVALS_FAULTS_END_US + 1; /* no call comes late */
        rivals_run_until(RIVALS_FAULTS_END_US + SECOND + SECOND / 2);
        int admitted = 0;
        for (int j = 0; j < RIVALS_NODES; j++)
            admitted += rivals.node[j].state.admit[0] != '\0';
        ck_assert_msg(admitted == RIVALS_NODES, "seed %u: %d", rivals.seed,
                      admitted);
    }
}
END_TEST

Suite *check_rivals(void);

Suite *check_rivals(void)
{
    Suite *suite = suite_create("rivals");
    TCase *tc = tcase_create("rivals");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc,
                   stories_25_to_28_no_node_that_forgot_is_admitted_too_early);
    tcase_add_test(tc,
                   story_32_a_higher_epoch_comes_in_and_never_beside_the_lower);
    tcase_add_test(tc, an_undisturbed_first_start_is_quick);
    suite_add_tcase(suite, tc);
    return suite;
}
