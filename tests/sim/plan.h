/* SPDX-License-Identifier: MIT */
/*
 * What a seed decides at the start: the machines, the configurations, which
 * kinds of faults happen, and how often.
 */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "faults.h"

/* How --faults and the totals call it; the average between two of them, 0: it
 * does not come by itself. */
extern const struct fault_kind {
    const char *name;
    int64_t interval_us;
} fault_kinds[FAULTS];

/* The machines, the servers and the faults of this world. */
void plan_init(struct world *world);

bool plan_is_on(const struct world *world, enum fault fault);

/* Schedules the fault again, after a while. */
void plan_again(struct world *world, enum fault fault);

#endif
