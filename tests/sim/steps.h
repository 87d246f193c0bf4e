/*
 * The faults of the machines' clocks.
 */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include "faults.h"

/* A machine that was never used; its clock is so far ahead. */
void steps_init_clock(struct world *world, int machine, enum persistence usual,
                      int64_t offset_us);

/* How far its clock is ahead of the true time; of one that nobody minds. */
int64_t steps_offset_us(const struct world *world, int machine);
int64_t steps_honest_offset_us(struct world *world);

void steps_make(struct world *world, enum fault fault, int machine);

#endif
