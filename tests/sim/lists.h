/* SPDX-License-Identifier: MIT */
/*
 * Worlds in which the list of names changes again and again: it is longer or
 * shorter, with a majority of the old names or without one; the change is given
 * up, or two begin at once; the operator says that the old servers are stopped,
 * and later a server is started again with that word; or some of the machines
 * are those of another installation, which goes on. Here the word is what
 * --take-over says.
 *
 * These are assumptions, and never violated:
 *
 *   - no node forgets anything
 *   - when the operator gives the word, all servers have stopped
 *   - none of an earlier list starts again then, but by the word; until that
 *     change is done, the next one is made by the word, too
 *   - where there is another installation, a server that quarantines nodes has
 * probed at one of those in use; after one that has not, nothing is claimed
 */
#ifndef SIM_LISTS_H
#define SIM_LISTS_H

#include "faults.h"

/* The kinds of faults that happen beside the changes, a bit each. */
uint64_t lists_faults(struct world *world);

/* Chooses whether the changes are orderly, and whether another installation is
 * there. */
void lists_choose_kind(struct world *world);

/* Chooses the lists. */
void lists_init(struct world *world);

/* Starts the server of the other installation, if there is one. */
void lists_start_other(struct world *world);

/* Begins the next change. */
void lists_change(struct world *world);

/* The list in force has the epoch after that of the other lists on its nodes,
 * or its own. */
void lists_follow_epoch(struct world *world);

/* With which list a server starts again: mostly the one in force. */
enum configuration lists_choose(struct world *world);

/* Whether a server may start with this list, in spite of what was said. */
bool lists_may_start(const struct world *world,
                     enum configuration configuration);

/* The server is about to quarantine a node. */
void lists_on_quarantine(struct world *world, int server);

/* Whether numbers of this server must rise. */
bool lists_have_order(const struct world *world, int server);

/* Whether servers of these lists know nothing of each other. */
bool lists_are_apart(const struct world *world, enum configuration one,
                     enum configuration other);

#endif
