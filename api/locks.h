/* SPDX-License-Identifier: MIT */
/*
 * The calls on locks: from a request to the engine, and from its result to an
 * answer, which goes to call->response.
 */
#ifndef REDLOCKD_LOCKS_H
#define REDLOCKD_LOCKS_H

#include "message/http.h"
#include "service.h"

struct body;

/* As how many requests an operation counts, by what it costs the nodes: each
 * name is a lock, and to tell which of a thousand slots are free takes ten
 * times as long as to set a lock. */
int locks_weight(const struct body *body);

/*
 * Starts what the request asks. True: it is answered. False: the answer follows
 * from locks_answer as soon as the engine has called port.answer for client,
 * which may be before this returns; call->op is the operation.
 */
bool locks_begin(const struct service *service, struct http_call *call,
                 void *client);

/* The same for an acquire, an extend or a release whose body was read already.
 * Without a token in the body it is that of the call. */
bool locks_start(const struct service *service, struct http_call *call,
                 const struct body *body, void *client);

/*
 * Answers with the validity that is left at now_us. The operation is closed,
 * and call->op 0, except behind a grant: then the caller closes it once the
 * answer was read, or abandons it.
 */
void locks_answer(const struct service *service, struct http_call *call,
                  int64_t now_us);

/* Whether what was begun is of use to its client alone: an acquire, a watch. */
bool locks_are_for_client(const struct http_call *call);

/* Whether the client may still have what it asked for. */
bool locks_stand(const struct service *service, struct http_call *call);

/* There will be no answer: a grant is released, and so is what may become one.
 * call->op is 0 then. */
void locks_abandon(const struct service *service, struct http_call *call);

/* It does not stand any more: the same, and the answer is the refusal. */
void locks_revoke(const struct service *service, struct http_call *call);

#endif
