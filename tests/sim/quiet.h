/* SPDX-License-Identifier: MIT */
/*
 * Quiet spells: a node may forget and be admitted early, as nobody promises
 * anything. In the middle a single client asks for a lock; at the end many ask
 * at once.
 */
#ifndef SIM_QUIET_H
#define SIM_QUIET_H

#include "world.h"

void quiet_make(struct world *world);

/* One client asks for a lock, by this server. */
void quiet_ask(struct world *world, int server);

#endif
