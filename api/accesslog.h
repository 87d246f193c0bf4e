/*
 * What is counted and logged of each answer. Neither targets nor tokens come
 * into the log.
 */
#ifndef REDLOCKD_ACCESSLOG_H
#define REDLOCKD_ACCESSLOG_H

#include "../server/base/log.h"
#include "http.h"

struct accesslog {
    struct metrics *metrics;
    struct log_limit limit; /* of the lines at level info */
};

void accesslog_init(struct accesslog *accesslog, struct metrics *metrics);

/*
 * At level debug one line an answer; at info only errors of ours (5xx) and
 * slow answers, not too many of them.
 */
void accesslog_note(struct accesslog *accesslog,
                    const struct http_request *request,
                    const struct http_response *response, int64_t now_us);

#endif
