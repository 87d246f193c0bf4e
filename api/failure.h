/*
 * The answer to a call on a lock that did not do what was asked.
 */
#ifndef REDLOCKD_FAILURE_H
#define REDLOCKD_FAILURE_H

#include "message/http.h"
#include "service.h"

/* Fills response from a result that is no success. */
void failure_respond(const struct service *service,
                     const struct http_request *request,
                     const struct engine_result *result,
                     struct http_response *response);

/* A shared lock was to become an exclusive one. */
void failure_respond_upgrade(const struct http_request *request,
                             struct http_response *response);

/*
 * The audit log takes no lines, and a change must have one. has_begun: the
 * change was asked of the nodes.
 */
void failure_respond_unaudited(const struct http_request *request,
                               bool has_begun, struct http_response *response);

#endif
