/*
 * What a seed decides at the beginning: the machines, the configurations, which
 * kinds of faults there are, and how often.
 */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "faults.h"

/* The machines, the servers and the faults of this world. */
void plan_init(struct world *world);

bool plan_is_on(const struct world *world, enum fault fault);

/* The fault comes again, in a while. */
void plan_again(struct world *world, enum fault fault);

#endif
