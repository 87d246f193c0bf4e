/*
 * Two servers over five nodes that lose their memory, with calls that come
 * late or never, and servers that stop or begin anew in the middle.
 *
 * Whatever the order: a node that forgot what a majority has promised with its
 * vote is admitted by nobody before that is over; and once all is calm, every
 * node is admitted. One node keeps its memory once it was admitted: all N that
 * lose it look like a first start, which durable nodes or the operator answer
 * for.
 *
 * RIVALS_SEEDS=n plays more, RIVALS_SEED=n one again.
 */
#include <stdlib.h>

#include "../../../server/engine/voting/members.h"
#include "../../lib/suite/suite.h"
#include "rivals.h"

enum { SECOND = 1000000, SEEDS = 400 };

static void expect_all_admitted(int first)
{
    for (int i = 0; i < RIVALS_NODES; i++)
        for (int j = first; j < RIVALS; j++)
            ck_assert_msg(
                rivals.server[j].members.node[i].phase == MEMBER_ADMITTED,
                "seed %u: node %d is not admitted by server %d: %d",
                rivals.seed, i, j, (int)rivals.server[j].members.node[i].phase);
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

static void play_of(unsigned seed, int other_epoch, bool is_other,
                    bool has_rollbacks)
{
    rivals_begin(seed, other_epoch, is_other);
    rivals.has_rollbacks = has_rollbacks;
    rivals_play_faults();
    for (int i = 0; i < RIVALS; i++)
        rivals.server[i].wakes_us = 0;
    /* the last call may come 30 s later, and the timer begin anew with it */
    rivals_run_until(RIVALS_FAULTS_END_US + 40 * SECOND +
                     2 * rules_quarantine_us(&rivals.server[0].members));
}

SUITE(rivals, .timeout_s = 600);

static void play(unsigned seed, bool has_rollbacks)
{
    play_of(seed, 1, false, has_rollbacks);
}

TEST(stories_25_to_28_no_node_that_forgot_is_admitted_too_early)
{
    int admissions = 0, readmissions = 0, won = 0;
    for (unsigned i = 0; i < count_seeds(); i++) {
        play(first_seed() + i, false);
        expect_all_admitted(0);
        admissions += rivals.admissions;
        readmissions += rivals.readmissions;
        won += rivals.promises.won;
    }
    ck_assert_int_ge(admissions, (int)count_seeds() * RIVALS_NODES);
    if (count_seeds() >= SEEDS) { /* all that is to be tried was */
        ck_assert_int_ge(readmissions, (int)count_seeds() / 20);
        ck_assert_int_ge(won, (int)count_seeds() * 10);
    }
}

/* One node comes back with an older memory again and again, under the same
 * run_id or another; others lose theirs, or are restarted whole. */
TEST(stories_41_to_43_no_node_that_was_put_back_is_admitted_too_early)
{
    int rollbacks = 0, readmissions = 0;
    for (unsigned i = 0; i < count_seeds(); i++) {
        play(first_seed() + i, true);
        expect_all_admitted(0);
        rollbacks += rivals.rollbacks;
        readmissions += rivals.readmissions;
    }
    if (count_seeds() >= SEEDS) {
        ck_assert_int_ge(rollbacks, (int)count_seeds() / 2);
        ck_assert_int_ge(readmissions, (int)count_seeds() / 5);
    }
}

/* Whoever forgets what was taken from it does not tell. If they are so many
 * that nobody knows whether the lower epoch is dead, the higher one stays out.
 */
TEST(story_32_a_higher_epoch_comes_in_and_never_beside_the_lower)
{
    unsigned came = 0;
    for (unsigned i = 0; i < count_seeds(); i++) {
        play_of(first_seed() + i, 2, true, false);
        const struct members *other = &rivals.server[1].members;
        if (!rules_is_established(other)) {
            ck_assert(!rules_may_take_over(other));
            continue;
        }
        came++;
        expect_all_admitted(1);
        for (int j = 0; j < RIVALS_NODES; j++)
            ck_assert_int_eq(rivals.server[0].members.node[j].epoch_other, 2);
    }
    ck_assert_uint_gt(came, 0);
}

/* Given for the same nodes, which keep the one that they have. */
TEST(story_60_another_epoch_for_the_same_nodes_changes_nothing)
{
    for (unsigned i = 0; i < count_seeds(); i++) {
        play_of(first_seed() + i, 2 + (int)(i % 2) * 18, false, false);
        expect_all_admitted(0);
    }
}

/*
 * A server that has other names and a wrong epoch finds the nodes that nobody
 * uses, as the others answer late, and marks none. Then one with the right
 * epoch comes; the first one is gone, or is still there.
 */
TEST_RANGE(story_60_marks_of_a_wrong_epoch_do_not_bind_the_right_one, 0, 2)
{
    enum { USED = 3, LATE_US = 36 * SECOND, RIGHT_US = 50 * SECOND };
    for (unsigned i = 0; i < 40; i++) {
        rivals_begin(first_seed() + i, 20, false);
        rivals.epochs[0] = 2;
        rivals.is_calm = true;
        rivals_restart_server(0);
        rivals.server[0].wakes_us = RIGHT_US;
        for (int j = 0; j < USED; j++) {
            rivals_give_to_others(j);
            rivals.server[1].to[j].up_us = LATE_US;
        }
        rivals_run_until(RIGHT_US);
        for (int j = 0; j < RIVALS_NODES; j++)
            ck_assert_int_eq(atoi(rivals.node[j].memory.mark), 0);
        if (_i == 0)
            rivals.server[1].wakes_us = INT64_MAX;
        rivals_run_until(RIGHT_US + 10 * SECOND +
                         2 * rules_quarantine_us(&rivals.server[0].members));
        for (int j = 0; j < RIVALS_NODES; j++)
            ck_assert_int_eq(atoi(rivals.node[j].memory.admit), 2);
        for (int j = 0; j < RIVALS_NODES * (_i + 1); j++)
            ck_assert_int_eq((int)rivals.server[j / RIVALS_NODES]
                                 .members.node[j % RIVALS_NODES]
                                 .phase,
                             (int)MEMBER_ADMITTED);
    }
}

/* All lose their memory at once; a new server comes, and finds nothing but
 * nodes that look new. The other one was there, and knows better. */
TEST(story_46_no_first_start_beside_a_server_that_saw_the_nodes_vote)
{
    for (unsigned i = 0; i < count_seeds(); i++) {
        rivals_begin(first_seed() + i, 1, false);
        rivals.witness = -1;
        rivals.is_calm = true;
        rivals.server[1].wakes_us = INT64_MAX;
        rivals_run_until(10 * SECOND);
        int64_t new_us = 10 * SECOND + (int64_t)(i % 40) * SECOND / 10;
        int64_t lost_us = 12 * SECOND;
        rivals_run_until(new_us < lost_us ? new_us : lost_us);
        for (int both = 0; both < 2; both++) {
            bool is_new = (new_us < lost_us) == (both == 0);
            rivals_run_until(is_new ? new_us : lost_us);
            if (is_new) {
                rivals_restart_server(1);
                rivals.server[1].wakes_us = 0;
            } else {
                rivals_flush_all();
            }
        }
        rivals_run_until(RIVALS_FAULTS_END_US);
    }
}

/* With nobody to disturb it, the first start takes two heartbeats. */
TEST(an_undisturbed_first_start_is_quick)
{
    for (unsigned i = 0; i < count_seeds(); i++) {
        rivals_begin(first_seed() + i, 1, false);
        rivals.server[1].wakes_us = INT64_MAX;
        rivals.now_us = RIVALS_FAULTS_END_US + 1; /* no call comes late */
        rivals_run_until(RIVALS_FAULTS_END_US + 3 * SECOND + SECOND / 2);
        int admitted = 0;
        for (int j = 0; j < RIVALS_NODES; j++)
            admitted += rivals.node[j].memory.admit[0] != '\0';
        ck_assert_msg(admitted == RIVALS_NODES, "seed %u: %d", rivals.seed,
                      admitted);
    }
}
