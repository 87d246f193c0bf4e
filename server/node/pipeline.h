/*
 * Commands to one node in a row, and which reply belongs to which: calls are
 * gathered in a batch until something else is sent or the turn ends, and each
 * gets its own reply out of the batch's.
 *
 *   pipeline_call ──→ batch ──→ wire ──→ node ──→ wire ──→ pipeline_next
 *         └───────────────── fifo of what is owed ──────────────↑
 *
 * Calls nobody back.
 */
#ifndef REDLOCKD_PIPELINE_H
#define REDLOCKD_PIPELINE_H

#include "batch.h"
#include "fifo.h"
#include "wire.h"

struct pipeline {
    struct wire *wire; /* the caller's */
    const char *sha;   /* of the script there; the caller's, too */
    struct fifo fifo;
    struct batch batch; /* the newest of the FIFO, not in the wire yet */
    struct batch_reader reader;
    int unread;     /* calls whose replies the reader still has */
    bool is_broken; /* no memory: the connection must go down */
};

/* To be called once; keys are prefixed with prefix, which is borrowed. */
void pipeline_init(struct pipeline *pipeline, struct span prefix);
void pipeline_fini(struct pipeline *pipeline);

/*
 * Begins with a new connection, when nothing is owed any more. Both are
 * borrowed; sha is read when calls are sent: it may come with the handshake.
 */
void pipeline_begin(struct pipeline *pipeline, struct wire *wire,
                    const char *sha);

/*
 * Queues a call. VOTE_PENDING, or VOTE_STALLED: too much is owed or unsent
 * already, or no memory.
 */
enum vote pipeline_call(struct pipeline *pipeline, const struct call *call,
                        uint64_t tag);

/*
 * Appends another command behind the calls so far. step is told with the reply:
 * 0 and above. False: no memory.
 */
bool pipeline_step(struct pipeline *pipeline, int step, const struct span *args,
                   int count);

/* Hands the calls so far to the wire. False: no memory. */
bool pipeline_append(struct pipeline *pipeline);

/* When the oldest command that is owed a reply was sent; 0: none is owed. */
int64_t pipeline_oldest_us(const struct pipeline *pipeline);

enum pipeline_next {
    PIPELINE_CALL,    /* the reply to a call: tag, sent_us, script */
    PIPELINE_STEP,    /* the reply to a step: step, sent_us, fields, count */
    PIPELINE_NONE,    /* no complete reply is left */
    PIPELINE_UNASKED, /* a reply to nothing that was sent */
    PIPELINE_GARBAGE, /* no reply, or too long a one */
};

/* Borrows from the wire until the next call. */
struct pipeline_reply {
    uint64_t tag;
    int step;
    int64_t sent_us;
    struct call_reply script;
    const struct script_field *fields;
    int count;
};

/* The next reply of what the wire has read; heard_us: when it was read. */
enum pipeline_next pipeline_next(struct pipeline *pipeline, int64_t heard_us,
                                 struct pipeline_reply *reply);

/*
 * The connection is gone: takes out the next call that will get no reply.
 * False: there is none left, and the pipeline is as new.
 */
bool pipeline_drop(struct pipeline *pipeline, struct pipeline_reply *reply);

#endif
