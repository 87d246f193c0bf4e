/*
 * The first start: each way out, at each step.
 */

#include "../../lib/suite/suite.h"
#include "started.h"

SUITE(firststart_ends, .set_up = started_begin);

TEST(the_first_node_was_marked_by_somebody_else)
{
    started_find_empty(VOTERS_NODES);
    voters_expect(ADMISSION_LOOK, STARTED_LEAD);
    voters_found(STARTED_LEAD, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    voters_expect_nothing();
    voters_pass(STARTED_YIELD_US);
    voters_expect(ADMISSION_LOOK, 0);
}

TEST_RANGE(another_node_was_marked_by_somebody_else, 0, STARTED_SIGNS)
{
    started_lead();
    voters_expect(ADMISSION_LOOK, 0);
    voters_found(0, started_signs[_i].word, started_signs[_i].admit,
                 started_signs[_i].mark);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    VOTERS_ASSERT_REFUSAL(STARTED_LEAD, STATE_QUARANTINED);
    ck_assert(voters.admission.start.marked == 0);
}

TEST(a_mark_that_was_replaced_before_the_hold_ends_it)
{
    started_lead();
    voters_expect(ADMISSION_LOOK, 0);
    voters_expect(ADMISSION_LOOK, 1);
    voters_expect(ADMISSION_LOOK, STARTED_LEAD);
    voters_found(STARTED_LEAD, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

/* Whether the node was marked is not known. */
TEST_RANGE(a_lead_without_an_answer_begins_anew, 0, 2)
{
    started_find_empty(VOTERS_NODES);
    voters_expect(ADMISSION_LOOK, STARTED_LEAD);
    if (_i == 0)
        voters_fail(ADMISSION_LOOK, STARTED_LEAD);
    else
        voters_down(STARTED_LEAD);
    STARTED_ASSERT_STEP(FIRSTSTART_WAITING);
    voters_pass(VOTERS_SECOND);
    if (_i == 1)
        voters_up(STARTED_LEAD);
    struct admission_action action;
    while (admission_next(&voters.admission, voters.now_us, &action)) {
        if (action.kind == ADMISSION_LOOK)
            break;
        voters_found(action.node, LOOK_EMPTY, "", "");
    }
    ck_assert_int_eq((int)action.kind, ADMISSION_LOOK);
    ck_assert_int_eq(action.node, STARTED_LEAD);
    voters_found(STARTED_LEAD, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

TEST_RANGE(trouble_at_any_node_later_ends_it, 0, 6)
{
    static void (*const reach[])(void) = {started_lead, started_mark_all,
                                          started_check_most};
    reach[_i / 2]();
    if (_i / 2 == 0)
        voters_expect(ADMISSION_LOOK, 0); /* the others' turn */
    if (_i % 2 == 0)
        voters_down(4);
    else
        voters_fail(ADMISSION_PROBE, 4);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

static const struct {
    enum call_look_word word;
    const char *mark;
} changes[] = {
    {LOOK_EMPTY, ""},
    {LOOK_MARKED, VOTERS_OTHER_MARK},
    {LOOK_ADMITTED, ""},
    {LOOK_BARE, ""},
};

TEST_RANGE(a_mark_that_changed_during_the_hold_ends_it, 0, 4)
{
    started_mark_all();
    voters_pass(HEARTBEAT_US);
    voters_expect(ADMISSION_PROBE, 0); /* which marks nothing */
    voters_found(0, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect(ADMISSION_PROBE, 1);
    voters_found(1, changes[_i].word, "", changes[_i].mark);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
}

TEST_RANGE(story_27_a_mark_that_changed_at_the_second_look_ends_it, 0, 4)
{
    started_check_most();
    voters_found(4, changes[_i].word, "", changes[_i].mark);
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    struct admission_action action;
    while (admission_next(&voters.admission, voters.now_us, &action))
        ck_assert_int_eq((int)action.kind, ADMISSION_LOOK);
}

/* One node less; the others were marked by us alone, and still are. */
TEST_RANGE(story_27_a_node_that_was_lost_while_others_are_admitted_waits, 0, 3)
{
    started_check_most();
    voters_found(4, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect(ADMISSION_ADMIT, 0);
    if (_i == 0) {
        voters_down(0);
    } else if (_i == 1) {
        voters_fail(ADMISSION_ADMIT, 0);
    } else {
        admission_on_done(&voters.admission,
                          &(struct admission_action){ADMISSION_ADMIT, 0},
                          voters.now_us);
        voters_expect(ADMISSION_PROBE, 0);
        voters_found(0, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    }
    for (int i = 1; i < VOTERS_NODES; i++)
        voters_give(ADMISSION_ADMIT, i);
    voters_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_OVER);
    ck_assert_int_ne((int)admission_refusal(&voters.admission, 0), STATE_NONE);
}

/* The answer to a look that was on its way when the last check came in. */
TEST(story_27_a_mark_that_changed_at_the_last_moment_waits)
{
    started_check_most();
    admission_want_look(&voters.admission, 0, voters.now_us);
    voters_expect(ADMISSION_PROBE, 0);
    voters_found(4, LOOK_MARKED, "", VOTERS_MARK);
    voters_give(ADMISSION_ADMIT, 1);
    STARTED_ASSERT_STEP(FIRSTSTART_ADMIT);
    voters_found(0, LOOK_MARKED, "", VOTERS_OTHER_MARK);
    for (int i = 2; i < VOTERS_NODES; i++)
        voters_give(ADMISSION_ADMIT, i);
    voters_expect_nothing();
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
}

TEST(story_28_a_process_that_saw_an_admission_never_begins_one)
{
    voters_up(0);
    voters_expect(ADMISSION_PROBE, 0);
    voters_found(0, LOOK_ADMITTED, VOTERS_ADMIT, "");
    voters_pass(STARTED_YIELD_US);
    for (int i = 0; i < VOTERS_NODES; i++) {
        voters_down(i);
        voters_up(i);
        voters_expect(ADMISSION_LOOK, i);
        voters_found(i, LOOK_FRESH, "", VOTERS_MARK);
        VOTERS_ASSERT_REFUSAL(i, STATE_QUARANTINED);
    }
    voters_expect_nothing();
}
