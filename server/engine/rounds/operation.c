#include "operation.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/port.h"
#include "../port/token.h"

enum { OPERATIONS_MAX = 100000, TIMER_OFF = 0 };

void operations_init(struct operations *operations, struct nodes *nodes,
                     struct spreads *spreads, struct releases *releases)
{
    *operations = (struct operations){
        .means = {nodes->env, nodes, spreads, releases},
    };
    slots_init(&operations->slots, sizeof(struct operation), OPERATIONS_MAX);
}

static void operation_give(struct operation *it)
{
    attempt_fini(&it->attempt);
    texts_drop(&it->texts);
    slots_give(&it->operations->slots, it);
}

void operations_fini(struct operations *operations)
{
    for (uint32_t i = 0; i < operations->slots.count; i++) {
        struct operation *it = slots_at(&operations->slots, i);
        if (it != NULL)
            operation_give(it);
    }
    slots_fini(&operations->slots);
}

struct operation *operation_find(const struct operations *operations,
                                 uint64_t handle)
{
    return slots_find(&operations->slots, handle);
}

static const struct environment *env_of(const struct operation *it)
{
    return it->operations->means.env;
}

static void operation_set_timer(const struct operation *it, int64_t at_us)
{
    const struct engine_port *port = &env_of(it)->port;
    /* cannot fail: operation_new made the timer */
    (void)port->timer(port->ctx, timer_slot(TIMER_OPERATION, it->head.index),
                      at_us);
}

/* ---- the outcome -------------------------------------------------------- */

static void operation_settle(struct operation *it, enum outcome outcome)
{
    const struct engine_port *port = &env_of(it)->port;
    void (*on_settled)(void *) =
        it->operations->on_settled[it->request.owned_by];
    /* only a round has a verdict, and only one */
    assert(it->state == OPERATION_ROUND);
    if (outcome != OUTCOME_EXTENDED) /* its last votes are needed */
        operation_set_timer(it, TIMER_OFF);
    it->state = OPERATION_SETTLED;
    it->operations->in_flight--;
    it->result.outcome = outcome;
    if (it->attempt.forced == NULL || outcome != OUTCOME_RELEASED)
        result_tell_votes(&it->result, &it->attempt.round);
    if (outcome == OUTCOME_GRANTED || outcome == OUTCOME_EXTENDED) {
        it->result.token = attempt_token(&it->attempt);
        result_tell_token(&it->result, it->result.token);
    }
    if (on_settled != NULL)
        on_settled(it->request.client);
    else
        port->answer(port->ctx, it->request.client);
}

static bool has_attempts_left(const struct operation *it)
{
    return it->attempt.number <= env_of(it)->settings.retry_count;
}

/* True if a won round has any validity left. */
static bool operation_is_valid(const struct operation *it)
{
    return attempt_validity_ms(&it->attempt, environment_now(env_of(it))) > 0;
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
    if (!has_attempts_left(it) || !round_is_lost_to_time(&it->attempt.round)) {
        operation_settle(it, OUTCOME_NO_QUORUM);
        return false;
    }
    if (it->attempt.round.kind != LOCK_RELEASE)
        return true;
    attempt_wait_on(&it->attempt);
    operation_set_timer(it, it->attempt.round.deadline_us);
    return false;
}

static enum outcome outcome_of_won(const struct operation *it)
{
    if (it->attempt.round.kind == LOCK_RELEASE)
        return OUTCOME_RELEASED;
    if (it->request.only_looks)
        return OUTCOME_MAX_HOLD;
    return operation_is_valid(it) ? OUTCOME_EXTENDED
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
        result_tell_holder(
            &it->result, &it->attempt.round,
            clocks_median_at(&it->operations->means.nodes->clocks,
                             environment_now(env_of(it))));
    if (it->request.call == LOCK_INSPECT && verdict != VERDICT_REFUSED)
        result_tell_version(&it->result, &it->attempt.round,
                            verdict == VERDICT_NOT_FOUND);
    operation_settle(it, verdict == VERDICT_WON ? outcome_of_won(it)
                                                : outcomes[verdict]);
    return false;
}

static bool on_look_verdict(struct operation *it, enum verdict verdict)
{
    struct forced *forced = it->attempt.forced;
    if (verdict == VERDICT_WON) {
        attempt_end_look(&it->attempt);
        return true;
    }
    if (forced->has_released &&
        (verdict == VERDICT_NOT_FOUND || verdict == VERDICT_NOT_OWNER)) {
        operation_settle(it, OUTCOME_RELEASED);
        return false;
    }
    return on_verdict(it, verdict);
}

