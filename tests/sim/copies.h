/*
 * The faults of memory that is put back, or that of another node.
 */
#ifndef SIM_COPIES_H
#define SIM_COPIES_H

#include "faults.h"

void copies_make(struct world *world, enum fault fault, int machine);
void copies_end(struct world *world, enum fault fault, int machine);

/*
 * Whether the machine may get this memory now: who has seen what it lacks is
 * there to tell, or all that is over. What must not happen meanwhile is held
 * off.
 */
bool copies_may_have(struct world *world, int machine,
                     const struct simcopy *copy, enum persistence persistence);

#endif
