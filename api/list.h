/*
 * GET /locks: a page of the locks that are held; and GET /pools/<id>?limit=:
 * which permits of a pool are held.
 */
#ifndef REDLOCKD_LIST_H
#define REDLOCKD_LIST_H

#include "message/http.h"
#include "service.h"

/* As locks_begin and locks_answer. */
bool list_begin(const struct service *service, struct http_request *request,
                void *client, struct http_response *response);
void list_answer(const struct service *service, struct http_request *request,
                 struct http_response *response);

#endif
