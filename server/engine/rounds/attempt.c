#include "attempt.h"

#include <assert.h>
#include <stdlib.h>

#include "../port/port.h"
#include "../port/token.h"

/* Of forced looks: so many times as are needed if nobody comes meanwhile. */
enum { PATIENCE = 4, LOOKS_MAX = 1 << 20 };

/* What one look found. */
struct forced_token {
    bool is_shared; /* on one node */
    size_t len;
    char text[TOKEN_MAX];
};

static const enum call_kind kinds[] = {
    [LOCK_ACQUIRE] = CALL_ACQUIRE, [LOCK_EXTEND] = CALL_EXTEND,
    [LOCK_RELEASE] = CALL_RELEASE, [LOCK_INSPECT] = CALL_INSPECT,
    [LOCK_FORCE] = CALL_TOKENS, /* releases follow */
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
    /* Among others its own earlier lock shows nowhere: any is replaced. */
    attempt->is_repeat = request->is_shared && request->asked_us > 0;
    attempt->replaces = attempt->is_repeat ? request->asked_us - 1 : 0;
    /* another server's clocks may be ahead of ours */
    attempt->seen_number = attempt->replaces;
    attempt->replacing = 0;
    attempt->fresh = 0;
    attempt->own = request->own;
    attempt->has_nonce = request->nonce != NULL;
    if (attempt->has_nonce)
        memcpy(attempt->nonce, request->nonce, sizeof attempt->nonce);
    attempt->token_len = span_copy(attempt->token, token);
}

bool attempt_init_force(struct attempt *attempt)
{
    attempt->forced = calloc(1, sizeof *attempt->forced);
    return attempt->forced != NULL;
}

void attempt_fini(struct attempt *attempt)
{
    if (attempt->forced == NULL)
        return;
    free(attempt->forced->tokens);
    free(attempt->forced);
}

bool attempt_is_held_too_long(const struct attempt_means *means,
                              struct span token, int64_t ttl_ms)
{
    struct token_parts parts;
    int64_t max_us = means->env->settings.max_hold_ms * 1000;
    if (max_us == 0 || !token_parse(token, &parts))
        return false;
    int64_t now_us =
        clocks_median_at(&means->nodes->clocks, environment_now(means->env));
    int64_t end_us = now_us + ttl_ms * 1000;
    return now_us != 0 && end_us - parts.number > max_us;
}

static struct call attempt_make_call(const struct attempt *attempt)
{
    const struct request *request = attempt->request;
    struct call call = fence_call(
        attempt->is_repeat ? CALL_REPEAT : kinds[attempt->round.kind],
        request->resource, attempt_token(attempt));
    call.seen = attempt->replacing;
    call.readers_max =
        request->only_repeats ? 0 : attempt->means->env->settings.readers_max;
    call.ttl_ms = request->only_looks ? 0 : request->ttl_ms;
    call.number = attempt->round.kind == LOCK_FORCE ? request->number
                                                    : attempt->seen_number;
    return call;
}

static void note_asked(struct attempt *attempt, int node, struct ballot ballot)
{
    const struct nodes *nodes = attempt->means->nodes;
    if (ballot.vote == VOTE_PENDING)
        round_note_sent(&attempt->round, node, nodes->members.node[node].life);
    else
        round_note_ballot(&attempt->round, node, ballot);
}

static void attempt_send_to(struct attempt *attempt, int node,
                            struct call *call)
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
    note_asked(attempt, node, ballot);
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
    if (attempt->has_nonce)
        memcpy(random, attempt->nonce, sizeof attempt->nonce);
    else
        memcpy(attempt->nonce, random, sizeof attempt->nonce);
    attempt->has_nonce = attempt->is_repeat && attempt->request->is_shared;
    const struct token_parts parts = {
        .number = attempt->seen_number,
        .is_shared = attempt->request->is_shared,
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
    attempt->round.hears_all = attempt->request->number == 0;
}

static bool is_to_be_asked(const struct round *round, int node)
{
    const struct round_vote *vote = &round->votes[node];
    return vote->vote == VOTE_PENDING && !vote->is_refused;
}

/*
 * Exclusion needs a majority, and nothing needs all nodes at once: a call that
 * is sent later, with the same deadline, is one that was long on its way. So a
 * round may ask these nodes first, a bit each: a quorum of those that may vote,
 * in the order of the configuration, those that are slow or answer errors last.
 * All servers begin with the same nodes: of two that want one lock, one loses
 * early.
 */
