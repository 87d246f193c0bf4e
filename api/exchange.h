/* SPDX-License-Identifier: MIT */
/*
 * A request and its answer: what is refused before a handler sees it, when to
 * wait, to answer, or to close the connection instead, and what becomes of a
 * lock that was granted to a client which has left. No HTTP library here.
 *
 *   the client left before the answer was        the acquire is abandoned
 *   written, or the answer was not written
 *   whole
 *   the answer was written whole                 the grant stands, however the
 *                                                connection ends; if nobody
 *                                                read it, it expires
 *
 * Extends, releases and inspections go on without their client: they leave no
 * lock that nobody owns. In a batch each operation goes its own way (batch.h).
 */
#ifndef REDLOCKD_EXCHANGE_H
#define REDLOCKD_EXCHANGE_H

#include "../server/base/log.h"
#include "access/access.h"
#include "http/connection.h"
#include "message/head.h"
#include "message/http.h"
#include "service.h"

/* A connection, which outlives its requests, and the request on it. */
struct exchange {
    struct connection connection;  /* first, so that it leads here */
    const struct service *service; /* since the first request */
    struct login login;
    struct caller caller;
    struct http_request request;
};

static inline struct exchange *exchange_of(struct connection *connection)
{
    return (struct exchange *)connection;
}

/* What to do with the connection now. */
enum exchange_step {
    EXCHANGE_READ,   /* read the body */
    EXCHANGE_WAIT,   /* suspend it until the event wake */
    EXCHANGE_DELAY,  /* the same; its answer comes late */
    EXCHANGE_ANSWER, /* send the response, and free its body */
    EXCHANGE_CLOSE,  /* close it: the client left, or there is no memory */
};

/* A head was read: a request begins. All that is given lives until its end. */
void exchange_open(struct exchange *it, const struct service *service,
                   const char *method, const char *target, int64_t now_us);

/*
 * The head was read, nothing of the body. Fills the request from it. What can
 * be refused already closes the connection after the answer: the body that
 * follows cannot be told from a next request, or is not worth reading. Who may
 * not ask this is refused when the body was read and dropped, so that the
 * connection can serve other requests; but at once if the body is large, or
 * waits to be asked for.
 */
enum exchange_step exchange_begin(struct exchange *it, const struct head *head,
                                  bool is_http_1_0,
                                  struct http_response *response);

/* The body was read as well, or the connection was woken. */
enum exchange_step exchange_go_on(struct exchange *it, int64_t now_us,
                                  struct http_response *response);

/*
 * The engine's port.answer: the operation of this client, an exchange, has its
 * outcome. The engine may call it from within engine_acquire…, but not after
 * the operation was closed or abandoned.
 */
void exchange_on_answer(void *client);

/* Whether what was begun takes effect without its client: the connection must
 * not end before it. */
bool exchange_goes_on(const struct exchange *it);

/* Whether the engine works for it: behind an answer a grant is open until that
 * is written. */
bool exchange_has_grant(const struct exchange *it);

/* The connection's events leave and end, see connection.h. */
bool exchange_on_leave(struct connection *connection);
void exchange_on_end(struct connection *connection, bool is_answered);

/*
 * Who may ask what has changed, or whom we trust: each acquire that waits, and
 * may not any more, goes on to its refusal.
 */
void exchanges_review(struct connections *connections);

/* The lines that answers may have in the log at level info. */
extern const struct log_limit exchange_log_limit;

/*
 * Counts the answer. Logs it at level debug; at level info only if it is an
 * error of ours (5xx) or slow, and if not too many were logged before. That a
 * probe is told "not ready" is no error. A wait for a lock is not slow: it was
 * asked for. Nor does a request that may wait count in the durations: the
 * engine observes those by themselves. The log holds no targets and no tokens.
 */
void exchange_note_answer(const struct exchange *it, struct log_limit *limit,
                          int64_t now_us);

#endif
