/* SPDX-License-Identifier: MIT */
/*
 * POST /batch: up to BODY_LIST_MAX acquires, extends and releases in one
 * request. Each is a call of its own, as if it had come alone: so its rights,
 * limits, lines in the audit log and answer are those of a single call.
 *
 *   http_request ── http_batch ──┬ http_call ── operation
 *                                ├ http_call ── operation
 *                                └ …, in the order of the body
 *
 * A call whose answer is known at once has no operation. The others end one by
 * one, and are answered together when the last one has ended:
 *
 *   the client left before the answer    its acquires are undone at once,
 *   was written whole                    whether they were granted or not; its
 *                                        extends and releases go on, are
 *                                        audited and counted
 *   an acquire whose identity may        refused and undone alone
 *   not have it any more
 *   the server stops                     all are abandoned
 */
#ifndef REDLOCKD_API_BATCH_H
#define REDLOCKD_API_BATCH_H

#include "message/http.h"
#include "service.h"

/*
 * Starts the operations. True: request->call.response is the answer. False: it
 * follows from batch_answer, as soon as the engine has called port.answer for
 * client so often that request->answers_due is 0.
 */
bool batch_begin(const struct service *service, struct http_request *request,
                 void *client);

/* Fills the response with the answers of all, none of which is due. Grants stay
 * open until batch_end; without any, the batch has ended. */
void batch_answer(const struct service *service, struct http_request *request,
                  int64_t now_us);

/* Whether it has something that its client needs, and nobody else: an acquire,
 * or its grant. */
bool batch_is_for_client(const struct http_batch *it);

/* Whether it has something that is to go on if its client resets its
 * connection: an extend, or a release that somebody counts. */
bool batch_goes_on(const struct http_batch *it);

/* The client has left: undoes its acquires. True: nothing else is under way. */
bool batch_leave(const struct service *service, struct http_request *request);

/*
 * The request is over. is_answered: the client has its answer, and keeps what
 * it was granted. Else acquires are undone, and what else is under way is
 * abandoned, and may take effect.
 */
void batch_end(const struct service *service, struct http_request *request,
               bool is_answered, int64_t now_us);

#endif
