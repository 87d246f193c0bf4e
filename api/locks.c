/* SPDX-License-Identifier: MIT */
#include "locks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "../server/base/clock.h"
#include "../server/base/log.h"
#include "../server/engine/port/token.h"
#include "../server/lock/names.h"
#include "access/access.h"
#include "access/audit.h"
#include "access/digest.h"
#include "message/body.h"
#include "message/head.h"
#include "message/problem.h"
#include "message/render.h"

enum { SLOTS_EACH = 100 }; /* of a pool cost the nodes as much as a lock */

/* ---- calls that did not do what was asked ------------------------------- */

/* Nothing is known of when it would go well. */
static int64_t retry_blindly_ms(enum lock_call call,
                                const struct engine_result *result)
{
    return call == LOCK_EXTEND ? retry_extend_ms(result->ttl_ms)
                               : retry_within_ms(RETRY_MAX_MS);
}

/* readers_max: of those that the request may join; INT64_MAX: it is a writer */
static void report_held(const struct engine_result *result, int limit,
                        int64_t readers_max, struct problem *problem)
{
    problem->code = PROBLEM_LOCK_HELD;
    problem->detail =
        limit > 0 ? "not enough permits of this pool are free within limit"
                  : "other clients hold this lock, are acquiring it, or wait "
                    "for it before you";
    problem->retry_after_ms = retry_held_ms(0, result->remaining_ms);
    if (!result->has_holder)
        return;
    problem->held_by = result;
    if (result->holders >= readers_max) {
        problem->code = PROBLEM_TOO_MANY_READERS;
        problem->detail = "this lock has as many readers as --max-readers "
                          "allows; wait until a reader releases it";
        problem->retry_after_ms = retry_within_ms(RETRY_MAX_MS);
        return;
    }
    problem->detail =
        result->remaining_ms < 0
            ? "somebody holds this lock without a TTL, so it does not expire"
        : result->is_shared ? "readers hold this lock (mode shared)"
        : names_are_several(result->resource)
            ? "somebody else holds at least one of these "
              "resources"
            : "somebody else holds this lock";
    problem->retry_after_ms =
        retry_held_ms(result->held_ms, result->remaining_ms);
}

/* What the client may still rely on; stands behind the cause. */
static const char *const meanings[LOCK_CALLS] = {
    [LOCK_ACQUIRE] = "; nothing was granted",
    [LOCK_EXTEND] =
        "; the outcome is unknown, but the previous validity still holds",
    [LOCK_RELEASE] = "; the outcome is unknown: treat the lock as released",
    [LOCK_INSPECT] = "",
    [LOCK_FORCE] = "; the outcome is unknown: send the request again",
};

/*
 * Adds which nodes are above maxmemory, and what helps. Only new locks need
 * memory.
 */
static void describe_full(const struct service *service,
                          const struct engine_result *result,
                          char detail[PROBLEM_DETAIL_MAX])
{
    const char *separator = "; out of memory for new locks (OOM) on ";
    size_t len = strlen(detail);
    bool is_full = false;
    for (int i = 0; i < result->total; i++)
        is_full |= result->votes[i].state == STATE_OUT_OF_MEMORY;
    for (int i = 0; i < result->total && len < PROBLEM_DETAIL_MAX; i++) {
        struct engine_node_view view;
        engine_view_node(service->engine, i, &view);
        bool is_known =
            result->votes[i].vote == VOTE_PENDING && is_full &&
            strcmp(view.state, state_name(STATE_OUT_OF_MEMORY)) == 0;
        if (result->votes[i].state != STATE_OUT_OF_MEMORY && !is_known)
            continue;
        len += (size_t)snprintf(detail + len, PROBLEM_DETAIL_MAX - len, "%s%s",
                                separator, view.name);
        separator = ", ";
    }
    if (is_full && len < PROBLEM_DETAIL_MAX)
        (void)snprintf(detail + len, PROBLEM_DETAIL_MAX - len,
                       ": raise maxmemory, or free memory there");
}

