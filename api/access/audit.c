/* SPDX-License-Identifier: MIT */
#include "audit.h"

#include <errno.h>
#include <stdio.h>

#include "../../server/base/clock.h"
#include "../../server/base/linefile.h"
#include "../../server/base/log.h"
#include "../message/json.h"
#include "../message/render.h"
#include "access.h"

enum {
    KEPT_BYTES = 1024 * 1024,    /* some thousand lines */
    RETRY_US = 100000,           /* until a file that took nothing */
    COMPLAIN_US = 10 * US_PER_S, /* from one line about losses to the next */
    REFUSALS_BURST = 1000, /* of refusals: of all strangers, of one identity */
    REFUSALS_US = US_PER_S / 100, /* between two refusals after the burst */
};

struct audit {
    struct audit_setup means;
    struct linefile *file;
    struct loop_timer *retry;
    bool is_waiting; /* retry is set */
    bool is_failing; /* which the log has reported */
    int64_t missing; /* lines lost since the last one that was taken */
    struct log_limit strangers; /* refusals of all who are not known */
    struct log_limit complaints;
};

/* ---- the file ----------------------------------------------------------- */

/* True: all lines are in the file. */
static bool audit_flush(struct audit *audit)
{
    int error = linefile_flush(audit->file);
    /* a pipe that is full is no failure yet: its reader is slow */
    bool is_failing = error != 0 && (audit->is_failing || error != EAGAIN);
    if (is_failing && !audit->is_failing)
        log_detail(LOG_ERROR, "audit_not_written", strerror(error));
    if (!is_failing && audit->is_failing)
        log_write(LOG_INFO, "audit_written_again", NULL);
    audit->is_failing = is_failing;
    if (error == 0 || audit->is_waiting)
        return error == 0;
    audit->is_waiting = true;
    loop_timer_set(audit->retry, clock_now_us() + RETRY_US);
    return false;
}

static void on_retry(void *arg)
{
    struct audit *audit = arg;
    audit->is_waiting = false;
    (void)audit_flush(audit);
}

static void audit_lose(struct audit *audit, int64_t count)
{
    audit->missing += count;
    audit->means.metrics->audit_lost += (uint64_t)count;
    if (log_limit_take(&audit->complaints, clock_now_us()))
        log_write(
            LOG_ERROR, "audit_lines_lost",
            (struct log_field[]){
                LOG_N("lost", (int64_t)audit->means.metrics->audit_lost),
                LOG_S(
                    "detail",
                    "lines could not be written to the audit log and are lost; "
                    "check the file or pipe of --audit-log, and free space"),
                LOG_END});
}

/* ---- lines -------------------------------------------------------------- */

static void audit_begin(struct json *json, const char *event)
{
    char ts[TIMESTAMP_SIZE];
    timestamp_write(ts, clock_wall_us());
    json_begin(json);
    json_put_text(json, "ts", span_of(ts));
    json_put_text(json, "event", span_of(event));
}

/* False: no memory, or no room. */
static bool take(struct audit *audit, struct json *json)
{
    size_t len;
    char *text = json_end(json, &len);
    bool is_taken =
        text != NULL && linefile_add(audit->file, (struct span){text, len});
    free(text);
    return is_taken;
}

/* True: the line is in the file. */
static bool audit_end(struct audit *audit, struct json *json)
{
    if (audit->missing > 0) { /* in front of the first line behind a hole */
        struct json hole;
        audit_begin(&hole, "lines_lost");
        json_put_integer(&hole, "lost", audit->missing);
        if (take(audit, &hole))
            audit->missing = 0;
    }
    bool is_taken = take(audit, json);
    if (!is_taken)
        audit_lose(audit, 1);
    return audit_flush(audit) && is_taken;
}

static void put_known(struct json *json, const char *name, const char *text)
{
    if (text != NULL && *text != '\0')
        json_put_text(json, name, span_of(text));
}