/*
 * Of several resources one may have another holder, or none, which is what the
 * nodes then answer: but what the look found has been released.
 */
static bool on_force_verdict(struct operation *it, enum verdict verdict)
{
    struct forced *forced = it->attempt.forced;
    if (it->attempt.round.kind == LOCK_FORCE)
        return on_look_verdict(it, verdict);
    if (verdict == VERDICT_NO_QUORUM || verdict == VERDICT_REFUSED)
        return on_verdict(it, verdict);
    if (verdict == VERDICT_WON || names_count(it->request.resource) > 1) {
        forced->has_released = true;
        result_tell_votes(&it->result, &it->attempt.round);
    }
    bool has_more = forced->left > 0; /* on a node that did not report it */
    if (has_more && forced->looks < forced->looks_max) {
        forced->is_releasing = false;
        return true;
    }
    if (has_more)
        operation_settle(it, OUTCOME_NO_QUORUM);
    else if (forced->has_released)
        operation_settle(it, OUTCOME_RELEASED);
    else
        return on_verdict(it, verdict);
    return false;
}

/* Another attempt: at once if the number was too low, or after a random delay
 * if the votes are split. */
static bool on_lost_race(struct operation *it, enum verdict verdict)
{
    const struct environment *env = env_of(it);
    assert(verdict == VERDICT_SPLIT || verdict == VERDICT_STALE);
    bool is_lost_to_repeat = it->attempt.is_repeat && !it->request.is_shared &&
                             verdict == VERDICT_SPLIT;
    bool is_left = it->request.is_choice && verdict == VERDICT_SPLIT;
    if (!has_attempts_left(it) || is_lost_to_repeat || is_left) {
        operation_settle(it, it->was_held ? OUTCOME_HELD : OUTCOME_NO_QUORUM);
        return false;
    }
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
    struct attempt *attempt = &it->attempt;
    if (verdict == VERDICT_WON && operation_is_valid(it)) {
        it->result.is_repeat |= attempt_has_replaced(attempt);
        operation_settle(it, OUTCOME_GRANTED);
        return false;
    }
    /* a reader that it replaced is not there for the next attempt */
    it->result.is_repeat |=
        it->request.is_shared && attempt_has_replaced(attempt);
    /* a lost attempt: undoes it, and remembers its votes */
    attempt_undo(attempt);
    it->was_held |= round_count(&attempt->round, VOTE_HELD) > 0;
    it->result.barred_us =
        nodes_barred_us(it->operations->means.nodes, attempt->round.highest);
    if (it->result.barred_us == 0)
        attempt->seen_number =
            at_least(attempt->seen_number, attempt->round.highest);
    if (verdict == VERDICT_WON) {
        operation_settle(it, OUTCOME_VALIDITY_EXHAUSTED);
        return false;
    }
    if (attempt_make_repeat(attempt))
        return true;
    return verdict == VERDICT_STALE || verdict == VERDICT_SPLIT
               ? on_lost_race(it, verdict)
               : on_verdict(it, verdict);
}

/* Asks the nodes that the round has not asked. */
static void widen(struct operation *it, enum metrics_widening cause)
{
    env_of(it)->metrics->widenings[cause]++;
    attempt_widen(&it->attempt);
}

static enum verdict operation_judge(struct operation *it)
{
    const struct round *round = &it->attempt.round;
    attempt_drop_outdated(&it->attempt);
    enum verdict verdict = round_verdict(round);
    if (verdict != VERDICT_OPEN || !round_wants_rest(round))
        return verdict;
    widen(it, round_is_broken(round) ? WIDENING_NO_ANSWER : WIDENING_SPLIT);
    return round_verdict(round);
}

static bool operation_decide(struct operation *it)
{
    const struct environment *env = env_of(it);
    struct round *round = &it->attempt.round;
    enum verdict verdict = operation_judge(it);
    if (verdict == VERDICT_OPEN ||
        round_is_pending_on(round, it->request.heard))
        return false;
    int64_t now_us = environment_now(env);
    metrics_observe(&env->metrics->round_duration[round->kind],
                    now_us - round->start_us);
    if (verdict == VERDICT_WON)
        round->won_us = now_us;
    if (it->attempt.forced != NULL)
        return on_force_verdict(it, verdict);
    return it->request.call == LOCK_ACQUIRE ? on_acquire_verdict(it, verdict)
                                            : on_verdict(it, verdict);
}

/* ---- attempts ----------------------------------------------------------- */

