#include "operation.h"

#include <assert.h>

#include "fence.h"
#include "tag.h"
#include "token.h"

enum { OPERATIONS_MAX = 100000, TIMER_OFF = 0, FIRST_TIMER_SLOT = 1 };

static const enum script_kind script_of[] = {
    [ROUND_ACQUIRE] = SCRIPT_ACQUIRE,
    [ROUND_EXTEND] = SCRIPT_EXTEND,
    [ROUND_RELEASE] = SCRIPT_RELEASE,
    [ROUND_INSPECT] = SCRIPT_INSPECT,
};

static const enum metrics_call metrics_of[] = {
    [ROUND_ACQUIRE] = METRICS_ACQUIRE,
    [ROUND_EXTEND] = METRICS_EXTEND,
    [ROUND_RELEASE] = METRICS_RELEASE,
    [ROUND_INSPECT] = METRICS_INSPECT,
};

void operations_init(struct operations *operations, struct nodes *nodes,
                     struct releases *releases)
{
    *operations = (struct operations){.nodes = nodes, .releases = releases};
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
    struct engine_port *port = &operations->nodes->port;
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
    assert(it->state != OPERATION_SETTLED);
    set_timer(operations, it, TIMER_OFF);
    it->state = OPERATION_SETTLED;
    operations->in_flight--;
    it->result.outcome = outcome;
    result_tell_votes(&it->result, &it->round);
    if (outcome == OUTCOME_GRANTED || outcome == OUTCOME_EXTENDED) {
        it->result.token = token_of(it);
        result_tell_token(&it->result, token_of(it));
    }
    nodes->metrics->outcomes[metrics_of[it->kind]][outcome]++;
    nodes->port.answer(nodes->port.ctx, it->client);
}

/* ---- rounds ------------------------------------------------------------- */

static void make_token(struct operations *operations, struct operation *it,
                       int64_t number)
{
    unsigned char random[TOKEN_RANDOM_BYTES];
    struct engine_port *port = &operations->nodes->port;
    port->random(port->ctx, random, sizeof random);
    it->token_len = token_make(it->token, number, random,
                               (struct span){it->owner, it->owner_len});
}

/*
 * Releases behind a lost round: on each node that was asked and may have set
 * the key. Without memory the keys go with their TTL.
 */
static void undo(struct operations *operations, struct operation *it)
{
    struct release_order order = {
        .resource = resource_of(it),
        .token = token_of(it),
        .acquire_ends_us =
            it->round.deadline_us + nodes_doubt_us(operations->nodes),
        .until_us = nodes_now(operations->nodes) + it->ttl_ms * 1000,
    };
    for (int i = 0; i < it->round.total; i++) {
        const struct round_vote *vote = &it->round.votes[i];
        uint16_t bit = (uint16_t)(1u << i);
        if (!vote->is_sent || vote_is_harmless(vote->vote))
            continue;
        order.nodes |= bit;
        if (vote->is_broken)
            order.not_at_once |= bit;
    }
    enum vote unsent[NODES_MAX];
    if (order.nodes != 0 &&
        !releases_start(operations->releases, &order, unsent))
        operations->nodes->metrics->releases_dropped++;
}

static void decide(struct operations *operations, struct operation *it);

/* False: fewer than a majority may be asked, and cannot decide. */
static bool can_be_decided(const struct operations *operations,
                           struct operation *it)
{
    for (int i = 0; i < it->round.total; i++) {
        enum vote refusal =
            nodes_refusal(operations->nodes, i, script_of[it->kind]);
        if (refusal != VOTE_DONE)
            round_note_unsent(&it->round, i, refusal);
    }
    return it->round.pending >= it->round.quorum;
}

/* Sends the round's call to all nodes that are to be asked. */
static void send_to_all(struct operations *operations, struct operation *it)
{
    struct script_call call = {
        .kind = script_of[it->kind],
        .resource = resource_of(it),
        .ttl_ms = it->is_probe ? 0 : it->ttl_ms,
    };
    if (it->kind == ROUND_ACQUIRE) {
        call.number = nodes_next_number(operations->nodes, it->round.start_us,
                                        it->seen_number);
        call.slot = fence_slot(resource_of(it));
        make_token(operations, it, call.number);
    }
    call.token = token_of(it);
    uint64_t tag =
        slots_handle(it, tag_bits(TAG_OPERATION, (unsigned)it->rounds));
    for (int i = 0; i < it->round.total; i++) {
        if (it->round.votes[i].vote != VOTE_PENDING)
            continue;
        enum vote vote =
            nodes_send(operations->nodes, i, &call, it->round.deadline_us, tag);
        if (vote == VOTE_PENDING)
            round_note_sent(&it->round, i);
        else
            round_note_unsent(&it->round, i, vote);
    }
}

