#include "admission.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eligibility.h"

enum {
    HOLD_TIMEOUTS = 4, /* how long a first start holds, in node timeouts, … */
    HOLD_US = 2 * HEARTBEAT_US, /* … but at least this: others may object */
    MAX_TTL_MOST_MS = 86400000, /* a value written by hand must not overflow */
};

static int64_t hold_us(const struct admission_settings *settings)
{
    int64_t timeouts_us = HOLD_TIMEOUTS * settings->node_timeout_us;
    return timeouts_us > HOLD_US ? timeouts_us : HOLD_US;
}

void admission_init(struct admission *admission,
                    const struct admission_settings *settings)
{
    assert(settings->nodes >= 1 && settings->nodes <= NODES_MAX &&
           settings->leader < settings->nodes && settings->epoch >= 1);
    *admission = (struct admission){.settings = *settings};
    witness_init(&admission->witness, settings->names, settings->nodes,
                 settings->quorum);
    firststart_init(
        &admission->start, settings->nodes, settings->leader, hold_us(settings),
        !settings->is_off && settings->first_start != FIRST_START_NO);
}

static bool is_text(const char *text, struct span span)
{
    return span.len == strlen(text) &&
           (span.len == 0 || memcmp(span.ptr, text, span.len) == 0);
}

static int count(const struct admission *admission)
{
    return admission->settings.nodes;
}

void admission_want_look(struct admission *admission, int node, int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    if (it->look_due_us > now_us)
        it->look_due_us = now_us;
}

/* Looks at all other nodes that were not looked at since. */
static void want_looks(struct admission *admission, int node, int64_t since_us,
                       int64_t now_us)
{
    for (int i = 0; i < count(admission); i++)
        if (i != node && !admission->node[i].is_busy &&
            admission->node[i].looked_us < since_us)
            admission_want_look(admission, i, now_us);
}

/* ---- what to do --------------------------------------------------------- */

/*
 * Having seen an admission, this server objects to first starts. It waits a
 * heartbeat: the admission may be the first one of a first start.
 */
bool admission_is_objecting(const struct admission *admission, int64_t now_us)
{
    return admission->established_us != 0 &&
           now_us - admission->established_us >= HEARTBEAT_US;
}

/* Another machine with a later birth keeps it from being marked anew: the two
 * would outdate each other for ever. */
static bool may_mark(const struct admission *admission, int node,
                     int64_t now_us)
{
    if (eligibility_is_outdated(admission, node))
        return eligibility_may_renew(admission, node, now_us);
    return admission_is_objecting(admission, now_us) ||
           firststart_may_mark(&admission->start, node, now_us);
}

/* False: nothing to do on this node. */
static bool choose(const struct admission *admission, int node, int64_t now_us,
                   enum admission_action_kind *kind)
{
    const struct admission_node *it = &admission->node[node];
    if (it->phase == ADMISSION_DOWN || it->is_busy ||
        now_us < it->not_before_us)
        return false;
    bool is_outdated = eligibility_is_outdated(admission, node);
    if (it->must_revoke && !is_outdated &&
        (it->phase == ADMISSION_ADMITTED || it->phase == ADMISSION_MARKED))
        *kind = ADMISSION_REVOKE;
    else if (eligibility_is_back(admission, node, now_us))
        *kind = ADMISSION_READMIT;
    else if (eligibility_is_due(admission, node, now_us))
        *kind = ADMISSION_ADMIT;
    else if (now_us >= it->look_due_us)
        *kind = may_mark(admission, node, now_us) ? ADMISSION_LOOK
                                                  : ADMISSION_PROBE;
    else
        return false;
    return true;
}

