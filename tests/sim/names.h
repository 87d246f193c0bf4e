/* SPDX-License-Identifier: MIT */
/*
 * The faults of names: where each leads, for all servers or for some.
 */
#ifndef SIM_NAMES_H
#define SIM_NAMES_H

#include "faults.h"

void names_lead_all(struct world *world, int name, int machine);
bool names_lead_home(const struct world *world, int name);

/* Whether all lead this server home. */
bool names_are_right(const struct world *world, int server);

/* Makes every name lead all servers to its machine. */
void names_heal(struct world *world);

void names_make(struct world *world, enum fault fault, int name);

/* Whether names_end ends this fault, even when the world is calm. */
bool names_ends(enum fault fault);

/* Ends such a fault, or goes on with it; of: a machine, a name or a server. */
void names_end(struct world *world, enum fault fault, int of);

#endif
