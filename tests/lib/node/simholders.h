/* SPDX-License-Identifier: MIT */
/*
 * The holders of shared locks in the data of a simulated node: what sorted
 * sets are on a real one.
 *
 * Members that somebody else put under a key are holders, too, if only here.
 */
#ifndef REDLOCKD_TEST_SIMHOLDERS_H
#define REDLOCKD_TEST_SIMHOLDERS_H

#include "simnode.h"

/* What a writer leaves among readers that keep it out, and for how long. */
#define SIM_INTENT "0000000000000000~"
enum { SIM_INTENT_MS = 500 };

/* The one with this token, whether it has ended or not; NULL: there is none. */
struct simholder *simholders_find(struct simmemory *memory, int resource,
                                  struct span token);

/* The next one in the order of ends, and of tokens; NULL begins, and ends. */
const struct simholder *simholders_next(const struct simmemory *memory,
                                        int resource,
                                        const struct simholder *after);

/* The last in that order; NULL: there is none. */
const struct simholder *simholders_last(const struct simmemory *memory,
                                        int resource);

/* Whether it has the form of a shared token, as scripts examine it. */
bool simholders_is_token(const struct simholder *holder);

/* How many there are, the intent of a writer and those that have ended
 * included.
 */
int simholders_members(const struct simmemory *memory, int resource);

/*
 * How many readers have not ended; 0: there is only the intent of a writer. -1:
 * it is no shared lock of ours.
 */
int simholders_count(const struct simmemory *memory, int resource,
                     int64_t now_ms);

/* Whether a writer wants it. */
bool simholders_is_wanted(struct simmemory *memory, int resource,
                          int64_t now_ms);

/* A writer cannot set it: true if it may, as there is no reader. Otherwise its
 * intent is there. */
bool simholders_may_take(struct simmemory *memory, int resource,
                         int64_t now_ms);

/* Adds one that is not there. Whatever the key was before is gone. */
void simholders_add(struct simmemory *memory, int resource, struct span token,
                    int64_t ends_ms);

/* Drops those that have ended. Without any other, the key is no more. */
void simholders_drop_ended(struct simmemory *memory, int resource,
                           int64_t now_ms);

/* The same, and the key ends with the last of the others. */
void simholders_settle(struct simmemory *memory, int resource, int64_t now_ms);

static inline struct span simholder_token(const struct simholder *holder)
{
    return (struct span){holder->token, holder->token_len};
}

#endif