static void describe_no_quorum(const struct service *service,
                               enum lock_call call,
                               const struct engine_result *result,
                               char detail[PROBLEM_DETAIL_MAX])
{
    int missing = 0;
    for (int i = 0; i < result->total; i++)
        missing += result->votes[i].vote != VOTE_PENDING &&
                   !vote_is_answer(result->votes[i].vote);
    int64_t wait_us = engine_quorum_in_us(service->engine);
    int len = snprintf(detail, PROBLEM_DETAIL_MAX,
                       "%d of %d nodes did not vote, %d votes are needed%s",
                       missing, result->total, result->quorum, meanings[call]);
    if (result->barred_us > 0)
        (void)snprintf(
            detail, PROBLEM_DETAIL_MAX,
            "nothing was granted: the nodes' clocks were ahead once, so the "
            "last fencing token of this resource lies in the future; try again "
            "in %lld s, when a higher one is possible",
            (long long)(result->barred_us / US_PER_S) + 1);
    else if (wait_us > 0 && call != LOCK_RELEASE)
        (void)snprintf(detail + len, PROBLEM_DETAIL_MAX - (size_t)len,
                       "; a quorum is expected in %d s",
                       (int)divide_up(wait_us, US_PER_S));
    if (call == LOCK_ACQUIRE && result->barred_us == 0)
        describe_full(service, result, detail);
}

/* Names the limit that was reached. */
static void report_full(const struct service *service,
                        const struct engine_result *result,
                        char detail[PROBLEM_DETAIL_MAX],
                        struct problem *problem)
{
    bool is_queue = result->is_queue_full;
    problem->code = PROBLEM_TOO_MANY_WAITERS;
    problem->retry_after_ms = retry_within_ms(RETRY_MAX_MS);
    (void)snprintf(detail, PROBLEM_DETAIL_MAX,
                   "%d clients already wait %s, which is the limit; try again "
                   "later, or use another server",
                   is_queue ? WAITERS_EACH_MAX
                            : engine_waiters_max(service->engine),
                   is_queue ? "for this lock" : "on this server");
}

static const char *why_not_owner(const struct http_call *call)
{
    return call->kind != LOCK_FORCE
               ? "the grant of this lock token has expired or was released; "
                 "the lock is held with another lock token now"
           : call->number != 0
               ? "the lock has another fencing token, or is held by another "
                 "library and has none; see GET /locks/<id> for the current one"
               : "a writer holds the lock, and all releases only readers; send "
                 "the writer's fencing token instead";
}

/* Answers with a result that is no success. */
static void respond_failure(const struct service *service,
                            const struct http_call *call,
                            const struct engine_result *result)
{
    char detail[PROBLEM_DETAIL_MAX];
    struct problem problem = {.detail = detail,
                              .resource = result->resource,
                              .engine = service->engine,
                              .waited_ms = http_waited_ms(call)};
    switch (result->outcome) {
    case OUTCOME_HELD:
        report_held(result, call->limit,
                    call->is_shared ? service->config->max_readers : INT64_MAX,
                    &problem);
        break;
    case OUTCOME_VALIDITY_EXHAUSTED:
        problem.code = PROBLEM_VALIDITY_EXHAUSTED;
        problem.retry_after_ms = retry_blindly_ms(call->kind, result);
        problem.detail =
            call->kind == LOCK_ACQUIRE
                ? "the nodes granted the lock too late: none of its TTL was "
                  "left, so it was released again; send a longer ttl_ms"
                : "the nodes extended the lock too late: none of the new TTL "
                  "is left; the previous validity still holds";
        break;
    case OUTCOME_MAX_HOLD:
        problem.code = PROBLEM_MAX_HOLD_REACHED;
        (void)snprintf(
            detail, sizeof detail,
            "this extend would hold the lock for longer than --max-hold-ms "
            "%" PRId64
            " (%g s) allows; finish within validity_ms, acquire the lock anew "
            "with its Idempotency-Key, or raise the option (0: no limit)",
            service->config->max_hold_ms,
            (double)service->config->max_hold_ms / (double)MS_PER_S);
        break;
    case OUTCOME_NOT_OWNER:
        problem.code = PROBLEM_NOT_OWNER;
        problem.detail = why_not_owner(call);
        break;
    case OUTCOME_NOT_FOUND:
        problem.code = PROBLEM_LOCK_NOT_FOUND;
        problem.detail = "there is no such lock: it expired, was released or "
                         "was never held";
        break;
    case OUTCOME_KEY_REFUSED: /* until somebody changes the ACL */
        problem.code = PROBLEM_KEY_REFUSED;
        problem.detail =
            "the nodes do not allow redlockd's user to access this resource's "
            "key; add a key pattern (ACL SETUSER … ~…) that covers "
            "--key-prefix and the resource, or choose another resource";
        problem.votes = result;
        break;
    case OUTCOME_TOO_MANY_WAITERS:
        report_full(service, result, detail, &problem);
        break;
    case OUTCOME_STOPPED:
        problem.code = PROBLEM_SHUTTING_DOWN;
        problem.retry_after_ms = retry_within_ms(RETRY_MAX_MS);
        problem.detail = "this server is shutting down, and waits for no more "
                         "locks; use another server";
        break;
    default:
        assert(result->outcome == OUTCOME_NO_QUORUM);
        problem.code = PROBLEM_NO_QUORUM;
        problem.retry_after_ms = retry_blindly_ms(call->kind, result);
        describe_no_quorum(service, call->kind, result, detail);
        problem.votes = result;
    }
    problem_respond(call, &problem);
}

