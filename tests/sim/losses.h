/* SPDX-License-Identifier: MIT */
/*
 * The machines, and how they lose their whole data.
 */
#ifndef SIM_LOSSES_H
#define SIM_LOSSES_H

#include "faults.h"

/* The machines of all names: how they persist, and their clocks. */
void losses_init(struct world *world);

/* All nodes, or some, write what they promise up to a second later. */
void losses_write_late(struct world *world);

/* How far the disk of such a node may be behind. */
int64_t losses_lag_us(const struct world *world, int machine);

/* A machine that the current configuration uses; its name. */
int losses_any_machine(struct world *world);
int losses_any_name(struct world *world);

int losses_name_of(int machine);
bool losses_is_home(const struct world *world, int machine);

void losses_make(struct world *world, enum fault fault, int machine);

/* Ends such a fault. */
void losses_end(struct world *world, enum fault fault, int machine);

/* Not all may be empty at once, and mostly a quorum should remain. */
bool losses_may_lose(struct world *world, int machine);

/* Notes that the machine has lost something. */
void losses_note(struct world *world, int machine);

/* Kills it; starts it again, unless it is running: now or after a while. */
void losses_kill(struct world *world, int machine);
void losses_start(struct world *world, int machine,
                  enum persistence persistence);
void losses_start_later(struct world *world, int machine,
                        enum persistence persistence);

/* A machine that its name may move to; -1: none. */
int losses_spare_machine(const struct world *world, int machine);

/* Makes a new machine with its own clock. Moves the name there, for all. */
void losses_make_spare(struct world *world, int machine);
void losses_move(struct world *world, int from, int to);

/* Ends everything that is wrong with this machine. */
void losses_heal(struct world *world, int machine);

#endif
