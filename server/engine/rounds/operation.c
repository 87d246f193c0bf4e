/* SPDX-License-Identifier: MIT */
#include "operation.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/port.h"
#include "../port/token.h"

enum { OPERATIONS_MAX = 100000, TIMER_OFF = 0 };

void operations_init(struct operations *operations, struct nodes *nodes,
                     struct spreads *spreads, struct releases *releases)
{
    *operations = (struct operations){.env = nodes->env,
                                      .nodes = nodes,
                                      .spreads = spreads,
                                      .releases = releases};
    entries_init(&operations->entries, sizeof(struct operation),
                 OPERATIONS_MAX);
}

static void operation_give(struct operation *it)
{
    forced_free(it->forced);
    texts_drop(&it->texts);
    entries_give(&it->operations->entries, it);
}

void operations_fini(struct operations *operations)
{
    for (uint32_t i = 0; i < operations->entries.count; i++) {
        struct operation *it = entries_at(&operations->entries, i);
        if (it != NULL)
            operation_give(it);
    }
    entries_fini(&operations->entries);
}

struct operation *operation_find(const struct operations *operations,
                                 uint64_t handle)
{
    return entries_find(&operations->entries, handle);
}

static const struct environment *env_of(const struct operation *it)
{
    return it->operations->env;
}

static int64_t now_of(const struct operation *it)
{
    return environment_now(it->operations->env);
}

static void operation_set_timer(const struct operation *it, int64_t at_us)
{
    const struct engine_port *port = &env_of(it)->port;
    /* cannot fail: operation_new made the timer */
    (void)port->timer(port->ctx, timer_id(TIMER_OPERATION, it->head.index),
                      at_us);
}

static struct span token_of(const struct operation *it)
{
    return (struct span){it->token, it->token_len};
}

/* Of the nodes' clocks, as in fencing tokens; 0: unknown. */
static int64_t median_us(const struct operation *it)
{
    return clocks_median_at(&it->operations->nodes->clocks, now_of(it));
}

/* What a forced release found is more than one call, and its releases ask again
 * by themselves. */
static bool is_one_call(const struct operation *it)
{
    return it->forced == NULL || !it->forced->is_releasing;
}

/* ---- calls -------------------------------------------------------------- */

static const enum call_kind kinds[] = {
    [LOCK_ACQUIRE] = CALL_ACQUIRE, [LOCK_EXTEND] = CALL_EXTEND,
    [LOCK_RELEASE] = CALL_RELEASE, [LOCK_INSPECT] = CALL_INSPECT,
    [LOCK_FORCE] = CALL_TOKENS, /* releases follow */
};

static struct call operation_make_call(const struct operation *it)
{
    const struct request *request = &it->request;
    struct call call =
        fence_call(it->is_repeat ? CALL_REPEAT : kinds[it->round.kind],
                   request->resource, token_of(it));
    call.seen = it->replacing;
    call.readers_max =
        request->only_repeats ? 0 : env_of(it)->settings.readers_max;
    call.ttl_ms = request->only_checks ? 0 : request->ttl_ms;
    call.number =
        it->round.kind == LOCK_FORCE ? request->number : it->seen_number;
    return call;
}

static void note_asked(struct operation *it, int node, struct ballot ballot)
{
    const struct nodes *nodes = it->operations->nodes;
    if (ballot.vote == VOTE_PENDING)
        round_note_sent(&it->round, node, nodes->members.node[node].life);
    else
        round_note_ballot(&it->round, node, ballot);
}

static void operation_send(struct operation *it, int node, struct call *call)
{
    struct nodes *nodes = it->operations->nodes;
    struct round *round = &it->round;
    /* measured now: it grows while a node is unreachable */
    it->uncertainty_us =
        at_least(it->uncertainty_us,
                 clocks_uncertainty_us(&nodes->clocks, node, round->start_us));
    struct ballot ballot = nodes_send(
        nodes, node, call, round->deadline_us,
        entries_handle(it, tag_bits(TAG_OPERATION, (unsigned)it->attempts)));
    note_asked(it, node, ballot);
}

/* Those that are being probed are asked when that is answered. */
static void ask_nodes(struct operation *it, uint16_t nodes)
{
    struct call call = operation_make_call(it);
    for (int i = 0; i < it->round.total; i++) {
        if ((nodes & nodeset_of(i)) == 0)
            continue;
        if (status_is_probed(it->operations->nodes, i))
            it->round.refused |= nodeset_of(i);
        else
            operation_send(it, i, &call);
    }
}

