#include "operation.h"

#include <assert.h>

#include "fence.h"
#include "tag.h"
#include "token.h"

enum { OPERATIONS_MAX = 100000, TIMER_OFF = 0, FIRST_TIMER_SLOT = 1 };

static const enum call_kind script_of[] = {
    [LOCK_ACQUIRE] = CALL_ACQUIRE,
    [LOCK_EXTEND] = CALL_EXTEND,
    [LOCK_RELEASE] = CALL_RELEASE,
    [LOCK_INSPECT] = CALL_INSPECT,
};

void operations_init(struct operations *operations, struct nodes *nodes,
                     struct releases *releases, struct repairs *repairs)
{
    *operations = (struct operations){.env = nodes->env,
                                      .nodes = nodes,
                                      .releases = releases,
                                      .repairs = repairs};
    slots_init(&operations->slots, sizeof(struct operation), OPERATIONS_MAX);
}

void operations_fini(struct operations *operations)
{
    slots_fini(&operations->slots);
}

struct operation *operation_find(const struct operations *operations,
                                 uint64_t handle)
{
    return slots_find(&operations->slots, handle);
}

static void set_timer(struct operations *operations, struct operation *it,
                      int64_t at_us)
{
    struct engine_port *port = &operations->env->port;
    /* cannot fail: the slot's timer was made in operation_new */
    (void)port->timer(port->ctx, it->head.index + FIRST_TIMER_SLOT, at_us);
}

static struct span resource_of(const struct operation *it)
{
    return (struct span){it->resource, it->resource_len};
}

static struct span token_of(const struct operation *it)
{
    return (struct span){it->token, it->token_len};
}

/* ---- the outcome -------------------------------------------------------- */

static void settle(struct operations *operations, struct operation *it,
                   enum outcome outcome)
{
    struct nodes *nodes = operations->nodes;
    assert(it->state == OPERATION_ROUND);
    if (outcome != OUTCOME_EXTENDED) /* its other votes are of use */
        set_timer(operations, it, TIMER_OFF);
    it->state = OPERATION_SETTLED;
    operations->in_flight--;
    it->result.outcome = outcome;
    result_tell_votes(&it->result, &it->round);
    if (outcome == OUTCOME_GRANTED || outcome == OUTCOME_EXTENDED) {
        it->result.token = token_of(it);
        result_tell_token(&it->result, token_of(it));
    }
    nodes->env->port.answer(nodes->env->port.ctx, it->client);
}

/* ---- rounds ------------------------------------------------------------- */

static void make_token(struct operations *operations, struct operation *it,
                       int64_t number)
{
    unsigned char random[TOKEN_RANDOM_BYTES];
    struct engine_port *port = &operations->env->port;
    port->random(port->ctx, random, sizeof random);
    it->token_len = token_make(it->token, number, random,
                               (struct span){it->owner, it->owner_len});
}

static void undo(struct operations *operations, const struct operation *it)
{
    releases_undo(operations->releases, &it->round, resource_of(it),
                  token_of(it), it->ttl_ms, it->doubt_us);
}

static void decide(struct operations *operations, struct operation *it);

/* False: fewer than a majority may be asked, and cannot decide. */
static bool can_be_decided(const struct operations *operations,
                           struct operation *it)
{
    for (int i = 0; i < it->round.total; i++) {
        enum node_state refusal =
            nodes_refusal(operations->nodes, i, script_of[it->kind]);
        if (refusal != STATE_VOTING)
            round_note_unsent(&it->round, i, ballot_unfit(refusal));
    }
    return it->round.pending >= it->round.quorum;
}

/* Kept from the moment of sending: it grows while a node is away. */
static void note_doubt(const struct operations *operations,
                       struct operation *it, int node)
{
    int64_t doubt_us = nodes_doubt_us(operations->nodes, node);
    if (doubt_us > it->doubt_us)
        it->doubt_us = doubt_us;
}

