/* SPDX-License-Identifier: MIT */
/*
 * Clients that work while a test changes what they work with. Each is a process
 * that holds a lock for the whole time and extends it in time, and acquires and
 * releases others, some of them against the rest. A request that is refused
 * with 503, or not answered, is tried once more at the next server.
 *
 * It is a failure if that one is refused, too, if a lock that was extended in
 * time is lost, if two hold a lock at once, or if a fencing token does not
 * rise.
 */
#ifndef REDLOCKD_TEST_WORKERS_H
#define REDLOCKD_TEST_WORKERS_H

#include "harness.h"

enum { WORKERS = 16 };

/*
 * Starts them over the first servers of world, at least two, which are ready.
 * ttl_ms: of the locks that they keep; the workers take turns in it.
 */
void workers_start(int servers, const int ttl_ms[2]);

/* Whether the node has each of the locks that they keep. */
bool workers_are_kept_at(struct node *node);

/* Until each has extended the lock that it keeps once more, or given up. */
void workers_let_work(void);

/* Ends them. None may have failed, and each must have worked. */
void workers_stop(void);

#endif