/* Asks the nodes that the round has not asked. */
static void widen(struct operation *it, enum metrics_widening cause)
{
    uint16_t rest = it->round.unasked;
    env_of(it)->metrics->widenings[cause]++;
    it->round.unasked = 0;
    ask_nodes(it, rest);
}

/* True: the node had lost our script, so the call changed nothing; it was sent
 * once more. Like one that was long on its way, it has the round's deadline. */
static bool repeat_call(struct operation *it, int node,
                        const struct call_reply *reply)
{
    struct round *round = &it->round;
    if (reply->state != STATE_NO_SCRIPT || !is_one_call(it) ||
        round->votes[node].vote != VOTE_PENDING ||
        (round->repeated & nodeset_of(node)) != 0)
        return false;
    struct call call = operation_make_call(it);
    round->repeated |= nodeset_of(node);
    operation_send(it, node, &call);
    return true;
}

/*
 * The admission of a node has been read, or is lost: sends the node the call
 * that it refused, or that was held back, unless the outcome is known. False:
 * no call was held back.
 */
static bool ask_again(struct operation *it, int node)
{
    struct round *round = &it->round;
    if ((round->refused & nodeset_of(node)) == 0 ||
        round->votes[node].vote != VOTE_PENDING)
        return false;
    round->refused &= (uint16_t)~nodeset_of(node);
    if (it->state == OPERATION_ROUND)
        ask_nodes(it, nodeset_of(node));
    else
        round_note_ballot(round, node, ballot_unfit(STATE_QUARANTINED));
    return true;
}

/* ---- attempts ----------------------------------------------------------- */

/* The node timeout, or a shorter TTL: a later grant would have expired. */
static int64_t timeout_us(const struct operation *it)
{
    int64_t node_us = env_of(it)->settings.node_timeout_us;
    int64_t ttl_us = it->request.ttl_ms * 1000;
    return ttl_us > 0 && ttl_us < node_us ? ttl_us : node_us;
}

static void begin_round(struct operation *it, enum lock_call kind)
{
    const struct environment *env = env_of(it);
    int64_t start_us = environment_now(env);
    it->attempts++;
    it->fresh = 0;
    it->uncertainty_us = 0;
    round_init(&it->round, kind, env->settings.nodes, start_us,
               start_us + timeout_us(it));
    it->round.hears_all = it->request.number == 0;
}

/* The number and the token of the next round of an acquire. */
static void make_token(struct operation *it)
{
    const struct engine_port *port = &env_of(it)->port;
    unsigned char random[TOKEN_RANDOM_BYTES];
    struct nodes *nodes = it->operations->nodes;
    it->seen_number = nodes_next_number(
        nodes, clocks_median_at(&nodes->clocks, it->round.start_us),
        it->seen_number);
    port->random(port->ctx, random, sizeof random);
    if (it->has_nonce)
        memcpy(random, it->nonce, sizeof it->nonce);
    else
        memcpy(it->nonce, random, sizeof it->nonce);
    it->has_nonce = it->is_repeat && it->request.is_shared;
    const struct token_parts parts = {
        .number = it->seen_number,
        .is_shared = it->request.is_shared,
        .key_hash = it->request.key_hash,
        .owner = it->request.owner,
    };
    it->token_len = token_make(it->token, random, &parts);
    it->replacing = it->replaces;
    /* The next one replaces this one, too; but not shared locks that were
       granted meanwhile, which may stand beside it. */
    if (it->is_repeat && !it->request.is_shared)
        it->replaces = it->seen_number;
}

/*
 * Exclusion needs a majority, and nothing needs all nodes at once: a call that
 * is sent later, with the same deadline, is one that was long on its way. So a
 * round may ask these of its nodes first: a quorum of those that may vote, in
 * the order of the configuration, those that are slow or answer errors last.
 * All servers begin with the same nodes: of two that want one lock, one loses
 * early.
 */
static uint16_t first_nodes(const struct operation *it, uint16_t asked)
{
    const struct nodes *nodes = it->operations->nodes;
    const struct round *round = &it->round;
    uint16_t chosen = 0;
    int wanted = round->quorum;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < round->total && wanted > 0; i++) {
            if ((asked & (uint16_t)~chosen & nodeset_of(i)) == 0 ||
                (pass == 0 && (!status_is_voting(nodes, i) ||
                               pace_is_slow(&nodes->pace, i, round->start_us))))
                continue;
            chosen |= nodeset_of(i);
            wanted--;
        }
    return wanted == 0 ? chosen : asked;
}

