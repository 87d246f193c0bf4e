/*
 * What is checked at the end, when no more faults happen.
 */
#ifndef SIM_ENDINGS_H
#define SIM_ENDINGS_H

#include "world.h"

/* To be called after the last fault; in this order, and it takes a minute. */
void endings_check(struct world *world);

#endif
