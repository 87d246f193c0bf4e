/*
 * Clients that work while a test changes what they work with. Each is a process
 * that holds a lock for the whole time and extends it in time, and acquires and
 * releases others, some of them against the rest. A request that is refused
 * with 503, or not answered, is tried once more at the next server.
 *
 * It is a failure if that one is refused, too, if a lock that was extended in
 * time is lost, if two hold a lock at once, or if a fencing number does not
 * rise.
 */
#ifndef REDLOCKD_TEST_WORKERS_H
#define REDLOCKD_TEST_WORKERS_H

#include "harness.h"

enum { WORKERS = 16 };

/* Asks a node how many of the locks that they keep it has. */
#define WORKERS_KEPT_EXIST                                                     \
    "EXISTS kept:0 kept:1 kept:2 kept:3 kept:4 kept:5 kept:6 kept:7 kept:8 "   \
    "kept:9 kept:10 kept:11 kept:12 kept:13 kept:14 kept:15"

/*
 * Starts them over the first servers of world, at least two, which are ready.
 * ttl_ms: of the locks that they keep; the workers take turns in it.
 */
void workers_start(const struct world *world, int servers, const int ttl_ms[2]);

/* Ends them. None may have failed, and each must have worked. */
void workers_stop(void);

#endif