/* Sends the round's call to all nodes that are to be asked. */
static void send_to_all(struct operations *operations, struct operation *it)
{
    struct call call = {
        .kind = script_of[it->kind],
        .resource = resource_of(it),
        .ttl_ms = it->is_probe ? 0 : it->ttl_ms,
        .median_us = nodes_median_us(operations->nodes, it->round.start_us),
        .slot = fence_slot(resource_of(it)),
    };
    if (it->kind == LOCK_ACQUIRE) {
        call.number = nodes_next_number(operations->nodes, call.median_us,
                                        it->seen_number);
        make_token(operations, it, call.number);
    }
    call.token = token_of(it);
    uint64_t tag =
        slots_handle(it, tag_bits(TAG_OPERATION, (unsigned)it->rounds));
    for (int i = 0; i < it->round.total; i++) {
        if (it->round.votes[i].vote != VOTE_PENDING)
            continue;
        note_doubt(operations, it, i);
        struct ballot ballot =
            nodes_send(operations->nodes, i, &call, it->round.deadline_us, tag);
        if (ballot.vote == VOTE_PENDING)
            round_note_sent(&it->round, i);
        else
            round_note_unsent(&it->round, i, ballot);
    }
}

/* Of a grant that is older than its TTL (0: has none) nothing would be left. */
static int64_t patience_us(const struct operations *operations,
                           const struct operation *it)
{
    int64_t timeout_us = operations->env->settings.node_timeout_us;
    int64_t ttl_us = it->ttl_ms * 1000;
    return ttl_us > 0 && ttl_us < timeout_us ? ttl_us : timeout_us;
}

/* A round that is decided as it starts may start the next: retry_count deep. */
/* NOLINTBEGIN(misc-no-recursion); false: a release without memory, not sent */
static bool start_round(struct operations *operations, struct operation *it)
{
    int64_t start_us = environment_now(operations->env);
    it->state = OPERATION_ROUND;
    it->rounds++;
    it->doubt_us = 0;
    round_init(&it->round, it->kind, operations->env->settings.nodes, start_us,
               start_us + patience_us(operations, it));
    set_timer(operations, it, it->round.deadline_us);
    if (it->kind != LOCK_RELEASE && can_be_decided(operations, it))
        send_to_all(operations, it);
    if (it->kind == LOCK_RELEASE && /* it lasts beyond the round */
        !releases_ask(operations->releases, &it->round, resource_of(it),
                      token_of(it), slots_handle(it, 0)))
        return false;
    decide(operations, it);
    return true;
}

static bool has_rounds_left(const struct operations *operations,
                            const struct operation *it)
{
    return it->rounds <= operations->env->settings.retry_count;
}

/* Another round after a random delay. */
static void pause(struct operations *operations, struct operation *it)
{
    struct nodes *nodes = operations->nodes;
    uint64_t delays = (uint64_t)operations->env->settings.retry_delay_us + 1;
    int64_t delay_us = (int64_t)(environment_random(operations->env) % delays);
    it->state = OPERATION_PAUSE;
    set_timer(operations, it, environment_now(nodes->env) + delay_us);
}

/* ---- verdicts ----------------------------------------------------------- */

static int64_t validity_ms(const struct operations *operations,
                           const struct operation *it, int64_t now_us)
{
    return round_validity_ms(&it->round, it->ttl_ms, now_us,
                             operations->env->settings.drift_factor);
}

/* Nothing is sent anew: a release is right however late it runs. */
static void wait_on(struct operations *operations, struct operation *it)
{
    it->rounds++;
    round_wait_on(&it->round, environment_now(operations->env) +
                                  patience_us(operations, it));
    set_timer(operations, it, it->round.deadline_us);
}

/*
 * What was too slow may be in time at once: this server was held up, or a disk
 * was. Nodes that refuse would do so again.
 */
static void on_no_quorum(struct operations *operations, struct operation *it)
{
    if (!has_rounds_left(operations, it) || !round_is_lost_to_time(&it->round))
        settle(operations, it, OUTCOME_NO_QUORUM);
    else if (it->kind == LOCK_RELEASE)
        wait_on(operations, it);
    else
        (void)start_round(operations, it); /* it is no release */
}

/* Whether anything is left of what a won round gives. */
static bool is_valid(const struct operations *operations,
                     const struct operation *it)
{
    return validity_ms(operations, it, environment_now(operations->env)) > 0;
}

static enum outcome outcome_of_won(const struct operations *operations,
                                   const struct operation *it)
{
    if (it->kind == LOCK_RELEASE)
        return OUTCOME_RELEASED;
    if (it->is_probe)
        return OUTCOME_MAX_HOLD;
    return is_valid(operations, it) ? OUTCOME_EXTENDED
                                    : OUTCOME_VALIDITY_EXHAUSTED;
}