static uint16_t first_nodes(const struct attempt *attempt)
{
    const struct nodes *nodes = attempt->means->nodes;
    const struct round *round = &attempt->round;
    uint16_t chosen = 0;
    int wanted = round->quorum;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < round->total && wanted > 0; i++) {
            if ((chosen & 1u << i) != 0 || !is_to_be_asked(round, i) ||
                (pass == 0 && (!status_is_voting(nodes, i) ||
                               pace_is_slow(&nodes->pace, i, round->start_us))))
                continue;
            chosen |= (uint16_t)(1u << i);
            wanted--;
        }
    return wanted == 0 ? chosen : nodeset_all(round->total);
}

/* Only an acquire is held back: other calls ask for what all nodes have. */
static void hold_back(struct attempt *attempt)
{
    struct round *round = &attempt->round;
    if (attempt->means->env->settings.ask != ASK_QUORUM ||
        round->kind != LOCK_ACQUIRE || attempt->is_repeat ||
        !spreads_may_follow(round) ||
        !pace_leaves_time(&attempt->means->nodes->pace,
                          round->deadline_us - round->start_us))
        return;
    uint16_t rest = nodeset_all(round->total) & (uint16_t)~first_nodes(attempt);
    for (int i = 0; i < round->total; i++)
        if ((rest & 1u << i) != 0 && is_to_be_asked(round, i))
            round->unasked |= (uint16_t)(1u << i);
}

void attempt_widen(struct attempt *attempt)
{
    struct round *round = &attempt->round;
    uint16_t rest = round->unasked;
    struct call call = attempt_make_call(attempt);
    round->unasked = 0;
    for (int i = 0; i < round->total; i++) {
        if ((rest & 1u << i) == 0)
            continue;
        if (status_is_looked_at(attempt->means->nodes, i))
            round->votes[i].is_refused = true; /* asked once that is read */
        else
            attempt_send_to(attempt, i, &call);
    }
}

static struct spread_lock attempt_lock_of(const struct attempt *attempt)
{
    return (struct spread_lock){
        .resource = attempt->request->resource,
        .token = attempt_token(attempt),
        .ttl_ms = attempt->request->ttl_ms,
        .uncertainty_us = attempt->uncertainty_us,
    };
}

void attempt_begin_spread(struct attempt *attempt)
{
    const struct spread_lock lock = attempt_lock_of(attempt);
    spreads_on_granted(attempt->means->spreads, &attempt->round, &lock);
}

void attempt_spread(struct attempt *attempt)
{
    const struct spread_lock lock = attempt_lock_of(attempt);
    if (attempt->round.kind == LOCK_EXTEND)
        spreads_on_extended(attempt->means->spreads, &attempt->round, &lock);
    else
        spreads_on_stragglers(attempt->means->spreads, &attempt->round, &lock);
}

void attempt_begin(struct attempt *attempt)
{
    const struct nodes *nodes = attempt->means->nodes;
    struct round *round = &attempt->round;
    begin_round(attempt, attempt->request->call);
    if (attempt->forced != NULL) {
        attempt->forced->count = 0; /* nothing is found yet */
        attempt->forced->left = 0;
        attempt->forced->is_releasing = false;
    }
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
        /* The next one replaces this one, too; but not shared locks that were
           granted meanwhile, which may stand beside it. */
        if (attempt->is_repeat && !attempt->request->is_shared)
            attempt->replaces = attempt->seen_number;
    }
    if (round->kind == LOCK_EXTEND) /* it finds the lock on all nodes */
        spreads_hurry(attempt->means->spreads, attempt->request->resource,
                      attempt_token(attempt));
    hold_back(attempt);
    struct call call = attempt_make_call(attempt);
    for (int i = 0; i < round->total; i++)
        if (is_to_be_asked(round, i) && (round->unasked & 1u << i) == 0)
            attempt_send_to(attempt, i, &call);
}

bool attempt_ask_again(struct attempt *attempt, int node, bool is_decided)
{
    struct round_vote *vote = &attempt->round.votes[node];
    if (!vote->is_refused || vote->vote != VOTE_PENDING)
        return false;
    struct call call = attempt_make_call(attempt);
    vote->is_refused = false;
    if (is_decided)
        round_note_ballot(&attempt->round, node,
                          ballot_unfit(STATE_QUARANTINED));
    else
        attempt_send_to(attempt, node, &call);
    return true;
}

void attempt_drop_outdated(struct attempt *attempt)
{
    const struct nodes *nodes = attempt->means->nodes;
    struct round *round = &attempt->round;
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].is_sent &&
            !members_has_memory(&nodes->members, i, round->votes[i].life))
            round_note_outdated(round, i);
}

/* ---- looks of a force ---------------------------------------------------- */

static struct span forced_token(const struct forced *forced, int i)
{
    return (struct span){forced->tokens[i].text, forced->tokens[i].len};
}

