/*
 * The version of a lock: a short text by which a client that watches the lock
 * tells one state from another. It follows from the state alone, so every
 * server tells the same one:
 *
 *   free           nobody holds the lock
 *   <digits>       its holder's fencing number; never comes back
 *   shared         readers hold it, whoever and however many they are
 *   foreign-<hash> a value that is no token of ours; the hash is the value's
 *   foreign        values that are none, and none of them is known to be common
 *   split          the nodes disagree, so that nobody could acquire the lock
 *
 * Clients treat versions as opaque and compare them as bytes.
 */
#ifndef REDLOCKD_VERSION_H
#define REDLOCKD_VERSION_H

#include "../../base/types.h"

enum {
    VERSION_SIZE = 25, /* of those that are made, with a NUL */
    VERSION_MAX = 64,  /* of those that are taken, without one */
};

/* Empty: it is not known. */
struct version {
    char text[VERSION_SIZE];
};

extern const struct version version_free, version_shared, version_foreign,
    version_split;

struct version version_of_number(int64_t number);

/* Of a value that is no token; empty: one that is not known. */
struct version version_of_value(struct span value);

/* True if a passing state may have this version, while a lock changes hands. */
bool version_may_pass(const struct version *version);

bool version_is(const struct version *version, struct span text);

/* True for 1 to VERSION_MAX of a–z 0–9 -: what clients may send. */
bool version_is_wellformed(struct span text);

#endif
