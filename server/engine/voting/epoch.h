/*
 * The epoch of the configuration. Pure.
 *
 * If the nodes carry the names of this server, their epoch counts, and not the
 * one that was given, which is for a change of the names. Once a majority has
 * told it, only a higher one of a majority is followed. docs/guarantees.md has
 * the rule.
 */
#ifndef REDLOCKD_EPOCH_H
#define REDLOCKD_EPOCH_H

#include "eligibility.h"

/* A look found this mark on the node, and the admission that it has. */
void epoch_note(struct admission *admission, int node, struct span mark);

/* Whether an admission or a mark is of our nodes. */
bool epoch_is_ours(const struct admission *admission, const char *state);

/*
 * True if the epoch of the nodes is another one: it is that of this server from
 * now on.
 */
bool epoch_follow(struct admission *admission);

#endif