/* Only an acquire is held back: other calls ask for what all nodes have. */
static bool may_hold_back(const struct operation *it)
{
    const struct round *round = &it->round;
    return env_of(it)->settings.ask == ASK_QUORUM &&
           round->kind == LOCK_ACQUIRE && !it->is_repeat &&
           spreads_may_follow(round) &&
           pace_leaves_time(&it->operations->nodes->pace,
                            round->deadline_us - round->start_us);
}

/* Of any call but a release. */
static void begin_calls(struct operation *it)
{
    const struct nodes *nodes = it->operations->nodes;
    struct round *round = &it->round;
    uint16_t asked = 0;
    begin_round(it, it->request.call);
    if (it->forced != NULL)
        forced_begin_inspection(it->forced);
    for (int i = 0; i < round->total; i++) {
        enum node_state refusal = nodes_refusal(nodes, i, kinds[round->kind]);
        if (status_is_probed(nodes, i))
            round->refused |= nodeset_of(i); /* asked once that is read */
        else if (refusal != STATE_NONE)
            round_note_ballot(round, i, ballot_unfit(refusal));
        else
            asked |= nodeset_of(i);
    }
    if (round->pending < round->quorum)
        return; /* fewer cannot decide */
    if (round->kind == LOCK_ACQUIRE)
        make_token(it);
    if (round->kind == LOCK_EXTEND) /* it finds the lock on all nodes */
        spreads_hurry(it->operations->spreads, it->request.resource,
                      token_of(it));
    if (may_hold_back(it)) {
        round->unasked = asked & (uint16_t)~first_nodes(it, asked);
        asked &= (uint16_t)~round->unasked;
    }
    ask_nodes(it, asked);
}

/*
 * A lock whose early replication was not sent is released where it was
 * acquired: the other nodes will never get it. As releases_ask, whose ask it
 * sets.
 */
static bool release_token(struct operation *it, struct span token,
                          struct release_ask *ask)
{
    struct spreads *spreads = it->operations->spreads;
    bool is_forced = it->forced != NULL;
    unsigned asking = is_forced ? it->forced->asking : 0;
    *ask = (struct release_ask){
        .resource = it->request.resource,
        .token = token,
        .operation = entries_handle(it, tag_bits(TAG_OPERATION, asking)),
        .round = &it->round,
        .scope = {nodeset_all(it->round.total), it->round.deadline_us},
    };
    if (is_forced)
        ask->tombstone_ms =
            spreads_tombstone_ms(spreads, env_of(it)->settings.retry_count);
    spreads_scope(spreads, ask->resource, token, &ask->scope);
    if (!releases_ask(it->operations->releases, ask))
        return false;
    spreads_cancel(spreads, ask->resource, token);
    return true;
}

static void release_found(struct operation *it)
{
    struct forced *forced = it->forced;
    struct release_ask ask;
    struct span token;
    int at = 0;
    forced_begin_releases(forced, (unsigned)it->attempts % TAG_ROUNDS);
    while ((token = forced_next(forced, &at)).len > 0) {
        /* without memory its ballots say so */
        (void)release_token(it, token, &ask);
        for (int i = 0; i < it->round.total; i++)
            forced_note_asked(forced, i, ask.ballots[i]);
    }
    for (int i = 0; i < it->round.total; i++)
        note_asked(it, i, forced_ballot(forced, i));
}

/* Begins the only attempt of a release, or one of a force, for what the
 * inspection found. False: no memory, and nothing was sent. */
static bool begin_release(struct operation *it)
{
    struct release_ask ask;
    begin_round(it, LOCK_RELEASE);
    if (it->forced != NULL) {
        release_found(it);
        return true;
    }
    if (!release_token(it, token_of(it), &ask))
        return false;
    for (int i = 0; i < it->round.total; i++)
        note_asked(it, i, ask.ballots[i]);
    return true;
}

/*
 * The round's deadline, or the moment at which it asks the other nodes. They
 * have half of its time, also while no round trip is known, as after a start:
 * one of the first may not answer at all.
 */
static int64_t timer_us(const struct operation *it)
{
    const struct round *round = &it->round;
    if (round->unasked == 0)
        return round->deadline_us;
    return round->start_us +
           at_most(it->operations->nodes->pace.slow_us,
                   (round->deadline_us - round->start_us) / 2);
}

/* False: no memory, and nothing was sent. */
static bool begin_attempt(struct operation *it)
{
    bool is_begun = true;
    it->state = OPERATION_ROUND;
    if (it->request.call == LOCK_RELEASE || !is_one_call(it))
        is_begun = begin_release(it);
    else
        begin_calls(it);
    operation_set_timer(it, timer_us(it));
    return is_begun;
}

