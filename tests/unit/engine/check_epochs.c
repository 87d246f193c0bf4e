/*
 * Servers of different configurations on the same nodes.
 */

#include "../../../server/engine/voting/admission.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

#define OTHER_ADMIT "1:ffffffffffffffff:@:#:0:" VOTERS_LIFE
#define OLD_NAMES "1:ffffffffffffff05:@:" VOTERS_BIRTH(1) ":0:" VOTERS_LIFE
#define OTHER_ADMIT_2 "2:ffffffffffffffff:@:#:0:" VOTERS_LIFE
#define MARK_2 "2:" VOTERS_FINGERPRINT ":name:" VOTERS_BIRTH(2) "::" VOTERS_LIFE
#define OTHER_MARK_2 "2:ffffffffffffffff:name:" VOTERS_BIRTH(2) "::" VOTERS_LIFE
#define ADMIT_2 "2:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_LIFE
#define OLD_ADMIT_2                                                            \
    "2:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_OTHER_RUN ":" VOTERS_MEMORY

static void begin_with_epoch(int epoch)
{
    voters.settings.config_epoch = epoch;
    voters_begin_again();
}

/* These nodes are marked, and their time is up; the others are down. */
static void quarantine(int nodes, const char *mark, const char *admit)
{
    for (int i = 0; i < nodes; i++)
        voters_come(i, LOOK_CREATED, admit, mark);
    voters_pass(VOTERS_QUARANTINE_US);
    ck_assert_int_ge(voters_look_around(), nodes);
}

/* So many each second, and nothing else. */
static void expect_looks_only(int looks)
{
    for (int i = 0; i < 200; i++) {
        voters_pass(VOTERS_SECOND);
        ck_assert_int_eq(voters_look_around(), looks);
        voters_expect_nothing();
    }
}

/* ---- the same epoch --------------------------------------------------------
 */

SUITE(epochs, .set_up = voters_begin);

TEST(story_10_another_configuration_of_this_epoch_is_never_touched)
{
    voters_come(0, LOOK_FOREIGN, OTHER_ADMIT, "");
    VOTERS_ASSERT_PHASE(0, ADMISSION_FOREIGN);
    VOTERS_ASSERT_REFUSAL(0, STATE_FOREIGN);
    admission_on_step(&voters.admission, 0);
    voters.admission.node[0].is_clock_good = true;
    expect_looks_only(1);
}

static const struct {
    enum call_look_word word;
    const char *admit, *mark;
} strangers[] = {
    {LOOK_FOREIGN, OTHER_ADMIT, ""},
    {LOOK_SUPERSEDED, OTHER_ADMIT_2, ""},
    {LOOK_SUPERSEDED, "", OTHER_MARK_2},
};

enum { STRANGERS = sizeof strangers / sizeof *strangers };

/* It admits nobody by time alone from then on: see takeover. */
static bool is_newer(int i)
{
    return strangers[i % STRANGERS].word == LOOK_SUPERSEDED &&
           strangers[i % STRANGERS].admit[0] != '\0';
}

static void find_stranger(int i)
{
    voters_come(4, strangers[i].word, strangers[i].admit, strangers[i].mark);
}

TEST_RANGE(story_10_while_one_node_is_foreign_none_is_admitted, 0, STRANGERS)
{
    find_stranger(_i);
    quarantine(4, VOTERS_MARK, "");
    voters_expect_nothing();
    ck_assert(eligibility_has_foreign(&voters.admission, voters.now_us));
    ck_assert_int_eq(voters_remaining_us(0), 0);
    expect_looks_only(VOTERS_NODES);
}

TEST_RANGE(whichever_node_is_foreign, 0, VOTERS_NODES)
{
    ck_assert(!eligibility_has_foreign(&voters.admission, voters.now_us));
    voters_come(_i, LOOK_FOREIGN, OTHER_ADMIT, "");
    ck_assert(eligibility_has_foreign(&voters.admission, voters.now_us));
    int other = (_i + 1) % VOTERS_NODES;
    voters_come(other, LOOK_FRESH, "", VOTERS_MARK);
    voters_down(_i);
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(ADMISSION_ADMIT, other);
}

/* Out of sight is not out of mind: whatever it promised there until now may
 * also lie on a node that is to be admitted. So for a while. */