/* Nodes report mostly the same tokens in the same order. */
static struct forced_token *forced_find(struct forced *forced,
                                        struct span token)
{
    for (int tried = 0; tried < forced->count; tried++) {
        int i = (forced->next + tried) % forced->count;
        if (!token_is_same(forced_token(forced, i), token))
            continue;
        forced->next = i + 1;
        return &forced->tokens[i];
    }
    return NULL;
}

static struct forced_token *forced_add(struct forced *forced, struct span token)
{
    if (forced->count == forced->room) {
        int room = forced->room > 0 ? 2 * forced->room : 4;
        void *tokens =
            realloc(forced->tokens, (size_t)room * sizeof *forced->tokens);
        if (tokens == NULL)
            return NULL;
        forced->tokens = tokens;
        forced->room = room;
    }
    struct forced_token *it = &forced->tokens[forced->count++];
    it->is_shared = false;
    it->len = span_copy(it->text, token);
    return it;
}

/* Whether the token with this index is to be released. */
static bool is_wanted(const struct attempt *attempt, int i)
{
    return attempt->request->number != 0 ||
           attempt->forced->tokens[i].is_shared;
}

/* A node's report. False: no memory. */
static bool note_tokens(struct attempt *attempt, const struct call_reply *reply)
{
    struct forced *forced = attempt->forced;
    int64_t number = attempt->request->number;
    struct span rest = reply->names, token;
    struct token_parts parts;
    assert(forced != NULL); /* a force has it before it asks any node */
    forced->next = 0;
    while (call_next_name(&rest, &token)) {
        if (!token_parse(token, &parts) ||
            (number != 0 && parts.number != number))
            continue;
        struct forced_token *it = forced_find(forced, token);
        if (it == NULL)
            it = forced_add(forced, token);
        if (it == NULL)
            return false;
        it->is_shared |= parts.is_shared;
    }
    if (number == 0)
        forced->left = at_least(forced->left, reply->left);
    attempt->round.found = 0;
    for (int i = 0; i < forced->count; i++)
        attempt->round.found += is_wanted(attempt, i);
    return true;
}

void attempt_end_look(struct attempt *attempt)
{
    struct forced *forced = attempt->forced;
    forced->is_releasing = true;
    if (forced->looks++ == 0)
        forced->looks_max = (int)at_most(
            PATIENCE * (2 + forced->left / CALL_TOKENS_TOLD), LOOKS_MAX);
}

/* ---- releases ----------------------------------------------------------- */

/*
 * A lock whose fill was not sent is released where it was acquired: the other
 * nodes will never get it. ballots: what each node was asked, or why it was
 * not.
 */
static bool release_token(struct attempt *attempt, struct span token,
                          struct ballot ballots[NODES_MAX])
{
    const struct attempt_means *means = attempt->means;
    const struct round *round = &attempt->round;
    unsigned asking = attempt->forced != NULL ? attempt->forced->asking : 0;
    struct release_ask ask = {
        .resource = attempt->request->resource,
        .token = token,
        .operation =
            slots_handle(attempt->operation, tag_bits(TAG_OPERATION, asking)),
        .round = round,
        .scope = {nodeset_all(round->total), round->deadline_us},
        .tombstone_ms =
            attempt->forced != NULL
                ? spreads_tombstone_ms(means->spreads,
                                       means->env->settings.retry_count)
                : 0,
    };
    spreads_scope(means->spreads, ask.resource, token, &ask.scope);
    bool is_asked = releases_ask(means->releases, &ask);
    if (is_asked)
        spreads_cancel(means->spreads, ask.resource, token);
    for (int i = 0; i < round->total; i++)
        ballots[i] =
            is_asked ? ask.ballots[i] : (struct ballot){.vote = VOTE_STALLED};
    return is_asked;
}

/* What counts most is the first: no vote at all, then that one was deleted. */
static int forced_rank(struct ballot ballot)
{
    static const enum vote votes[] = {VOTE_PENDING, VOTE_UNASKED, VOTE_FREE,
                                      VOTE_HELD, VOTE_DELETED};
    enum { VOTES = sizeof votes / sizeof *votes };
    int rank = 0;
    while (rank < VOTES && votes[rank] != ballot.vote)
        rank++;
    return rank;
}

static void forced_merge(struct forced_tally *tally, struct ballot ballot)
{
    if (forced_rank(ballot) > forced_rank(tally->ballot))
        tally->ballot = ballot;
}

static void release_found(struct attempt *attempt)
{
    struct forced *forced = attempt->forced;
    struct ballot ballots[NODES_MAX] = {{0}};
    forced->asking = (unsigned)attempt->number % TAG_ROUNDS;
    memset(forced->tally, 0, sizeof forced->tally);
    for (int i = 0; i < forced->count; i++) {
        if (!is_wanted(attempt, i))
            continue;
        (void)release_token(attempt, forced_token(forced, i), ballots);
        for (int node = 0; node < attempt->round.total; node++) {
            forced->tally[node].due += ballots[node].vote == VOTE_PENDING;
            forced_merge(&forced->tally[node], ballots[node]);
        }
    }
    for (int node = 0; node < attempt->round.total; node++) {
        struct ballot ballot = {.vote = VOTE_PENDING};
        if (forced->tally[node].due == 0)
            ballot = forced->tally[node].ballot;
        note_asked(attempt, node, ballot);
    }
}