/* A client's release: sent as a release, so that it lasts beyond the round. */
static void send_release(struct operations *operations, struct operation *it)
{
    const struct engine_settings *settings = &operations->nodes->settings;
    struct release_order order = {
        .resource = resource_of(it),
        .token = token_of(it),
        .nodes = (uint16_t)((1u << it->round.total) - 1),
        .acquire_ends_us =
            it->round.deadline_us + nodes_doubt_us(operations->nodes),
        .until_us = it->round.start_us + settings->max_ttl_ms * 1000,
        .operation = slots_handle(it, 0),
    };
    enum vote unsent[NODES_MAX];
    bool is_started = releases_start(operations->releases, &order, unsent);
    for (int i = 0; i < it->round.total; i++) {
        if (!is_started)
            round_note_unsent(&it->round, i, VOTE_STALLED);
        else if (unsent[i] == VOTE_PENDING)
            round_note_sent(&it->round, i);
        else
            round_note_unsent(&it->round, i, unsent[i]);
    }
}

/* A round that is decided as it starts may start the next: retry_count deep. */
/* NOLINTBEGIN(misc-no-recursion) */

static void start_round(struct operations *operations, struct operation *it)
{
    struct nodes *nodes = operations->nodes;
    int64_t start_us = nodes_now(nodes);
    it->state = OPERATION_ROUND;
    it->rounds++;
    round_init(&it->round, it->kind, nodes->settings.nodes, start_us,
               start_us + nodes->settings.node_timeout_us);
    set_timer(operations, it, it->round.deadline_us);
    if (it->kind == ROUND_RELEASE)
        send_release(operations, it);
    else if (can_be_decided(operations, it))
        send_to_all(operations, it);
    decide(operations, it);
}

/* Another round, at once or after a random delay; none left: the outcome. */
static void retry(struct operations *operations, struct operation *it,
                  bool at_once)
{
    struct nodes *nodes = operations->nodes;
    if (it->rounds > nodes->settings.retry_count) {
        settle(operations, it, it->was_held ? OUTCOME_HELD : OUTCOME_NO_QUORUM);
        return;
    }
    if (at_once) {
        start_round(operations, it);
        return;
    }
    uint64_t random;
    nodes->port.random(nodes->port.ctx, &random, sizeof random);
    int64_t delay_us =
        (int64_t)(random % ((uint64_t)nodes->settings.retry_delay_us + 1));
    it->state = OPERATION_PAUSE;
    set_timer(operations, it, nodes_now(nodes) + delay_us);
}

/* ---- verdicts ----------------------------------------------------------- */

static int64_t validity_ms(const struct operations *operations,
                           const struct operation *it, int64_t now_us)
{
    return round_validity_ms(it->ttl_ms, now_us - it->round.start_us,
                             operations->nodes->settings.drift_factor);
}

static void on_acquire_verdict(struct operations *operations,
                               struct operation *it, enum verdict verdict)
{
    bool is_valid =
        validity_ms(operations, it, nodes_now(operations->nodes)) > 0;
    if (verdict == VERDICT_WON && is_valid) {
        settle(operations, it, OUTCOME_GRANTED);
        return;
    }
    undo(operations, it);
    it->was_held |= round_count(&it->round, VOTE_HELD) > 0;
    if (it->round.highest > it->seen_number)
        it->seen_number = it->round.highest;
    switch (verdict) {
    case VERDICT_WON:
        settle(operations, it, OUTCOME_VALIDITY_EXHAUSTED);
        break;
    case VERDICT_HELD:
        result_tell_holder(&it->result, &it->round);
        settle(operations, it, OUTCOME_HELD);
        break;
    case VERDICT_STALE:
        retry(operations, it, true);
        break;
    case VERDICT_SPLIT:
        retry(operations, it, false);
        break;
    default:
        assert(verdict == VERDICT_NO_QUORUM);
        settle(operations, it, OUTCOME_NO_QUORUM);
    }
}

