/* SPDX-License-Identifier: MIT */
#include "releases.h"

#include <assert.h>
#include <stdlib.h>

#include "../../base/log.h"
#include "../port/port.h"
#include "../port/token.h"

enum {
    RELEASES_MAX = 60000, /* at once, apart from debts */
    STORE_BYTES = 256 * 1024 * 1024,
    PAUSE_US = 500000,
    MARGIN_US = 1000000, /* the moment of a disconnect is not known better */
    REPORT_US = 10000000,
};

/* In a list of its queue. Resource and token follow. */
struct debt {
    TAILQ_ENTRY(debt) link;
    int64_t until_us;
    uint32_t number; /* while it is sent */
    uint16_t resource_len;
    uint8_t token_len;
    char text[];
};

static_assert(TOKEN_MAX <= UINT8_MAX && NAMES_LEN_MAX <= UINT16_MAX, "");

/* ---- what nodes owe ------------------------------------------------------ */

static void debt_queue_init(struct debt_queue *queue)
{
    TAILQ_INIT(&queue->due);
    TAILQ_INIT(&queue->sent);
}

void debts_init(struct debts *debts, struct nodes *nodes)
{
    memset(debts, 0, sizeof *debts);
    debts->env = nodes->env;
    debts->nodes = nodes;
    debts->limit = STORE_BYTES;
    for (int i = 0; i < NODES_MAX; i++) {
        for (int kind = 0; kind < DEBT_KINDS; kind++)
            debt_queue_init(&debts->queue[i][kind]);
        /* others may have granted until now */
        debts->seen_us[i] = environment_now(nodes->env);
    }
}

/* What it costs, with the allocator's own bytes. */
static size_t debt_size(size_t resource_len, size_t token_len)
{
    return sizeof(struct debt) + resource_len + token_len + 2 * sizeof(size_t);
}

static void debt_end(struct debts *debts, struct debt *it)
{
    debts->items--;
    debts->bytes -= debt_size(it->resource_len, it->token_len);
    free(it);
}

/* Takes the first that is due. */
static struct debt *take_due(struct debt_queue *queue)
{
    struct debt *it = TAILQ_FIRST(&queue->due);
    TAILQ_REMOVE(&queue->due, it, link);
    assert(it != TAILQ_FIRST(&queue->due)); /* analysers do not see it */
    return it;
}

/* Drops the first of those that are due if their time has passed. */
static void debts_expire(struct debts *debts, struct debt_queue *queue,
                         int64_t now_us)
{
    const struct debt *it;
    while ((it = TAILQ_FIRST(&queue->due)) != NULL && now_us >= it->until_us)
        debt_end(debts, take_due(queue));
}

/* Those that no answer ended are next again. */
static void debts_take_back(struct debt_queue *queue)
{
    struct debt *it;
    while ((it = TAILQ_LAST(&queue->sent, debt_list)) != NULL) {
        TAILQ_REMOVE(&queue->sent, it, link);
        TAILQ_INSERT_HEAD(&queue->due, it, link);
    }
}

void debts_fini(struct debts *debts)
{
    for (int i = 0; i < NODES_MAX; i++)
        for (int kind = 0; kind < DEBT_KINDS; kind++) {
            debts_take_back(&debts->queue[i][kind]);
            debts_expire(debts, &debts->queue[i][kind], INT64_MAX);
        }
}

/* A token's number is the median of the clocks at the time of its acquire. */
static enum debt_kind debts_kind_of(const struct debts *debts, int node,
                                    struct span token, int64_t now_us)
{
    const struct nodes *nodes = debts->nodes;
    struct token_parts parts;
    int64_t median_us = clocks_median_at(&nodes->clocks, now_us);
    if (nodes_refusal(nodes, node, CALL_RELEASE) == STATE_NONE ||
        median_us == 0 || !token_parse(token, &parts))
        return DEBT_SURE;
    int64_t unreachable_us = now_us - debts->seen_us[node] - MARGIN_US;
    return parts.number <= median_us - unreachable_us ? DEBT_SURE
                                                      : DEBT_UNLIKELY;
}

static void note_dropped(struct debts *debts, enum debt_kind kind)
{
    struct metrics *metrics = debts->env->metrics;
    if (kind == DEBT_SURE)
        metrics->releases_dropped++;
    else
        metrics->releases_forgone++;
}

