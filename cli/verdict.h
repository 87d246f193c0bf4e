/*
 * What an answer of a replica means for a call, also in words.
 */
#ifndef REDLOCKCTL_VERDICT_H
#define REDLOCKCTL_VERDICT_H

#include "http.h"

enum { VERDICT_DETAIL_SIZE = 512 };

enum verdict {
    VERDICT_DONE,
    VERDICT_HELD,    /* acquire: held by somebody else */
    VERDICT_LOST,    /* 404, or 409 not_owner */
    VERDICT_FINAL,   /* 409 max_hold_reached: the validity stands */
    VERDICT_REFUSED, /* another 4xx: it would not help to try again */
    VERDICT_DENIED,  /* 401 or 403 at each replica, or a wrong certificate */
    VERDICT_UNAVAILABLE, /* no replica answered, or they have no quorum */
    VERDICT_STOPPED,     /* by wake */
};

enum verdict verdict_of(const struct http_answer *answer);

/*
 * Says in one line what is wrong: the answer of this replica is no success.
 * advice: what to do about a 401.
 */
void verdict_explain(const struct http_answer *answer, const char *url,
                     const char *advice, char detail[VERDICT_DETAIL_SIZE]);

#endif
