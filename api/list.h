/*
 * GET /locks: a page of the locks that are held.
 */
#ifndef REDLOCKD_LIST_H
#define REDLOCKD_LIST_H

#include "message/http.h"
#include "service.h"

/*
 * For each call that lists: list_ask asks the nodes; true: it could not, which
 * it has answered. list_end ends that, and answers if there was no page or no
 * memory for it.
 */
bool list_ask(const struct service *service, struct http_request *request,
              const struct engine_list *list, void *client,
              struct http_response *response);
void list_end(const struct service *service, struct http_request *request,
              enum list_outcome outcome, struct http_response *response);

/* As locks_begin and locks_answer. */
bool list_begin(const struct service *service, struct http_request *request,
                void *client, struct http_response *response);
void list_answer(const struct service *service, struct http_request *request,
                 struct http_response *response);

#endif
