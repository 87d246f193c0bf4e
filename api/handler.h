/* Apart from exchange.c, its only caller: that knows not what is asked for. */
/* SPDX-License-Identifier: MIT */
/*
 * From a whole request to its answer, or to the operation that it waits for.
 * Here are lists of locks and of the permits of a pool, what operators ask, and
 * what is served as it was when this was built: the status page, and the
 * description of the API, for programs and for people.
 */
#ifndef REDLOCKD_HANDLER_H
#define REDLOCKD_HANDLER_H

#include "message/http.h"
#include "service.h"

/*
 * True: request->call.response is the answer. False: the request waits for the
 * engine, and handler_answer answers it then; see locks_begin, locks_answer.
 */
bool handler_begin(const struct service *service, struct http_request *request,
                   void *client);
void handler_answer(const struct service *service, struct http_request *request,
                    int64_t now_us);

/* The answer to bodies above http_body_max. */
void handler_refuse_body(const struct http_request *request);

#endif
