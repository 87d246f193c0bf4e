#include "accesslog.h"

#include <assert.h>

enum { SLOW_US = US_PER_S, LIMIT_BURST = 10, LIMIT_EVERY_US = US_PER_S };

void accesslog_init(struct accesslog *accesslog, struct metrics *metrics)
{
    *accesslog = (struct accesslog){
        .metrics = metrics,
        .limit = {.every_us = LIMIT_EVERY_US, .burst = LIMIT_BURST},
    };
}

static void write_line(enum log_level level, const struct http_request *request,
                       const struct http_response *response, int64_t took_us,
                       int64_t dropped)
{
    bool is_traced = request->trace.id[0] != '\0';
    bool is_known = request->client != NULL && *request->client != '\0';
    const struct log_field fields[] = {
        LOG_S("request_id", request->id),
        LOG_S("call", metrics_call_names[request->counted_as]),
        LOG_N("status", response->status),
        LOG_S("code", response->code != NULL ? response->code : "-"),
        LOG_N("took_us", took_us),
        LOG_S("client", is_known ? request->client : "-"),
        LOG_N("dropped", dropped), /* such lines, since the last one */
        is_traced ? LOG_S("trace_id", request->trace.id) : LOG_END,
        LOG_S("parent_id", request->trace.parent),
        LOG_END,
    };
    log_write(level, "request", fields);
}

void accesslog_note(struct accesslog *accesslog,
                    const struct http_request *request,
                    const struct http_response *response, int64_t now_us)
{
    struct metrics *metrics = accesslog->metrics;
    int64_t took_us = now_us - request->head_read_us;
    int64_t slow_us = SLOW_US + request->call.waited_ms * US_PER_MS;
    assert(response->status > 0 && response->status < METRICS_STATUSES);
    metrics->responses[request->counted_as][response->status]++;
    if (request->call.wait_ms == 0)
        metrics_observe(&metrics->request_duration[request->counted_as],
                        took_us);
    /* of a probe the log has a line already for why: the quorum, or the end */
    bool is_told =
        response->status >= 500 &&
        !(request->counted_as == METRICS_PROBE && response->status == 503);
    if (log_is_enabled(LOG_DEBUG))
        write_line(LOG_DEBUG, request, response, took_us, 0);
    else if ((is_told || took_us > slow_us) &&
             log_limit_take(&accesslog->limit, now_us))
        write_line(LOG_INFO, request, response, took_us,
                   accesslog->limit.dropped);
}