static struct round_lock lock_of(const struct operation *it)
{
    return (struct round_lock){
        .resource = it->request.resource,
        .token = token_of(it),
        .ttl_ms = it->request.ttl_ms,
        .uncertainty_us = it->uncertainty_us,
    };
}

/*
 * Releases a lost acquire on all nodes that may have set the key; a repeat only
 * where it certainly replaced nothing. Called again as a repeat gets replies.
 */
static void operation_undo(struct operation *it)
{
    const struct round_lock lock = lock_of(it);
    uint16_t nodes = round_may_be_set(&it->round);
    it->own |= nodes;
    if (it->is_repeat)
        nodes &= it->fresh;
    it->fresh = 0;
    releases_undo(it->operations->releases, &it->round, nodes, &lock);
}

/*
 * After a lost acquire: makes the next attempt replace the token of an acquire
 * with the same key, if that was granted before this request. False: there is
 * none. Of two acquires at the same time only one gets the lock.
 */
static bool make_repeat(struct operation *it)
{
    const struct round *round = &it->round;
    if (it->is_repeat)
        return false;
    uint16_t nodes = round_repeated(round, it->request.key_hash, &it->replaces);
    int may_be_set = nodeset_count(nodes) + round_count(round, VOTE_GRANTED);
    it->is_repeat = nodes != 0 && may_be_set >= round->quorum &&
                    it->replaces < it->request.asked_us;
    if (!it->is_repeat)
        return false;
    /* another server's clocks may be ahead of ours */
    it->seen_number = at_least(it->seen_number, it->replaces);
    /* nothing follows what it replaces */
    for (int i = 0; i < round->total; i++)
        if ((nodes & nodeset_of(i)) != 0)
            spreads_cancel(it->operations->spreads, it->request.resource,
                           round_value(round, i));
    return true;
}

/* After a grant: whether it replaced an earlier lock with the same key. */
static bool has_replaced(const struct operation *it)
{
    if (!it->request.is_shared)
        return it->is_repeat;
    uint16_t granted = round_with(&it->round, VOTE_GRANTED);
    return it->is_repeat && (granted & (uint16_t) ~(it->fresh | it->own)) != 0;
}

/* ---- the outcome -------------------------------------------------------- */

/* False: no attempt follows. */
static bool operation_settle(struct operation *it, enum outcome outcome)
{
    const struct engine_port *port = &env_of(it)->port;
    void (*on_settled)(void *) =
        it->operations->on_settled[it->request.owned_by];
    /* only a round has a verdict, and only one */
    assert(it->state == OPERATION_ROUND);
    if (outcome != OUTCOME_EXTENDED) /* it needs the last votes */
        operation_set_timer(it, TIMER_OFF);
    it->state = OPERATION_SETTLED;
    it->operations->in_flight--;
    it->result.outcome = outcome;
    if (it->forced == NULL || outcome != OUTCOME_RELEASED)
        result_report_votes(&it->result, &it->round);
    if (outcome == OUTCOME_GRANTED || outcome == OUTCOME_EXTENDED) {
        it->result.token = token_of(it);
        result_report_token(&it->result, it->result.token);
    }
    if (on_settled != NULL)
        on_settled(it->request.client);
    else
        port->answer(port->ctx, it->request.client);
    return false;
}

static bool has_attempts_left(const struct operation *it)
{
    return it->attempts <= env_of(it)->settings.retry_count;
}

static int64_t validity_ms(const struct operation *it, int64_t now_us)
{
    return round_validity_ms(&it->round, it->request.ttl_ms, now_us,
                             env_of(it)->settings.drift_factor);
}

/*
 * These functions follow a verdict: they settle the operation or pause it.
 * True: another attempt begins at once.
 *
 * Slow nodes may be in time at the next attempt: this server was held up, or a
 * disk was. Nodes that refused would refuse again. A release is not sent again:
 * it is valid however late it runs.
 */
static bool on_no_quorum(struct operation *it)
{
    if (!has_attempts_left(it) || !round_is_lost_to_time(&it->round))
        return operation_settle(it, OUTCOME_NO_QUORUM);
    if (it->round.kind != LOCK_RELEASE)
        return true;
    it->attempts++; /* waits for the same calls for another timeout */
    round_wait_on(&it->round, now_of(it) + timeout_us(it));
    operation_set_timer(it, it->round.deadline_us);
    return false;
}

static enum outcome outcome_of_won(const struct operation *it)
{
    if (it->round.kind == LOCK_RELEASE)
        return OUTCOME_RELEASED;
    if (it->request.only_checks)
        return OUTCOME_MAX_HOLD;
    return validity_ms(it, now_of(it)) > 0 ? OUTCOME_EXTENDED
                                           : OUTCOME_VALIDITY_EXHAUSTED;
}