static void begin_request(struct json *json, const char *event,
                          const struct http_call *of, int call)
{
    audit_begin(json, event);
    json_put_text(json, "request_id", span_of(of->request->id));
    put_known(json, "trace_id", of->request->trace.id);
    put_known(json, "parent_id", of->request->trace.parent);
    put_known(json, "identity", of->request->identity);
    put_known(json, "client", of->request->client);
    json_put_text(json, "call", span_of(metrics_call_names[call]));
}

static void put_names(struct json *json, struct span names)
{
    if (names.len > 0)
        render_lock(json, names, true);
}

static void audit_put_answer(struct json *json, const struct http_call *call)
{
    json_put_integer(json, "status", call->response->status);
    put_known(json, "code", call->response->code);
}

/* ---- what came of a call ------------------------------------------------ */

static const char *event_of(const struct http_call *call,
                            const struct engine_result *result)
{
    bool has_failed = call->response->status >= 500;
    if (call->kind == LOCK_INSPECT)
        return "read";
    switch (result->outcome) {
    case OUTCOME_GRANTED:
        if (has_failed) /* no memory to tell the client */
            return "undelivered";
        return result->is_repeat ? "repeat" : "grant";
    case OUTCOME_EXTENDED:
        return "extend";
    case OUTCOME_RELEASED:
        return call->kind == LOCK_FORCE ? "force_release" : "release";
    default:
        return has_failed ? "failed" : "refused";
    }
}

/* What the lock is, if it was granted; else what was asked for. */
static void audit_put_lock(struct json *json, const struct http_call *call,
                           const struct engine_result *result)
{
    bool is_held = result->outcome == OUTCOME_GRANTED ||
                   result->outcome == OUTCOME_EXTENDED;
    int64_t number = is_held ? result->number : call->number;
    put_names(json, result->resource);
    if (call->limit > 0)
        json_put_integer(json, "limit", call->limit);
    if (is_held ? result->is_shared : call->is_shared)
        json_put_text(json, "mode", span_of("shared"));
    if (number > 0)
        json_put_integer(json, "fencing_token", number);
    put_known(json, "owner", call->owner);
    if (!is_held)
        return;
    json_put_integer(json, "ttl_ms", result->ttl_ms);
    json_put_integer(json, "validity_ms", result->validity_ms);
}

bool audit_announce(struct audit *audit, const struct http_call *call,
                    struct span names)
{
    struct json json;
    if (audit == NULL || !audit->means.is_required)
        return true;
    if (!audit_flush(audit)) /* nor would it take this one */
        return false;
    begin_request(&json, "asked", call, (int)call->kind);
    put_names(&json, names);
    if (call->number > 0)
        json_put_integer(&json, "fencing_token", call->number);
    put_known(&json, "owner", call->owner);
    return audit_end(audit, &json);
}

bool audit_note(struct audit *audit, struct http_call *call,
                const struct engine_result *result)
{
    struct json json;
    if (audit == NULL ||
        (call->kind == LOCK_INSPECT && !audit->means.has_reads))
        return true;
    call->is_audited = true;
    begin_request(&json, event_of(call, result), call, (int)call->kind);
    audit_put_lock(&json, call, result);
    if (result->outcome == OUTCOME_GRANTED && call->response->status >= 500)
        json_put_boolean(&json, "released", !result->is_repeat);
    if (call->wait_ms > 0)
        json_put_integer(&json, "waited_ms", result->waited_ms);
    audit_put_answer(&json, call);
    if (result->outcome == OUTCOME_HELD && result->has_holder) {
        json_open_object(&json, "held_by");
        render_holder(&json, result);
        json_close_object(&json);
    }
    return audit_end(audit, &json) || !audit->means.is_required;
}

