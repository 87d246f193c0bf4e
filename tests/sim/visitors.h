/* SPDX-License-Identifier: MIT */
/*
 * Visitors: clients and operators that ask for no lock. They watch locks, probe
 * at them, list them and pools, and release by force what others hold.
 */
#ifndef SIM_VISITORS_H
#define SIM_VISITORS_H

#include "clients.h"

void visitors_start(struct world *world);
void visitor_step(struct world *world, struct client *it);

/* Its server accepts the request; 0: no memory. */
engine_op visitor_ask(struct world *world, struct client *it,
                      struct span resource);

/* Its server has the answer; it reads that. */
void visitor_on_answer(struct world *world, struct client *it);
void visitor_read(struct world *world, struct client *it);

/* The client has just been granted a lock; a visitor may turn up. */
void visitors_on_grant(struct world *world, const struct client *client);

#endif
