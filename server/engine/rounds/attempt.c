#include "attempt.h"

#include <assert.h>

#include "../port/fence.h"
#include "../port/tag.h"
#include "../port/token.h"
#include "../voting/status.h"

static const enum call_kind kinds[] = {
    [LOCK_ACQUIRE] = CALL_ACQUIRE, [LOCK_EXTEND] = CALL_EXTEND,
    [LOCK_RELEASE] = CALL_RELEASE, [LOCK_INSPECT] = CALL_INSPECT,
    [LOCK_FORCE] = CALL_INSPECT, /* a release follows */
};

void attempt_init(struct attempt *attempt, struct span token)
{
    assert(token.len <= TOKEN_MAX);
    attempt->number = 0;
    attempt->seen_number = 0;
    attempt->is_repeat = false;
    attempt->replaces = attempt->replacing = 0;
    attempt->fresh = 0;
    attempt->token_len = span_copy(attempt->token, token);
}

bool attempt_is_held_too_long(const struct attempt_means *means,
                              struct span token, int64_t ttl_ms)
{
    struct token_parts parts;
    if (!token_parse(token, &parts))
        return false;
    int64_t now_us =
        clocks_median_at(&means->nodes->clocks, environment_now(means->env));
    int64_t end_us = now_us + ttl_ms * 1000;
    int64_t max_us = means->env->settings.max_hold_ms * 1000;
    return now_us != 0 && end_us - parts.number > max_us;
}

static void make_token(struct attempt *attempt,
                       const struct attempt_means *means,
                       const struct request *request, int64_t number)
{
    const struct token_parts parts = {
        .number = number,
        .key_hash = request->key_hash,
        .owner = request->owner,
    };
    unsigned char random[TOKEN_RANDOM_BYTES];
    const struct engine_port *port = &means->env->port;
    port->random(port->ctx, random, sizeof random);
    attempt->token_len = token_make(attempt->token, random, &parts);
}

static struct call make_call(const struct attempt *attempt,
                             const struct request *request)
{
    struct call call = {
        .kind = attempt->is_repeat ? CALL_REPEAT : kinds[attempt->round.kind],
        .seen = attempt->replacing,
        .resource = request->resource,
        .token = attempt_token(attempt),
        .ttl_ms = request->only_looks ? 0 : request->ttl_ms,
        .number = attempt->seen_number,
    };
    fence_slots(request->resource, call.slots);
    return call;
}

static void send_to(struct attempt *attempt, const struct attempt_means *means,
                    int node, struct call *call, uint64_t tag)
{
    struct round *round = &attempt->round;
    /* measured now: it grows while a node is unreachable */
    int64_t uncertainty_us =
        clocks_uncertainty_us(&means->nodes->clocks, node, round->start_us);
    if (uncertainty_us > attempt->uncertainty_us)
        attempt->uncertainty_us = uncertainty_us;
    struct ballot ballot =
        nodes_send(means->nodes, node, call, round->deadline_us, tag);
    if (ballot.vote == VOTE_PENDING)
        round_note_sent(round, node, means->nodes->admission.node[node].life);
    else
        round_note_ballot(round, node, ballot);
}

/* Sends the round's call to all other nodes. */
static void send_to_all(struct attempt *attempt,
                        const struct attempt_means *means,
                        const struct request *request, uint64_t tag)
{
    struct round *round = &attempt->round;
    if (request->call == LOCK_ACQUIRE) {
        attempt->seen_number = nodes_next_number(
            means->nodes,
            clocks_median_at(&means->nodes->clocks, round->start_us),
            attempt->seen_number);
        make_token(attempt, means, request, attempt->seen_number);
        attempt->replacing = attempt->replaces;
        if (attempt->is_repeat) /* the next one replaces this one, too */
            attempt->replaces = attempt->seen_number;
    }
    struct call call = make_call(attempt, request);
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].vote == VOTE_PENDING && !round->votes[i].is_refused)
            send_to(attempt, means, i, &call, tag);
}

/* The node timeout, or a shorter TTL: a later grant would have expired. */
static int64_t timeout_us(const struct attempt_means *means,
                          const struct request *request)
{
    int64_t node_us = means->env->settings.node_timeout_us;
    int64_t ttl_us = request->ttl_ms * 1000;
    return ttl_us > 0 && ttl_us < node_us ? ttl_us : node_us;
}

static void begin_round(struct attempt *attempt,
                        const struct attempt_means *means,
                        const struct request *request, enum lock_call kind)
{
    int64_t start_us = environment_now(means->env);
    attempt->number++;
    attempt->fresh = 0;
    attempt->uncertainty_us = 0;
    round_init(&attempt->round, kind, means->env->settings.nodes, start_us,
               start_us + timeout_us(means, request));
    attempt->round.wanted = request->number;
}

