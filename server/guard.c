#include "guard.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fence.h"

enum {
    HEARTBEAT_US = 1000000,
    HOLD_TIMEOUTS = 4, /* a first start's hold, in node timeouts */
    SLACK_US = 1000000,
    MAX_TTL_MOST_MS = 86400000, /* what some hand wrote must not overflow */
};

void guard_init(struct guard *guard, const struct guard_settings *settings)
{
    assert(settings->nodes >= 1 && settings->nodes <= NODES_MAX &&
           settings->lead < settings->nodes && settings->epoch >= 1);
    *guard = (struct guard){
        .settings = *settings,
        .max_ttl_ms = settings->max_ttl_ms,
    };
    firststart_init(&guard->start, settings->nodes, settings->lead,
                    HOLD_TIMEOUTS * settings->node_timeout_us,
                    !settings->is_off &&
                        settings->first_start != FIRST_START_NO);
}

static bool is_text(const char *text, struct span span)
{
    return span.len == strlen(text) &&
           (span.len == 0 || memcmp(span.ptr, text, span.len) == 0);
}

static int count(const struct guard *guard)
{
    return guard->settings.nodes;
}

/* ---- quarantine --------------------------------------------------------- */

/*
 * What the node has forgotten must be over: its locks, with a clock that runs
 * 1% fast, and the numbers within four windows; behind that the commands of a
 * server that has not noticed yet.
 */
int64_t guard_quarantine_us(const struct guard *guard)
{
    if (guard->settings.is_off)
        return 0;
    int64_t locks_us = guard->max_ttl_ms * 1010;
    int64_t numbers_us = 4 * fence_window_us(guard->max_ttl_ms);
    return (locks_us > numbers_us ? locks_us : numbers_us) + CONFIRMED_US +
           guard->settings.node_timeout_us + SLACK_US;
}

/* This server alone answers for the change to a new configuration. */
static bool is_taking_over(const struct guard *guard)
{
    return guard->settings.epoch > 1 && !guard->is_established &&
           !guard->settings.has_take_over;
}

/*
 * Until the last node was marked, the old configuration may have had its
 * majority, and granted: that must be over too.
 */
static int64_t due_us(const struct guard *guard, const struct guard_node *node)
{
    int64_t since_us = node->marked_us;
    if (is_taking_over(guard) && guard->entered_us > since_us)
        since_us = guard->entered_us;
    return since_us + guard_quarantine_us(guard);
}

int64_t guard_remaining_us(const struct guard *guard, int node, int64_t now_us)
{
    const struct guard_node *it = &guard->node[node];
    int64_t patience_us = firststart_patience_us(&guard->start, now_us);
    if (it->phase == GUARD_EMPTY && patience_us > 0)
        return patience_us + guard_quarantine_us(guard);
    if (it->mark[0] == '\0' || guard->start.is_marked[node])
        return 0;
    int64_t left_us = due_us(guard, it) - now_us;
    return left_us > 0 ? left_us : 0;
}

bool guard_has_foreign(const struct guard *guard)
{
    for (int i = 0; i < count(guard); i++)
        if (guard->node[i].is_foreign)
            return true;
    return false;
}

/*
 * A new configuration begins with all nodes marked: a majority of the old one
 * may lie in those that are not.
 */
bool guard_has_taken_over(const struct guard *guard)
{
    if (!is_taking_over(guard))
        return true;
    for (int i = 0; i < count(guard); i++)
        if (!guard->node[i].is_of_epoch)
            return false;
    return true;
}

static bool may_admit_any(const struct guard *guard)
{
    return guard->superseded_by == 0 && !guard_has_foreign(guard) &&
           guard_has_taken_over(guard);
}

/*
 * Since when each node that is there was looked at; INT64_MAX: none is. One
 * that answers errors is as if it were not there.
 */
static int64_t looked_us(const struct guard *guard)
{
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < count(guard); i++)
        if (guard->node[i].phase != GUARD_DOWN && !guard->node[i].is_mute &&
            guard->node[i].looked_us < least_us)
            least_us = guard->node[i].looked_us;
    return least_us;
}

