#include "started.h"

#include <check.h>

const struct started_sign started_signs[STARTED_SIGNS] = {
    {LOOK_ADMITTED, GUARDED_ADMIT, ""},
    {LOOK_MARKED, "", GUARDED_OTHER_MARK},
    {LOOK_BARE, "", ""},
    {LOOK_BARE, GUARDED_OLD_ADMIT, ""},
    {LOOK_FOREIGN, "1:ffffffffffffffff:run", ""},
};

void started_begin(void)
{
    guarded_begin();
    guarded.settings.first_start = FIRST_START_AUTO;
    guarded.settings.lead = STARTED_LEAD;
    guarded_begin_again();
}

void started_find_all_empty(void)
{
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded_up(i);
        guarded_expect(GUARD_PEEK, i);
        guarded_found(i, LOOK_EMPTY, "", "");
        GUARDED_ASSERT_REFUSAL(i, STATE_WAITING);
    }
}

void started_lead(void)
{
    started_find_all_empty();
    STARTED_ASSERT_STEP(FIRSTSTART_WAITING);
    guarded_expect(GUARD_LOOK, STARTED_LEAD);
    STARTED_ASSERT_STEP(FIRSTSTART_LEAD);
    guarded_expect_nothing();
    guarded_found(STARTED_LEAD, LOOK_FRESH, "", GUARDED_MARK);
}

void started_mark_all(void)
{
    started_lead();
    for (int i = 0; i < GUARDED_NODES; i++) {
        guarded_expect(GUARD_LOOK, i);
        STARTED_ASSERT_STEP(FIRSTSTART_REST);
        guarded_found(i, i == STARTED_LEAD ? LOOK_MARKED : LOOK_FRESH, "",
                      GUARDED_MARK);
    }
    guarded_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_HOLD);
}

void started_hold(int64_t us)
{
    for (int64_t until_us = guarded.now_us + us; guarded.now_us < until_us;) {
        int64_t left_us = until_us - guarded.now_us;
        guarded_pass(left_us < HEARTBEAT_US ? left_us : HEARTBEAT_US);
        if (guarded.now_us < until_us)
            (void)guarded_look_around();
    }
}

void started_check_most(void)
{
    started_mark_all();
    started_hold(STARTED_HOLD_US);
    for (int i = 0; i < GUARDED_NODES; i++)
        guarded_expect(GUARD_PEEK, i);
    STARTED_ASSERT_STEP(FIRSTSTART_CHECK);
    for (int i = 0; i < GUARDED_NODES - 1; i++)
        guarded_found(i, LOOK_MARKED, "", GUARDED_MARK);
    guarded_expect_nothing();
    STARTED_ASSERT_STEP(FIRSTSTART_CHECK);
}

void started_give_no_answer(enum guard_action_kind kind, int node)
{
    guard_on_failure(&guarded.guard, &(struct guard_action){kind, node},
                     guarded.now_us);
}
