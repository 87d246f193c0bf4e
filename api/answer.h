/*
 * An answer as libmicrohttpd sends it.
 */
#ifndef REDLOCKD_ANSWER_H
#define REDLOCKD_ANSWER_H

#include <microhttpd.h>
#include <stdbool.h>

#include "message/http.h"

/*
 * Queues the answer to the request on its connection; the library writes it in
 * a later run. Takes response->body, unless that is static. False: no memory,
 * or the connection takes no answer now; the library must close it.
 */
bool answer_queue(struct MHD_Connection *http,
                  const struct http_request *request,
                  const struct http_response *response);

#endif
