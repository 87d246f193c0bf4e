/*
 * The ids of requests, which tie an answer to its log line. Pure.
 */
#ifndef REDLOCKD_REQUESTID_H
#define REDLOCKD_REQUESTID_H

#include "../../server/base/types.h"

enum { REQUESTID_MAX = 64, REQUESTID_LEN = 16 };

/* Where own ids come from. */
struct requestid_source {
    uint64_t seed; /* another in every process */
    uint64_t made;
};

/* True for 1 to 64 of [A-Za-z0-9._-]: may be echoed and logged as it is. */
bool requestid_is_valid(struct span text);

/* An id of our own, 16 hex digits and a NUL. No source makes one twice. */
void requestid_make(struct requestid_source *source,
                    char id[REQUESTID_LEN + 1]);

#endif
