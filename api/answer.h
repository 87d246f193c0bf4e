/*
 * An answer as libmicrohttpd sends it.
 */
#ifndef REDLOCKD_ANSWER_H
#define REDLOCKD_ANSWER_H

#include <microhttpd.h>
#include <stdbool.h>

#include "message/http.h"

enum { ANSWER_FIELDS_MAX = 10, ANSWER_SECONDS_MAX = 20 };

struct answer_fields {
    int count;
    struct {
        const char *name;  /* static */
        const char *value; /* borrowed from request, response or retry_after */
    } list[ANSWER_FIELDS_MAX];
    char retry_after[ANSWER_SECONDS_MAX + 1];
};

/* The header fields of an answer. */
void answer_fill_fields(struct answer_fields *fields,
                        const struct http_request *request,
                        const struct http_response *response);

/*
 * Queues the answer to the request on its connection; the library writes it in
 * a later run. Takes response->body, unless that is static. False: no memory,
 * or the connection takes no answer now; the library must close it.
 */
bool answer_queue(struct MHD_Connection *http,
                  const struct http_request *request,
                  const struct http_response *response);

#endif