/*
 * The audit log takes no lines, and a change must have one. has_begun: the
 * change was asked of the nodes.
 */
static void respond_unaudited(const struct http_call *call, bool has_begun)
{
    char detail[PROBLEM_DETAIL_MAX];
    struct problem problem = {
        .code = PROBLEM_AUDIT_UNAVAILABLE,
        .detail = detail,
        .retry_after_ms = retry_within_ms(RETRY_MAX_MS),
        .waited_ms = has_begun ? http_waited_ms(call) : NULL,
    };
    (void)snprintf(detail, sizeof detail,
                   "the audit log of this server cannot be written, and "
                   "--audit-required allows no change without it%s; use "
                   "another server",
                   has_begun ? meanings[call->kind] : "; nothing was done");
    problem_respond(call, &problem);
}

/* ---- checks ------------------------------------------------------------- */

/* NULL: token is the one in the header or the body; else why there is none. */
static const char *locks_find_token(const struct http_call *call,
                                    const struct body *body, struct span *token)
{
    struct span in_header = call->lock_token;
    if (in_header.ptr != NULL && !token_is_ours(in_header))
        return "X-Lock-Token is not a valid lock token; send the field token "
               "of the response to POST /locks, unchanged";
    if (body->token.ptr != NULL && !token_is_ours(body->token))
        return "token is not a valid lock token; send the field token of the "
               "response to POST /locks, unchanged";
    if (body->token.ptr != NULL && in_header.ptr != NULL &&
        !span_is_same(in_header, body->token))
        return "X-Lock-Token and the field token differ; send only one of them";
    if (body->token.ptr == NULL && in_header.ptr == NULL)
        return "the lock token is missing; send the field token of the "
               "response to POST /locks, in the header X-Lock-Token or in the "
               "field token";
    *token = body->token.ptr != NULL ? body->token : in_header;
    return NULL;
}

/* Reads the body; false: the response says why it is refused. */
static bool read_body(const struct service *service,
                      const struct http_call *call, struct body *body)
{
    struct faults errors;
    if (!head_is_json(call->request->content_type)) {
        problem_respond_not_json(call);
        return false;
    }
    if (body_read(body, call->request->body, call->kind,
                  service->config->max_ttl_ms, &errors))
        return true;
    problem_respond_body(call, &errors);
    return false;
}

/* ---- begin -------------------------------------------------------------- */

/* op: what was begun; 0: there is no memory. False: answered by 503. */
static bool keep_operation(struct http_call *call, engine_op op)
{
    call->op = op;
    if (op == 0)
        problem_respond_overloaded(
            call,
            "this server is out of memory; nothing was done; try again later");
    return op != 0;
}

/* Tells the audit log what begins. False: it does not, the answer says why. */
static bool announce(const struct service *service,
                     const struct http_call *call, struct span resource)
{
    if (audit_announce(service->audit, call, resource))
        return true;
    respond_unaudited(call, false);
    return false;
}