void debts_add(struct debts *debts, int node, struct span resource,
               struct span token, int64_t until_us)
{
    int64_t now_us = environment_now(debts->env);
    assert(resource.len <= NAMES_LEN_MAX && token.len <= TOKEN_MAX);
    if (now_us >= until_us)
        return;
    enum debt_kind kind = debts_kind_of(debts, node, token, now_us);
    size_t size = debt_size(resource.len, token.len);
    size_t limit = kind == DEBT_SURE ? debts->limit : debts->limit / 2;
    struct debt *it = debts->bytes + size <= limit ? malloc(size) : NULL;
    if (it == NULL) {
        note_dropped(debts, kind);
        return;
    }
    debts->bytes += size;
    debts->items++;
    it->until_us = until_us;
    it->resource_len = (uint16_t)resource.len;
    it->token_len = (uint8_t)token.len;
    (void)span_copy(it->text + span_copy(it->text, resource), token);
    TAILQ_INSERT_TAIL(&debts->queue[node][kind].due, it, link);
}

/* False: nothing more can be sent now. */
static bool send_next(struct debts *debts, int node, enum debt_kind kind,
                      int64_t now_us)
{
    struct debt_queue *queue = &debts->queue[node][kind];
    debts_expire(debts, queue, now_us);
    struct debt *it = TAILQ_FIRST(&queue->due);
    if (it == NULL || queue->in_flight >= DEBTS_WINDOW)
        return false;
    struct call call =
        fence_call(CALL_RELEASE, (struct span){it->text, it->resource_len},
                   (struct span){it->text + it->resource_len, it->token_len});
    if (nodes_send(debts->nodes, node, &call, 0,
                   tag_debt((unsigned)kind, queue->number))
            .vote != VOTE_PENDING)
        return false;
    it = take_due(queue);
    it->number = queue->number++;
    TAILQ_INSERT_TAIL(&queue->sent, it, link);
    queue->in_flight++;
    return true;
}

static void send_all(struct debts *debts, int node, int64_t now_us)
{
    if (nodes_refusal(debts->nodes, node, CALL_RELEASE) != STATE_NONE ||
        now_us < debts->paused_us[node])
        return;
    for (int kind = 0; kind < DEBT_KINDS; kind++)
        while (send_next(debts, node, (enum debt_kind)kind, now_us))
            continue;
}

void debts_on_reply(struct debts *debts, int node, uint64_t tag, enum vote vote,
                    int64_t now_us)
{
    struct debt_queue *queue = &debts->queue[node][tag_debt_kind_of(tag)];
    struct debt *it = TAILQ_FIRST(&queue->sent); /* mostly the first */
    while (it != NULL && it->number != tag_debt_number_of(tag))
        it = TAILQ_NEXT(it, link);
    assert(it != NULL); /* a link answers each call once */
    queue->in_flight--;
    if (vote != VOTE_DISCONNECTED) /* else all under way are lost */
        TAILQ_REMOVE(&queue->sent, it, link);
    if (vote_ends_release(vote)) {
        debt_end(debts, it);
    } else if (vote != VOTE_DISCONNECTED) {
        debts->paused_us[node] = now_us + PAUSE_US;
        TAILQ_INSERT_TAIL(&queue->due, it, link);
    }
    if (queue->in_flight == 0)
        debts_take_back(queue);
    send_all(debts, node, now_us);
}

void debts_on_up(struct debts *debts, int node, int64_t now_us)
{
    debts->paused_us[node] = 0;
    send_all(debts, node, now_us);
}

void debts_tick(struct debts *debts, int64_t now_us)
{
    for (int i = 0; i < debts->env->settings.nodes; i++) {
        if (nodes_refusal(debts->nodes, i, CALL_RELEASE) == STATE_NONE)
            debts->seen_us[i] = now_us;
        for (int kind = 0; kind < DEBT_KINDS; kind++)
            debts_expire(debts, &debts->queue[i][kind], now_us);
        send_all(debts, i, now_us);
    }
    uint64_t dropped = debts->env->metrics->releases_dropped;
    if (dropped == debts->reported || now_us < debts->reported_us + REPORT_US)
        return;
    log_write(
        LOG_WARN, "releases_dropped",
        (struct log_field[]){
            LOG_N("count", (int64_t)(dropped - debts->reported)),
            LOG_S("detail",
                  "too many releases wait for unreachable nodes, so these were "
                  "dropped: their keys stay until they expire"),
            LOG_END});
    debts->reported = dropped;
    debts->reported_us = now_us;
}

/* ---- releases ----------------------------------------------------------- */

void releases_init(struct releases *releases, struct nodes *nodes)
{
    releases->env = nodes->env;
    releases->nodes = nodes;
    entries_init(&releases->entries, sizeof(struct release), RELEASES_MAX);
    TAILQ_INIT(&releases->list);
    debts_init(&releases->debts, nodes);
}

/* Called after each change of their number. */
static void show_pending(const struct releases *releases)
{
    releases->env->metrics->releases_pending =
        releases->entries.used + releases->debts.items;
}

static void releases_forget(struct releases *releases, struct release *it)
{
    TAILQ_REMOVE(&releases->list, it, link);
    texts_drop(&it->texts);
    entries_give(&releases->entries, it);
}