static bool on_verdict(struct operation *it, enum verdict verdict)
{
    static const enum outcome outcomes[] = {
        [VERDICT_HELD] = OUTCOME_HELD,
        [VERDICT_FOUND] = OUTCOME_FOUND,
        [VERDICT_BUSY] = OUTCOME_FOUND,
        [VERDICT_NOT_OWNER] = OUTCOME_NOT_OWNER,
        [VERDICT_NOT_FOUND] = OUTCOME_NOT_FOUND,
        [VERDICT_REFUSED] = OUTCOME_KEY_REFUSED,
    };
    if (verdict == VERDICT_NO_QUORUM)
        return on_no_quorum(it);
    if (verdict == VERDICT_HELD || verdict == VERDICT_FOUND)
        result_report_holder(&it->result, &it->round, median_us(it));
    if (it->request.call == LOCK_INSPECT && verdict != VERDICT_REFUSED)
        result_report_version(&it->result, &it->round,
                              verdict == VERDICT_NOT_FOUND);
    return operation_settle(it, verdict == VERDICT_WON ? outcome_of_won(it)
                                                       : outcomes[verdict]);
}

static bool on_inspection_verdict(struct operation *it, enum verdict verdict)
{
    if (verdict == VERDICT_WON) {
        forced_end_inspection(it->forced);
        return true;
    }
    if (it->forced->has_released &&
        (verdict == VERDICT_NOT_FOUND || verdict == VERDICT_NOT_OWNER))
        return operation_settle(it, OUTCOME_RELEASED);
    return on_verdict(it, verdict);
}

/*
 * Of several resources one may have another holder, or none, which is what the
 * nodes then answer: but what the inspection found has been released.
 */
static bool on_force_verdict(struct operation *it, enum verdict verdict)
{
    struct forced *forced = it->forced;
    if (it->round.kind == LOCK_FORCE)
        return on_inspection_verdict(it, verdict);
    if (verdict == VERDICT_NO_QUORUM || verdict == VERDICT_REFUSED)
        return on_verdict(it, verdict);
    if (verdict == VERDICT_WON || names_count(it->request.resource) > 1) {
        forced->has_released = true;
        result_report_votes(&it->result, &it->round);
    }
    bool has_more = forced->left > 0; /* on a node that did not report it */
    if (has_more && forced->inspections < forced->inspections_max) {
        forced->is_releasing = false;
        return true;
    }
    if (!has_more && !forced->has_released)
        return on_verdict(it, verdict);
    return operation_settle(it,
                            has_more ? OUTCOME_NO_QUORUM : OUTCOME_RELEASED);
}

/* Another attempt: at once if the number was too low, or after a random delay
 * if the votes are split. */
static bool on_lost_race(struct operation *it, enum verdict verdict)
{
    const struct environment *env = env_of(it);
    assert(verdict == VERDICT_SPLIT || verdict == VERDICT_STALE);
    bool is_last =
        it->request.is_choice || (it->is_repeat && !it->request.is_shared);
    if (!has_attempts_left(it) || (is_last && verdict == VERDICT_SPLIT))
        /* HELD says that it has no lock of an earlier acquire with its key */
        return operation_settle(
            it,
            it->was_held && !round_may_have(&it->round, it->request.key_hash)
                ? OUTCOME_HELD
                : OUTCOME_NO_QUORUM);
    if (verdict == VERDICT_STALE)
        return true;
    uint64_t delays = (uint64_t)env->settings.retry_delay_us + 1;
    int64_t delay_us = (int64_t)(environment_random(env) % delays);
    it->state = OPERATION_PAUSE;
    operation_set_timer(it, environment_now(env) + delay_us);
    return false;
}

static bool on_acquire_verdict(struct operation *it, enum verdict verdict)
{
    if (verdict == VERDICT_WON && validity_ms(it, now_of(it)) > 0) {
        it->result.is_repeat |= has_replaced(it);
        return operation_settle(it, OUTCOME_GRANTED);
    }
    /* a reader that it replaced is not there for the next attempt */
    it->result.is_repeat |= it->request.is_shared && has_replaced(it);
    /* a lost attempt: undoes it, and remembers its votes */
    operation_undo(it);
    it->was_held |= round_count(&it->round, VOTE_HELD) > 0;
    it->result.barred_us =
        nodes_barred_us(it->operations->nodes, it->round.highest);
    if (it->result.barred_us == 0)
        it->seen_number = at_least(it->seen_number, it->round.highest);
    if (verdict == VERDICT_WON)
        return operation_settle(it, OUTCOME_VALIDITY_EXHAUSTED);
    if (make_repeat(it))
        return true;
    return verdict == VERDICT_STALE || verdict == VERDICT_SPLIT
               ? on_lost_race(it, verdict)
               : on_verdict(it, verdict);
}

