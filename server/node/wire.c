/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    READ_BYTES = 16 * 1024, /* with one recv(2) */
    READS_MAX = WIRE_READ_MAX / READ_BYTES,
    OUT_KEPT_MAX = 64 * 1024,          /* of the empty output buffer */
    DEPTH_MAX = 3,                     /* of arrays: the rights of a user */
    TLS_ALERT = 0x15,                  /* no reply begins so */
    ARG_HEAD_MAX = 1 + DIGITS_MAX + 2, /* $len CR LF, *argc CR LF */
    KEEPALIVE_S = 15,
    KEEPALIVE_PROBES = 3,
};

struct wire {
    redisReader *reader;
    int fd;
    bool is_unix;
    const char *error;       /* NULL: that of the session */
    struct session *session; /* NULL: plain */
    char first;              /* byte of what was read last */
    char *out;               /* what waits to be written */
    size_t out_len;
    size_t out_size;
    struct wire_reply reply;
    size_t text_len;
    char text[WIRE_TEXT_MAX];
};

/* ---- the parser's callbacks --------------------------------------------- */

/*
 * NULL stops the parser with an error. Anything else stands for the object; the
 * parser only compares it with NULL.
 */

static struct script_field *wire_add_field(const redisReadTask *task,
                                           enum script_field_type type)
{
    struct wire *wire = task->privdata;
    if (task->parent == NULL) {
        wire->reply.count = 0;
        wire->text_len = 0;
    }
    if (wire->reply.count == WIRE_FIELDS_MAX)
        return NULL;
    struct script_field *field = &wire->reply.fields[wire->reply.count++];
    *field = (struct script_field){.type = type};
    return field;
}

static void *on_string(const redisReadTask *task, char *bytes, size_t len)
{
    struct wire *wire = task->privdata;
    bool is_error = task->type == REDIS_REPLY_ERROR;
    struct script_field *field = wire_add_field(
        task, is_error ? SCRIPT_FIELD_ERROR : SCRIPT_FIELD_STRING);
    if (is_error && len > WIRE_ERROR_MAX)
        len = WIRE_ERROR_MAX;
    if (field == NULL || len > sizeof wire->text - wire->text_len)
        return NULL;
    /* Copied: the parser moves its buffer before the reply is used. */
    char *copy = wire->text + wire->text_len;
    wire->text_len += span_copy(copy, (struct span){bytes, len});
    field->string = (struct span){copy, len};
    return wire;
}

#if HIREDIS_MAJOR >= 1
static void *on_array(const redisReadTask *task, size_t elements)
#else
static void *on_array(const redisReadTask *task, int elements)
#endif
{
    int depth = 1;
    for (const redisReadTask *it = task->parent; it != NULL; it = it->parent)
        depth++;
    if (depth > DEPTH_MAX || task->type != REDIS_REPLY_ARRAY ||
        elements >= WIRE_FIELDS_MAX)
        return NULL;
    struct script_field *field = wire_add_field(task, SCRIPT_FIELD_ARRAY);
    if (field != NULL)
        field->integer = (int64_t)elements;
    return field;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    struct script_field *field = wire_add_field(task, SCRIPT_FIELD_INTEGER);
    if (field != NULL)
        field->integer = value;
    return field;
}

static void *on_nil(const redisReadTask *task)
{
    return wire_add_field(task, SCRIPT_FIELD_NIL);
}

#if HIREDIS_MAJOR >= 1
/* Types of RESP3, which is never asked for. */
static void *on_double(const redisReadTask *task, double value, char *text,
                       size_t len)
{
    (void)task, (void)value, (void)text, (void)len;
    return NULL;
}

static void *on_bool(const redisReadTask *task, int value)
{
    (void)task, (void)value;
    return NULL;
}
#endif

static redisReplyObjectFunctions parser_functions = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = NULL, /* there is nothing to free */
};

/* ---- begin and end ------------------------------------------------------ */

/*
 * Connects by hand: hiredis 0.14 aborts, or connects to loopback, when it gets
 * no memory for the address.
 */
struct wire *wire_new(const struct sockaddr *address, socklen_t len)
{
    struct wire *wire = malloc(sizeof *wire);
    if (wire == NULL)
        return NULL;
    wire->reader = redisReaderCreateWithFunctions(&parser_functions);
    if (wire->reader == NULL) {
        free(wire);
        return NULL;
    }
    wire->reader->privdata = wire;
    /* never give the buffer back: hiredis asserts that it gets a new one */
    wire->reader->maxbuf = 0;
    wire->is_unix = address->sa_family == AF_UNIX;
    wire->error = NULL;
    wire->session = NULL;
    wire->first = '\0';
    wire->out = NULL;
    wire->out_len = 0;
    wire->out_size = 0;
    wire->reply.count = 0;
    wire->text_len = 0;
    wire->fd = socket(address->sa_family,
                      SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (wire->fd < 0 || (connect(wire->fd, address, len) != 0 &&
                         errno != EINPROGRESS && errno != EINTR))
        wire->error = strerror(errno);
    return wire;
}

void wire_free(struct wire *wire)
{
    if (wire == NULL)
        return;
    redisReaderFree(wire->reader);
    session_free(wire->session);
    if (wire->fd >= 0)
        (void)close(wire->fd); /* an error does not matter any more */
    free(wire->out);
    free(wire);
}

bool wire_secure(struct wire *wire, struct trust *trust, const char *host)
{
    wire->session = session_new(trust, host, wire->fd);
    return wire->session != NULL;
}

static bool set_option(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

/*
 * Commands are small and each is waited for, so Nagle's delay would only cost;
 * keepalive finds a node that vanished while nothing is asked of it.
 */
bool wire_finish_connect(struct wire *wire)
{
    int fd = wire->fd;
    int error = 0;
    socklen_t len = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
        error = errno;
    if (error == 0 && !wire->is_unix &&
        (!set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1) ||
         !set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1) ||
         !set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_S) ||
         !set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL,
                     KEEPALIVE_S / KEEPALIVE_PROBES) ||
         !set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES)))
        error = errno;
    if (error != 0)
        wire->error = strerror(error);
    return error == 0;
}

