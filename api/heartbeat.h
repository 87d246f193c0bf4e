/*
 * PUT /locks: extends up to LOCKLIST_MAX locks, each as PUT /locks/<id>/extend
 * does. Each lock has a request of its own here, so that rights, limits, the
 * audit log and the answer are those of a single extend:
 *
 *   http_request  of the client ── heartbeat ──┬ http_request ── operation
 *                                              ├ http_request ── operation
 *                                              └ …, in the order of the body
 */
#ifndef REDLOCKD_HEARTBEAT_H
#define REDLOCKD_HEARTBEAT_H

#include "message/http.h"
#include "service.h"

/*
 * Starts the extends. True: response is the answer. False: it follows from
 * heartbeat_answer, as soon as the engine has called port.answer for client so
 * often that request->answers_due is 0.
 */
bool heartbeat_begin(const struct service *service,
                     struct http_request *request, void *client,
                     struct http_response *response);

/* Fills response with the answers of all. Ends the heartbeat. */
void heartbeat_answer(const struct service *service,
                      struct http_request *request, int64_t now_us,
                      struct http_response *response);

/* There will be no answer; what was asked of the nodes may take effect. */
void heartbeat_abandon(const struct service *service,
                       struct http_request *request);

#endif