/*
 * The round's deadline, or the moment at which it asks the other nodes. They
 * have half of its time, also while no round trip is known, as after a start:
 * one of the first may not answer at all.
 */
static int64_t timer_us(const struct operation *it)
{
    const struct round *round = &it->attempt.round;
    if (round->unasked == 0)
        return round->deadline_us;
    int64_t slow_us = it->operations->means.nodes->pace.slow_us;
    int64_t half_us = (round->deadline_us - round->start_us) / 2;
    return round->start_us + at_most(slow_us, half_us);
}

/* False: no memory, and nothing was sent. */
static bool begin_attempt(struct operation *it)
{
    bool is_begun = true;
    bool is_found =
        it->attempt.forced != NULL && it->attempt.forced->is_releasing;
    it->state = OPERATION_ROUND;
    if (it->request.call == LOCK_RELEASE || is_found)
        is_begun = attempt_release(&it->attempt);
    else
        attempt_begin(&it->attempt);
    operation_set_timer(it, timer_us(it));
    return is_begun;
}

/* Begins attempts until one is not decided at its start. */
static void operation_try(struct operation *it)
{
    do {
        if (!begin_attempt(it))
            round_note_rest(&it->attempt.round, VOTE_STALLED);
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
    if (it->attempt.round.pending > 0)
        return;
    if (it->request.call == LOCK_EXTEND ||
        it->result.outcome == OUTCOME_GRANTED)
        attempt_spread(&it->attempt);
    else
        attempt_undo(&it->attempt);
    operation_end(it);
}

/* So many wait for stragglers that requests might find no place. */
static bool is_crowded(const struct operations *operations)
{
    return operations->slots.used > operations->slots.limit / 2;
}

/* needs_votes: what spreads the lock, or an undo, waits for the last votes. A
 * spread can do without them: it looks. */
static void close(struct operation *it, bool needs_votes)
{
    bool is_kept = it->result.outcome == OUTCOME_GRANTED ||
                   it->result.outcome == OUTCOME_EXTENDED;
    if (!needs_votes) {
        operation_end(it);
        return;
    }
    if (is_kept && is_crowded(it->operations))
        round_note_rest(&it->attempt.round, VOTE_UNANSWERED);
    note_ended(it);
    it->state = OPERATION_CLOSED;
    operation_set_timer(it, it->attempt.round.deadline_us);
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

void operation_on_reply(struct operations *operations, int node, uint64_t tag,
                        const struct call_reply *reply)
{
    struct operation *it = operation_find(operations, tag);
    if (it == NULL || tag_bits(TAG_OPERATION, (unsigned)it->attempt.number) !=
                          slots_user_bits(tag)) /* of an earlier attempt */
        return;
    if (it->state != OPERATION_ROUND ||
        !attempt_repeat(&it->attempt, node, reply))
        attempt_note_reply(&it->attempt, node, reply);
    operation_go_on(it);
}

void operations_on_looked(struct operations *operations, int node)
{
    if (status_is_looked_at(operations->means.nodes, node))
        return;
    for (uint32_t i = 0; i < operations->slots.count; i++) {
        struct operation *it = slots_at(&operations->slots, i);
        if (it != NULL &&
            attempt_ask_again(&it->attempt, node, it->state != OPERATION_ROUND))
            operation_go_on(it);
    }
}

void operation_on_release(struct operations *operations, int node,
                          uint64_t handle, const struct call_reply *reply)
{
    struct operation *it = operation_find(operations, handle);
    if (it == NULL)
        return;
    if (attempt_note_release(&it->attempt, node, tag_round_of(handle), reply))
        operation_go_on(it);
}

void operation_on_timer(struct operations *operations, uint32_t index)
{
    struct operation *it = slots_at(&operations->slots, index);
    if (it == NULL)
        return;
    int64_t deadline_us = it->attempt.round.deadline_us;
    if (it->state == OPERATION_PAUSE) {
        operation_try(it);
    } else if (environment_now(env_of(it)) < deadline_us) {
        operation_set_timer(it, deadline_us);
        if (it->state == OPERATION_ROUND && it->attempt.round.unasked != 0)
            widen(it, WIDENING_SLOW);
        operation_go_on(it);
    } else {
        round_note_rest(&it->attempt.round, VOTE_UNANSWERED);
        operation_go_on(it);
    }
}

/* ---- begin -------------------------------------------------------------- */

static struct operation *operation_new(struct operations *operations,
                                       const struct request *asked)
{
    const struct engine_port *port = &operations->means.env->port;
    struct operation *it = slots_take(&operations->slots);
    if (it == NULL)
        return NULL;
    it->operations = operations;
    it->attempt.forced = NULL;
    if (!texts_keep(&it->texts, asked->resource, asked->owner)) {
        slots_give(&operations->slots, it);
        return NULL;
    }
    if (!port->timer(port->ctx, timer_slot(TIMER_OPERATION, it->head.index),
                     TIMER_OFF)) {
        operation_give(it);
        return NULL;
    }
    assert(asked->resource.len <= NAMES_LEN_MAX);
    assert(asked->owner.len <= OWNER_MAX);
    assert(asked->key_hash.len <= KEY_HASH_LEN);
    it->was_held = false;
    it->request = *asked;
    it->request.only_looks =
        asked->call == LOCK_EXTEND &&
        attempt_is_held_too_long(&operations->means, asked->token,
                                 asked->ttl_ms);
    it->request.resource = texts_first(&it->texts);
    it->request.owner = texts_second(&it->texts);
    it->request.key_hash =
        (struct span){it->key_hash, span_copy(it->key_hash, asked->key_hash)};
    it->request.token = (struct span){0}; /* the attempt has it */
    attempt_init(&it->attempt, &operations->means, &it->request, it,
                 asked->token);
    if (asked->call == LOCK_FORCE && !attempt_init_force(&it->attempt)) {
        operation_give(it);
        return NULL;
    }
    it->result = (struct engine_result){
        .resource = it->request.resource,
        .ttl_ms = asked->ttl_ms,
        .remaining_ms = -1,
        .held_ms = -1,
    };
    if (asked->is_shared && asked->call == LOCK_EXTEND)
        token_share(it->attempt.token);
    return it;
}

uint64_t operation_start(struct operations *operations,
                         const struct request *asked)
{
    struct operation *it = operation_new(operations, asked);
    if (it == NULL)
        return 0;
    operations->in_flight++;
    uint64_t handle = slots_handle(it, HANDLE_OPERATION);
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
    result->validity_ms = attempt_validity_ms(&it->attempt, now_us);
    if (env_of(it)->settings.max_hold_ms > 0) /* else nobody asks */
        result_tell_age(result,
                        clocks_median_at(&it->operations->means.nodes->clocks,
                                         environment_now(env_of(it))));
    if (result->validity_ms > 0)
        return result;
    if (result->outcome == OUTCOME_GRANTED)
        attempt_undo(&it->attempt);
    result->outcome = OUTCOME_VALIDITY_EXHAUSTED;
    result->token = (struct span){0};
    result->validity_ms = 0;
    return result;
}

/* Called at the end: until then engine_take may find a grant expired. */
static void operation_count_outcome(const struct operation *it)
{
    enum lock_call call = it->request.call;
    /* it is closed when it is settled, and settled by the verdicts above */
    assert(outcome_is_of(it->result.outcome, call));
    env_of(it)->metrics->outcomes[call][it->result.outcome]++;
}

void operation_close(struct operation *it)
{
    enum outcome outcome = it->result.outcome;
    operation_count_outcome(it);
    bool has_stragglers = outcome == OUTCOME_GRANTED &&
                          it->attempt.round.unasked == 0 &&
                          it->attempt.round.pending > 0;
    if (outcome == OUTCOME_GRANTED)
        attempt_begin_spread(&it->attempt);
    close(it, outcome == OUTCOME_EXTENDED || has_stragglers ||
                  (outcome != OUTCOME_GRANTED && it->attempt.is_repeat));
}

void operation_refuse(struct operation *it)
{
    const struct span resource = it->result.resource;
    /* a permit refuses the grant that it has just been told */
    assert(it->state == OPERATION_SETTLED &&
           it->result.outcome == OUTCOME_GRANTED);
    attempt_undo(&it->attempt);
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
    close(it, it->attempt.is_repeat);
}

bool operation_abandon(struct operation *it)
{
    bool is_granted =
        it->state == OPERATION_SETTLED && it->result.outcome == OUTCOME_GRANTED;
    bool may_hold =
        it->state == OPERATION_ROUND && it->request.call == LOCK_ACQUIRE;
    if (is_granted || may_hold)
        attempt_undo(&it->attempt);
    if (it->state == OPERATION_SETTLED)
        operation_count_outcome(it);
    if (is_granted) /* its last votes are undone, too */
        it->result.outcome = OUTCOME_VALIDITY_EXHAUSTED;
    close(it, it->attempt.is_repeat);
    return is_granted;
}
