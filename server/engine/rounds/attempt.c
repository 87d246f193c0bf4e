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

void attempt_init(struct attempt *attempt, const struct attempt_means *means,
                  const struct request *request, const void *operation,
                  struct span token)
{
    assert(token.len <= TOKEN_MAX);
    attempt->means = means;
    attempt->request = request;
    attempt->operation = operation;
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

static struct call make_call(const struct attempt *attempt)
{
    const struct request *request = attempt->request;
    struct call call = fence_call(
        attempt->is_repeat ? CALL_REPEAT : kinds[attempt->round.kind],
        request->resource, attempt_token(attempt));
    call.seen = attempt->replacing;
    call.ttl_ms = request->only_looks ? 0 : request->ttl_ms;
    call.number = attempt->seen_number;
    return call;
}

static void send_to(struct attempt *attempt, int node, struct call *call)
{
    struct nodes *nodes = attempt->means->nodes;
    struct round *round = &attempt->round;
    /* measured now: it grows while a node is unreachable */
    attempt->uncertainty_us =
        at_least(attempt->uncertainty_us,
                 clocks_uncertainty_us(&nodes->clocks, node, round->start_us));
    struct ballot ballot = nodes_send(
        nodes, node, call, round->deadline_us,
        slots_handle(attempt->operation,
                     tag_bits(TAG_OPERATION, (unsigned)attempt->number)));
    if (ballot.vote == VOTE_PENDING)
        round_note_sent(round, node, nodes->admission.node[node].life);
    else
        round_note_ballot(round, node, ballot);
}

/* The number and the token of the next round of an acquire. */
static void make_token(struct attempt *attempt)
{
    const struct engine_port *port = &attempt->means->env->port;
    struct nodes *nodes = attempt->means->nodes;
    unsigned char random[TOKEN_RANDOM_BYTES];
    attempt->seen_number = nodes_next_number(
        nodes, clocks_median_at(&nodes->clocks, attempt->round.start_us),
        attempt->seen_number);
    port->random(port->ctx, random, sizeof random);
    const struct token_parts parts = {
        .number = attempt->seen_number,
        .key_hash = attempt->request->key_hash,
        .owner = attempt->request->owner,
    };
    attempt->token_len = token_make(attempt->token, random, &parts);
}

/* The node timeout, or a shorter TTL: a later grant would have expired. */
static int64_t timeout_us(const struct attempt *attempt)
{
    int64_t node_us = attempt->means->env->settings.node_timeout_us;
    int64_t ttl_us = attempt->request->ttl_ms * 1000;
    return ttl_us > 0 && ttl_us < node_us ? ttl_us : node_us;
}

static void begin_round(struct attempt *attempt, enum lock_call kind)
{
    const struct environment *env = attempt->means->env;
    int64_t start_us = environment_now(env);
    attempt->number++;
    attempt->fresh = 0;
    attempt->uncertainty_us = 0;
    round_init(&attempt->round, kind, env->settings.nodes, start_us,
               start_us + timeout_us(attempt));
    attempt->round.wanted = attempt->request->number;
}

void attempt_begin(struct attempt *attempt)
{
    const struct nodes *nodes = attempt->means->nodes;
    struct round *round = &attempt->round;
    begin_round(attempt, attempt->request->call);
    for (int i = 0; i < round->total; i++) {
        enum node_state refusal = nodes_refusal(nodes, i, kinds[round->kind]);
        if (status_is_looked_at(nodes, i))
            round->votes[i].is_refused = true; /* asked once that is read */
        else if (refusal != STATE_NONE)
            round_note_ballot(round, i, ballot_unfit(refusal));
    }
    if (round->pending < round->quorum)
        return; /* fewer cannot decide */
    if (round->kind == LOCK_ACQUIRE) {
        make_token(attempt);
        attempt->replacing = attempt->replaces;
        if (attempt->is_repeat) /* the next one replaces this one, too */
            attempt->replaces = attempt->seen_number;
    }
    struct call call = make_call(attempt);
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].vote == VOTE_PENDING && !round->votes[i].is_refused)
            send_to(attempt, i, &call);
}

bool attempt_ask_again(struct attempt *attempt, int node, bool is_decided)
{
    struct round_vote *vote = &attempt->round.votes[node];
    if (!vote->is_refused || vote->vote != VOTE_PENDING)
        return false;
    struct call call = make_call(attempt);
    vote->is_refused = false;
    if (is_decided)
        round_note_ballot(&attempt->round, node,
                          ballot_unfit(STATE_QUARANTINED));
    else
        send_to(attempt, node, &call);
    return true;
}

void attempt_drop_outdated(struct attempt *attempt)
{
    const struct nodes *nodes = attempt->means->nodes;
    struct round *round = &attempt->round;
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].is_sent &&
            !admission_has_memory(&nodes->admission, i, round->votes[i].life))
            round_note_outdated(round, i);
}

bool attempt_release(struct attempt *attempt)
{
    begin_round(attempt, LOCK_RELEASE);
    return releases_ask(attempt->means->releases, &attempt->round,
                        attempt->request->resource, attempt_token(attempt),
                        slots_handle(attempt->operation, 0));
}

void attempt_take_wanted(struct attempt *attempt)
{
    const struct round *round = &attempt->round;
    int node = round_find_wanted(round);
    assert(node >= 0);
    assert(round->votes[node].value_len <= TOKEN_MAX);
    attempt->token_len = span_copy(attempt->token, round_value(round, node));
}

void attempt_wait_on(struct attempt *attempt)
{
    attempt->number++;
    round_wait_on(&attempt->round,
                  environment_now(attempt->means->env) + timeout_us(attempt));
}

bool attempt_make_repeat(struct attempt *attempt)
{
    const struct round *round = &attempt->round;
    const struct span key_hash = attempt->request->key_hash;
    if (attempt->is_repeat)
        return false;
    attempt->replaces = round_repeated_number(round, key_hash);
    attempt->is_repeat = round_may_repeat(round, key_hash) &&
                         attempt->replaces < attempt->request->asked_us;
    if (attempt->is_repeat) /* another server's clocks may be ahead of ours */
        attempt->seen_number =
            at_least(attempt->seen_number, attempt->replaces);
    return attempt->is_repeat;
}

void attempt_note_reply(struct attempt *attempt, int node,
                        const struct call_reply *reply)
{
    struct round_vote *vote = &attempt->round.votes[node];
    if (reply->vote == VOTE_NOT_ADMITTED && vote->vote == VOTE_PENDING &&
        status_is_looked_at(attempt->means->nodes, node)) {
        vote->is_refused = true;
        return;
    }
    if (reply->was_free)
        attempt->fresh |= (uint16_t)(1u << node);
    round_note_reply(&attempt->round, node, reply);
}

void attempt_undo(struct attempt *attempt)
{
    for (int i = 0; i < attempt->round.total; i++)
        attempt->round.votes[i].is_kept =
            attempt->is_repeat && (attempt->fresh & 1u << i) == 0;
    attempt->fresh = 0;
    releases_undo(attempt->means->releases, &attempt->round,
                  attempt->request->resource, attempt_token(attempt),
                  attempt->request->ttl_ms, attempt->uncertainty_us);
}

int64_t attempt_validity_ms(const struct attempt *attempt, int64_t now_us)
{
    return round_validity_ms(&attempt->round, attempt->request->ttl_ms, now_us,
                             attempt->means->env->settings.drift_factor);
}