/* The time is up, and the last look at all nodes still lies behind it. */
static bool is_due(const struct guard *guard, const struct guard_node *node,
                   int64_t now_us)
{
    return node->phase == GUARD_MARKED && now_us >= due_us(guard, node);
}

void guard_want_look(struct guard *guard, int node, int64_t now_us)
{
    struct guard_node *it = &guard->node[node];
    if (it->look_due_us > now_us)
        it->look_due_us = now_us;
}

static void want_looks(struct guard *guard, int64_t since_us, int64_t now_us)
{
    for (int i = 0; i < count(guard); i++)
        if (!guard->node[i].is_busy && guard->node[i].looked_us < since_us)
            guard_want_look(guard, i, now_us);
}

/* ---- what to do --------------------------------------------------------- */

static bool should_admit(const struct guard *guard,
                         const struct guard_node *node, int64_t now_us)
{
    if (node->phase != GUARD_MARKED || !may_admit_any(guard))
        return false;
    if (firststart_may_admit(&guard->start, (int)(node - guard->node)))
        return true;
    return is_due(guard, node, now_us) && !node->is_mute &&
           looked_us(guard) >= due_us(guard, node);
}

static bool should_readmit(const struct guard *guard,
                           const struct guard_node *node)
{
    return node->phase == GUARD_MARKED && node->may_readmit &&
           node->is_clock_good && may_admit_any(guard);
}

/* False: nothing to do on this node. */
static bool choose(const struct guard *guard, int node, int64_t now_us,
                   enum guard_action_kind *kind)
{
    const struct guard_node *it = &guard->node[node];
    if (it->phase == GUARD_DOWN || it->is_busy || now_us < it->not_before_us)
        return false;
    if (it->must_revoke &&
        (it->phase == GUARD_ADMITTED || it->phase == GUARD_MARKED))
        *kind = GUARD_REVOKE;
    else if (should_readmit(guard, it))
        *kind = GUARD_READMIT;
    else if (should_admit(guard, it, now_us))
        *kind = GUARD_ADMIT;
    else if (now_us >= it->look_due_us)
        *kind = firststart_may_mark(&guard->start, node, now_us) ? GUARD_LOOK
                                                                 : GUARD_PEEK;
    else
        return false;
    return true;
}

static void advance_start(struct guard *guard, int64_t now_us)
{
    struct firststart_view view = {
        .is_possible = true,
        .are_all_empty = true,
        .looked_us = looked_us(guard),
        .now_us = now_us,
    };
    for (int i = 0; i < count(guard); i++) {
        const struct guard_node *it = &guard->node[i];
        if (it->phase != GUARD_EMPTY)
            view.are_all_empty = false;
        if (it->phase != GUARD_DOWN && !it->is_durable &&
            guard->settings.first_start == FIRST_START_AUTO)
            view.is_possible = false;
    }
    uint16_t wanted = firststart_advance(&guard->start, &view);
    for (int i = 0; i < count(guard); i++)
        if (wanted & 1u << i)
            guard_want_look(guard, i, now_us);
}

bool guard_next(struct guard *guard, int64_t now_us,
                struct guard_action *action)
{
    if (guard->superseded_by != 0)
        return false;
    advance_start(guard, now_us);
    for (int i = 0; i < count(guard); i++)
        if (is_due(guard, &guard->node[i], now_us))
            want_looks(guard, due_us(guard, &guard->node[i]), now_us);
    for (int i = 0; i < count(guard); i++) {
        if (!choose(guard, i, now_us, &action->kind))
            continue;
        action->node = i;
        guard->node[i].is_busy = true;
        if (action->kind == GUARD_PEEK || action->kind == GUARD_LOOK)
            guard->node[i].look_due_us = now_us + HEARTBEAT_US;
        return true;
    }
    return false;
}

/* ---- events ------------------------------------------------------------- */

static void look_soon(struct guard_node *node, int64_t now_us)
{
    node->phase = GUARD_UNSEEN;
    node->look_due_us = now_us;
}