enum session_shake wire_shake(struct wire *wire)
{
    return wire->session != NULL ? session_shake(wire->session) : SESSION_READY;
}

int wire_fd(const struct wire *wire)
{
    return wire->fd;
}

/* The session is the only one that knows why it broke. */
const char *wire_error(const struct wire *wire)
{
    if (wire->error != NULL || wire->session == NULL)
        return wire->error;
    return session_error(wire->session);
}

enum node_state wire_reason(const struct wire *wire)
{
    if (wire->error != NULL || wire->session == NULL)
        return STATE_UNREACHABLE;
    return session_reason(wire->session);
}

int64_t wire_certificate_until_s(const struct wire *wire)
{
    return wire->session != NULL ? session_until_s(wire->session) : 0;
}

bool wire_receives_tls(const struct wire *wire)
{
    return wire->first == TLS_ALERT;
}

/* ---- bytes -------------------------------------------------------------- */

/* A length or count with its sign in front; returns the end. */
static char *put_head(char *at, char sign, size_t number)
{
    char digits[DIGITS_MAX];
    *at++ = sign;
    at += span_copy(at, span_of_number(digits, number));
    return at + span_copy(at, span_of("\r\n"));
}

/*
 * By hand: hiredis makes room for each argument anew, which took a third of all
 * that a request costs, and loses its buffer when there is no memory for it.
 */
bool wire_append(struct wire *wire, const struct span *args, int count)
{
    size_t room = ARG_HEAD_MAX;
    for (int i = 0; i < count; i++)
        room += ARG_HEAD_MAX + args[i].len + 2;
    if (!bytes_reserve(&wire->out, &wire->out_size, wire->out_len + room))
        return false;
    char *at = put_head(wire->out + wire->out_len, '*', (size_t)count);
    for (int i = 0; i < count; i++) {
        at = put_head(at, '$', args[i].len);
        at += span_copy(at, args[i]);
        at += span_copy(at, span_of("\r\n"));
    }
    wire->out_len = (size_t)(at - wire->out);
    return true;
}

size_t wire_unsent(const struct wire *wire)
{
    return wire->out_len;
}

bool wire_write(struct wire *wire)
{
    ssize_t sent;
    if (wire->session != NULL) {
        sent = session_write(wire->session, wire->out, wire->out_len);
    } else {
        sent = send(wire->fd, wire->out, wire->out_len, MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR))
            sent = 0;
        else if (sent < 0)
            wire->error = strerror(errno);
    }
    if (sent < 0)
        return false;
    wire->out_len -= (size_t)sent;
    memmove(wire->out, wire->out + sent, wire->out_len);
    if (wire->out_len == 0 && wire->out_size > OUT_KEPT_MAX) {
        free(wire->out);
        wire->out = NULL;
        wire->out_size = 0;
    }
    return true;
}

/*
 * Returns how much it has read, 0: nothing now, -1: an error or the end. Less
 * than size: there is no more that the descriptor would not show.
 */
static ssize_t wire_read_once(struct wire *wire, char *bytes, size_t size)
{
    if (wire->session != NULL)
        return session_read(wire->session, bytes, size);
    ssize_t got = recv(wire->fd, bytes, size, 0);
    if (got > 0)
        return got;
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    wire->error = got == 0 ? "the node closed the connection" : strerror(errno);
    return -1;
}

/*
 * By hand: hiredis does not read after a write has failed. If bytes came before
 * an error, only the next call reports it.
 *
 * TLS bounds itself, and must be read until it has no more: what it has taken
 * from the socket, the descriptor does not show any more.
 */
bool wire_read(struct wire *wire, bool *has_read)
{
    char bytes[READ_BYTES];
    bool is_tls = wire->session != NULL;
    ssize_t got = sizeof bytes;
    *has_read = false;
    for (int i = 0; (i < READS_MAX || is_tls) && got == (ssize_t)sizeof bytes;
         i++) {
        got = wire_read_once(wire, bytes, sizeof bytes);
        if (got <= 0)
            break;
        *has_read = true;
        wire->first = bytes[0];
        if (redisReaderFeed(wire->reader, bytes, (size_t)got) != REDIS_OK) {
            wire->error = "out of memory to read";
            return false;
        }
    }
    return got >= 0 || *has_read;
}

enum wire_next wire_next(struct wire *wire, const struct wire_reply **reply)
{
    redisReader *reader = wire->reader;
    void *object = NULL;
    if (redisReaderGetReply(reader, &object) != REDIS_OK)
        return WIRE_GARBAGE;
    if (object != NULL) {
        *reply = &wire->reply;
        return WIRE_REPLY;
    }
    /* A server that announces a long string must not make us keep it. */
    return reader->len - reader->pos > WIRE_UNREAD_MAX ? WIRE_GARBAGE
                                                       : WIRE_NONE;
}