/* Of the key: the first byte that none may have, and its place. */
static void refuse_key(const struct http_call *call)
{
    const char *name =
        call->item > 0 ? "idempotency_key" : "the header Idempotency-Key";
    struct faults errors = {.item = call->item};
    struct span key = call->idempotency_key;
    char detail[PROBLEM_DETAIL_MAX];
    char wrong[40] = "";
    size_t place = digest_wrong_byte(key);
    if (place < key.len) {
        unsigned char byte = (unsigned char)key.ptr[place];
        (void)snprintf(wrong, sizeof wrong,
                       byte > ' ' && byte < 0x7f
                           ? ", but its byte %zu is %c"
                           : ", but its byte %zu is 0x%02x",
                       place + 1, byte);
    }
    (void)snprintf(detail, sizeof detail,
                   "%s must have 16 to 64 characters of A-Z a-z 0-9 _ -%s; "
                   "send a UUID%s, for example",
                   name, wrong, *wrong != '\0' ? " alone" : "");
    if (call->item == 0) {
        problem_respond_plain(call, PROBLEM_INVALID_REQUEST, detail);
        return;
    }
    faults_add(&errors, "/idempotency_key", "%s", detail);
    problem_respond_faults(call, &errors);
}

/* What needs no body. False: the answer says why. */
static bool check_acquire(const struct service *service,
                          const struct http_call *call)
{
    if (service->is_drained) {
        problem_respond_busy(call, PROBLEM_SHUTTING_DOWN,
                             "this server is shutting down, and grants no new "
                             "locks; use another server");
        return false;
    }
    struct span key = call->idempotency_key;
    if (key.ptr == NULL || digest_is_key(key))
        return true;
    refuse_key(call);
    return false;
}

/*
 * The hash of the idempotency key, empty if there is none. False: response says
 * that it cannot be made.
 */
static bool find_key_hash(const struct http_call *call, struct span resource,
                          char text[KEY_HASH_LEN], struct span *hash)
{
    *hash = (struct span){text, 0};
    if (call->idempotency_key.ptr == NULL)
        return true;
    hash->len = KEY_HASH_LEN;
    if (digest_key(text, span_of(call->request->identity),
                   call->idempotency_key, resource))
        return true;
    problem_respond_overloaded(call,
                               "the header Idempotency-Key could not be "
                               "hashed; nothing was done; try again later");
    return false;
}

static int64_t ttl_of(const struct service *service, const struct body *body)
{
    return body->ttl_ms > 0 ? body->ttl_ms : service->config->default_ttl_ms;
}

/* For the audit log. */
static void keep_owner(struct http_call *call, struct span owner)
{
    call->owner[span_copy(call->owner, owner)] = '\0';
}

int locks_weight(const struct body *body)
{
    return names_count(body->resource) + (int)body->limit / SLOTS_EACH;
}

/* The body was read, and is good. */
static bool locks_acquire(const struct service *service, struct http_call *call,
                          const struct body *body, void *client)
{
    char hash[KEY_HASH_LEN];
    struct engine_acquire acquire = {
        .resource = body->resource,
        .owner = body->owner.ptr != NULL ? body->owner
                                         : span_of(call->request->identity),
        .ttl_ms = ttl_of(service, body),
        .wait_ms = body->wait_ms,
        .is_shared = body->is_shared,
        .limit = (int)body->limit,
        .permits = (int)body->permits,
        .is_tried_once = call->item > 0, /* a batch is as slow as its slowest */
    };
    call->limit = acquire.limit;
    call->is_shared = body->is_shared;
    if (!access_charge(service->access, call, locks_weight(body) - 1) ||
        !access_allows(service->access, call, body->resource) ||
        !find_key_hash(call, body->resource, hash, &acquire.key_hash) ||
        !access_reserve(service->access, call, body->resource,
                        acquire.key_hash))
        return true;
    acquire.asker = access_number(service->access, call);
    acquire.only_repeats = call->caller->reserves_late;
    if (acquire.only_repeats)
        acquire.wait_ms = 0; /* the permit is its own, if it is one */
    /* a permit may linger until the nodes are asked which are free */
    if ((acquire.wait_ms > 0 || acquire.limit > 0) &&
        !access_take_place(service->access, call, PLACE_WAIT,
                           engine_waiters_max(service->engine))) {
        /* its own waits may have all places, and nobody read their answers */
        if (acquire.wait_ms == 0)
            engine_withdraw(service->engine, acquire.resource, acquire.key_hash,
                            acquire.limit > 0);
        return true;
    }
    call->wait_ms = body->wait_ms;
    call->ttl_ms = acquire.ttl_ms;
    keep_owner(call, acquire.owner);
    return !announce(service, call, body->resource) ||
           !keep_operation(call,
                           engine_acquire(service->engine, &acquire, client));
}

/* The number to force; 0: all readers. False: the response says why there is
 * none.
 */