void releases_fini(struct releases *releases)
{
    while (!TAILQ_EMPTY(&releases->list))
        releases_forget(releases, TAILQ_FIRST(&releases->list));
    entries_fini(&releases->entries);
    debts_fini(&releases->debts);
}

/* ---- begin -------------------------------------------------------------- */

/* Copies the texts. NULL: no memory, or RELEASES_MAX is reached. */
static struct release *releases_remember(struct releases *releases,
                                         struct span resource,
                                         struct span token)
{
    assert(resource.len <= NAMES_LEN_MAX && token.len <= TOKEN_MAX);
    struct release *it = entries_take(&releases->entries);
    if (it == NULL)
        return NULL;
    *it = (struct release){.head = it->head};
    if (!texts_keep(&it->texts, resource, token)) {
        entries_give(&releases->entries, it);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&releases->list, it, link);
    return it;
}

/* it NULL: the answer is ignored. */
static struct ballot releases_send_to(struct releases *releases, int node,
                                      struct call *call, struct release *it)
{
    uint64_t tag = it != NULL ? entries_handle(it, tag_bits(TAG_RELEASE, 0))
                              : tag_plain(TAG_RELEASE);
    struct ballot ballot = nodes_send(releases->nodes, node, call, 0, tag);
    if (it != NULL && ballot.vote == VOTE_PENDING)
        it->in_flight |= nodeset_of(node);
    return ballot;
}

void releases_undo(struct releases *releases, const struct round *round,
                   uint16_t nodes, const struct round_lock *lock)
{
    if (nodes == 0)
        return;
    struct call call = fence_call(CALL_RELEASE, lock->resource, lock->token);
    struct release *it =
        releases_remember(releases, lock->resource, lock->token);
    for (int i = 0; i < round->total; i++) {
        bool is_sent =
            (nodes & ~round->broken & nodeset_of(i)) != 0 &&
            releases_send_to(releases, i, &call, it).vote == VOTE_PENDING;
        if (it == NULL && !is_sent && (nodes & nodeset_of(i)) != 0)
            releases->env->metrics->releases_dropped++;
    }
    if (it == NULL)
        return;
    it->owed = nodes;
    it->set_ends_us = round->deadline_us + lock->uncertainty_us;
    it->until_us = environment_now(releases->env) + lock->ttl_ms * 1000;
    show_pending(releases);
}

/* Another server may have sent the acquire just now. */
bool releases_ask(struct releases *releases, struct release_ask *ask)
{
    const struct nodes *nodes = releases->nodes;
    const struct round *round = ask->round;
    struct release *it = releases_remember(releases, ask->resource, ask->token);
    struct call call = fence_call(CALL_RELEASE, ask->resource, ask->token);
    int64_t widest_us = 0;
    call.tombstone_ms = ask->tombstone_ms;
    for (int i = 0; i < round->total; i++) {
        struct ballot ballot = {.vote =
                                    it != NULL ? VOTE_UNASKED : VOTE_STALLED};
        if (it != NULL && (ask->scope.nodes & nodeset_of(i)) != 0)
            ballot = releases_send_to(releases, i, &call, it);
        int64_t uncertainty_us =
            clocks_uncertainty_us(&nodes->clocks, i, round->start_us);
        if (ballot.vote == VOTE_PENDING && uncertainty_us > widest_us)
            widest_us = uncertainty_us;
        ask->ballots[i] = ballot;
    }
    if (it == NULL)
        return false;
    it->operation = ask->operation;
    it->tombstone_ms = ask->tombstone_ms;
    it->owed = it->asked = ask->scope.nodes;
    it->in_time_us = ask->scope.in_time_us;
    it->set_ends_us = round->deadline_us + widest_us;
    it->until_us = round->start_us + releases->env->settings.max_ttl_ms * 1000;
    show_pending(releases);
    return true;
}

/* ---- answers ------------------------------------------------------------ */

static bool releases_is_majority(const struct releases *releases,
                                 uint16_t nodes)
{
    return nodeset_count(nodes) >= quorum_of(releases->env->settings.nodes);
}

/* A majority has deleted the key in time: no replication sets it again. */
static bool is_closed(const struct releases *releases, const struct release *it)
{
    return releases_is_majority(releases, it->deleted & it->in_time);
}

/*
 * A node without the key may still get it from another server's acquire, or
 * from a replication; and then others, as an extend finds it there. A node that
 * has the key when asked again got it that way.
 */
