/*
 * The calls on locks: from a request to the engine, and from its result
 * to an answer.
 */
#ifndef REDLOCKD_LOCKS_H
#define REDLOCKD_LOCKS_H

#include "message/http.h"
#include "service.h"

struct body;

/*
 * Starts what the request asks (acquire, extend, release, force, inspect).
 * True: response is the answer. False: the answer follows from locks_answer as
 * soon as the engine has called port.answer for client, which may be before
 * this returns; call->op is the operation.
 */
bool locks_begin(const struct service *service, struct http_call *call,
                 void *client, struct http_response *response);

/*
 * Starts an extend: of body.resource by the token in body, or in the request's
 * header. Returns what locks_begin does.
 */
bool locks_extend(const struct service *service, struct http_call *call,
                  const struct body *body, void *client,
                  struct http_response *response);

/*
 * Fills response from the result, with the validity that is left at now_us,
 * the moment of answering. The operation is closed, and call->op 0, except
 * behind a grant: then the caller closes it once the answer was read,
 * or abandons it.
 */
void locks_answer(const struct service *service, struct http_call *call,
                  int64_t now_us, struct http_response *response);

#endif
