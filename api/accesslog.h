/*
 * Counts and logs answers. The log holds no targets and no tokens.
 */
#ifndef REDLOCKD_ACCESSLOG_H
#define REDLOCKD_ACCESSLOG_H

#include "../server/base/log.h"
#include "message/http.h"

struct accesslog {
    struct metrics *metrics;
    struct log_limit limit; /* of lines at level info */
};

void accesslog_init(struct accesslog *accesslog, struct metrics *metrics);

/*
 * Counts the answer. Logs it at level debug; at level info only if it is an
 * error of ours (5xx) or slow, and if not too many were logged before. That a
 * probe is told "not ready" is no error. A wait for a lock is not slow: it was
 * asked for. Nor does a request that may wait count in the durations: the
 * engine observes those by themselves.
 */
void accesslog_note(struct accesslog *accesslog,
                    const struct http_request *request,
                    const struct http_response *response, int64_t now_us);

#endif