static uint64_t tag_of(const struct attempt *attempt, const void *operation)
{
    return slots_handle(operation,
                        tag_bits(TAG_OPERATION, (unsigned)attempt->number));
}

void attempt_begin(struct attempt *attempt, const struct attempt_means *means,
                   const struct request *request, const void *operation)
{
    struct round *round = &attempt->round;
    begin_round(attempt, means, request, request->call);
    for (int i = 0; i < round->total; i++) {
        enum node_state refusal =
            nodes_refusal(means->nodes, i, kinds[round->kind]);
        if (status_is_looked_at(means->nodes, i))
            round->votes[i].is_refused = true; /* asked once that is read */
        else if (refusal != STATE_NONE)
            round_note_ballot(round, i, ballot_unfit(refusal));
    }
    if (round->pending >= round->quorum) /* fewer cannot decide */
        send_to_all(attempt, means, request, tag_of(attempt, operation));
}

bool attempt_ask_again(struct attempt *attempt,
                       const struct attempt_means *means,
                       const struct request *request, int node,
                       const void *operation)
{
    struct round_vote *vote = &attempt->round.votes[node];
    if (!vote->is_refused || vote->vote != VOTE_PENDING)
        return false;
    struct call call = make_call(attempt, request);
    vote->is_refused = false;
    if (operation != NULL)
        send_to(attempt, means, node, &call, tag_of(attempt, operation));
    else
        round_note_ballot(&attempt->round, node,
                          ballot_unfit(STATE_QUARANTINED));
    return true;
}

void attempt_drop_outdated(struct attempt *attempt,
                           const struct attempt_means *means)
{
    struct round *round = &attempt->round;
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].is_sent &&
            !admission_has_memory(&means->nodes->admission, i,
                                  round->votes[i].life))
            round_note_outdated(round, i);
}

bool attempt_release(struct attempt *attempt, const struct attempt_means *means,
                     const struct request *request, const void *operation)
{
    begin_round(attempt, means, request, LOCK_RELEASE);
    return releases_ask(means->releases, &attempt->round, request->resource,
                        attempt_token(attempt), slots_handle(operation, 0));
}

void attempt_take_wanted(struct attempt *attempt)
{
    const struct round *round = &attempt->round;
    int node = round_find_wanted(round);
    assert(node >= 0);
    assert(round->votes[node].value_len <= TOKEN_MAX);
    attempt->token_len = span_copy(attempt->token, round_value(round, node));
}

void attempt_wait_on(struct attempt *attempt, const struct attempt_means *means,
                     const struct request *request)
{
    attempt->number++;
    round_wait_on(&attempt->round,
                  environment_now(means->env) + timeout_us(means, request));
}

bool attempt_make_repeat(struct attempt *attempt, const struct request *request)
{
    const struct round *round = &attempt->round;
    if (attempt->is_repeat)
        return false;
    attempt->replaces = round_repeated_number(round, request->key_hash);
    attempt->is_repeat = round_may_repeat(round, request->key_hash) &&
                         attempt->replaces < request->asked_us;
    if (attempt->is_repeat) /* another server's clocks may be ahead of ours */
        attempt->seen_number =
            at_least(attempt->seen_number, attempt->replaces);
    return attempt->is_repeat;
}

void attempt_note_reply(struct attempt *attempt,
                        const struct attempt_means *means, int node,
                        const struct call_reply *reply)
{
    struct round_vote *vote = &attempt->round.votes[node];
    if (reply->vote == VOTE_NOT_ADMITTED && vote->vote == VOTE_PENDING &&
        status_is_looked_at(means->nodes, node)) {
        vote->is_refused = true;
        return;
    }
    if (reply->was_free)
        attempt->fresh |= (uint16_t)(1u << node);
    round_note_reply(&attempt->round, node, reply);
}

void attempt_undo(struct attempt *attempt, const struct attempt_means *means,
                  const struct request *request)
{
    for (int i = 0; i < attempt->round.total; i++)
        attempt->round.votes[i].is_kept =
            attempt->is_repeat && (attempt->fresh & 1u << i) == 0;
    attempt->fresh = 0;
    releases_undo(means->releases, &attempt->round, request->resource,
                  attempt_token(attempt), request->ttl_ms,
                  attempt->uncertainty_us);
}

int64_t attempt_validity_ms(const struct attempt *attempt,
                            const struct attempt_means *means,
                            const struct request *request, int64_t now_us)
{
    return round_validity_ms(&attempt->round, request->ttl_ms, now_us,
                             means->env->settings.drift_factor);
}
