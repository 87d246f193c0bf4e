#include "attempt.h"

#include <assert.h>

#include "fence.h"
#include "tag.h"
#include "token.h"

static const enum call_kind kinds[] = {
    [LOCK_ACQUIRE] = CALL_ACQUIRE, [LOCK_EXTEND] = CALL_EXTEND,
    [LOCK_RELEASE] = CALL_RELEASE, [LOCK_INSPECT] = CALL_INSPECT,
    [LOCK_FORCE] = CALL_INSPECT, /* and then a release */
};

void attempt_init(struct attempt *attempt, struct span token)
{
    assert(token.len <= TOKEN_MAX);
    attempt->number = 0;
    attempt->seen_number = 0;
    attempt->is_repeat = false;
    attempt->replaces = 0;
    attempt->token_len = span_copy(attempt->token, token);
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

/* Excludes the nodes that do not vote from the round. */
static void leave_out_refused(struct round *round, const struct nodes *nodes)
{
    for (int i = 0; i < round->total; i++) {
        enum node_state refusal = nodes_refusal(nodes, i, kinds[round->kind]);
        if (refusal != STATE_VOTING)
            round_note_unsent(round, i, ballot_unfit(refusal));
    }
}

/* Sends the round's call to all other nodes. */
static void send_to_all(struct attempt *attempt,
                        const struct attempt_means *means,
                        const struct request *request, uint64_t tag)
{
    struct round *round = &attempt->round;
    struct call call = {
        .kind = attempt->is_repeat ? CALL_REPEAT : kinds[request->call],
        .seen = attempt->replaces,
        .resource = request->resource,
        .ttl_ms = request->only_looks ? 0 : request->ttl_ms,
        .median_us = nodes_median_us(means->nodes, round->start_us),
    };
    fence_slots(request->resource, call.slots);
    if (request->call == LOCK_ACQUIRE) {
        call.number = nodes_next_number(means->nodes, call.median_us,
                                        attempt->seen_number);
        make_token(attempt, means, request, call.number);
        if (attempt->is_repeat) /* the next one takes the place of this one */
            attempt->replaces = call.number;
    }
    call.token = attempt_token(attempt);
    for (int i = 0; i < round->total; i++) {
        if (round->votes[i].vote != VOTE_PENDING)
            continue;
        /* as of this moment: it grows while a node is unreachable */
        int64_t uncertainty_us =
            nodes_uncertainty_us(means->nodes, i, round->start_us);
        if (uncertainty_us > attempt->uncertainty_us)
            attempt->uncertainty_us = uncertainty_us;
        struct ballot ballot =
            nodes_send(means->nodes, i, &call, round->deadline_us, tag);
        if (ballot.vote == VOTE_PENDING)
            round_note_sent(round, i);
        else
            round_note_unsent(round, i, ballot);
    }
}

/* A grant older than its TTL (0: has none) would be worthless. */
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
    attempt->uncertainty_us = 0;
    round_init(&attempt->round, kind, means->env->settings.nodes, start_us,
               start_us + timeout_us(means, request));
    attempt->round.wanted = request->number;
}

void attempt_begin(struct attempt *attempt, const struct attempt_means *means,
                   const struct request *request, const void *operation)
{
    struct round *round = &attempt->round;
    begin_round(attempt, means, request, request->call);
    leave_out_refused(round, means->nodes);
    if (round->pending >= round->quorum) /* fewer cannot decide */
        send_to_all(
            attempt, means, request,
            slots_handle(operation,
                         tag_bits(TAG_OPERATION, (unsigned)attempt->number)));
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

bool attempt_repeats(struct attempt *attempt, const struct request *request)
{
    if (attempt->is_repeat)
        return false;
    attempt->is_repeat = round_may_repeat(&attempt->round, request->key_hash,
                                          &attempt->replaces) &&
                         attempt->replaces < request->asked_us;
    return attempt->is_repeat;
}

void attempt_undo(const struct attempt *attempt,
                  const struct attempt_means *means,
                  const struct request *request)
{
    if (attempt->is_repeat)
        return;
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