static void on_verdict(struct operations *operations, struct operation *it,
                       enum verdict verdict)
{
    static const enum outcome outcomes[] = {
        [VERDICT_HELD] = OUTCOME_HELD,
        [VERDICT_FOUND] = OUTCOME_FOUND,
        [VERDICT_BUSY] = OUTCOME_FOUND,
        [VERDICT_NOT_OWNER] = OUTCOME_NOT_OWNER,
        [VERDICT_NOT_FOUND] = OUTCOME_NOT_FOUND,
        [VERDICT_REFUSED] = OUTCOME_KEY_REFUSED,
    };
    if (verdict == VERDICT_NO_QUORUM) {
        on_no_quorum(operations, it);
        return;
    }
    if (verdict == VERDICT_HELD || verdict == VERDICT_FOUND)
        result_tell_holder(&it->result, &it->round,
                           nodes_median_us(operations->nodes,
                                           environment_now(operations->env)));
    settle(operations, it,
           verdict == VERDICT_WON ? outcome_of_won(operations, it)
                                  : outcomes[verdict]);
}

static void on_acquire_verdict(struct operations *operations,
                               struct operation *it, enum verdict verdict)
{
    if (verdict == VERDICT_WON && is_valid(operations, it)) {
        settle(operations, it, OUTCOME_GRANTED);
        return;
    }
    undo(operations, it);
    it->was_held |= round_count(&it->round, VOTE_HELD) > 0;
    it->result.barred_us =
        nodes_barred_us(operations->nodes, it->round.highest);
    if (it->result.barred_us == 0 && it->round.highest > it->seen_number)
        it->seen_number = it->round.highest;
    if (verdict == VERDICT_WON)
        settle(operations, it, OUTCOME_VALIDITY_EXHAUSTED);
    else if (verdict != VERDICT_STALE && verdict != VERDICT_SPLIT)
        on_verdict(operations, it, verdict);
    else if (!has_rounds_left(operations, it))
        settle(operations, it, it->was_held ? OUTCOME_HELD : OUTCOME_NO_QUORUM);
    else if (verdict == VERDICT_STALE)
        (void)start_round(operations, it); /* it is an acquire */
    else
        pause(operations, it);
}

static void decide(struct operations *operations, struct operation *it)
{
    enum verdict verdict = round_verdict(&it->round);
    if (verdict == VERDICT_OPEN)
        return;
    struct nodes *nodes = operations->nodes;
    int64_t now_us = environment_now(nodes->env);
    metrics_observe(&nodes->env->metrics->round_duration[it->kind],
                    now_us - it->round.start_us);
    if (verdict == VERDICT_WON)
        it->round.won_us = now_us;
    if (it->kind == LOCK_ACQUIRE)
        on_acquire_verdict(operations, it, verdict);
    else
        on_verdict(operations, it, verdict);
}

/* NOLINTEND(misc-no-recursion) */

/* ---- the end ------------------------------------------------------------ */

/* Not before: a grant that nobody came for in time is none. */
static void count_outcome(struct operations *operations,
                          const struct operation *it)
{
    struct metrics *metrics = operations->env->metrics;
    enum lock_call call = it->kind;
    assert(outcome_is_of(it->result.outcome, call));
    metrics->outcomes[call][it->result.outcome]++;
}

static void end(struct operations *operations, struct operation *it)
{
    operations->in_flight -=
        it->state == OPERATION_ROUND || it->state == OPERATION_PAUSE;
    set_timer(operations, it, TIMER_OFF);
    slots_give(&operations->slots, it);
}

static void end_if_complete(struct operations *operations, struct operation *it)
{
    if (it->round.pending > 0)
        return;
    repairs_start(operations->repairs, resource_of(it), token_of(it),
                  it->ttl_ms, &it->round);
    end(operations, it);
}

void operation_close(struct operations *operations, struct operation *it)
{
    count_outcome(operations, it);
    if (it->result.outcome != OUTCOME_EXTENDED) {
        end(operations, it);
        return;
    }
    it->state = OPERATION_CLOSED;
    end_if_complete(operations, it);
}

void operation_abandon(struct operations *operations, struct operation *it)
{
    bool may_hold = it->state == OPERATION_SETTLED
                        ? it->result.outcome == OUTCOME_GRANTED
                        : it->state == OPERATION_ROUND;
    if (it->kind == LOCK_ACQUIRE && may_hold)
        undo(operations, it);
    if (it->state == OPERATION_SETTLED)
        count_outcome(operations, it);
    end(operations, it);
}

/* ---- what comes in ------------------------------------------------------ */