static void releases_judge(const struct releases *releases, struct release *it,
                           int node, const struct call_reply *reply,
                           int64_t received_us)
{
    const struct nodes *nodes = releases->nodes;
    bool had_key = reply->vote == VOTE_DELETED;
    bool is_past =
        releases_is_majority(releases, it->asked & (uint16_t)~it->owed) &&
        nodes_is_past(nodes, node, reply->node_now_us, it->set_ends_us);
    if (received_us <= it->in_time_us ||
        nodes_is_before(nodes, node, reply->node_now_us, it->in_time_us))
        it->in_time |= nodeset_of(node);
    if (!it->is_again && had_key)
        it->deleted |= nodeset_of(node);
    if (it->is_again ? had_key : !had_key && !is_past)
        it->again |= nodeset_of(node);
    it->set_ends_us = at_least(
        it->set_ends_us, received_us + releases->env->settings.node_timeout_us);
}

/* Nodes that have not answered in time owe the release from now on. */
static void hand_over(struct releases *releases, struct release *it)
{
    uint16_t due = it->owed & (uint16_t)~it->in_flight;
    for (int i = 0; i < releases->env->settings.nodes; i++)
        if (due & nodeset_of(i))
            debts_add(&releases->debts, i, texts_first(&it->texts),
                      texts_second(&it->texts), it->until_us);
    it->owed &= (uint16_t)~due;
}

static void releases_ask_again(struct releases *releases, struct release *it,
                               uint16_t nodes)
{
    struct call call = fence_call(CALL_RELEASE, texts_first(&it->texts),
                                  texts_second(&it->texts));
    it->owed |= nodes;
    it->asked |= nodes;
    it->is_again = true;
    it->again = 0;
    for (int i = 0; i < releases->env->settings.nodes; i++)
        if (nodes & nodeset_of(i))
            (void)releases_send_to(releases, i, &call, it);
}

/* The nodes that a client's release must ask again. */
static uint16_t due_again(const struct releases *releases,
                          const struct release *it)
{
    if (is_closed(releases, it))
        return it->is_again ? 0 : it->again;
    bool may_be_set_again =
        it->again != 0 || !it->is_again; /* by a replication */
    return may_be_set_again ? nodeset_all(releases->env->settings.nodes) : 0;
}

/* The next step; ends the release if there is none. */
static void releases_go_on(struct releases *releases, struct release *it,
                           int64_t now_us)
{
    bool is_clients = it->operation != 0;
    bool is_time = now_us >= it->set_ends_us;
    if (is_clients && it->in_flight != 0)
        return;
    uint16_t due = is_clients ? due_again(releases, it) : 0;
    if (due != 0) {
        if (is_time)
            releases_ask_again(releases, it, due);
        return;
    }
    if (is_time)
        hand_over(releases, it);
    if (it->owed == 0 && it->in_flight == 0)
        releases_forget(releases, it);
}

/*
 * A node that had lost our script did nothing: the same asking is sent once
 * more. False: it was, or cannot be sent.
 */
static bool repeat(struct releases *releases, struct release *it, int node)
{
    struct call call = fence_call(CALL_RELEASE, texts_first(&it->texts),
                                  texts_second(&it->texts));
    if (it->operation == 0 || (it->repeated & nodeset_of(node)) != 0)
        return false;
    it->repeated |= nodeset_of(node);
    call.tombstone_ms = it->tombstone_ms;
    return releases_send_to(releases, node, &call, it).vote == VOTE_PENDING;
}

uint64_t releases_on_reply(struct releases *releases, int node, uint64_t tag,
                           const struct call_reply *reply, int64_t received_us)
{
    if (tag_is_debt(tag)) {
        debts_on_reply(&releases->debts, node, tag, reply->vote, received_us);
        show_pending(releases);
        return 0;
    }
    struct release *it = entries_find(&releases->entries, tag);
    if (it == NULL)
        return 0;
    /* a link answers each call once, and go_on sends no second one before */
    assert(it->in_flight & nodeset_of(node));
    uint64_t operation = it->is_again ? 0 : it->operation;
    it->in_flight &= (uint16_t)~nodeset_of(node);
    if (reply->state == STATE_NO_SCRIPT && repeat(releases, it, node))
        return 0;
    if (vote_ends_release(reply->vote)) {
        if (it->operation != 0)
            releases_judge(releases, it, node, reply, received_us);
        it->owed &= (uint16_t)~nodeset_of(node);
    }
    releases_go_on(releases, it, received_us);
    show_pending(releases);
    return operation;
}

bool releases_are_open(const struct releases *releases)
{
    const struct release *it = TAILQ_FIRST(&releases->list);
    while (it != NULL && it->operation == 0)
        it = TAILQ_NEXT(it, link);
    return it != NULL;
}

void releases_tick(struct releases *releases, int64_t now_us)
{
    struct release *next;
    for (struct release *it = TAILQ_FIRST(&releases->list); it; it = next) {
        next = TAILQ_NEXT(it, link);
        if (now_us >= it->set_ends_us)
            releases_go_on(releases, it, now_us);
    }
    debts_tick(&releases->debts, now_us);
    show_pending(releases);
}
