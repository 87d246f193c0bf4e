/*
 * A admission on its way through a first start, step by step, behind voters.h.
 */
#ifndef REDLOCKD_TEST_STARTED_H
#define REDLOCKD_TEST_STARTED_H

#include "voters.h"

enum {
    STARTED_LEAD = 2,
    STARTED_HOLD_US = 2 * HEARTBEAT_US,
    STARTED_YIELD_US = 2000000,
    STARTED_PATIENCE_US = 30000000,
    STARTED_SIGNS = 5,
};

/* As a fixture: a first start is possible, and no node is connected. */
void started_begin(void);

/* So many nodes are there, and empty. */
void started_find_empty(int count);

/* All of them, and the first is marked by us · all are · and were looked at
 * again, but for the last one, which is asked. */
void started_lead(void);
void started_mark_all(void);
void started_check_most(void);

/* So long they are looked at, and marked no other time. */
void started_hold(int64_t us);

/* What tells that a node was used before. */
extern const struct started_sign {
    enum call_look_word word;
    const char *admit, *mark;
} started_signs[STARTED_SIGNS];

#define STARTED_ASSERT_STEP(it)                                                \
    ck_assert_int_eq((int)voters.admission.start.step, (int)(it))

#endif
