/*
 * What a request asks.
 */
#ifndef REDLOCKD_ASKED_H
#define REDLOCKD_ASKED_H

#include "http.h"

enum {
    LIST_LIMIT_DEFAULT = 100, /* locks on a page */
    LIST_LIMIT_MAX = 1000,
};

/* How many locks a page may have; 0: the text is none of 1 to 1000. */
int asked_limit(struct span text);

/*
 * As how many requests it counts, as far as rate= is concerned: a list as one
 * for each ten locks that its page may have, any other request as one.
 */
int asked_price(const struct http_request *request);

/*
 * The head was read: sets match and counted_as. A release by a number is
 * another call.
 */
void asked_find(struct http_request *request);

#endif
