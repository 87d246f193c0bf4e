/* SPDX-License-Identifier: MIT */
/*
 * The faults of memory that is put back, or comes from another node.
 */
#ifndef SIM_COPIES_H
#define SIM_COPIES_H

#include "faults.h"

void copies_make(struct world *world, enum fault fault, int machine);
void copies_end(struct world *world, enum fault fault, int machine);

/* Each machine gets its first replica, or frees its backlog. */
void copies_attach_all(struct world *world);

/*
 * Whether the machine may get this data now: someone who saw what it lacks
 * can report it, or all of that has expired. Holds off other faults that must
 * not happen in between.
 */
bool copies_may_have(struct world *world, int machine,
                     const struct simcopy *copy, enum persistence persistence);

#endif
