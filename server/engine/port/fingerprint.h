/*
 * The fingerprint of a configuration, on which all servers of the same nodes
 * must agree; and that of a node's name.
 */
#ifndef REDLOCKD_FINGERPRINT_H
#define REDLOCKD_FINGERPRINT_H

#include "../../base/types.h"
#include "../../lock/lock.h"

enum { FINGERPRINT_LEN = 16 };

/*
 * Its hash in hex digits, the last two of which are the number of nodes in
 * decimal. names: of each node, in any order, at most NODES_MAX;
 * they say nothing of TLS, so that it can be switched on in a running service.
 */
void fingerprint_make(char hex[FINGERPRINT_LEN + 1], const char *const names[],
                      int count, int quorum);

/* How many nodes a configuration has; 0: this is no fingerprint of ours. */
int fingerprint_names(const char *hex);

/* The hash of one node's name, in hex digits. */
void fingerprint_of_name(char hex[FINGERPRINT_LEN + 1], const char *name);

#endif