static enum outcome outcome_of_won(const struct operation *it)
{
    if (it->kind == ROUND_RELEASE)
        return OUTCOME_RELEASED;
    return it->is_probe ? OUTCOME_MAX_HOLD : OUTCOME_EXTENDED;
}

/* Extend, release and inspect have one round: the verdict is the outcome. */
static void on_verdict(struct operations *operations, struct operation *it,
                       enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_WON:
        settle(operations, it, outcome_of_won(it));
        break;
    case VERDICT_FOUND:
        result_tell_holder(&it->result, &it->round);
        settle(operations, it, OUTCOME_FOUND);
        break;
    case VERDICT_BUSY:
        settle(operations, it, OUTCOME_FOUND);
        break;
    case VERDICT_NOT_OWNER:
        settle(operations, it, OUTCOME_NOT_OWNER);
        break;
    case VERDICT_NOT_FOUND:
        settle(operations, it, OUTCOME_NOT_FOUND);
        break;
    default:
        assert(verdict == VERDICT_NO_QUORUM);
        settle(operations, it, OUTCOME_NO_QUORUM);
    }
}

static void decide(struct operations *operations, struct operation *it)
{
    enum verdict verdict = round_verdict(&it->round);
    if (verdict == VERDICT_OPEN)
        return;
    struct nodes *nodes = operations->nodes;
    metrics_observe(&nodes->metrics->round_duration[metrics_of[it->kind]],
                    nodes_now(nodes) - it->round.start_us);
    if (it->kind == ROUND_ACQUIRE)
        on_acquire_verdict(operations, it, verdict);
    else
        on_verdict(operations, it, verdict);
}

/* NOLINTEND(misc-no-recursion) */

/* ---- what comes in ------------------------------------------------------ */

static void take_reply(struct operations *operations, struct operation *it,
                       int node, const struct script_reply *reply,
                       int64_t received_us)
{
    round_note_reply(&it->round, node, reply, received_us);
    if (it->state == OPERATION_ROUND)
        decide(operations, it);
}

void operation_on_reply(struct operations *operations, int node, uint64_t tag,
                        const struct script_reply *reply, int64_t received_us)
{
    struct operation *it = operation_find(operations, tag);
    if (it == NULL ||
        tag_bits(TAG_OPERATION, (unsigned)it->rounds) != slots_user_bits(tag))
        return; /* of a round that is over */
    take_reply(operations, it, node, reply, received_us);
}

void operation_on_release(struct operations *operations, int node,
                          uint64_t handle, const struct script_reply *reply,
                          int64_t received_us)
{
    struct operation *it = operation_find(operations, handle);
    if (it != NULL)
        take_reply(operations, it, node, reply, received_us);
}

void operation_on_timer(struct operations *operations, uint32_t slot)
{
    struct operation *it =
        slots_at(&operations->slots, slot - FIRST_TIMER_SLOT);
    if (it == NULL || it->state == OPERATION_SETTLED)
        return;
    if (it->state == OPERATION_PAUSE) {
        start_round(operations, it);
        return;
    }
    if (nodes_now(operations->nodes) < it->round.deadline_us) {
        set_timer(operations, it, it->round.deadline_us);
        return;
    }
    round_note_deadline(&it->round);
    decide(operations, it);
}

/* ---- begin and end ------------------------------------------------------ */

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
    int64_t median_us = nodes_median_us(nodes, nodes_now(nodes));
    int64_t end_us = median_us + order->ttl_ms * 1000;
    return median_us != 0 &&
           end_us - parts.number > nodes->settings.max_hold_ms * 1000;
}

static struct operation *operation_new(struct operations *operations,
                                       const struct operation_order *order)
{
    struct engine_port *port = &operations->nodes->port;
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
        order->kind == ROUND_EXTEND && is_held_too_long(operations, order);
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
    start_round(operations, it);
    return handle;
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

void operation_close(struct operations *operations, struct operation *it)
{
    if (it->state != OPERATION_SETTLED) {
        set_timer(operations, it, TIMER_OFF);
        operations->in_flight--;
    }
    slots_give(&operations->slots, it);
}

void operation_abandon(struct operations *operations, struct operation *it)
{
    bool may_hold = it->state == OPERATION_SETTLED
                        ? it->result.outcome == OUTCOME_GRANTED
                        : it->state == OPERATION_ROUND;
    if (it->kind == ROUND_ACQUIRE && may_hold)
        undo(operations, it);
    operation_close(operations, it);
}
