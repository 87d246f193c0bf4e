/* SPDX-License-Identifier: MIT */
/*
 * One connection to a Redis server, plain or inside TLS: bytes out, replies in.
 * <hiredis/…> is included by wire.c alone.
 *
 *   connecting ──→ shaking hands (TLS) ──→ ready: read, write ──→ broken
 *
 * hiredis parses replies. Its own reply objects are heap trees of whatever size
 * the server chooses; ours are flat and of fixed size, and a reply that does
 * not fit is an error of the server.
 *
 * Nothing here calls back or waits.
 */
#ifndef REDLOCKD_WIRE_H
#define REDLOCKD_WIRE_H

#include <sys/socket.h>

#include "batch.h"
#include "session.h"

enum {
    WIRE_FIELDS_MAX = BATCH_FIELDS_MAX,   /* of a reply */
    WIRE_TEXT_MAX = BATCH_TEXT_MAX,       /* of all strings in a reply */
    WIRE_ERROR_MAX = BATCH_CALL_TEXT_MAX, /* what is kept of an error */
    WIRE_READ_MAX = SESSION_TURN_MAX,     /* bytes that one wire_read reads */
    WIRE_UNREAD_MAX = 64 * 1024 /* bytes of a reply that is not complete */
};

struct wire;

/*
 * Starts to connect to a TCP or Unix address of len bytes. It is connected when
 * the descriptor is writable and wire_finish_connect says so. NULL: no
 * memory; else see wire_error.
 */
struct wire *wire_new(const struct sockaddr *address, socklen_t len);
void wire_free(struct wire *wire);

/*
 * Before it is connected: it is to speak TLS with the node of this name, or IP
 * address. False: no memory.
 */
bool wire_secure(struct wire *wire, struct trust *trust, const char *host);

/* Call it once the descriptor is writable. False: it could not connect. */
bool wire_finish_connect(struct wire *wire);

/* Connected: what is missing until bytes can be read and written. */
enum session_shake wire_shake(struct wire *wire);

/* To be watched; -1: there is none. */
int wire_fd(const struct wire *wire);

/*
 * Why the connection is dead, in words and as a state; NULL: it is not. Copy
 * it: it may change with the next call. After an error nothing can be written,
 * but what came before it may still be read.
 */
const char *wire_error(const struct wire *wire);
enum node_state wire_reason(const struct wire *wire);

/* When the node's certificate ends, see session.h; 0: it speaks no TLS. */
int64_t wire_certificate_until_s(const struct wire *wire);

/* Whether what was read last begins like an alert of TLS. */
bool wire_receives_tls(const struct wire *wire);

/* Adds a command to the output. False: no memory, and no change. */
bool wire_append(struct wire *wire, const struct span *args, int count);

/* Bytes of output that are not yet written. */
size_t wire_unsent(const struct wire *wire);

/* Writes as much output as the socket takes now. False: an error. */
bool wire_write(struct wire *wire);

/*
 * Reads what is there, up to WIRE_READ_MAX. False: an error, or the end.
 * has_read tells whether anything came.
 */
bool wire_read(struct wire *wire, bool *has_read);

/*
 * A reply: one field, or an array followed by its elements, of which some may
 * be arrays of plain fields. Errors are cut: their code comes first, and a
 * batch may have one for each call. Valid until the next call.
 */
struct wire_reply {
    int count;
    struct script_field fields[WIRE_FIELDS_MAX];
};

enum wire_next {
    WIRE_REPLY,   /* here it is */
    WIRE_NONE,    /* no complete reply is left */
    WIRE_GARBAGE, /* not RESP, nested too deep, too many fields, too long */
};

/* Takes the next reply from what was read. */
enum wire_next wire_next(struct wire *wire, const struct wire_reply **reply);

#endif
