#include "started.h"

#include <check.h>

const struct started_sign started_signs[STARTED_SIGNS] = {
    {LOOK_ADMITTED, VOTERS_ADMIT, ""},
    {LOOK_MARKED, "", VOTERS_OTHER_MARK},
    {LOOK_BARE, "", ""},
    {LOOK_BARE, VOTERS_OLD_ADMIT, ""},
    {LOOK_FOREIGN, "1:ffffffffffffffff:run", ""},
};

void started_begin(void)
{
    voters_begin();
    voters.settings.first_start = FIRST_START_AUTO;
    voters.settings.node_names[STARTED_LEAD] = "A:1"; /* the least */
    voters_begin_again();
}

void started_find_empty(int count)
{
    for (int i = 0; i < count; i++) {
        voters_up(i);
        voters_expect(ADMISSION_PROBE, i);
        voters_found(i, LOOK_EMPTY, "", "");
        VOTERS_ASSERT_REFUSAL(i, STATE_WAITING);
    }
}

void started_lead(void)
{
    started_find_empty(VOTERS_NODES);
    STARTED_ASSERT_STEP(FIRSTSTART_WAITING);
    voters_expect(ADMISSION_LOOK, STARTED_LEAD);
    STARTED_ASSERT_STEP(FIRSTSTART_LEAD);
    voters_expect_nothing();
    voters_found(STARTED_LEAD, LOOK_FRESH, "", VOTERS_MARK);
}

void started_mark_all(void)
{
    started_lead();
    for (int i = 0; i < VOTERS_NODES; i++) {
        voters_expect(ADMISSION_LOOK, i);
        STARTED_ASSERT_STEP(FIRSTSTART_REST);
        voters_found(i, i == STARTED_LEAD ? LOOK_MARKED : LOOK_FRESH, "",
                     VOTERS_MARK);
    }
    voters_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_HOLD);
}

void started_hold(int64_t us)
{
    for (int64_t until_us = voters.now_us + us; voters.now_us < until_us;) {
        int64_t left_us = until_us - voters.now_us;
        voters_pass(left_us < HEARTBEAT_US ? left_us : HEARTBEAT_US);
        if (voters.now_us < until_us)
            (void)voters_look_around();
    }
}

void started_check_most(void)
{
    started_mark_all();
    started_hold(STARTED_HOLD_US);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_expect(ADMISSION_PROBE, i);
    STARTED_ASSERT_STEP(FIRSTSTART_CHECK);
    for (int i = 0; i < VOTERS_NODES - 1; i++)
        voters_found(i, LOOK_MARKED, "", VOTERS_MARK);
    voters_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_CHECK);
}
