/* SPDX-License-Identifier: MIT */
/*
 * A node that transcripts are played on (player.c): a real redis-server with
 * the real script, or the simulator's node.
 */
#ifndef REDLOCKD_TEST_STAGE_H
#define REDLOCKD_TEST_STAGE_H

#include "../../../server/engine/port/call.h"

enum { STAGE_CALLS_MAX = 64, STAGE_GONE_MS = -2, STAGE_ENDLESS_MS = -1 };

/* What lies under the name of a lock. */
struct stage_lock {
    const char *value;   /* "": it has none */
    const char *members; /* of a sorted set, in their order, with spaces */
    long long pttl_ms;   /* or STAGE_ENDLESS_MS, STAGE_GONE_MS */
};

/* Texts last for the test. */
struct stage {
    const char *name;
    void (*begin)(void);
    void (*end)(void);
    int64_t (*now_us)(void);
    const char *(*replid)(void); /* it may have changed */
    /* In as few batches as hold them; what the replies borrow lasts until the
     * next. Returns how many batches there were. */
    int (*ask)(const struct call *calls, int count, struct call_reply *replies);
    void (*set)(const char *lock, const char *value, int64_t ttl_ms);
    void (*drop)(const char *lock);
    /* Adds a reader that ended or ends then, and its key hash. */
    void (*join)(const char *lock, const char *token, int64_t left_ms);
    struct stage_lock (*lock)(const char *lock);
    int64_t (*ends_ms)(const char *lock,
                       const char *member); /* 0: it is none */
    const char *(*field)(const char *name); /* of the state; "": not there */
    void (*write)(const char *name, const char *text); /* "-": deletes it */
    void (*flush)(void);
    void (*fill)(bool is_full);
    void (*evict)(void);
    void (*follow)(void); /* is a replica for a moment */
    void (*lead)(void);   /* gets a first replica, so another replication ID */
    void (*pass)(int64_t ms);
    void (*subscribe)(const char *resource);
    const char *(*heard)(void); /* " resource=message" each, since last time */
    void (*command)(const char *const *words, int count, char *reply,
                    size_t size); /* NULL: it takes none */
};

extern const struct stage stage_real, stage_sim;

#endif