/* A vote was noted. */
static void go_on(struct operations *operations, struct operation *it)
{
    if (it->state == OPERATION_ROUND)
        decide(operations, it);
    else if (it->state == OPERATION_CLOSED)
        end_if_complete(operations, it);
}

static void take_reply(struct operations *operations, struct operation *it,
                       int node, const struct call_reply *reply)
{
    round_note_reply(&it->round, node, reply);
    go_on(operations, it);
}

void operation_on_reply(struct operations *operations, int node, uint64_t tag,
                        const struct call_reply *reply)
{
    struct operation *it = operation_find(operations, tag);
    if (it == NULL ||
        tag_bits(TAG_OPERATION, (unsigned)it->rounds) != slots_user_bits(tag))
        return; /* of a round that is over */
    take_reply(operations, it, node, reply);
}

void operation_on_release(struct operations *operations, int node,
                          uint64_t handle, const struct call_reply *reply)
{
    struct operation *it = operation_find(operations, handle);
    if (it != NULL)
        take_reply(operations, it, node, reply);
}

void operation_on_timer(struct operations *operations, uint32_t slot)
{
    struct operation *it =
        slots_at(&operations->slots, slot - FIRST_TIMER_SLOT);
    if (it == NULL)
        return;
    if (it->state == OPERATION_PAUSE) {
        (void)start_round(operations, it); /* it is an acquire */
        return;
    }
    if (environment_now(operations->env) < it->round.deadline_us) {
        set_timer(operations, it, it->round.deadline_us);
        return;
    }
    round_note_deadline(&it->round);
    go_on(operations, it);
}

/* ---- begin -------------------------------------------------------------- */

/*
 * Extending past max_hold_ms is refused; but only who presents the token that
 * the nodes have may learn that, so the round then asks without lengthening.
 */
static bool is_held_too_long(const struct operations *operations,
                             const struct operation_order *order)
{
    const struct nodes *nodes = operations->nodes;
    struct token_parts parts;
    if (!token_parse(order->token, &parts))
        return false;
    int64_t median_us = nodes_median_us(nodes, environment_now(nodes->env));
    int64_t end_us = median_us + order->ttl_ms * 1000;
    return median_us != 0 &&
           end_us - parts.number > nodes->env->settings.max_hold_ms * 1000;
}

static struct operation *operation_new(struct operations *operations,
                                       const struct operation_order *order)
{
    struct engine_port *port = &operations->env->port;
    struct operation *it = slots_take(&operations->slots);
    if (it == NULL)
        return NULL;
    if (!port->timer(port->ctx, it->head.index + FIRST_TIMER_SLOT, TIMER_OFF)) {
        slots_give(&operations->slots, it);
        return NULL;
    }
    assert(order->resource.len <= RESOURCE_MAX);
    assert(order->token.len <= TOKEN_MAX && order->owner.len <= OWNER_MAX);
    it->kind = order->kind;
    it->is_probe =
        order->kind == LOCK_EXTEND && is_held_too_long(operations, order);
    it->was_held = false;
    it->rounds = 0;
    it->ttl_ms = order->ttl_ms;
    it->seen_number = 0;
    it->client = order->client;
    it->resource_len = span_copy(it->resource, order->resource);
    it->token_len = span_copy(it->token, order->token);
    it->owner_len = span_copy(it->owner, order->owner);
    it->result = (struct engine_result){
        .resource = resource_of(it),
        .ttl_ms = order->ttl_ms,
        .remaining_ms = -1,
        .held_ms = -1,
    };
    return it;
}

uint64_t operation_start(struct operations *operations,
                         const struct operation_order *order)
{
    struct operation *it = operation_new(operations, order);
    if (it == NULL)
        return 0;
    operations->in_flight++;
    uint64_t handle = slots_handle(it, 0);
    if (start_round(operations, it))
        return handle;
    end(operations, it);
    return 0;
}

int64_t operation_validity_ms(struct operations *operations,
                              struct operation *it, int64_t now_us)
{
    enum outcome outcome = it->result.outcome;
    if (outcome != OUTCOME_GRANTED && outcome != OUTCOME_EXTENDED)
        return 0;
    int64_t left_ms = validity_ms(operations, it, now_us);
    if (left_ms > 0)
        return left_ms;
    if (outcome == OUTCOME_GRANTED)
        undo(operations, it);
    it->result.outcome = OUTCOME_VALIDITY_EXHAUSTED;
    it->result.token = (struct span){0};
    return 0;
}
