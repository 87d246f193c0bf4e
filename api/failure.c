#include "failure.h"

#include <assert.h>
#include <stdio.h>

#include "../server/lock/names.h"
#include "message/problem.h"

/* Nothing is known of when it would go well. */
static int64_t retry_blindly_ms(enum lock_call call,
                                const struct engine_result *result)
{
    return call == LOCK_EXTEND ? retry_extend_ms(result->ttl_ms)
                               : retry_within_ms(RETRY_MAX_MS);
}

/* readers_max: of those that the request may join; INT64_MAX: it is a writer */
static void tell_held(const struct engine_result *result, int limit,
                      int64_t readers_max, struct problem *problem)
{
    problem->code = PROBLEM_LOCK_HELD;
    problem->detail =
        limit > 0 ? "too few of this pool's permits are free, up to limit"
                  : "others hold this lock or are trying to take it";
    problem->retry_after_ms = retry_held_ms(0, result->remaining_ms);
    if (!result->has_holder)
        return;
    problem->held_by = result;
    if (result->holders >= readers_max) {
        problem->code = PROBLEM_TOO_MANY_READERS;
        problem->detail = "as many readers as may (max_readers) hold this lock";
        problem->retry_after_ms = retry_within_ms(RETRY_MAX_MS);
        return;
    }
    problem->detail =
        result->remaining_ms < 0 ? "somebody holds this lock without a TTL"
        : result->is_shared      ? "readers hold this lock (mode shared)"
        : names_are_several(result->resource)
            ? "somebody else holds at least one of these "
              "resources"
            : "somebody else holds this lock";
    problem->retry_after_ms =
        retry_held_ms(result->held_ms, result->remaining_ms);
}

/* What the client may still rely on. */
static const char *meaning_of(enum lock_call call)
{
    if (call == LOCK_ACQUIRE)
        return "nothing was granted; ";
    if (call == LOCK_EXTEND)
        return "the outcome is unknown; the old validity still stands; ";
    if (call == LOCK_RELEASE)
        return "the outcome is unknown; treat the lock as gone; ";
    if (call == LOCK_FORCE)
        return "the outcome is unknown; ask again; ";
    return "";
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
    int len =
        snprintf(detail, PROBLEM_DETAIL_MAX,
                 "%s%d of %d nodes did not vote, %d votes are needed",
                 meaning_of(call), missing, result->total, result->quorum);
    if (result->barred_us > 0)
        (void)snprintf(detail, PROBLEM_DETAIL_MAX,
                       "nothing was granted: the nodes' clocks were once ahead "
                       "and issued fencing numbers of the future; this "
                       "resource cannot get a higher one for %lld s",
                       (long long)(result->barred_us / US_PER_S) + 1);
    else if (wait_us > 0 && call != LOCK_RELEASE)
        (void)snprintf(detail + len, PROBLEM_DETAIL_MAX - (size_t)len,
                       "; a quorum is expected in %d s",
                       (int)divide_up(wait_us, US_PER_S));
}

static void tell_exhausted(enum lock_call call,
                           const struct engine_result *result,
                           struct problem *problem)
{
    problem->code = PROBLEM_VALIDITY_EXHAUSTED;
    problem->retry_after_ms = retry_blindly_ms(call, result);
    problem->detail =
        call == LOCK_ACQUIRE
            ? "the nodes granted the lock so late that none of its TTL is "
              "left; it was released again; ask for a longer ttl_ms"
            : "the nodes extended the lock so late that none of the new TTL is "
              "left; the old validity still stands";
}

/* Names the limit that was reached. */
static void tell_full(const struct service *service,
                      const struct engine_result *result,
                      char detail[PROBLEM_DETAIL_MAX], struct problem *problem)
{
    bool is_queue = result->is_queue_full;
    problem->code = PROBLEM_TOO_MANY_WAITERS;
    problem->retry_after_ms = retry_within_ms(RETRY_MAX_MS);
    (void)snprintf(detail, PROBLEM_DETAIL_MAX,
                   "%d clients already wait %s, and no more may; try again "
                   "later, or ask another server",
                   is_queue ? WAITERS_EACH_MAX
                            : engine_waiters_max(service->engine),
                   is_queue ? "for this lock" : "on this server");
}

