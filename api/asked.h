/*
 * What a request asks.
 */
#ifndef REDLOCKD_ASKED_H
#define REDLOCKD_ASKED_H

#include "http.h"

/* Its route; a release by a number is another call. Sets counted_as. */
void asked_find(struct http_request *request, struct route_match *match);

#endif
