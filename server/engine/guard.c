#include "guard.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admission.h"

enum {
    HOLD_TIMEOUTS = 4, /* a first start's hold, in node timeouts, … */
    HOLD_US = 2 * HEARTBEAT_US, /* … and at least: so that others may object */
    MAX_TTL_MOST_MS = 86400000, /* what some hand wrote must not overflow */
};

static int64_t hold_us(const struct guard_settings *settings)
{
    int64_t timeouts_us = HOLD_TIMEOUTS * settings->node_timeout_us;
    return timeouts_us > HOLD_US ? timeouts_us : HOLD_US;
}

void guard_init(struct guard *guard, const struct guard_settings *settings)
{
    assert(settings->nodes >= 1 && settings->nodes <= NODES_MAX &&
           settings->lead < settings->nodes && settings->epoch >= 1);
    *guard = (struct guard){.settings = *settings};
    witness_init(&guard->witness, settings->names, settings->nodes,
                 settings->quorum);
    firststart_init(
        &guard->start, settings->nodes, settings->lead, hold_us(settings),
        !settings->is_off && settings->first_start != FIRST_START_NO);
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

/*
 * Who saw an admission knows that a first start is none. A heartbeat later: it
 * may be the first admission of one that is under way.
 */
bool guard_is_objecting(const struct guard *guard, int64_t now_us)
{
    return guard->established_us != 0 &&
           now_us - guard->established_us >= HEARTBEAT_US;
}

static bool may_mark(const struct guard *guard, int node, int64_t now_us)
{
    return guard_is_objecting(guard, now_us) ||
           firststart_may_mark(&guard->start, node, now_us);
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
    else if (admission_is_back(guard, node, now_us))
        *kind = GUARD_READMIT;
    else if (admission_is_due(guard, node, now_us))
        *kind = GUARD_ADMIT;
    else if (now_us >= it->look_due_us)
        *kind = may_mark(guard, node, now_us) ? GUARD_LOOK : GUARD_PEEK;
    else
        return false;
    return true;
}

static void advance_start(struct guard *guard, int64_t now_us)
{
    struct firststart_view view = {
        .is_possible = true,
        .are_all_empty = true,
        .looked_us = admission_looked_us(guard),
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
    advance_start(guard, now_us);
    for (int i = 0; i < count(guard); i++)
        want_looks(guard, admission_look_since_us(guard, i, now_us), now_us);
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
    int len = snprintf(admit, sizeof admit, "%d:%s:%s:%s",
                       guard->settings.epoch, guard->settings.fingerprint,
                       guard->witness.node[node].name, run_id);
    assert(len > 0 && len < (int)sizeof admit);
    memcpy(it->admit, admit, sizeof admit);
    it->is_durable = is_durable;
    it->is_busy = it->is_mute = false;
    it->looked_us = 0;
    it->not_before_us = 0;
    look_soon(it, now_us);
    witness_on_lost(&guard->witness, node);
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

static void establish(struct guard *guard, int64_t now_us)
{
    if (guard->established_us == 0)
        guard->established_us = now_us;
}

/* What it says of others, and of its last promise, counts. */
static void note_told(struct guard *guard, int node,
                      const struct call_look *look, int64_t sent_us)
{
    const struct witness_words words = {
        .is_admitted = guard->node[node].phase == GUARD_ADMITTED,
        .voted_us = look->voted_us,
        .text = look->witnesses,
        .sent_us = sent_us,
    };
    witness_on_told(&guard->witness, node, &words);
}

static void on_admitted(struct guard *guard, struct guard_node *node,
                        const struct call_look *look, int64_t sent_us,
                        int64_t now_us)
{
    int index = (int)(node - guard->node);
    node->phase = GUARD_ADMITTED;
    copy_state(node->found, look->admit);
    node->mark[0] = '\0';
    node->is_restarted = false;
    node->is_of_epoch = true;
    establish(guard, now_us);
    firststart_forget(&guard->start, index);
    witness_on_beat(&guard->witness, index, look->beat);
    note_told(guard, index, look, sent_us);
}

/* Whether an admission is the node's own: it differs from what it must carry
 * in run_id and replication ID alone. */
static bool is_own(const struct guard_node *node, struct span admit)
{
    size_t len = (size_t)(strrchr(node->admit, ':') - node->admit) + 1;
    return admit.len > len && memcmp(admit.ptr, node->admit, len) == 0;
}

/* When a mark was made, <epoch>:<run_id>:<replication ID>:<born>:<nonce>. */
static int64_t born_us(struct span mark)
{
    int64_t born = 0;
    int colons = 0;
    for (size_t i = 0; i < mark.len && colons < 4; i++) {
        char c = mark.ptr[i];
        if (c == ':')
            colons++;
        else if (colons == 3 && c >= '0' && c <= '9' && born < INT64_MAX / 100)
            born = born * 10 + (c - '0');
    }
    return born;
}

static void on_marked(struct guard *guard, struct guard_node *node,
                      const struct call_look *look, int64_t sent_us,
                      int64_t now_us)
{
    int index = (int)(node - guard->node);
    bool was_marked = node->phase == GUARD_MARKED;
    node->phase = GUARD_MARKED;
    if (!node->is_of_epoch)
        guard->entered_us = now_us;
    node->is_of_epoch = true;
    if (!is_text(node->mark, look->mark)) {
        copy_state(node->mark, look->mark);
        node->renewals = was_marked ? node->renewals + 1 : 0;
        node->sighted_us = now_us;
        node->born_us = born_us(look->mark);
    }
    copy_state(node->found, look->admit);
    node->is_restarted = is_own(node, look->admit);
    if (node->is_restarted)
        establish(guard, now_us);
    if (node->is_restarted && node->was_durable && node->is_durable)
        note_told(guard, index, look, sent_us);
    else
        witness_on_lost(&guard->witness, index);
}

static int64_t read_max_ttl_ms(int64_t max_ttl_ms)
{
    return max_ttl_ms < MAX_TTL_MOST_MS ? max_ttl_ms : MAX_TTL_MOST_MS;
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

static void on_superseded(struct guard_node *node, const struct call_look *look,
                          int64_t now_us)
{
    int admit_epoch = epoch_of(look->admit);
    int mark_epoch = epoch_of(look->mark);
    node->phase = GUARD_SUPERSEDED;
    node->foreign_us = now_us;
    node->epoch_above = admit_epoch > mark_epoch ? admit_epoch : mark_epoch;
}

void guard_on_look(struct guard *guard, int node, const struct call_look *look,
                   int64_t sent_us, int64_t now_us)
{
    struct guard_node *it = &guard->node[node];
    if (it->phase == GUARD_DOWN)
        return;
    it->is_busy = it->is_mute = false;
    it->looked_us = sent_us;
    it->max_ttl_ms = read_max_ttl_ms(look->max_ttl_ms);
    it->was_durable = look->is_durable;
    it->beat = look->beat;
    it->seen_us = look->seen_us;
    firststart_on_look(&guard->start, node, look->word,
                       is_text(it->mark, look->mark), now_us);
    switch (look->word) {
    case LOOK_ADMITTED:
        on_admitted(guard, it, look, sent_us, now_us);
        return;
    case LOOK_MARKED:
    case LOOK_CREATED:
    case LOOK_FRESH:
        on_marked(guard, it, look, sent_us, now_us);
        return;
    case LOOK_EMPTY:
    case LOOK_BARE: /* may be marked as soon as no first start is hurt by it */
        it->phase = GUARD_EMPTY;
        witness_on_lost(&guard->witness, node);
        if (guard->start.step == FIRSTSTART_OVER)
            guard_want_look(guard, node,
                            guard->start.yield_until_us > now_us
                                ? guard->start.yield_until_us
                                : now_us);
        return;
    case LOOK_FOREIGN:
        it->phase = GUARD_FOREIGN;
        it->foreign_us = now_us;
        it->epoch_above = 0;
        copy_state(it->found, look->admit);
        witness_on_lost(&guard->witness, node);
        return;
    case LOOK_SUPERSEDED:
        on_superseded(it, look, now_us);
        witness_on_lost(&guard->witness, node);
        return;
    case LOOK_WORDS:
        break;
    }
    abort();
}

/* Whatever came of it, and whoever else did something: a look will tell. */
void guard_on_done(struct guard *guard, const struct guard_action *action,
                   int64_t now_us)
{
    struct guard_node *it = &guard->node[action->node];
    if (it->phase == GUARD_DOWN)
        return;
    it->is_busy = false;
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

void guard_on_beat(struct guard *guard, int node, int64_t beat)
{
    witness_on_beat(&guard->witness, node, beat);
}

void guard_on_clock(struct guard *guard, int node, bool is_good)
{
    guard->node[node].is_clock_good = is_good;
}

void guard_on_median(struct guard *guard, bool is_known, int64_t ahead_us,
                     int64_t spread_us)
{
    guard->has_median = is_known;
    guard->median_ahead_us = ahead_us;
    guard->spread_us = spread_us;
}

/* ---- the vote ----------------------------------------------------------- */

enum node_state guard_refusal(const struct guard *guard, int node)
{
    const struct guard_node *it = &guard->node[node];
    switch (it->phase) {
    case GUARD_DOWN:
        return STATE_UNREACHABLE;
    case GUARD_MARKED:
        if (guard->start.is_marked[node])
            return STATE_WAITING;
        return STATE_QUARANTINED;
    case GUARD_UNSEEN:
        return STATE_QUARANTINED;
    case GUARD_EMPTY:
        return STATE_WAITING;
    case GUARD_FOREIGN:
        return STATE_FOREIGN;
    case GUARD_SUPERSEDED:
        return STATE_SUPERSEDED;
    case GUARD_ADMITTED:
        return it->must_revoke ? STATE_STEPPED : STATE_VOTING;
    }
    abort();
}