static bool read_force(const struct http_call *call, int64_t *number)
{
    char digits[TOKEN_NUMBER_LEN];
    struct span text;
    struct faults errors = {.in = "query"};
    const char *reason = query_read(&call->request->query, QUERY_FORCE, digits,
                                    sizeof digits, &text);
    bool is_all = span_is(text, "all");
    bool has_token =
        call->lock_token.ptr != NULL || call->request->body.len > 0;
    *number = is_all ? 0 : span_number(text, sizeof digits);
    if ((is_all || *number > 0) && !has_token)
        return true;
    if (has_token)
        reason = "cannot be combined with a lock token or a body; send only "
                 "one of them";
    else if (reason == NULL)
        reason = "is not a fencing token; send the field fencing_token of GET "
                 "/locks/<id>, or all to release all readers of a shared lock";
    faults_add(&errors, "/force", "the query parameter force %s", reason);
    problem_respond_faults(call, &errors);
    return false;
}

/* For those who look later who did it, even if the client leaves now. */
static void log_force(const struct http_call *call, struct span resource)
{
    char text[NAMES_LEN_MAX + 1], numbers[NAMES_MAX * sizeof "999"] = "";
    struct span pool;
    int slots[NAMES_MAX], count = names_slots(resource, &pool, slots);
    size_t len = 0;
    text[span_copy(text, count > 0 ? pool : resource)] = '\0';
    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(numbers + len, sizeof numbers - len, "%s%d",
                                i > 0 ? " " : "", slots[i]);
    log_write(LOG_INFO, "force_release",
              (struct log_field[]){
                  LOG_S("request_id", call->request->id),
                  call->number > 0 ? LOG_N("fencing_token", call->number)
                                   : LOG_S("mode", "shared"),
                  LOG_S("resource", text),
                  count > 0 ? LOG_S("slots", numbers) : LOG_END, LOG_END});
}

static bool begin_force(const struct service *service, struct http_call *call,
                        void *client)
{
    char names[NAMES_LEN_MAX];
    struct span resource = route_names(&call->request->match, names);
    int64_t number;
    if (!read_force(call, &number))
        return true;
    call->number = number;
    call->is_shared = number == 0;
    if (!announce(service, call, resource))
        return true;
    engine_op op = engine_force(service->engine, resource, number, client);
    if (op != 0)
        log_force(call, resource);
    return !keep_operation(call, op);
}

/* False: there is no good token, and the response gives the reason. */
static bool take_token(struct http_call *call, const struct body *body,
                       struct span *token)
{
    struct token_parts parts;
    const char *reason = locks_find_token(call, body, token);
    if (reason != NULL) {
        bool is_in_body = body->token.ptr != NULL;
        struct faults errors = {.in = is_in_body ? "body" : "header",
                                .item = call->item};
        faults_add(&errors, "/token", "%s", reason);
        problem_respond_faults(call, &errors);
        return false;
    }
    if (token_parse(*token, &parts)) {
        keep_owner(call, parts.owner);
        call->number = parts.number;
        call->is_shared = parts.is_shared || body->is_shared;
    }
    return true;
}

static bool locks_extend(const struct service *service, struct http_call *call,
                         const struct body *body, void *client)
{
    struct span resource = body->resource, token;
    if (!take_token(call, body, &token))
        return true;
    if (!body->is_shared && body->has_mode && token_is_shared(token)) {
        problem_respond_plain(
            call, PROBLEM_UPGRADE_REFUSED,
            "a shared lock cannot become an exclusive one, as two readers that "
            "both waited for that would deadlock; release it, and acquire an "
            "exclusive lock");
        return true;
    }
    return !access_reserve_token(service->access, call, resource, token) ||
           !announce(service, call, resource) ||
           !keep_operation(call, engine_extend(service->engine, resource, token,
                                               ttl_of(service, body),
                                               body->is_shared, client));
}

static bool locks_release(const struct service *service, struct http_call *call,
                          const struct body *body, void *client)
{
    struct span token;
    if (!take_token(call, body, &token) ||
        !announce(service, call, body->resource))
        return true;
    access_reserve_release(service->access, call, body->resource, token);
    return !keep_operation(
        call, engine_release(service->engine, body->resource, token, client));
}

