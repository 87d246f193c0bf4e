/*
 * A change of the names: what the nodes promised under the old ones. Pure.
 *
 * Nodes that had all their memory tell it when they are marked, and promise
 * nothing under the old names from then on. Once they are a majority of the old
 * names, each old majority has a member among them. So all that may still be
 * held is known, and how long it lasts.
 */
#ifndef REDLOCKD_TAKEOVER_H
#define REDLOCKD_TAKEOVER_H

#include "../../base/types.h"
#include "../../lock/lock.h"
#include "../port/call.h"
#include "../port/fingerprint.h"
#include "witness.h"

struct takeover_node {
    char carried[FINGERPRINT_LEN + 1]; /* the other names that it voted under;
                                          "": none were seen */
    char birth[CALL_BIRTH_LEN + 1]; /* of its admission, if it tells; "": not */
    char latest[CALL_BIRTH_LEN + 1]; /* of its name, as those that tell know */
};

struct takeover {
    struct takeover_node node[NODES_MAX];
    int64_t end_us; /* the last of their promises ends */
    int64_t number; /* the greatest that they have accepted */
};

/* A look: fingerprint is that of the new names. */
void takeover_on_look(struct takeover *takeover, const struct witness *witness,
                      const char *fingerprint, int node,
                      const struct call_look *look, int64_t now_us);

/* The node's clock stepped: it told a wrong end. */
void takeover_on_step(struct takeover *takeover, int node);

/* The nodes that tell, a bit each. */
uint16_t takeover_tellers(const struct takeover *takeover);

/* True if these are a majority of the old names, and the nodes carried no third
 * ones. */
bool takeover_is_told(const struct takeover *takeover);

#endif
