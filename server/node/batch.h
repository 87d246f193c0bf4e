/* SPDX-License-Identifier: MIT */
/*
 * The calls of one turn to one node, as one command: a script that runs them
 * in their order, and one reply to all. A call on its own would cost a node
 * twice as much, most of it before its script begins. Pure.
 */
#ifndef REDLOCKD_BATCH_H
#define REDLOCKD_BATCH_H

#include "../lock/lock.h"
#include "script.h"

enum {
    BATCH_CALLS_MAX = 64, /* bounds how long a node does nothing else */
    BATCH_ARGS_MAX = BATCH_CALLS_MAX * SCRIPT_ARGS_MAX,
    BATCH_HEAD_ARGS = 10, /* EVALSHA, sha, 1, key, admit, window, deadline,
                             kinds, acquires, releases */
    BATCH_COMMAND_MAX = BATCH_HEAD_ARGS + BATCH_ARGS_MAX,
    BATCH_BYTES_MAX = 32 * 1024,
    BATCH_KINDS_MAX = 2 * BATCH_CALLS_MAX, /* letters and semicolons */
    BATCH_HEAD_FIELDS =
        4, /* the array, the node's time, its generation, letters */
    BATCH_SLOTS_MAX = 4 * POOL_SLOTS_MAX, /* told in a reply */
    BATCH_DEADLINES_US = 2000, /* between the deadlines of its calls */
    BATCH_FIELDS_MAX = BATCH_HEAD_FIELDS + BATCH_CALLS_MAX * SCRIPT_FIELDS_MAX,
    BATCH_CALL_TEXT_MAX = VALUE_MAX + SCRIPT_WORD_MAX, /* in a call's reply */
    BATCH_TEXT_MAX = BATCH_CALLS_MAX * (BATCH_CALL_TEXT_MAX + 1) +
                     2 * CALL_STATE_MAX + CALL_WITNESSES_MAX + /* of a probe */
                     CALL_SCAN_MAX + BATCH_SLOTS_MAX,
};

/* All zero at first, except for prefix, which is borrowed. */
struct batch {
    int calls;
    int args_count;
    int acquires, releases; /* of one lock each */
    struct span admit;      /* of all calls; empty: no call needs it yet */
    int64_t window_us;      /* of all calls; 0: no call needs it yet */
    bool is_timed;          /* a call has a deadline */
    int64_t deadline_us;    /* the earliest deadline; 0: there is none yet */
    int64_t latest_us;      /* the latest deadline; 0: there is none yet */
    int kinds_count;
    int buckets_count;  /* of the acquires and releases since the last ";" */
    bool has_list;      /* of names or tokens, in its reply */
    int slots_reported; /* in its reply */
    size_t used;
    /* batch_reset clears what stands above */
    struct span prefix;
    struct span args[BATCH_ARGS_MAX];
    struct span buckets_of[BATCH_CALLS_MAX]; /* of the acquires */
    struct span locks[BATCH_CALLS_MAX];      /* of the releases */
    struct span tokens[BATCH_CALLS_MAX];     /* of the releases */
    char kinds[BATCH_KINDS_MAX];
    uint16_t buckets[BATCH_CALLS_MAX];
    char bytes[BATCH_BYTES_MAX];
};

/*
 * Adds a call; copies what it borrows. False: the batch is full, or its calls
 * have another admission, window or deadline. Send and reset it, then add the
 * call again.
 */
bool batch_add(struct batch *batch, const struct call *call);

/* The arguments for the Redis client; borrows from batch and sha. */
struct batch_command {
    int count;
    struct span args[BATCH_COMMAND_MAX];
    char state_key[PREFIX_MAX + SCRIPT_INFIX_MAX];
    char window[DIGITS_MAX];
    char deadline[DIGITS_MAX];
    char acquires[DIGITS_MAX];
    char releases[DIGITS_MAX];
};

/* The EVALSHA of a batch with at least one call. sha: 40 hex digits. */
void batch_command(const struct batch *batch, const char *sha,
                   struct batch_command *command);

void batch_reset(struct batch *batch);

/* Takes the reply to a batch apart; borrows the fields. */
struct batch_reader {
    const struct script_field *fields;
    int count;
    int at;
    const char *letter; /* of the next call */
    int64_t node_now_us;
    int64_t generation;    /* as in call_reply */
    struct call_reply all; /* to all calls; VOTE_PENDING: each has its own */
};

/* fields: the whole reply, count of them; calls: how many were in the batch. */
void batch_read(struct batch_reader *reader, const struct script_field *fields,
                int count, int calls);

/* The reply to the next call, which is of this kind. */
struct call_reply batch_next(struct batch_reader *reader, enum call_kind kind);

#endif