static void advance_start(struct admission *admission, int64_t now_us)
{
    struct firststart_view view = {
        .is_possible = true,
        .are_all_empty = true,
        .looked_us = eligibility_looked_us(admission),
        .now_us = now_us,
    };
    for (int i = 0; i < count(admission); i++) {
        const struct admission_node *it = &admission->node[i];
        if (it->phase != ADMISSION_EMPTY)
            view.are_all_empty = false;
        if (it->phase != ADMISSION_DOWN && !it->is_durable &&
            admission->settings.first_start == FIRST_START_AUTO)
            view.is_possible = false;
    }
    uint16_t wanted = firststart_advance(&admission->start, &view);
    for (int i = 0; i < count(admission); i++)
        if (wanted & 1u << i)
            admission_want_look(admission, i, now_us);
}

bool admission_next(struct admission *admission, int64_t now_us,
                    struct admission_action *action)
{
    advance_start(admission, now_us);
    for (int i = 0; i < count(admission); i++)
        want_looks(admission, i, admission->node[i].news_us, now_us);
    for (int i = 0; i < count(admission); i++) {
        if (!choose(admission, i, now_us, &action->kind))
            continue;
        action->node = i;
        admission->node[i].is_busy = true;
        if (action->kind == ADMISSION_PROBE || action->kind == ADMISSION_LOOK)
            admission->node[i].look_due_us = now_us + HEARTBEAT_US;
        return true;
    }
    return false;
}

/* ---- events ------------------------------------------------------------- */

static void look_soon(struct admission_node *node, int64_t now_us)
{
    node->phase = ADMISSION_UNSEEN;
    node->look_due_us = now_us;
}

void admission_on_up(struct admission *admission, int node, const char *run_id,
                     bool is_durable, int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    char admit[sizeof it->admit];
    int len =
        snprintf(admit, sizeof admit, "%d:%s:%s:%s", admission->settings.epoch,
                 admission->settings.fingerprint,
                 admission->witness.node[node].name, run_id);
    assert(len > 0 && len < (int)sizeof admit);
    memcpy(it->admit, admit, sizeof admit);
    it->is_durable = is_durable;
    it->is_busy = it->is_mute = false;
    it->looked_us = 0;
    it->not_before_us = 0;
    look_soon(it, now_us);
    witness_on_lost(&admission->witness, node);
    firststart_on_up(&admission->start, now_us);
}

void admission_on_down(struct admission *admission, int node)
{
    struct admission_node *it = &admission->node[node];
    it->phase = ADMISSION_DOWN;
    it->is_busy = false;
    firststart_on_trouble(&admission->start, node);
}

static void copy_state(char to[ADMISSION_STATE_MAX + 1], struct span from)
{
    assert(from.len <= ADMISSION_STATE_MAX);
    to[span_copy(to, from)] = '\0';
}

static void establish(struct admission *admission, int64_t now_us)
{
    if (admission->established_us == 0)
        admission->established_us = now_us;
}

/* Takes what the node reports of others. */
static void note_told(struct admission *admission, int node,
                      const struct call_look *look, int64_t sent_us,
                      int64_t now_us)
{
    const struct witness_words words = {
        .is_admitted = admission->node[node].phase == ADMISSION_ADMITTED,
        .text = look->witnesses,
        .sent_us = sent_us,
        .now_us = now_us,
    };
    witness_on_told(&admission->witness, node, &words);
}

/* The part of an admission or a mark that tells its birth; "": none. */
static void read_birth(char birth[CALL_BIRTH_LEN + 1], struct span state)
{
    size_t len = 0;
    int colons = 0;
    for (size_t i = 0; i < state.len && colons < 4; i++)
        if (state.ptr[i] == ':')
            colons++;
        else if (colons == 3 && len < CALL_BIRTH_LEN)
            birth[len++] = state.ptr[i];
    birth[len] = '\0';
}

static void note_birth(struct admission *admission, int node, struct span state,
                       int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    char birth[CALL_BIRTH_LEN + 1];
    read_birth(birth, state);
    if (strcmp(birth, it->birth) != 0) { /* what it told before is forgotten */
        memcpy(it->birth, birth, sizeof birth);
        it->life++;
        witness_on_lost(&admission->witness, node);
        eligibility_on_birth(admission, node);
    }
    witness_on_birth(&admission->witness, node, birth, now_us);
}