bool locks_start(const struct service *service, struct http_call *call,
                 const struct body *body, void *client)
{
    bool is_answered = true;
    if (call->kind == LOCK_EXTEND)
        is_answered = locks_extend(service, call, body, client);
    else if (call->kind == LOCK_RELEASE)
        is_answered = locks_release(service, call, body, client);
    else if (check_acquire(service, call))
        is_answered = locks_acquire(service, call, body, client);
    return is_answered;
}

/* Acquire, and extend and release, which may do without a body. */
static bool begin_with_body(const struct service *service,
                            struct http_call *call, void *client)
{
    char names[NAMES_LEN_MAX];
    struct body body = {0};
    bool is_acquire = call->kind == LOCK_ACQUIRE;
    bool is_answered = true;
    struct span of_path =
        is_acquire ? span_of("") : route_names(&call->request->match, names);
    if (is_acquire && !check_acquire(service, call))
        return true; /* whatever the body says */
    if ((!is_acquire && call->request->body.len == 0) ||
        read_body(service, call, &body)) {
        if (!is_acquire)
            body.resource = of_path;
        is_answered = locks_start(service, call, &body, client);
    }
    if (is_answered) /* while the resource is known */
        audit_note_refusal(service->audit, call, body.resource);
    body_fini(&body);
    return is_answered;
}

/*
 * What the query parameters of a watch say: the version that is known, which is
 * read into room, and how long to wait for another; 0: it does not wait, or
 * does not say for what. False: the response says which is wrong.
 */
static bool read_watch(const struct http_call *call, char room[VERSION_MAX],
                       struct span *known, int64_t *wait_ms)
{
    const struct query *query = &call->request->query;
    struct faults errors = {.in = "query"};
    char digits[TOKEN_NUMBER_LEN];
    struct span wait; /* empty if it is refused, as known is */
    (void)query_read(query, QUERY_AFTER, room, VERSION_MAX, known);
    (void)query_read(query, QUERY_WAIT, digits, sizeof digits, &wait);
    if (query_has(query, QUERY_AFTER) && !version_is_wellformed(*known))
        faults_add(&errors, "/after",
                   "the query parameter after must be the field version of an "
                   "earlier response");
    *wait_ms =
        query_has(query, QUERY_WAIT) ? span_number(wait, TOKEN_NUMBER_LEN) : 0;
    if (*wait_ms < 0 || *wait_ms > WAIT_MAX_MS)
        faults_add(&errors, "/wait_ms",
                   "the query parameter wait_ms must be an integer from 0 to "
                   "%d (milliseconds)",
                   WAIT_MAX_MS);
    if (!query_has(query, QUERY_AFTER))
        *wait_ms = 0;
    if (errors.count > 0)
        problem_respond_faults(call, &errors);
    return errors.count == 0;
}

static bool begin_inspect(const struct service *service, struct http_call *call,
                          void *client)
{
    char names[NAMES_LEN_MAX], version[VERSION_MAX];
    struct span resource = route_names(&call->request->match, names), known;
    int64_t wait_ms;
    if (!read_watch(call, version, &known, &wait_ms))
        return true;
    if (wait_ms == 0)
        return !keep_operation(
            call, engine_inspect(service->engine, resource, client));
    if (!access_take_place(service->access, call, PLACE_WAIT,
                           engine_waiters_max(service->engine)))
        return true;
    call->wait_ms = wait_ms;
    call->is_watch = true;
    return !keep_operation(
        call, engine_watch(service->engine, resource, known, wait_ms, client));
}

bool locks_begin(const struct service *service, struct http_call *call,
                 void *client)
{
    switch (call->kind) {
    case LOCK_ACQUIRE:
    case LOCK_EXTEND:
    case LOCK_RELEASE:
        return begin_with_body(service, call, client);
    case LOCK_FORCE:
        return begin_force(service, call, client);
    case LOCK_INSPECT:
        break;
    }
    return begin_inspect(service, call, client);
}

/* ---- answer ------------------------------------------------------------- */

