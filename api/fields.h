/*
 * The header fields of an answer. Pure.
 */
#ifndef REDLOCKD_FIELDS_H
#define REDLOCKD_FIELDS_H

#include "message/http.h"

enum { FIELDS_MAX = 10, FIELDS_SECONDS_MAX = 20 };

struct fields {
    int count;
    struct {
        const char *name;  /* static */
        const char *value; /* borrowed from request, response or retry_after */
    } list[FIELDS_MAX];
    char retry_after[FIELDS_SECONDS_MAX + 1];
};

void fields_fill(struct fields *fields, const struct http_request *request,
                 const struct http_response *response);

#endif
