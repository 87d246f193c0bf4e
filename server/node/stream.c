#include "stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

enum { KEEPALIVE_S = 15, KEEPALIVE_PROBES = 3 };

static bool set_error(struct stream *stream, const char *error)
{
    stream->reason = STATE_UNREACHABLE;
    stream->error = error;
    return false;
}

/* The session is the only one that knows why it broke. */
static void take_error(struct stream *stream)
{
    stream->error = session_error(stream->session);
    stream->reason = session_reason(stream->session);
}

/* ---- begin and end ------------------------------------------------------ */

/*
 * By hand: hiredis 0.14 aborts, or connects to loopback, when it gets no memory
 * for the address.
 */
void stream_open(struct stream *stream, const struct sockaddr *address,
                 socklen_t len)
{
    *stream = (struct stream){.is_unix = address->sa_family == AF_UNIX};
    stream->fd = socket(address->sa_family,
                        SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream->fd < 0 || (connect(stream->fd, address, len) != 0 &&
                           errno != EINPROGRESS && errno != EINTR))
        (void)set_error(stream, strerror(errno));
}

void stream_close(struct stream *stream)
{
    session_free(stream->session);
    if (stream->fd >= 0)
        (void)close(stream->fd); /* an error does not matter any more */
}

bool stream_secure(struct stream *stream, struct trust *trust, const char *host)
{
    stream->session = session_new(trust, host, stream->fd);
    return stream->session != NULL;
}

static bool set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/*
 * Commands are small and each is waited for, so Nagle's delay would only cost;
 * keepalive finds a node that vanished while nothing is asked of it.
 */
bool stream_finish_connect(struct stream *stream)
{
    int fd = stream->fd;
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error != 0)
        return set_error(stream, strerror(error));
    if (stream->is_unix)
        return true;
    if (!set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) ||
        !set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) ||
        !set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S) ||
        !set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL,
                    KEEPALIVE_S / KEEPALIVE_PROBES) ||
        !set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES))
        return set_error(stream, strerror(errno));
    return true;
}

enum session_shake stream_shake(struct stream *stream)
{
    if (stream->session == NULL)
        return SESSION_READY;
    enum session_shake shake = session_shake(stream->session);
    take_error(stream);
    return shake;
}

/* ---- bytes -------------------------------------------------------------- */

ssize_t stream_write(struct stream *stream, const char *bytes, size_t len)
{
    if (stream->session != NULL) {
        ssize_t sent = session_write(stream->session, bytes, len);
        take_error(stream);
        return sent;
    }
    ssize_t sent = send(stream->fd, bytes, len, MSG_NOSIGNAL);
    if (sent >= 0)
        return sent;
    if (errno == EAGAIN || errno == EINTR)
        return 0;
    (void)set_error(stream, strerror(errno));
    return -1;
}

ssize_t stream_read(struct stream *stream, char *bytes, size_t size)
{
    if (stream->session != NULL) {
        ssize_t got = session_read(stream->session, bytes, size);
        take_error(stream);
        return got;
    }
    ssize_t got = recv(stream->fd, bytes, size, 0);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    (void)set_error(stream, got == 0 ? "the node closed the connection"
                                     : strerror(errno));
    return -1;
}
