/*
 * GET /locks/<id>?limit=: the slots of a pool.
 */
#ifndef REDLOCKD_API_POOL_H
#define REDLOCKD_API_POOL_H

#include "message/http.h"
#include "service.h"

/* As locks_begin and locks_answer. */
bool pool_begin(const struct service *service, struct http_request *request,
                void *client, struct http_response *response);
void pool_answer(const struct service *service, struct http_request *request,
                 struct http_response *response);

#endif