TEST_RANGE(story_10_a_configuration_that_is_gone_counts_for_a_quarantine, 0,
           2 * STRANGERS)
{
    find_stranger(_i % STRANGERS);
    quarantine(4, VOTERS_MARK, "");
    voters_down(4);
    if (_i >= STRANGERS) /* its memory is gone, too */
        voters_come(4, LOOK_FRESH, "", VOTERS_MARK);
    if (is_newer(_i)) {
        voters_pass_without(ADMISSION_ADMIT, 2 * VOTERS_QUARANTINE_US);
        return;
    }
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
    ck_assert(!eligibility_has_foreign(&voters.admission, voters.now_us));
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST_RANGE(a_configuration_that_comes_back_counts_anew, 0, STRANGERS)
{
    find_stranger(_i);
    quarantine(4, VOTERS_MARK, "");
    voters_down(4);
    voters_pass_without(ADMISSION_ADMIT, VOTERS_QUARANTINE_US / 2);
    voters_pass(1);
    (void)voters_look_around();
    find_stranger(_i);
    voters_down(4);
    if (is_newer(_i)) {
        voters_pass_without(ADMISSION_ADMIT, 2 * VOTERS_QUARANTINE_US);
        return;
    }
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST_RANGE(while_one_node_is_foreign_none_is_readmitted, 0, STRANGERS)
{
    find_stranger(_i);
    for (int i = 1; i < 4; i++)
        voters_come(i, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_come(0, LOOK_CREATED, VOTERS_OLD_ADMIT, VOTERS_MARK);
    voters_pass_without(ADMISSION_READMIT, VOTERS_QUARANTINE_US);
    admission_want_look(&voters.admission, 4, voters.now_us);
    (void)voters_look_around();
    voters_down(4);
    voters_pass_until(ADMISSION_READMIT, VOTERS_QUARANTINE_US);
    voters_expect(ADMISSION_READMIT, 0);
}

TEST(what_is_admitted_already_votes_on_beside_a_foreign_node)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_down(4);
    voters_come(4, LOOK_FOREIGN, OTHER_ADMIT, "");
    VOTERS_ASSERT_REFUSAL(0, STATE_NONE);
    VOTERS_ASSERT_REFUSAL(4, STATE_FOREIGN);
}

/* ---- a higher one ----------------------------------------------------------
 */

static const struct {
    const char *admit, *mark;
    int epoch;
} higher[] = {
    {ADMIT_2, "", 2},
    {"", MARK_2, 2},
    {VOTERS_ADMIT, "3:run:x", 3},
    {"7:f:run", "12:run:x", 12},
    {"1000000:f:run", "", 1000000},
};

/* A staging server with one production node in its list is not the end. */
TEST_EACH(story_47_one_node_of_a_higher_epoch_costs_one_vote, higher)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_pass(VOTERS_SECOND);
    voters_expect(ADMISSION_LOOK, 0);
    voters_found(0, LOOK_SUPERSEDED, higher[_i].admit, higher[_i].mark);
    const struct admission_node *it = &voters.admission.node[0];
    ck_assert(it->epoch_ours == higher[_i].epoch ||
              it->epoch_other == higher[_i].epoch ||
              it->epoch_mark == higher[_i].epoch);
    ck_assert_int_eq(voters.admission.epoch, 1);
    VOTERS_ASSERT_REFUSAL(0, STATE_SUPERSEDED);
    for (int i = 1; i < VOTERS_NODES; i++)
        VOTERS_ASSERT_REFUSAL(i, STATE_NONE);
    admission_on_step(&voters.admission, 0);
    (void)voters_look_around();
    expect_looks_only(VOTERS_NODES);
}

/* By the operator, who saw the mistake. */
TEST(story_47_a_node_that_is_taken_back_is_admitted_again)
{
    voters_all(LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_found(0, LOOK_SUPERSEDED, ADMIT_2, "");
    voters_found(0, LOOK_FRESH, "", VOTERS_MARK); /* FLUSHALL */
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
    voters_give(ADMISSION_ADMIT, 0);
}

/* ---- a lower one -----------------------------------------------------------
 */

/* Until a majority of them is taken, the old names may grant locks. */
TEST(story_32_the_higher_epoch_takes_a_majority_before_it_admits_one)
{
    begin_with_epoch(2);
    for (int i = 0; i < 3; i++)
        voters.memory[i].taken = OLD_NAMES;
    quarantine(2, MARK_2, "");
    voters_expect_nothing();
    ck_assert(!eligibility_has_taken_over(&voters.admission));
    voters_come(2, LOOK_CREATED, "", MARK_2);
    (void)voters_look_around();
    voters_pass(1);
    ck_assert(eligibility_has_taken_over(&voters.admission));
    for (int i = 0; i < 3; i++)
        voters_expect(ADMISSION_ADMIT, i);
    for (int i = 0; i < 3; i++)
        voters_found(i, LOOK_ADMITTED, ADMIT_2, "");
    /* the rest asks these */
    for (int i = 3; i < VOTERS_NODES; i++) {
        voters_up(i);
        voters_found(i, LOOK_CREATED, "", MARK_2);
        VOTERS_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    }
    for (int heartbeats = 0; heartbeats < 3; heartbeats++) {
        voters_pass(HEARTBEAT_US);
        (void)voters_look_around();
    }
    voters_give(ADMISSION_ADMIT, 3);
    voters_give(ADMISSION_ADMIT, 4);
}

TEST(a_node_that_is_dead_for_good_is_given_up_by_take_over)
{
    voters.settings.has_take_over = true;
    begin_with_epoch(2);
    quarantine(4, MARK_2, "");
    voters_expect(ADMISSION_ADMIT, 0);
}

/* Who admitted it had seen that the old names are dead. */
TEST_RANGE(from_an_admission_of_this_epoch_on_the_others_wait, 0, 2)
{
    static const struct {
        enum call_look_word word;
        const char *admit, *mark;
    } signs[] = {
        {LOOK_ADMITTED, ADMIT_2, ""},
        {LOOK_CREATED, OLD_ADMIT_2, MARK_2},
    };
    begin_with_epoch(2);
    quarantine(3, MARK_2, "");
    voters_expect_nothing();
    voters_come(3, signs[_i].word, signs[_i].admit, signs[_i].mark);
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST(the_first_epoch_takes_nothing_over)
{
    quarantine(3, VOTERS_MARK, "");
    voters_expect(ADMISSION_ADMIT, 0);
}

TEST_RANGE(story_33_a_new_configuration_waits_by_the_ttl_of_the_old_one, 0, 2)
{
    voters.settings.has_take_over = _i == 1;
    voters.settings.max_ttl_ms = 1000;
    begin_with_epoch(2);
    voters_all(LOOK_CREATED, "", MARK_2);
    if (_i == 0) { /* the old servers may go on */
        voters_pass_without(ADMISSION_ADMIT, 2 * VOTERS_QUARANTINE_US);
        return;
    }
    voters_pass_until(ADMISSION_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(ADMISSION_ADMIT, 0);
}