void guard_on_up(struct guard *guard, int node, const char *run_id,
                 bool is_durable, int64_t now_us)
{
    struct guard_node *it = &guard->node[node];
    char admit[sizeof it->admit];
    int len = snprintf(admit, sizeof admit, "%d:%s:%s", guard->settings.epoch,
                       guard->settings.fingerprint, run_id);
    assert(len > 0 && len < (int)sizeof admit);
    if (strcmp(admit, it->admit) != 0)
        it->is_beat_of_life = false;
    memcpy(it->admit, admit, sizeof admit);
    it->is_durable = is_durable;
    it->is_busy = it->is_mute = false;
    it->looked_us = 0;
    it->not_before_us = 0;
    look_soon(it, now_us);
    firststart_on_up(&guard->start, now_us);
}

void guard_on_down(struct guard *guard, int node)
{
    struct guard_node *it = &guard->node[node];
    it->phase = GUARD_DOWN;
    it->is_busy = false;
    firststart_on_trouble(&guard->start, node);
}

static void copy_state(char to[GUARD_STATE_MAX + 1], struct span from)
{
    assert(from.len <= GUARD_STATE_MAX);
    to[span_copy(to, from)] = '\0';
}

/* The admission is there: whatever mark led to it must never do so again. */
static void become_admitted(struct guard *guard, struct guard_node *node,
                            int64_t beat_us)
{
    node->phase = GUARD_ADMITTED;
    firststart_forget(&guard->start, (int)(node - guard->node));
    node->is_beat_of_life = true;
    node->beat_us = beat_us;
    if (node->mark[0] != '\0')
        memcpy(node->spent, node->mark, sizeof node->spent);
    node->mark[0] = '\0';
    guard->is_established = true;
    node->is_of_epoch = true;
}

static void on_admitted(struct guard *guard, struct guard_node *node,
                        const struct script_look *look, int64_t node_now_us)
{
    if (node->is_beat_of_life && look->beat_us < node->beat_us)
        node->must_revoke = true; /* an older memory was put back */
    become_admitted(guard, node,
                    look->beat_us > node_now_us ? look->beat_us : node_now_us);
}

/* Whether an admission differs from ours in the run_id alone. */
static bool is_of_configuration(const struct guard_node *node,
                                struct span admit)
{
    size_t len = (size_t)(strrchr(node->admit, ':') - node->admit) + 1;
    return admit.len > len && memcmp(admit.ptr, node->admit, len) == 0;
}

static void on_marked(struct guard *guard, struct guard_node *node,
                      const struct script_look *look, int64_t now_us)
{
    bool has_stepped = node->must_revoke;
    node->phase = GUARD_MARKED;
    if (!node->is_of_epoch)
        guard->entered_us = now_us;
    node->is_of_epoch = true;
    node->must_revoke = is_text(node->spent, look->mark);
    if (!is_text(node->mark, look->mark)) {
        copy_state(node->mark, look->mark);
        node->marked_us = now_us;
        node->may_readmit = node->is_durable && look->is_durable;
    }
    copy_state(node->found, look->admit);
    if (is_of_configuration(node, look->admit))
        guard->is_established = true; /* in an older life of the node */
    else
        node->may_readmit = false;
    if (has_stepped) /* what it has kept it held too short */
        node->may_readmit = false;
}

static void learn_max_ttl(struct guard *guard, int64_t max_ttl_ms)
{
    if (max_ttl_ms > MAX_TTL_MOST_MS)
        max_ttl_ms = MAX_TTL_MOST_MS;
    if (max_ttl_ms > guard->max_ttl_ms)
        guard->max_ttl_ms = max_ttl_ms;
}

/* The number in front of an admission or a mark. */
static int epoch_of(struct span state)
{
    int epoch = 0;
    for (size_t i = 0; i < state.len && epoch < INT_MAX / 10 - 1; i++) {
        if (state.ptr[i] < '0' || state.ptr[i] > '9')
            break;
        epoch = epoch * 10 + (state.ptr[i] - '0');
    }
    return epoch;
}

static void stand_down(struct guard *guard, const struct script_look *look)
{
    int admit_epoch = epoch_of(look->admit);
    int mark_epoch = epoch_of(look->mark);
    guard->superseded_by = admit_epoch > mark_epoch ? admit_epoch : mark_epoch;
}

