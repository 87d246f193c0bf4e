/* SPDX-License-Identifier: MIT */
/*
 * What is checked at the end, when no more faults happen.
 */
#ifndef SIM_ENDINGS_H
#define SIM_ENDINGS_H

#include "clients.h"

/* To be called after the last fault; in this order, and it takes a minute. */
void endings_check(struct world *world);

/* True: the client had this outcome. Without any for so long, it leaves. */
bool endings_ask(struct world *world, struct client *client,
                 enum client_ask what, int server, enum outcome wanted);
bool endings_acquire(struct world *world, struct client *client, int server);

/* It no longer believes in its lock, and releases it. */
void endings_release(struct world *world, struct client *client, int server);

#endif
