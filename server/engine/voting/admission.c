#include "admission.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOLD_TIMEOUTS = 4,          /* a first start holds for so many timeouts */
    HOLD_US = 2 * HEARTBEAT_US, /* at least, so that others can object */
    MAX_TTL_MOST_MS = 86400000, /* a value written by hand must not overflow */
};

/* The node to mark first: the one with the least name. */
static int leader_of(const struct engine_settings *settings)
{
    int leader = 0;
    for (int i = 1; i < settings->nodes; i++)
        if (strcmp(settings->node_names[i], settings->node_names[leader]) < 0)
            leader = i;
    return leader;
}

void admission_init(struct admission *admission,
                    const struct engine_settings *settings)
{
    assert(settings->nodes >= 1 && settings->nodes <= NODES_MAX &&
           settings->config_epoch >= 1);
    *admission = (struct admission){
        .settings = *settings,
        .quorum = quorum_of(settings->nodes),
        .epoch = settings->config_epoch, /* that of the nodes counts */
    };
    witness_init(&admission->witness, settings->node_names, settings->nodes);
    firststart_init(
        &admission->start, settings->nodes, leader_of(settings),
        at_least(HOLD_TIMEOUTS * settings->node_timeout_us, HOLD_US),
        !settings->is_guard_off && !settings->is_observer &&
            settings->first_start != FIRST_START_NO);
}

void admission_want_look(struct admission *admission, int node, int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    if (it->look_due_us > now_us)
        it->look_due_us = now_us;
}

/* ---- actions ------------------------------------------------------------ */

bool admission_is_objecting(const struct admission *admission, int64_t now_us)
{
    return admission->established_us != 0 &&
           now_us - admission->established_us >= HEARTBEAT_US;
}

/*
 * A machine is not marked while another one of its name is alive: a server with
 * a wrong address would take the name from it, or the two would outdate each
 * other for ever. Another configuration is replaced as a whole, or left alone.
 */
static bool may_mark(const struct admission *admission, int node,
                     int64_t now_us)
{
    if (admission->settings.is_observer)
        return false;
    if (!admission->is_surveyed || !admission->node[node].is_known)
        return false;
    if (admission->node[node].is_outdated)
        return !eligibility_is_others(admission, node, now_us) &&
               eligibility_may_renew(admission, node, now_us);
    if (eligibility_may_be_elsewhere(admission, node, now_us))
        return false;
    if (!eligibility_is_established(admission) &&
        (eligibility_epoch_below(admission) != 0 ||
         eligibility_is_taking_over(admission)))
        return eligibility_may_take_over(admission);
    if (eligibility_is_others(admission, node, now_us))
        return false;
    return admission_is_objecting(admission, now_us) ||
           firststart_may_mark(&admission->start, node, now_us);
}