/* False: no memory; the client must not be left with a lock unknown to it. */
static bool answer_success(const struct service *service,
                           const struct http_call *call,
                           const struct engine_result *result, int64_t now_us)
{
    struct http_response *response = call->response;
    bool is_grant = result->outcome == OUTCOME_GRANTED;
    /* A third of the TTL leaves two more attempts before the lock ends; of a
     * grant that was long under way, half of what is left. */
    int64_t third_ms = result->ttl_ms / 3, half_ms = result->validity_ms / 2;
    const struct render_times times = {
        .elapsed_ms = (now_us - call->request->head_read_us) / US_PER_MS,
        .renew_after_ms = third_ms < half_ms ? third_ms : half_ms,
        .waited_ms = http_waited_ms(call),
        .limit = is_grant ? call->limit : 0,
        .max_hold_ms = service->config->max_hold_ms,
    };
    if (is_grant || result->outcome == OUTCOME_EXTENDED)
        response->body = render_grant(result, &times, &response->body_len);
    else if (result->outcome == OUTCOME_RELEASED)
        response->body = render_release(result, &response->body_len);
    else
        response->body = render_inspect(result, service->config->max_hold_ms,
                                        &response->body_len);
    if (response->body == NULL)
        return false;
    response->status = is_grant && !result->is_repeat ? 201 : 200;
    response->content_type = HTTP_JSON;
    if (is_grant && call->item == 0) {
        char *id = response->location +
                   span_copy(response->location, span_of(HTTP_LOCKS_PATH));
        id[id_encode(id, result->resource)] = '\0';
    }
    return true;
}

void locks_answer(const struct service *service, struct http_call *call,
                  int64_t now_us)
{
    struct http_response *response = call->response;
    struct engine *engine = service->engine;
    const struct engine_result *result = engine_take(engine, call->op, now_us);
    assert(result->outcome != OUTCOME_PENDING); /* after exchange_on_answer */
    bool is_grant = result->outcome == OUTCOME_GRANTED;
    bool is_good = is_grant || result->outcome == OUTCOME_EXTENDED ||
                   result->outcome == OUTCOME_RELEASED ||
                   result->outcome == OUTCOME_FOUND ||
                   (result->outcome == OUTCOME_NOT_FOUND &&
                    call->kind == LOCK_INSPECT); /* it is free */
    bool is_reported = true;
    call->waited_ms = result->waited_ms;
    if (result->outcome == OUTCOME_HELD && call->caller->reserves_late)
        access_refuse_reservation(call);
    else if (!is_good)
        respond_failure(service, call, result);
    else
        is_reported = answer_success(service, call, result, now_us);
    if (!is_reported)
        problem_respond_overloaded(call, "not enough memory for the response");
    if (!audit_note(service->audit, call, result) && is_good && is_reported) {
        /* it went well, and the audit log has no line of it: no client is
         * notified */
        free(response->body);
        response->body = NULL;
        response->location[0] = '\0';
        respond_unaudited(call, true);
        if (is_grant) /* it is released */
            (void)audit_note(service->audit, call, result);
        is_reported = false;
    }
    if (is_reported || !is_grant || result->is_repeat)
        access_note(service->access, call, result, now_us);
    if (!is_reported)
        (void)engine_abandon(engine, call->op);
    else if (!is_grant)
        engine_close(engine, call->op);
    else
        return;
    call->op = 0;
}

/* ---- no answer ---------------------------------------------------------- */

bool locks_are_for_client(const struct http_call *call)
{
    return call->kind == LOCK_ACQUIRE || call->is_watch;
}

bool locks_stand(const struct service *service, struct http_call *call)
{
    return call->caller->refusal.detail == NULL &&
           access_stands(service->access, call,
                         engine_peek(service->engine, call->op)->resource);
}

static void note_abandoned(const struct service *service,
                           struct http_call *call)
{
    const struct engine_result *result = engine_peek(service->engine, call->op);
    audit_note_abandoned(service->audit, call, result);
    access_note_abandoned(service->access, call, result, clock_now_us());
}

static void undo(const struct service *service, struct http_call *call)
{
    if (engine_abandon(service->engine, call->op))
        service->metrics->undelivered_grants++;
    call->op = 0;
}

void locks_abandon(const struct service *service, struct http_call *call)
{
    bool is_list = call->item == 0 && call->request->match.route != ROUTE_LOCK;
    if (!is_list && !call->is_watch)
        note_abandoned(service, call);
    undo(service, call);
}

void locks_revoke(const struct service *service, struct http_call *call)
{
    if (!call->is_watch)
        note_abandoned(service, call);
    access_respond_refusal(call);
    audit_note_refusal(service->audit, call,
                       engine_peek(service->engine, call->op)->resource);
    undo(service, call);
}