static const char *why_not_owner(const struct http_request *request)
{
    if (request->match.call != LOCK_FORCE)
        return "the lock is held with another token: this one's lock has "
               "ended";
    if (request->number != 0)
        return "the lock is held with another fencing number, or with a value "
               "that has none";
    return "no reader has the lock, but a writer; send a fencing number "
           "instead of all";
}

void failure_respond(const struct service *service,
                     const struct http_request *request,
                     const struct engine_result *result,
                     struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    struct problem problem = {.detail = detail,
                              .resource = result->resource,
                              .engine = service->engine,
                              .waited_ms = http_waited_ms(request)};
    switch (result->outcome) {
    case OUTCOME_HELD:
        tell_held(result, request->limit,
                  request->is_shared ? service->config->max_readers : INT64_MAX,
                  &problem);
        break;
    case OUTCOME_VALIDITY_EXHAUSTED:
        tell_exhausted(request->match.call, result, &problem);
        break;
    case OUTCOME_MAX_HOLD:
        problem.code = PROBLEM_MAX_HOLD_REACHED;
        problem.detail =
            "this extension would exceed the longest time that a lock may be "
            "held (max_hold_ms); release it, or let it expire";
        break;
    case OUTCOME_NOT_OWNER:
        problem.code = PROBLEM_NOT_OWNER;
        problem.detail = why_not_owner(request);
        break;
    case OUTCOME_NOT_FOUND:
        problem.code = PROBLEM_LOCK_NOT_FOUND;
        problem.detail = "there is no such lock: it expired, was released or "
                         "was never held";
        break;
    case OUTCOME_KEY_REFUSED: /* until somebody changes the ACL */
        problem.code = PROBLEM_KEY_REFUSED;
        problem.detail =
            "the nodes' user may not access this resource's key; let a key "
            "pattern of its ACL (ACL SETUSER … ~…) cover --key-prefix and "
            "the resource, or choose another resource";
        problem.votes = result;
        break;
    case OUTCOME_TOO_MANY_WAITERS:
        tell_full(service, result, detail, &problem);
        break;
    case OUTCOME_STOPPED:
        problem.code = PROBLEM_SHUTTING_DOWN;
        problem.retry_after_ms = retry_within_ms(RETRY_MAX_MS);
        problem.detail =
            "this server is about to stop and no longer waits for locks; ask "
            "another one";
        break;
    default:
        /* locks.c answers the successes itself */
        assert(result->outcome == OUTCOME_NO_QUORUM);
        problem.code = PROBLEM_NO_QUORUM;
        problem.retry_after_ms = retry_blindly_ms(request->match.call, result);
        describe_no_quorum(service, request->match.call, result, detail);
        problem.votes = result;
    }
    problem_respond(&problem, request->id, response);
}

void failure_respond_upgrade(const struct http_request *request,
                             struct http_response *response)
{
    problem_respond_plain(
        PROBLEM_UPGRADE_REFUSED,
        "a shared lock cannot become an exclusive one: two readers that both "
        "waited for that would wait for ever; release it, and acquire an "
        "exclusive one",
        request->id, response);
}

void failure_respond_unaudited(const struct http_request *request,
                               bool has_begun, struct http_response *response)
{
    char detail[PROBLEM_DETAIL_MAX];
    struct problem problem = {
        .code = PROBLEM_AUDIT_UNAVAILABLE,
        .detail = detail,
        .retry_after_ms = retry_within_ms(RETRY_MAX_MS),
        .waited_ms = has_begun ? http_waited_ms(request) : NULL,
    };
    (void)snprintf(detail, sizeof detail,
                   "%sthe audit log takes no lines, and without one no lock is "
                   "changed here",
                   has_begun ? meaning_of(request->match.call)
                             : "nothing was done; ");
    problem_respond(&problem, request->id, response);
}