void audit_note_list(struct audit *audit, const struct http_call *call)
{
    struct json json;
    char room[RESOURCE_MAX];
    struct span prefix;
    if (audit == NULL || !audit->means.has_reads)
        return;
    begin_request(&json, "read", call, METRICS_LIST);
    if (query_has(&call->request->query, QUERY_PREFIX) &&
        query_read(&call->request->query, QUERY_PREFIX, room, sizeof room,
                   &prefix) == NULL)
        json_put_text(&json, "prefix", prefix);
    audit_put_answer(&json, call);
    (void)audit_end(audit, &json);
}

void audit_note_abandoned(struct audit *audit, const struct http_call *call,
                          const struct engine_result *result)
{
    struct json json;
    bool is_granted = result->outcome == OUTCOME_GRANTED;
    if (audit == NULL || call->kind == LOCK_INSPECT ||
        (call->kind == LOCK_ACQUIRE && !is_granted))
        return;
    begin_request(&json, is_granted ? "undelivered" : "abandoned", call,
                  (int)call->kind);
    audit_put_lock(&json, call, result);
    /* a lock that was granted before stays: its client may have that answer */
    if (is_granted)
        json_put_boolean(&json, "released", !result->is_repeat);
    (void)audit_end(audit, &json);
}

/* ---- who is not let in -------------------------------------------------- */

void audit_note_refusal(struct audit *audit, struct http_call *call,
                        struct span names)
{
    char of_path[NAMES_LEN_MAX];
    struct json json;
    bool is_of_lock = call->item > 0 ||
                      call->request->match.route == ROUTE_LOCK ||
                      call->request->match.route == ROUTE_POOL;
    int status = call->response->status;
    bool is_refusal = status == 401 || status == 403 || status == 429;
    if (audit == NULL || call->is_audited || !is_refusal)
        return;
    call->is_audited = true;
    /* whoever may send any number of them must not be able to fill the disk */
    struct log_limit *limit = access_refusals(audit->means.access, call);
    if (limit == NULL)
        limit = &audit->strangers;
    limit->every_us = REFUSALS_US;
    limit->burst = REFUSALS_BURST;
    if (!log_limit_take(limit, clock_now_us()))
        return;
    struct span reported = is_of_lock && names.len == 0
                               ? route_names(&call->request->match, of_path)
                               : names;
    begin_request(&json, "refused", call,
                  is_of_lock ? (int)call->kind : call->request->counted_as);
    put_names(&json, reported);
    audit_put_answer(&json, call);
    if (limit->dropped > 0)
        json_put_integer(&json, "dropped", limit->dropped);
    (void)audit_end(audit, &json);
}

/* ---- beginning and end -------------------------------------------------- */

struct audit *audit_open(const struct audit_setup *setup, char *error,
                         size_t size)
{
    struct audit *audit = calloc(1, sizeof *audit);
    const char *reason = "out of memory";
    if (audit == NULL)
        goto failed;
    *audit = (struct audit){
        .means = *setup,
        .complaints = {.every_us = COMPLAIN_US, .burst = 1},
    };
    audit->file = linefile_open(setup->path, KEPT_BYTES, &reason);
    if (audit->file == NULL)
        goto failed;
    audit->retry = loop_timer_new(setup->loop, on_retry, audit);
    if (audit->retry != NULL)
        return audit;
    reason = "out of memory";
failed:
    (void)snprintf(error, size,
                   "--audit-log: \"%.200s\": %s; it must be - or a file that "
                   "can be written, in a directory that exists",
                   setup->path, reason);
    audit_free(audit);
    return NULL;
}

void audit_reopen(struct audit *audit)
{
    const char *reason;
    if (audit == NULL)
        return;
    if (!linefile_reopen(audit->file, &reason))
        log_detail(LOG_ERROR, "audit_not_reopened", reason);
    (void)audit_flush(audit);
}

void audit_free(struct audit *audit)
{
    if (audit == NULL)
        return;
    if (audit->file != NULL && linefile_flush(audit->file) != 0)
        audit_lose(audit, linefile_pending(audit->file));
    loop_timer_free(audit->retry);
    linefile_free(audit->file);
    free(audit);
}
