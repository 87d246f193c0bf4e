/*
 * The bytes of one connection to a node, plain or inside TLS.
 *
 *   connecting ──→ shaking hands (TLS) ──→ ready: read, write ──→ broken
 *
 * Nothing here calls back or waits.
 */
#ifndef REDLOCKD_STREAM_H
#define REDLOCKD_STREAM_H

#include <sys/socket.h>
#include <sys/types.h>

#include "session.h"

/*
 * error: why it is dead, with its reason; NULL: it is not. It may point into
 * the session. What came before the error can still be read.
 */
struct stream {
    int fd;
    bool is_unix;
    enum node_state reason;
    const char *error;
    struct session *session; /* NULL: plain */
};

/*
 * Starts to connect to a TCP or Unix address of len bytes; look at error. It is
 * connected when the descriptor is writable and stream_finish_connect says so.
 */
void stream_open(struct stream *stream, const struct sockaddr *address,
                 socklen_t len);
void stream_close(struct stream *stream);

/*
 * Before it is connected: it is to speak TLS with the node of this name, or IP
 * address. False: no memory.
 */
bool stream_secure(struct stream *stream, struct trust *trust,
                   const char *host);

/* Call it once the descriptor is writable. False: it could not connect. */
bool stream_finish_connect(struct stream *stream);

/* Connected: what is missing until bytes can be read and written. */
enum session_shake stream_shake(struct stream *stream);

/*
 * Writes as much as the socket takes now; returns how much, -1: an error. What
 * was not written must come first in the next call.
 */
ssize_t stream_write(struct stream *stream, const char *bytes, size_t len);

/*
 * Reads what is there; returns how much, 0: nothing now, -1: an error or the
 * end. Less than size: there is no more that the descriptor would not show.
 */
ssize_t stream_read(struct stream *stream, char *bytes, size_t size);

#endif
