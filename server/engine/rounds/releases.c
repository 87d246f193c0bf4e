#include "releases.h"

#include <assert.h>

#include "../port/port.h"
#include "../port/token.h"

enum { RELEASES_MAX = 60000 }; /* at once, apart from debts */

void releases_init(struct releases *releases, struct nodes *nodes)
{
    releases->env = nodes->env;
    releases->nodes = nodes;
    slots_init(&releases->slots, sizeof(struct release), RELEASES_MAX);
    TAILQ_INIT(&releases->list);
    debts_init(&releases->debts, nodes);
}

/* Called after each change of their number. */
static void show_pending(const struct releases *releases)
{
    releases->env->metrics->releases_pending =
        releases->slots.used + releases->debts.items;
}

static void releases_forget(struct releases *releases, struct release *it)
{
    TAILQ_REMOVE(&releases->list, it, link);
    texts_drop(&it->texts);
    slots_give(&releases->slots, it);
}

void releases_fini(struct releases *releases)
{
    while (!TAILQ_EMPTY(&releases->list))
        releases_forget(releases, TAILQ_FIRST(&releases->list));
    slots_fini(&releases->slots);
    debts_fini(&releases->debts);
}

/* ---- begin -------------------------------------------------------------- */

/* Copies the texts. NULL: no memory, or RELEASES_MAX is reached. */
static struct release *releases_remember(struct releases *releases,
                                         struct span resource,
                                         struct span token)
{
    assert(resource.len <= NAMES_LEN_MAX && token.len <= TOKEN_MAX);
    struct release *it = slots_take(&releases->slots);
    if (it == NULL)
        return NULL;
    *it = (struct release){.head = it->head};
    if (!texts_keep(&it->texts, resource, token)) {
        slots_give(&releases->slots, it);
        return NULL;
    }
    TAILQ_INSERT_TAIL(&releases->list, it, link);
    return it;
}

/* it NULL: the answer is ignored. */
static struct ballot releases_send_to(struct releases *releases, int node,
                                      struct call *call, struct release *it)
{
    uint64_t tag = it != NULL ? slots_handle(it, tag_bits(TAG_RELEASE, 0))
                              : tag_forgotten();
    struct ballot ballot = nodes_send(releases->nodes, node, call, 0, tag);
    if (it != NULL && ballot.vote == VOTE_PENDING)
        it->in_flight |= nodeset_of(node);
    return ballot;
}

void releases_undo(struct releases *releases, const struct round *round,
                   struct span resource, struct span token, int64_t ttl_ms,
                   int64_t uncertainty_us)
{
    assert(ttl_ms > 0 && uncertainty_us >= 0);
    struct call call = fence_call(CALL_RELEASE, resource, token);
    struct release *it = NULL;
    for (int i = 0; i < round->total; i++) {
        const struct round_vote *vote = &round->votes[i];
        bool is_sent = false;
        if (vote->is_kept || !vote->is_sent ||
            ballot_is_harmless(round_ballot(vote)))
            continue;
        if (it == NULL)
            it = releases_remember(releases, resource, token);
        if (!vote->is_broken)
            is_sent =
                releases_send_to(releases, i, &call, it).vote == VOTE_PENDING;
        if (it != NULL)
            it->owed |= nodeset_of(i);
        else if (!is_sent)
            releases->env->metrics->releases_dropped++;
    }
    if (it == NULL)
        return;
    it->set_ends_us = round->deadline_us + uncertainty_us;
    it->until_us = environment_now(releases->env) + ttl_ms * 1000;
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
    if (it == NULL)
        return false;
    for (int i = 0; i < round->total; i++) {
        struct ballot ballot = {.vote = VOTE_UNASKED};
        if (ask->scope.nodes & nodeset_of(i))
            ballot = releases_send_to(releases, i, &call, it);
        int64_t uncertainty_us =
            clocks_uncertainty_us(&nodes->clocks, i, round->start_us);
        if (ballot.vote == VOTE_PENDING && uncertainty_us > widest_us)
            widest_us = uncertainty_us;
        ask->ballots[i] = ballot;
    }
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

/* A majority has deleted the key in time: no repair sets it there again. */
static bool is_closed(const struct releases *releases, const struct release *it)
{
    return releases_is_majority(releases, it->deleted & it->in_time);
}

/*
 * A node without the key may still get it from another server's acquire, or
 * from a repair; and then others, as an extend finds it there. A node that has
 * the key when asked again got it that way.
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

static void ask_again(struct releases *releases, struct release *it,
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
    bool may_be_set_again = it->again != 0 || !it->is_again; /* by a repair */
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
            ask_again(releases, it, due);
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
    struct release *it = slots_find(&releases->slots, tag);
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