void guard_on_look(struct guard *guard, int node,
                   const struct script_look *look, int64_t node_now_us,
                   int64_t sent_us, int64_t now_us)
{
    struct guard_node *it = &guard->node[node];
    if (it->phase == GUARD_DOWN)
        return;
    it->is_busy = it->is_mute = false;
    it->looked_us = sent_us;
    it->is_foreign = look->word == LOOK_FOREIGN;
    learn_max_ttl(guard, look->max_ttl_ms);
    firststart_on_look(&guard->start, node, look->word,
                       is_text(it->mark, look->mark), now_us);
    switch (look->word) {
    case LOOK_ADMITTED:
        on_admitted(guard, it, look, node_now_us);
        return;
    case LOOK_MARKED:
    case LOOK_CREATED:
    case LOOK_FRESH:
        on_marked(guard, it, look, now_us);
        return;
    case LOOK_EMPTY:
    case LOOK_BARE: /* may be marked as soon as no first start is hurt by it */
        it->phase = GUARD_EMPTY;
        if (guard->start.step == FIRSTSTART_OVER)
            guard_want_look(guard, node,
                            guard->start.yield_until_us > now_us
                                ? guard->start.yield_until_us
                                : now_us);
        return;
    case LOOK_FOREIGN:
        it->phase = GUARD_FOREIGN;
        copy_state(it->found, look->admit);
        return;
    case LOOK_SUPERSEDED:
        stand_down(guard, look);
        return;
    case LOOK_WORDS:
        break;
    }
    abort();
}

void guard_on_done(struct guard *guard, const struct guard_action *action,
                   bool is_done, int64_t node_now_us, int64_t now_us)
{
    struct guard_node *it = &guard->node[action->node];
    if (it->phase == GUARD_DOWN)
        return;
    it->is_busy = false;
    it->may_readmit = false;
    if (is_done && action->kind != GUARD_REVOKE) {
        become_admitted(guard, it, node_now_us);
        return;
    }
    /* Revoked now, or by somebody else; or admitted, or lost once more. */
    if (action->kind == GUARD_REVOKE)
        it->must_revoke = false;
    firststart_forget(&guard->start, action->node);
    look_soon(it, now_us);
}

/* What became of the action is not known, but for a look that told nothing. */
void guard_on_failure(struct guard *guard, const struct guard_action *action,
                      int64_t now_us)
{
    struct guard_node *it = &guard->node[action->node];
    if (it->phase == GUARD_DOWN)
        return;
    it->is_busy = false;
    it->not_before_us = now_us + HEARTBEAT_US;
    if (action->kind == GUARD_PEEK || action->kind == GUARD_LOOK)
        it->is_mute = true;
    else
        look_soon(it, now_us);
    firststart_on_trouble(&guard->start, action->node);
}

void guard_on_quarantined(struct guard *guard, int node, int64_t now_us)
{
    struct guard_node *it = &guard->node[node];
    if (it->phase == GUARD_ADMITTED)
        look_soon(it, now_us);
}

void guard_on_step(struct guard *guard, int node)
{
    guard->node[node].must_revoke = true;
}

void guard_on_durable(struct guard *guard, int node, bool is_durable,
                      int64_t now_us)
{
    struct guard_node *it = &guard->node[node];
    if (it->is_durable && !is_durable)
        guard_want_look(guard, node, now_us); /* which writes it down */
    it->is_durable = is_durable;
}

void guard_on_clock(struct guard *guard, int node, bool is_good)
{
    guard->node[node].is_clock_good = is_good;
}

/* ---- the vote ----------------------------------------------------------- */

enum vote guard_refusal(const struct guard *guard, int node)
{
    const struct guard_node *it = &guard->node[node];
    if (guard->superseded_by != 0)
        return VOTE_SUPERSEDED;
    switch (it->phase) {
    case GUARD_DOWN:
        return VOTE_UNREACHABLE;
    case GUARD_MARKED:
        if (guard->start.is_marked[node])
            return VOTE_WAITING;
        return VOTE_QUARANTINED;
    case GUARD_UNSEEN:
        return VOTE_QUARANTINED;
    case GUARD_EMPTY:
        return VOTE_WAITING;
    case GUARD_FOREIGN:
        return VOTE_FOREIGN;
    case GUARD_ADMITTED:
        return it->must_revoke ? VOTE_STEPPED : VOTE_DONE;
    }
    abort();
}
