/*
 * One request of a played connection, from its head to its answer.
 */
#ifndef REDLOCKD_TEST_EXCHANGED_H
#define REDLOCKD_TEST_EXCHANGED_H

#include "pair.h"

extern struct exchanged {
    struct http_response response; /* the latest */
} exchanged;

/* pair_begin; nobody settles requests yet. */
void exchanged_begin(void);
void exchanged_end(void);

/* The head has these fields, as fields.h takes them. */
enum exchange_step exchanged_ask(const char *fields);
enum exchange_step exchanged_go_on(void);

/* The step must be an answer with this status. */
void exchanged_expect(enum exchange_step step, int status);

#endif
