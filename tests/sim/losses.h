/*
 * The machines, and how they lose their memory as a whole.
 */
#ifndef SIM_LOSSES_H
#define SIM_LOSSES_H

#include "faults.h"

/* The machines of all names: how they persist, where their clocks are. */
void losses_init(struct world *world);

/* One of those that the present configuration uses; its name. */
int losses_any_machine(struct world *world);
int losses_any_name(struct world *world);

int losses_name_of(int machine);
bool losses_is_home(const struct world *world, int machine);

void losses_make(struct world *world, enum fault fault, int machine);

/* The end of such a fault. */
void losses_end(struct world *world, enum fault fault, int machine);

/* Not all may be empty at once, and mostly there is to be a quorum. */
bool losses_may_lose(struct world *world, int machine);

/* It has lost something. */
void losses_note(struct world *world, int machine);

/* It dies; it begins a new life, if it has none: now or in a while. */
void losses_kill(struct world *world, int machine);
void losses_start(struct world *world, int machine,
                  enum persistence persistence);
void losses_start_later(struct world *world, int machine,
                        enum persistence persistence);

/* One that its name may move to; -1: there is none. */
int losses_spare_machine(const struct world *world, int machine);

/* A new one, with a clock of its own. The name leads there, for all. */
void losses_make_spare(struct world *world, int machine);
void losses_move(struct world *world, int from, int to);

/* Everything is as it should be with this machine. */
void losses_heal(struct world *world, int machine);

#endif