/* Votes of nodes whose data is outdated no longer count. */
static void drop_outdated(struct operation *it)
{
    struct round *round = &it->round;
    for (int i = 0; i < round->total; i++)
        if ((round->sent & nodeset_of(i)) != 0 &&
            !members_has_data(&it->operations->nodes->members, i,
                              round->votes[i].life))
            round_note_outdated(round, i);
}

static enum verdict operation_judge(struct operation *it)
{
    const struct round *round = &it->round;
    drop_outdated(it);
    enum verdict verdict = round_verdict(round);
    if (verdict != VERDICT_OPEN || !round_wants_rest(round))
        return verdict;
    widen(it, round_is_broken(round) ? WIDENING_NO_ANSWER : WIDENING_SPLIT);
    return round_verdict(round);
}

static bool operation_decide(struct operation *it)
{
    const struct environment *env = env_of(it);
    struct round *round = &it->round;
    enum verdict verdict = operation_judge(it);
    if (verdict == VERDICT_OPEN ||
        (round_with(round, VOTE_PENDING) & it->request.awaited) != 0)
        return false;
    int64_t now_us = environment_now(env);
    metrics_observe(&env->metrics->round_duration[round->kind],
                    now_us - round->start_us);
    if (verdict == VERDICT_WON)
        round->won_us = now_us;
    if (it->forced != NULL)
        return on_force_verdict(it, verdict);
    return it->request.call == LOCK_ACQUIRE ? on_acquire_verdict(it, verdict)
                                            : on_verdict(it, verdict);
}

/* Begins attempts until one is not decided at its start. */
static void operation_try(struct operation *it)
{
    do {
        if (!begin_attempt(it))
            round_note_rest(&it->round, VOTE_STALLED);
    } while (operation_decide(it));
}

/* ---- events ------------------------------------------------------------- */

/* It has no outcome, and will have none. */
static void note_ended(const struct operation *it)
{
    it->operations->in_flight -=
        it->state == OPERATION_ROUND || it->state == OPERATION_PAUSE;
}

static void operation_end(struct operation *it)
{
    note_ended(it);
    operation_set_timer(it, TIMER_OFF);
    operation_give(it);
}

static void end_if_complete(struct operation *it)
{
    if (it->round.pending > 0)
        return;
    const struct round_lock lock = lock_of(it);
    if (it->request.call == LOCK_EXTEND)
        spreads_on_extended(it->operations->spreads, &it->round, &lock);
    else if (it->result.outcome == OUTCOME_GRANTED)
        spreads_on_stragglers(it->operations->spreads, &it->round, &lock);
    else
        operation_undo(it);
    operation_end(it);
}

/* needs_votes: what spreads the lock, or an undo, waits for the last votes. A
 * spread can do without them: it checks. */
static void close(struct operation *it, bool needs_votes)
{
    const struct entries *entries = &it->operations->entries;
    bool is_kept = it->result.outcome == OUTCOME_GRANTED ||
                   it->result.outcome == OUTCOME_EXTENDED;
    if (!needs_votes) {
        operation_end(it);
        return;
    }
    /* so many wait for stragglers that requests might find no place */
    if (is_kept && entries->used > entries->limit / 2)
        round_note_rest(&it->round, VOTE_UNANSWERED);
    note_ended(it);
    it->state = OPERATION_CLOSED;
    operation_set_timer(it, it->round.deadline_us);
    end_if_complete(it);
}

/* After each noted vote. */
static void operation_go_on(struct operation *it)
{
    if (it->state == OPERATION_CLOSED)
        end_if_complete(it);
    else if (it->state == OPERATION_ROUND && operation_decide(it))
        operation_try(it);
}

/*
 * As round_note_reply. But a node whose admission has just changed refuses
 * calls that were sent before. If its admission is being read, the vote stays
 * pending, and the node is asked again.
 */
