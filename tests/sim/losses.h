/*
 * The faults of machines: what they forget, and what their clocks do.
 */
#ifndef SIM_LOSSES_H
#define SIM_LOSSES_H

#include "faults.h"

/* The machines of all names: how they persist, where their clocks are. */
void losses_init(struct world *world);

/* Leaves a wild world only faults after which everything is remembered. */
void losses_make_wild(struct faults *faults);

/* One of those that the present configuration uses. */
int losses_any_machine(struct world *world);

/* How far its clock is ahead of the true time. */
int64_t losses_lead_us(const struct world *world, int machine);

void losses_make(struct world *world, enum fault fault);

/* The end of a fault; of: a machine or a name. */
void losses_end(struct world *world, enum fault fault, int of);

/* It begins a new life, if it has none. */
void losses_start(struct world *world, int machine,
                  enum persistence persistence);

/* Everything is as it should be with this machine and its name. */
void losses_heal(struct world *world, int machine);

#endif