/* False: nothing to do on this node. */
static bool admission_choose(const struct admission *admission, int node,
                             int64_t now_us, enum admission_action_kind *kind)
{
    const struct admission_node *it = &admission->node[node];
    if (it->phase == ADMISSION_DOWN || it->is_busy ||
        now_us < it->not_before_us)
        return false;
    if (admission->settings.is_observer) {
        *kind = ADMISSION_PROBE;
        return now_us >= it->look_due_us;
    }
    if (it->must_revoke && !eligibility_is_outdated(admission, node) &&
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
    bool is_possible = admission->epoch == 1; /* no names were before */
    bool are_all_empty = true;
    for (int i = 0; i < admission->settings.nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        are_all_empty &= it->phase == ADMISSION_EMPTY;
        if (it->phase != ADMISSION_DOWN && !it->is_durable &&
            admission->settings.first_start == FIRST_START_AUTO)
            is_possible = false;
    }
    uint16_t wanted =
        firststart_advance(&admission->start, is_possible, are_all_empty,
                           eligibility_looked_us(admission), now_us);
    for (int i = 0; i < admission->settings.nodes; i++)
        if (wanted & 1u << i)
            admission_want_look(admission, i, now_us);
}

/* Asks for looks at all nodes that have not been told the news of this node. */
static void spread_news(struct admission *admission, int node, int64_t now_us)
{
    for (int i = 0; i < admission->settings.nodes; i++)
        if (i != node && !admission->node[i].is_busy &&
            admission->node[i].looked_us < admission->node[node].news_us)
            admission_want_look(admission, i, now_us);
}

bool admission_next(struct admission *admission, int64_t now_us,
                    struct admission_action *action)
{
    advance_start(admission, now_us);
    for (int i = 0; i < admission->settings.nodes; i++)
        spread_news(admission, i, now_us);
    for (int i = 0; i < admission->settings.nodes; i++) {
        if (!admission_choose(admission, i, now_us, &action->kind))
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

static void admission_look_soon(struct admission_node *node, int64_t now_us)
{
    node->phase = ADMISSION_UNSEEN;
    node->look_due_us = now_us;
}

/* What the node must carry, without the replication ID. */
static void expect_admission(struct admission *admission, int node)
{
    struct admission_node *it = &admission->node[node];
    char admit[sizeof it->admit];
    int len = snprintf(admit, sizeof admit, "%d:%s:%s:%s", admission->epoch,
                       admission->settings.fingerprint,
                       admission->witness.node[node].name, it->run_id);
    assert(len > 0 && len < (int)sizeof admit);
    memcpy(it->admit, admit, sizeof admit);
}

/* The epoch has changed: so has what the nodes must carry. */
static void begin_epoch(struct admission *admission, int64_t now_us)
{
    admission->is_succeeded = false;
    takeover_begin(&admission->takeover);
    for (int i = 0; i < admission->settings.nodes; i++) {
        struct admission_node *it = &admission->node[i];
        if (it->epoch_other == 0 && it->epoch_mark == 0)
            it->foreign_us = 0; /* it was above us, but of our nodes */
        if (it->phase == ADMISSION_DOWN)
            continue;
        expect_admission(admission, i);
        admission_look_soon(it, now_us);
    }
}

void admission_on_up(struct admission *admission, int node,
                     const struct node_facts *facts, int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    assert(strlen(facts->run_id) < sizeof it->run_id);
    snprintf(it->run_id, sizeof it->run_id, "%s", facts->run_id);
    expect_admission(admission, node);
    it->is_durable = facts->is_durable;
    if (facts->has_moved)
        it->moved_us = now_us;
    it->is_busy = it->is_mute = false;
    it->trace[0] = '\0'; /* of another connection, perhaps to a restored copy */
    takeover_on_lost(&admission->takeover, node);
    it->looked_us = 0;
    it->not_before_us = 0;
    admission_look_soon(it, now_us);
    witness_on_lost(&admission->witness, node);
    firststart_on_up(&admission->start, now_us);
}

void admission_on_down(struct admission *admission, int node)
{
    struct admission_node *it = &admission->node[node];
    it->phase = ADMISSION_DOWN;
    it->is_busy = false;
    takeover_on_lost(&admission->takeover, node);
    firststart_on_trouble(&admission->start, node);
}

/* "": there is none, or it was written by hand; other nodes are told births. */
static void read_birth(const char *state, char birth[CALL_BIRTH_LEN + 1])
{
    struct span part = call_state_part(span_of(state), CALL_STATE_BIRTH);
    birth[0] = '\0';
    if (part.len == CALL_BIRTH_LEN)
        birth[span_copy(birth, part)] = '\0';
    if (strspn(birth, "0123456789") != CALL_BIRTH_LEN)
        birth[0] = '\0';
}

static void note_birth(struct admission *admission, int node, const char *state,
                       int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    char birth[CALL_BIRTH_LEN + 1];
    read_birth(state, birth);
    if (strcmp(birth, it->birth) != 0) { /* its earlier reports are void */
        memcpy(it->birth, birth, sizeof birth);
        it->life++;
        witness_on_lost(&admission->witness, node);
    }
    witness_on_birth(&admission->witness, node, birth, now_us);
}

/* Whether an admission is of this node, perhaps with another run_id and
 * replication ID. */
static bool is_of_this_node(const struct admission_node *node,
                            const char *admit)
{
    size_t len = (size_t)(strrchr(node->admit, ':') - node->admit) + 1;
    return strncmp(admit, node->admit, len) == 0;
}

/* The node carries an admission of ours. */
static void note_established(struct admission *admission, int64_t now_us)
{
    if (admission->established_us == 0)
        admission->established_us = now_us;
    if (!eligibility_is_established(admission) || admission->epoch_us == 0)
        admission->epoch_us = now_us;
    admission->established_epoch = admission->epoch;
}

/* The same mark, perhaps with another replication ID: no two have one birth. */
static bool is_same_mark(const struct admission_node *node, struct span mark)
{
    struct span birth = call_state_part(mark, CALL_STATE_BIRTH);
    return span_is(mark, node->mark) ||
           (birth.len == CALL_BIRTH_LEN && node->mark[0] != '\0' &&
            span_is_same(
                birth, call_state_part(span_of(node->mark), CALL_STATE_BIRTH)));
}

/* It carries our admission, or this mark. */
static void on_ours(struct admission *admission, int node, struct span mark,
                    int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    bool is_own = is_of_this_node(it, it->found);
    it->is_restarted = is_own && it->phase == ADMISSION_MARKED;
    if (is_own)
        note_established(admission, now_us);
    it->moved_us = 0;
    bool is_new = !is_same_mark(it, mark);
    takeover_copy(it->mark, mark);
    if (is_new) {
        it->sighted_us = it->news_us = now_us;
        it->asked = (struct admission_asked){0};
    }
    note_birth(admission, node, mark.len > 0 ? it->mark : it->found, now_us);
}

/*
 * It was taken from our names by newer ones, or serves them under its name. A
 * node of other names altogether is another installation's: a name may have led
 * there by mistake.
 */
static bool is_succeeding(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return (it->epoch_other > admission->epoch &&
            witness_is_named(&admission->witness, node, it->found)) ||
           (it->epoch_mark > admission->epoch &&
            admission->takeover.node[node].taken[0] != '\0');
}

/* The birth that it has, or had, under its name, but with other names beside
 * it; "": none. */
static void read_other_birth(const struct admission *admission, int node,
                             char birth[CALL_BIRTH_LEN + 1])
{
    const char *const found[] = {admission->node[node].found,
                                 admission->takeover.node[node].taken};
    birth[0] = '\0';
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (birth[0] == '\0' &&
            witness_is_named(&admission->witness, node, found[i]))
            read_birth(found[i], birth);
}

/*
 * Whether another machine has had the name since. One that was not seen with
 * our names is judged by its birth under others: at any time if it is the very
 * machine that had the name last; if its birth is later, only until ours vote.
 */
static bool is_outdated(const struct admission *admission, int node)
{
    const char *own = admission->node[node].birth;
    const char *latest = admission->witness.node[node].latest;
    char other[CALL_BIRTH_LEN + 1];
    read_other_birth(admission, node, other);
    bool counts = own[0] == '\0' && (strcmp(other, latest) == 0 ||
                                     !eligibility_is_established(admission));
    return witness_knows_later(&admission->witness, node, counts ? other : own);
}

/* What is known after a look at any node. */
static void note_survey(struct admission *admission)
{
    int answered = 0;
    for (int i = 0; i < admission->settings.nodes; i++) {
        struct admission_node *it = &admission->node[i];
        it->is_outdated = is_outdated(admission, i);
        answered += it->looked_us != 0;
    }
    admission->is_surveyed |= answered >= admission->quorum;
}

/*
 * It is marked as soon as that is allowed, and cannot disturb a first start. If
 * only the replication ID has changed, at the next heartbeat: until then the
 * look of another server may show that the memory is the same.
 */
static void on_bare(struct admission *admission, int node, int64_t now_us)
{
    const struct firststart *start = &admission->start;
    int64_t at_us = at_least(start->yield_until_us, now_us);
    if (start->step == FIRSTSTART_OVER && may_mark(admission, node, at_us) &&
        !eligibility_is_in_this_life(admission, node))
        admission_want_look(admission, node, at_us);
}

/*
 * The order matters, as each step reads what those before it noted: the first
 * start, the mark of the look before; the epochs and who was left over, the
 * lists that takeover keeps. A new birth voids what the node told, so it comes
 * before the witness; who is outdated follows from all births, and outdated
 * machines have neither beats nor promises, and are not marked. An epoch that
 * is followed begins all anew, so it comes last.
 */
void admission_on_look(struct admission *admission, int node,
                       const struct call_look *look, int64_t sent_us,
                       int64_t now_us)
{
    static const enum admission_phase phases[LOOK_WORDS] = {
        [LOOK_ADMITTED] = ADMISSION_ADMITTED,
        [LOOK_SUPERSEDED] = ADMISSION_SUPERSEDED,
        [LOOK_FOREIGN] = ADMISSION_FOREIGN,
        [LOOK_MISNAMED] = ADMISSION_MISNAMED,
        [LOOK_EMPTY] = ADMISSION_EMPTY,
        [LOOK_BARE] = ADMISSION_EMPTY,
        [LOOK_FRESH] = ADMISSION_MARKED,
        [LOOK_CREATED] = ADMISSION_MARKED,
        [LOOK_MARKED] = ADMISSION_MARKED,
    };
    struct admission_node *it = &admission->node[node];
    if (it->phase == ADMISSION_DOWN)
        return;
    assert(look->word < LOOK_WORDS); /* script.c reads no other */
    firststart_on_look(&admission->start, node, look->word,
                       span_is(look->mark, it->mark), now_us);
    it->phase = phases[look->word];
    bool is_admitted = it->phase == ADMISSION_ADMITTED;
    it->is_busy = it->is_mute = it->is_restarted = false;
    it->is_known = true;
    it->has_voted |= is_admitted;
    it->looked_us = sent_us;
    it->max_ttl_ms = at_most(look->max_ttl_ms, MAX_TTL_MOST_MS);
    it->held_us = now_us + look->rest_us;
    it->was_durable = look->is_durable;
    it->beat = look->beat;
    takeover_copy(it->found, look->admit);
    assert(look->trace.len <= CALL_TRACE_MAX); /* script.c reads no longer */
    it->trace[span_copy(it->trace, look->trace)] = '\0';
    const struct takeover_look from = {
        .found = look,
        .is_marked = it->phase == ADMISSION_MARKED,
        .is_ours = eligibility_is_ours(admission, it->found),
        .sent_us = sent_us,
        .now_us = now_us,
    };
    takeover_on_look(&admission->takeover, &admission->witness, node, &from);
    eligibility_note_epochs(admission, node, look->mark);
    admission->is_succeeded |= is_succeeding(admission, node);
    bool is_left_over = eligibility_note_left_over(admission, node, now_us);
    if (is_admitted || it->phase == ADMISSION_MARKED) {
        on_ours(admission, node, is_admitted ? span_of("") : look->mark,
                now_us);
    } else if (it->phase == ADMISSION_EMPTY && is_of_this_node(it, it->found)) {
        /* from before a restart: it is no other machine of its name */
        note_birth(admission, node, it->found, now_us);
        note_established(admission, now_us);
        it->moved_us = 0;
    } else if (it->phase == ADMISSION_EMPTY && it->epoch_other != 0 &&
               !is_left_over && !eligibility_may_take_over(admission)) {
        it->phase = ADMISSION_FOREIGN;
    }
    if (it->phase == ADMISSION_FOREIGN || it->phase == ADMISSION_SUPERSEDED)
        it->foreign_us = it->left_us != 0 ? it->left_us : now_us;
    if (is_admitted || (it->is_restarted && it->was_durable && it->is_durable))
        witness_on_told(&admission->witness, node, look, sent_us, now_us);
    else
        witness_on_lost(&admission->witness, node);
    note_survey(admission);
    if (is_admitted) {
        firststart_forget(&admission->start, node);
        admission_on_beat(admission, node, look->beat);
        eligibility_on_told(admission, node, look, now_us);
    }
    if (it->phase == ADMISSION_EMPTY)
        on_bare(admission, node, now_us);
    if (eligibility_follow_epoch(admission))
        begin_epoch(admission, now_us);
    eligibility_on_taken(admission);
}

/* Whatever the result, and whatever other servers did, a look shows it. */
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
    admission_look_soon(it, now_us);
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
        admission_look_soon(it, now_us);
    firststart_on_trouble(&admission->start, action->node);
}

void admission_on_quarantined(struct admission *admission, int node,
                              int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    if (it->phase == ADMISSION_ADMITTED)
        admission_look_soon(it, now_us);
}

void admission_on_step(struct admission *admission, int node)
{
    admission->node[node].must_revoke = true;
    witness_on_lost(&admission->witness, node);
    for (int i = 0; i < admission->settings.nodes; i++) {
        struct admission_node *it = &admission->node[i];
        it->asked.again &= (uint16_t) ~(1u << node); /* it told a wrong end */
    }
    takeover_on_lost(&admission->takeover, node);
    admission->takeover.is_over = false;
}

void admission_on_durable(struct admission *admission, int node,
                          bool is_durable, int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    if (it->is_durable && !is_durable)
        admission_want_look(admission, node, now_us); /* which stores it */
    it->is_durable = is_durable;
}

/* The beat of an outdated machine says nothing of the later one. */
void admission_on_beat(struct admission *admission, int node, int64_t beat)
{
    if (!eligibility_is_outdated(admission, node))
        witness_on_beat(&admission->witness, node, beat);
}

/* ---- the vote ----------------------------------------------------------- */

enum node_state admission_refusal(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    switch (it->phase) {
    case ADMISSION_DOWN:
        return STATE_UNREACHABLE;
    case ADMISSION_MARKED:
        return admission->start.marked & nodeset_of(node) ? STATE_WAITING
                                                          : STATE_QUARANTINED;
    case ADMISSION_UNSEEN:
        return STATE_QUARANTINED;
    case ADMISSION_EMPTY:
        return it->left_us != 0 || eligibility_is_outdated(admission, node)
                   ? STATE_QUARANTINED
                   : STATE_WAITING;
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
                                                        : STATE_NONE;
    }
    abort();
}

bool admission_is_unseen(const struct admission *admission, int node)
{
    return admission->node[node].phase == ADMISSION_UNSEEN;
}

bool admission_has_memory(const struct admission *admission, int node,
                          uint32_t life)
{
    const struct admission_node *it = &admission->node[node];
    return it->life == life && !it->is_outdated;
}