static void on_admitted(struct admission *admission,
                        struct admission_node *node,
                        const struct call_look *look, int64_t sent_us,
                        int64_t now_us)
{
    int index = (int)(node - admission->node);
    node->phase = ADMISSION_ADMITTED;
    copy_state(node->found, look->admit);
    if (node->mark[0] != '\0')
        node->news_us = now_us;
    node->mark[0] = '\0';
    node->is_restarted = false;
    node->is_of_epoch = true;
    establish(admission, now_us);
    firststart_forget(&admission->start, index);
    note_birth(admission, index, look->admit, now_us);
    if (!eligibility_is_outdated(admission, index))
        witness_on_beat(&admission->witness, index, look->beat);
    note_told(admission, index, look, sent_us, now_us);
    eligibility_on_told(admission, index, look, sent_us, now_us);
}

/* True if the admission is the node's own: only run_id and replication ID may
 * differ from what it must carry. */
static bool is_own(const struct admission_node *node, struct span admit)
{
    size_t len = (size_t)(strrchr(node->admit, ':') - node->admit) + 1;
    return admit.len > len && memcmp(admit.ptr, node->admit, len) == 0;
}

static void on_marked(struct admission *admission, struct admission_node *node,
                      const struct call_look *look, int64_t sent_us,
                      int64_t now_us)
{
    int index = (int)(node - admission->node);
    node->phase = ADMISSION_MARKED;
    if (!node->is_of_epoch)
        admission->entered_us = now_us;
    node->is_of_epoch = true;
    if (!is_text(node->mark, look->mark)) {
        copy_state(node->mark, look->mark);
        node->sighted_us = node->news_us = now_us;
        node->asked = (struct admission_asked){0};
    }
    note_birth(admission, index, look->mark, now_us);
    copy_state(node->found, look->admit);
    node->is_restarted = is_own(node, look->admit);
    if (node->is_restarted)
        establish(admission, now_us);
    if (node->is_restarted && node->was_durable && node->is_durable)
        note_told(admission, index, look, sent_us, now_us);
    else
        witness_on_lost(&admission->witness, index);
}

/* The epoch at the start of an admission or a mark. */
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

static void on_superseded(struct admission_node *node,
                          const struct call_look *look, int64_t now_us)
{
    int admit_epoch = epoch_of(look->admit);
    int mark_epoch = epoch_of(look->mark);
    node->phase = ADMISSION_SUPERSEDED;
    node->foreign_us = now_us;
    node->epoch_above = admit_epoch > mark_epoch ? admit_epoch : mark_epoch;
}

void admission_on_look(struct admission *admission, int node,
                       const struct call_look *look, int64_t sent_us,
                       int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    if (it->phase == ADMISSION_DOWN)
        return;
    it->is_busy = it->is_mute = false;
    it->looked_us = sent_us;
    it->max_ttl_ms =
        look->max_ttl_ms < MAX_TTL_MOST_MS ? look->max_ttl_ms : MAX_TTL_MOST_MS;
    it->was_durable = look->is_durable;
    it->beat = look->beat;
    firststart_on_look(&admission->start, node, look->word,
                       is_text(it->mark, look->mark), now_us);
    switch (look->word) {
    case LOOK_ADMITTED:
        on_admitted(admission, it, look, sent_us, now_us);
        return;
    case LOOK_MARKED:
    case LOOK_CREATED:
    case LOOK_FRESH:
        on_marked(admission, it, look, sent_us, now_us);
        return;
    case LOOK_EMPTY:
    case LOOK_BARE: /* to be marked once that cannot disturb a first start */
        it->phase = ADMISSION_EMPTY;
        witness_on_lost(&admission->witness, node);
        if (admission->start.step == FIRSTSTART_OVER)
            admission_want_look(admission, node,
                                admission->start.yield_until_us > now_us
                                    ? admission->start.yield_until_us
                                    : now_us);
        return;
    case LOOK_FOREIGN:
        it->phase = ADMISSION_FOREIGN;
        it->foreign_us = now_us;
        it->epoch_above = 0;
        copy_state(it->found, look->admit);
        witness_on_lost(&admission->witness, node);
        return;
    case LOOK_MISNAMED:
        it->phase = ADMISSION_MISNAMED;
        witness_on_lost(&admission->witness, node);
        return;
    case LOOK_SUPERSEDED:
        on_superseded(it, look, now_us);
        witness_on_lost(&admission->witness, node);
        return;
    case LOOK_WORDS:
        break;
    }
    abort();
}

