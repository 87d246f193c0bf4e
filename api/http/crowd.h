/*
 * When to give memory back to the system. What many connections needed stays
 * in pieces with the allocator unless it is told. Pure.
 */
#ifndef REDLOCKD_CROWD_H
#define REDLOCKD_CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct crowd {
    uint64_t most;  /* connections, of late */
    uint64_t count; /* connections at the last look */
};

/*
 * To be called at intervals, with the number of connections. True: memory is
 * worth giving back now, as a crowd is leaving, and once more when it has left.
 */
bool crowd_note(struct crowd *crowd, uint64_t count);

#endif
