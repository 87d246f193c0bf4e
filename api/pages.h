/*
 * What is served as it was when this was built: the status page, and the
 * description of the API, for programs and for people.
 */
#ifndef REDLOCKD_PAGES_H
#define REDLOCKD_PAGES_H

#include "message/http.h"

/* GET of a route that is one of them, ROUTE_PAGE to ROUTE_OPENAPI. */
void pages_respond(enum route route, struct http_response *response);

#endif