static void operation_note_reply(struct operation *it, int node,
                                 const struct call_reply *reply)
{
    bool is_pending = it->round.votes[node].vote == VOTE_PENDING;
    if (reply->vote == VOTE_NOT_ADMITTED && is_pending && is_one_call(it) &&
        status_is_probed(it->operations->nodes, node)) {
        it->round.refused |= nodeset_of(node);
        return;
    }
    if (reply->was_free)
        it->fresh |= nodeset_of(node);
    bool has_tokens =
        it->round.kind == LOCK_FORCE && reply->vote == VOTE_HELD && is_pending;
    if (has_tokens && !forced_note_tokens(it->forced, reply)) {
        round_note_ballot(&it->round, node,
                          (struct ballot){.vote = VOTE_STALLED});
        return;
    }
    if (has_tokens)
        it->round.found = forced_count(it->forced);
    round_note_reply(&it->round, node, reply);
}

void operation_on_reply(struct operations *operations, int node, uint64_t tag,
                        const struct call_reply *reply)
{
    struct operation *it = operation_find(operations, tag);
    if (it == NULL || tag_bits(TAG_OPERATION, (unsigned)it->attempts) !=
                          entries_user_bits(tag)) /* of an earlier attempt */
        return;
    if (it->state != OPERATION_ROUND || !repeat_call(it, node, reply))
        operation_note_reply(it, node, reply);
    operation_go_on(it);
}

void operations_on_probed(struct operations *operations, int node)
{
    if (status_is_probed(operations->nodes, node))
        return;
    for (uint32_t i = 0; i < operations->entries.count; i++) {
        struct operation *it = entries_at(&operations->entries, i);
        if (it != NULL && ask_again(it, node))
            operation_go_on(it);
    }
}

void operation_on_release(struct operations *operations, int node,
                          uint64_t handle, const struct call_reply *reply)
{
    struct operation *it = operation_find(operations, handle);
    struct call_reply all = *reply;
    if (it == NULL ||
        (it->forced != NULL &&
         !forced_note_answer(it->forced, node, tag_round_of(handle), &all)))
        return;
    operation_note_reply(it, node, &all);
    operation_go_on(it);
}

void operation_on_timer(struct operations *operations, uint32_t index)
{
    struct operation *it = entries_at(&operations->entries, index);
    if (it == NULL)
        return;
    if (it->state == OPERATION_PAUSE) {
        operation_try(it);
        return;
    }
    if (now_of(it) >= it->round.deadline_us) {
        round_note_rest(&it->round, VOTE_UNANSWERED);
    } else {
        operation_set_timer(it, it->round.deadline_us);
        if (it->state == OPERATION_ROUND && it->round.unasked != 0)
            widen(it, WIDENING_SLOW);
    }
    operation_go_on(it);
}

/* ---- begin -------------------------------------------------------------- */

/*
 * True if an extension would exceed max_hold_ms. It is refused, but only the
 * owner may learn why: the round checks the token, without lengthening.
 */
static bool is_held_too_long(const struct operation *it, struct span token)
{
    const struct environment *env = env_of(it);
    struct token_parts parts;
    int64_t max_us = env->settings.max_hold_ms * 1000;
    if (max_us == 0 || !token_parse(token, &parts))
        return false;
    int64_t now_us = median_us(it);
    int64_t end_us = now_us + it->request.ttl_ms * 1000;
    return now_us != 0 && end_us - parts.number > max_us;
}

/* No attempt has begun. */
static void operation_init(struct operation *it, const struct request *asked)
{
    assert(asked->resource.len <= NAMES_LEN_MAX);
    assert(asked->owner.len <= OWNER_MAX && asked->token.len <= TOKEN_MAX);
    assert(asked->key_hash.len <= KEY_HASH_LEN);
    it->request = *asked;
    it->request.only_checks =
        asked->call == LOCK_EXTEND && is_held_too_long(it, asked->token);
    it->request.resource = texts_first(&it->texts);
    it->request.owner = texts_second(&it->texts);
    it->request.key_hash =
        (struct span){it->key_hash, span_copy(it->key_hash, asked->key_hash)};
    /* Among others its own earlier lock shows nowhere: any is replaced. */
    it->is_repeat = asked->is_shared && asked->asked_us > 0;
    it->replaces = it->is_repeat ? asked->asked_us - 1 : 0;
    /* another server's clocks may be ahead of ours */
    it->seen_number = it->replaces;
    it->own = asked->own;
    it->has_nonce = asked->nonce != NULL;
    if (it->has_nonce)
        memcpy(it->nonce, asked->nonce, sizeof it->nonce);
    it->token_len = span_copy(it->token, asked->token);
    if (asked->is_shared && asked->call == LOCK_EXTEND)
        token_share(it->token);
    /* borrowed, and kept elsewhere by now */
    it->request.token = (struct span){0};
    it->request.nonce = NULL;
    it->result = (struct engine_result){
        .resource = it->request.resource,
        .ttl_ms = asked->ttl_ms,
        .remaining_ms = -1,
        .held_ms = -1,
    };
}