bool attempt_release(struct attempt *attempt)
{
    struct ballot ballots[NODES_MAX] = {{0}};
    begin_round(attempt, LOCK_RELEASE);
    if (attempt->forced != NULL) {
        release_found(attempt);
        return true;
    }
    if (!release_token(attempt, attempt_token(attempt), ballots))
        return false;
    for (int node = 0; node < attempt->round.total; node++)
        note_asked(attempt, node, ballots[node]);
    return true;
}

/*
 * An answer to one release. True: it was the node's last one, and reply is now
 * what the node answered to all: no vote, if it gave none to one of them;
 * otherwise deleted, if it deleted one.
 */
static bool note_answer(struct forced_tally *tally, struct call_reply *reply)
{
    if (tally->due == 0) /* of an earlier round, if the numbers wrapped */
        return false;
    forced_merge(tally, call_ballot(reply));
    if (reply->vote != tally->ballot.vote || tally->ballot.vote != VOTE_HELD) {
        reply->vote = tally->ballot.vote;
        reply->state = tally->ballot.state;
    }
    return --tally->due == 0;
}

bool attempt_note_release(struct attempt *attempt, int node, unsigned asking,
                          const struct call_reply *reply)
{
    struct forced *forced = attempt->forced;
    struct call_reply all = *reply;
    if (forced != NULL && (!forced->is_releasing || asking != forced->asking ||
                           !note_answer(&forced->tally[node], &all)))
        return false;
    attempt_note_reply(attempt, node, &all);
    return true;
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
    if (!attempt->is_repeat)
        return false;
    /* another server's clocks may be ahead of ours */
    attempt->seen_number = at_least(attempt->seen_number, attempt->replaces);
    /* nothing follows what it replaces */
    for (int i = 0; i < round->total; i++)
        if (round_is_repeated_on(round, i, key_hash))
            spreads_cancel(attempt->means->spreads, attempt->request->resource,
                           round_value(round, i));
    return true;
}

/* What a forced release found is more than one call, and its releases ask again
 * by themselves. */
static bool is_one_call(const struct attempt *attempt)
{
    return attempt->forced == NULL || !attempt->forced->is_releasing;
}

bool attempt_repeat(struct attempt *attempt, int node,
                    const struct call_reply *reply)
{
    struct round_vote *vote = &attempt->round.votes[node];
    if (reply->state != STATE_NO_SCRIPT || vote->vote != VOTE_PENDING ||
        vote->is_repeated || !is_one_call(attempt))
        return false;
    struct call call = attempt_make_call(attempt);
    vote->is_repeated = true;
    attempt_send_to(attempt, node, &call);
    return true;
}

void attempt_note_reply(struct attempt *attempt, int node,
                        const struct call_reply *reply)
{
    struct round_vote *vote = &attempt->round.votes[node];
    if (reply->vote == VOTE_NOT_ADMITTED && vote->vote == VOTE_PENDING &&
        is_one_call(attempt) &&
        status_is_looked_at(attempt->means->nodes, node)) {
        vote->is_refused = true;
        return;
    }
    if (reply->was_free)
        attempt->fresh |= (uint16_t)(1u << node);
    if (attempt->round.kind == LOCK_FORCE && reply->vote == VOTE_HELD &&
        vote->vote == VOTE_PENDING) {
        if (!note_tokens(attempt, reply)) {
            const struct ballot none = {.vote = VOTE_STALLED};
            round_note_ballot(&attempt->round, node, none);
            return;
        }
    }
    round_note_reply(&attempt->round, node, reply);
}

bool attempt_has_replaced(const struct attempt *attempt)
{
    const struct round *round = &attempt->round;
    if (!attempt->request->is_shared)
        return attempt->is_repeat;
    for (int i = 0; i < round->total; i++)
        if (round->votes[i].vote == VOTE_GRANTED &&
            ((attempt->fresh | attempt->own) & 1u << i) == 0)
            return attempt->is_repeat;
    return false;
}

void attempt_undo(struct attempt *attempt)
{
    for (int i = 0; i < attempt->round.total; i++) {
        struct round_vote *vote = &attempt->round.votes[i];
        vote->is_kept = attempt->is_repeat && (attempt->fresh & 1u << i) == 0;
        if (vote->is_sent && !ballot_is_harmless(round_ballot(vote)))
            attempt->own |= (uint16_t)(1u << i);
    }
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
