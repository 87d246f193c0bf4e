/* SPDX-License-Identifier: MIT */
/*
 * The faults of the machines' clocks.
 */
#ifndef SIM_STEPS_H
#define SIM_STEPS_H

#include "faults.h"

/* An unused machine; its clock is ahead by offset_us. */
void steps_init_clock(struct world *world, int machine, enum persistence usual,
                      int64_t offset_us);

/* How far its clock is ahead of the true time; an offset that counts as right.
 */
int64_t steps_offset_us(const struct world *world, int machine);
int64_t steps_honest_offset_us(struct world *world);

void steps_make(struct world *world, enum fault fault, int machine);

#endif
