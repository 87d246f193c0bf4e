/* SPDX-License-Identifier: MIT */
/*
 * A node that is nothing but bytes: a wire in this process whose other end the
 * fuzzer writes.
 */
#ifndef REDLOCKD_FUZZ_PEER_H
#define REDLOCKD_FUZZ_PEER_H

#include "../../server/node/pipeline.h"

struct peer {
    struct wire *wire;
    struct pipeline pipeline;
    int fd;
    struct span left; /* to be sent, … */
    size_t piece;     /* … so much at once */
};

/* A new connection. Calls may be added to its pipeline then. */
void peer_begin(struct peer *peer, struct span bytes, size_t piece);
void peer_end(struct peer *peer);

/*
 * The next reply. PIPELINE_NONE: all bytes are read, and none of them is a
 * complete reply any more.
 */
enum pipeline_next peer_next(struct peer *peer, struct pipeline_reply *reply);

/* Only if some are left: the wire reads the next ones. */
void peer_send_piece(struct peer *peer);

#endif
