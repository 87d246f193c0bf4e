/* SPDX-License-Identifier: MIT */
/*
 * What is checked at the end of visitors: what those who watch are told, and
 * what forced releases end.
 */
#ifndef SIM_VISITS_H
#define SIM_VISITS_H

#include "clients.h"

/* Each writer that lasts is told to all who watch. */
void visits_check_watched(struct world *world, int resource);

/* A reader that some nodes know as a writer is gone, too. */
void visits_check_forced(struct world *world, int resource);

/* Two operators release a lock at once: who comes after the first answer stays.
 */
void visits_check_rivals(struct world *world, int resource);

/* As many readers as may get in, and one that leaves makes room for one. */
void visits_check_crowd(struct world *world, int resource);

/* A reader that came after the answer stays, whatever the clocks are. */
void visits_check_later(struct world *world, int resource);

/* A reader asks again, with its key, when it was released by force from a part
   of what it has. */
void visits_check_parts(struct world *world, int resource);

#endif