static struct operation *operation_new(struct operations *operations,
                                       const struct request *asked)
{
    const struct engine_port *port = &operations->env->port;
    struct operation *it = entries_take(&operations->entries);
    if (it == NULL)
        return NULL;
    const struct entries_head head = it->head;
    /* the round and what follows begins with the attempt */
    memset(it, 0, offsetof(struct operation, round));
    it->head = head;
    it->operations = operations;
    if (!texts_keep(&it->texts, asked->resource, asked->owner)) {
        entries_give(&operations->entries, it);
        return NULL;
    }
    if (asked->call == LOCK_FORCE)
        it->forced = forced_new(asked->number);
    if ((asked->call == LOCK_FORCE && it->forced == NULL) ||
        !port->timer(port->ctx, timer_id(TIMER_OPERATION, it->head.index),
                     TIMER_OFF)) {
        operation_give(it);
        return NULL;
    }
    operation_init(it, asked);
    return it;
}

uint64_t operation_start(struct operations *operations,
                         const struct request *asked)
{
    struct operation *it = operation_new(operations, asked);
    if (it == NULL)
        return 0;
    operations->in_flight++;
    uint64_t handle = entries_handle(it, HANDLE_OPERATION);
    if (!begin_attempt(it)) {
        operation_end(it);
        return 0;
    }
    operation_go_on(it);
    return handle;
}

/* ---- the end ------------------------------------------------------------ */

const struct engine_result *operation_take(struct operation *it, int64_t now_us)
{
    struct engine_result *result = &it->result;
    if (result->outcome != OUTCOME_GRANTED &&
        result->outcome != OUTCOME_EXTENDED)
        return result;
    result->validity_ms = validity_ms(it, now_us);
    if (env_of(it)->settings.max_hold_ms > 0) /* else nobody asks */
        result_report_age(result, median_us(it));
    if (result->validity_ms > 0)
        return result;
    if (result->outcome == OUTCOME_GRANTED)
        operation_undo(it);
    result->outcome = OUTCOME_VALIDITY_EXHAUSTED;
    result->token = (struct span){0};
    result->validity_ms = 0;
    return result;
}

/* Called at the end: until then engine_take may find a grant expired. */
static void operation_count_outcome(const struct operation *it)
{
    /* it is closed when it is settled, and settled by the verdicts above */
    assert(outcome_is_of(it->result.outcome, it->request.call));
    env_of(it)->metrics->outcomes[it->request.call][it->result.outcome]++;
}

void operation_close(struct operation *it)
{
    const struct round_lock lock = lock_of(it);
    enum outcome outcome = it->result.outcome;
    operation_count_outcome(it);
    bool has_stragglers = outcome == OUTCOME_GRANTED &&
                          it->round.unasked == 0 && it->round.pending > 0;
    if (outcome == OUTCOME_GRANTED)
        spreads_on_granted(it->operations->spreads, &it->round, &lock);
    close(it, outcome == OUTCOME_EXTENDED || has_stragglers ||
                  (outcome != OUTCOME_GRANTED && it->is_repeat));
}

void operation_refuse(struct operation *it)
{
    const struct span resource = it->result.resource;
    /* a permit refuses the grant that it has just been told */
    assert(it->state == OPERATION_SETTLED &&
           it->result.outcome == OUTCOME_GRANTED);
    operation_undo(it);
    it->result = result_plain(OUTCOME_HELD, it->result.total);
    it->result.resource = resource;
}

void operation_discard(struct operation *it)
{
    /* Waiters and permits discard an attempt when it has told them that it is
       lost; all other callers discard inspections. */
    assert(it->request.call == LOCK_INSPECT ||
           (it->state == OPERATION_SETTLED &&
            it->result.outcome != OUTCOME_GRANTED));
    close(it, it->is_repeat);
}

bool operation_abandon(struct operation *it)
{
    bool is_granted =
        it->state == OPERATION_SETTLED && it->result.outcome == OUTCOME_GRANTED;
    bool may_hold =
        it->state == OPERATION_ROUND && it->request.call == LOCK_ACQUIRE;
    if (is_granted || may_hold)
        operation_undo(it);
    if (it->state == OPERATION_SETTLED)
        operation_count_outcome(it);
    if (is_granted) /* its last votes are undone, too */
        it->result.outcome = OUTCOME_VALIDITY_EXHAUSTED;
    close(it, it->is_repeat);
    return is_granted;
}
