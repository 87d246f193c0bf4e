/* Apart from link.c: fuzzers and units run it over any socket. */
/* SPDX-License-Identifier: MIT */
/*
 * Pipelines commands to one node, and finds the command of each reply. Calls
 * gather in a batch until another command is sent or the turn ends; each gets
 * its own part of the batch's reply.
 *
 *   pipeline_call ──→ batch ──→ wire ──→ node ──→ wire ──→ pipeline_next
 *         └───────────────── ring of pending calls ─────────────↑
 *
 * It has no callbacks.
 */
#ifndef REDLOCKD_PIPELINE_H
#define REDLOCKD_PIPELINE_H

#include "batch.h"
#include "wire.h"

enum { PIPELINE_PENDING_MAX = 16384 };

/* A reply that the node owes. */
struct pipeline_entry {
    uint64_t tag;
    int64_t sent_us; /* of the first; 0: of the others */
    int command;     /* a call's kind, or CALL_KINDS: loads the script */
    bool is_first;   /* of the entries that one reply answers */
};

struct pipeline {
    struct wire *wire; /* the caller's */
    const char *sha;   /* of the script there; the caller's, too */
    /* what is pending, in the order of the commands */
    struct pipeline_entry *ring;
    uint32_t room; /* a power of two, or 0 */
    uint32_t first;
    uint32_t count;
    struct batch batch; /* the newest of them, not yet in the wire */
    struct batch_reader reader;
    int unread;      /* calls whose replies the reader still has */
    int64_t sent_us; /* of the calls that unread counts */
    bool is_broken;  /* no memory: the connection must go down */
};

/* Call it once. prefix, borrowed, comes before all keys. */
void pipeline_init(struct pipeline *pipeline, struct span prefix);
void pipeline_fini(struct pipeline *pipeline);

/*
 * Begins on a new connection; no reply of the last one may be pending. wire and
 * sha are borrowed; sha is read when calls are sent.
 */
void pipeline_begin(struct pipeline *pipeline, struct wire *wire,
                    const char *sha);

/*
 * Queues a call. VOTE_PENDING, or VOTE_STALLED: too many replies are pending,
 * too much is unsent, or no memory.
 */
enum vote pipeline_call(struct pipeline *pipeline, const struct call *call,
                        uint64_t tag);

/* Appends the command that loads the script after the calls so far. False: no
 * memory. */
bool pipeline_load(struct pipeline *pipeline, const struct span *args,
                   int count);

/* Hands the calls so far to the wire. False: no memory. */
bool pipeline_append(struct pipeline *pipeline);

/* When the oldest command without a reply was sent; 0: there is none. */
int64_t pipeline_oldest_us(const struct pipeline *pipeline);

enum pipeline_next {
    PIPELINE_CALL,    /* the reply to a call: tag, sent_us, script */
    PIPELINE_LOADED,  /* the reply to pipeline_load: sent_us, loaded */
    PIPELINE_NONE,    /* no complete reply is left */
    PIPELINE_UNASKED, /* a reply without a command */
    PIPELINE_GARBAGE, /* not a reply, or too long */
};

/* Borrows from the wire until the next call. */
struct pipeline_reply {
    uint64_t tag;
    int64_t sent_us; /* it was sent at this time or a moment later */
    struct call_reply script;
    const struct wire_reply *loaded;
};

/* The next reply of what the wire has read; received_us: when it was read. */
enum pipeline_next pipeline_next(struct pipeline *pipeline, int64_t received_us,
                                 struct pipeline_reply *reply);

/*
 * The connection is lost: takes out the next call that will get no reply.
 * False: there is none left, and pipeline_begin may follow.
 */
bool pipeline_drop(struct pipeline *pipeline, struct pipeline_reply *reply);

#endif