/* Whatever the result, and whatever others did: a look shows it. */
void admission_on_done(struct admission *admission,
                       const struct admission_action *action, int64_t now_us)
{
    struct admission_node *it = &admission->node[action->node];
    if (it->phase == ADMISSION_DOWN)
        return;
    it->is_busy = false;
    if (action->kind == ADMISSION_REVOKE)
        it->must_revoke = false;
    firststart_forget(&admission->start, action->node);
    look_soon(it, now_us);
}

/* The action may have been carried out: a look shows it. If this was a look,
 * the node is mute. */
void admission_on_failure(struct admission *admission,
                          const struct admission_action *action, int64_t now_us)
{
    struct admission_node *it = &admission->node[action->node];
    if (it->phase == ADMISSION_DOWN)
        return;
    it->is_busy = false;
    it->not_before_us = now_us + HEARTBEAT_US;
    if (action->kind == ADMISSION_PROBE || action->kind == ADMISSION_LOOK)
        it->is_mute = true;
    else
        look_soon(it, now_us);
    firststart_on_trouble(&admission->start, action->node);
}

void admission_on_quarantined(struct admission *admission, int node,
                              int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    if (it->phase == ADMISSION_ADMITTED)
        look_soon(it, now_us);
}

void admission_on_step(struct admission *admission, int node)
{
    admission->node[node].must_revoke = true;
    eligibility_on_step(admission, node);
}

void admission_on_durable(struct admission *admission, int node,
                          bool is_durable, int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    if (it->is_durable && !is_durable)
        admission_want_look(admission, node, now_us); /* which stores it */
    it->is_durable = is_durable;
}

/* That of an outdated machine says nothing of the later one. */
void admission_on_beat(struct admission *admission, int node, int64_t beat)
{
    if (!eligibility_is_outdated(admission, node))
        witness_on_beat(&admission->witness, node, beat);
}

void admission_on_clock(struct admission *admission, int node, bool is_good)
{
    admission->node[node].is_clock_good = is_good;
}

void admission_on_median(struct admission *admission, bool is_known,
                         int64_t ahead_us)
{
    admission->has_median = is_known;
    admission->median_ahead_us = ahead_us;
}

/* ---- the vote ----------------------------------------------------------- */

enum node_state admission_refusal(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    switch (it->phase) {
    case ADMISSION_DOWN:
        return STATE_UNREACHABLE;
    case ADMISSION_MARKED:
        if (admission->start.is_marked[node])
            return STATE_WAITING;
        return STATE_QUARANTINED;
    case ADMISSION_UNSEEN:
        return STATE_QUARANTINED;
    case ADMISSION_EMPTY:
        return STATE_WAITING;
    case ADMISSION_FOREIGN:
        return STATE_FOREIGN;
    case ADMISSION_SUPERSEDED:
        return STATE_SUPERSEDED;
    case ADMISSION_MISNAMED:
        return STATE_DUPLICATE;
    case ADMISSION_ADMITTED:
        if (it->must_revoke)
            return STATE_STEPPED;
        return eligibility_is_outdated(admission, node) ? STATE_QUARANTINED
                                                        : STATE_VOTING;
    }
    abort();
}

bool admission_has_memory(const struct admission *admission, int node,
                          uint32_t life)
{
    const struct admission_node *it = &admission->node[node];
    return it->life == life &&
           !witness_knows_later(&admission->witness, node, it->birth);
}
