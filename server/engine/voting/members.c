/* SPDX-License-Identifier: MIT */
#include "members.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HOLD_TIMEOUTS = 4,            /* a first start holds for so many timeouts */
    HOLD_US = 2 * HEARTBEAT_US,   /* at least, so that others can object */
    BURST_US = HEARTBEAT_US / 10, /* in which news are reported to a node … */
    BURST_MOST = 4,               /* … so often: one loss takes three times */
    RIVAL_MIN = 3,                /* a server that leaves replaces a record
                                     once or twice */
    MAX_TTL_MOST_MS = 86400000, /* a value written by hand must not overflow */
};

/* The node to quarantine first: the one with the least name. */
static int leader_of(const struct engine_settings *settings)
{
    int leader = 0;
    for (int i = 1; i < settings->nodes; i++)
        if (strcmp(settings->node_names[i], settings->node_names[leader]) < 0)
            leader = i;
    return leader;
}

static bool may_start(const struct engine_settings *settings)
{
    return !settings->is_guard_off && !settings->is_observer &&
           settings->first_start != FIRST_START_NO;
}

void members_init(struct members *members,
                  const struct engine_settings *settings)
{
    assert(settings->nodes >= 1 && settings->nodes <= NODES_MAX &&
           settings->config_epoch >= 1);
    *members = (struct members){
        .settings = *settings,
        .quorum = quorum_of(settings->nodes),
        .epoch = settings->config_epoch, /* that of the nodes counts */
        .start =
            {
                .step =
                    may_start(settings) ? FIRSTSTART_WAITING : FIRSTSTART_OVER,
                .nodes = settings->nodes,
                .leader = leader_of(settings),
                .hold_us = at_least(HOLD_TIMEOUTS * settings->node_timeout_us,
                                    HOLD_US),
            },
    };
    witness_init(&members->witness, settings->node_names, settings->nodes);
}

void members_want_probe(struct members *members, int node, int64_t now_us)
{
    struct member *it = &members->node[node];
    it->probe_due_us = at_most(it->probe_due_us, now_us);
}

/* ---- actions ------------------------------------------------------------ */

bool members_is_objecting(const struct members *members, int64_t now_us)
{
    return members->established_us != 0 &&
           now_us - members->established_us >= HEARTBEAT_US;
}

/*
 * A machine is not quarantined while another one of its name is alive: a server
 * with a wrong address would take the name from it, or the two would outdate
 * each other for ever. Another configuration is replaced as a whole, or left
 * alone.
 */
static bool may_quarantine(const struct members *members, int node,
                           int64_t now_us)
{
    if (members->settings.is_observer)
        return false;
    if (!members->is_queried || !members->node[node].is_known)
        return false;
    if (members->node[node].is_outdated)
        return !rules_is_others(members, node, now_us) &&
               rules_may_renew(members, node, now_us);
    if (rules_may_be_elsewhere(members, node, now_us))
        return false;
    if (!rules_is_established(members) &&
        (rules_epoch_below(members) != 0 || rules_is_taking_over(members)))
        return rules_may_take_over(members);
    if (rules_is_others(members, node, now_us))
        return false;
    return members_is_objecting(members, now_us) ||
           firststart_may_quarantine(&members->start, node, now_us);
}

/* False: nothing to do on this node. */
static bool members_choose(const struct members *members, int node,
                           int64_t now_us, enum member_action_kind *kind)
{
    const struct member *it = &members->node[node];
    if (it->phase == MEMBER_DOWN || it->is_busy || now_us < it->not_before_us)
        return false;
    if (members->settings.is_observer) {
        *kind = MEMBER_OBSERVE;
        return now_us >= it->probe_due_us;
    }
    if (it->must_revoke && !rules_is_outdated(members, node) &&
        (it->phase == MEMBER_ADMITTED || it->phase == MEMBER_QUARANTINED))
        *kind = MEMBER_REVOKE;
    else if (rules_is_back(members, node, now_us))
        *kind = MEMBER_READMIT;
    else if (rules_is_due(members, node, now_us))
        *kind = MEMBER_ADMIT;
    else if (now_us >= it->probe_due_us)
        *kind = may_quarantine(members, node, now_us) ? MEMBER_PROBE
                                                      : MEMBER_OBSERVE;
    else
        return false;
    return true;
}

/* Counts a probe that is sent now. */
static void count_probe(struct member *node, int64_t now_us)
{
    if (now_us - node->burst_us >= BURST_US) {
        node->burst_us = now_us;
        node->burst = 0;
    }
    node->burst++;
}

/*
 * Another probe for what was learned of other nodes: at once, but not as fast
 * as nodes reply. Where two names lead to one machine, or two configurations
 * wait for one, they replace each other's quarantine records, so that the probe
 * of each is news to the other.
 */
static void want_another(struct members *members, int node, int64_t now_us)
{
    const struct member *it = &members->node[node];
    bool may_hurry = it->burst < BURST_MOST;
    members_want_probe(members, node,
                       may_hurry ? now_us
                                 : at_least(it->burst_us + BURST_US, now_us));
}

static void advance_start(struct members *members, int64_t now_us)
{
    bool is_possible = members->epoch == 1; /* no names were before */
    bool are_all_empty = true;
    for (int i = 0; i < members->settings.nodes; i++) {
        const struct member *it = &members->node[i];
        are_all_empty &= it->phase == MEMBER_EMPTY;
        if (it->phase != MEMBER_DOWN && !it->is_durable &&
            members->settings.first_start == FIRST_START_AUTO)
            is_possible = false;
    }
    uint16_t wanted =
        firststart_advance(&members->start, is_possible, are_all_empty,
                           rules_probed_us(members), now_us);
    for (int i = 0; i < members->settings.nodes; i++)
        if (wanted & 1u << i)
            want_another(members, i, now_us);
}

/* Asks for probes of all nodes that have not been told this node's news. */
static void spread_news(struct members *members, int node, int64_t now_us)
{
    for (int i = 0; i < members->settings.nodes; i++)
        if (i != node && !members->node[i].is_busy &&
            members->node[i].probed_us < members->node[node].news_us)
            want_another(members, i, now_us);
}

bool members_next(struct members *members, int64_t now_us,
                  struct member_action *action)
{
    advance_start(members, now_us);
    for (int i = 0; i < members->settings.nodes; i++)
        spread_news(members, i, now_us);
    for (int i = 0; i < members->settings.nodes; i++) {
        if (!members_choose(members, i, now_us, &action->kind))
            continue;
        action->node = i;
        members->node[i].is_busy = true;
        if (action->kind == MEMBER_OBSERVE || action->kind == MEMBER_PROBE) {
            members->node[i].probe_due_us = now_us + HEARTBEAT_US;
            count_probe(&members->node[i], now_us);
        }
        return true;
    }
    return false;
}

/* ---- events ------------------------------------------------------------- */

static void members_probe_soon(struct member *node, int64_t now_us)
{
    node->phase = MEMBER_UNSEEN;
    node->probe_due_us = now_us;
}

/* What the node must carry, without the replication ID. */
static void expect_admission(struct members *members, int node)
{
    struct member *it = &members->node[node];
    char admit[sizeof it->admit];
    int len = snprintf(admit, sizeof admit, "%d:%s:%s:%s", members->epoch,
                       members->settings.fingerprint,
                       members->witness.node[node].name, it->run_id);
    assert(len > 0 && len < (int)sizeof admit);
    memcpy(it->admit, admit, sizeof admit);
}

/* The epoch has changed: so has what the nodes must carry. */
static void begin_epoch(struct members *members, int64_t now_us)
{
    members->is_succeeded = false;
    takeover_begin(&members->takeover);
    for (int i = 0; i < members->settings.nodes; i++) {
        struct member *it = &members->node[i];
        if (it->epoch_other == 0 && it->epoch_quarantine == 0)
            it->other_us = 0; /* it was above us, but of our nodes */
        if (it->phase == MEMBER_DOWN)
            continue;
        expect_admission(members, i);
        members_probe_soon(it, now_us);
    }
}

void members_on_up(struct members *members, int node,
                   const struct node_facts *facts, int64_t now_us)
{
    struct member *it = &members->node[node];
    assert(strlen(facts->run_id) < sizeof it->run_id);
    snprintf(it->run_id, sizeof it->run_id, "%s", facts->run_id);
    expect_admission(members, node);
    it->is_durable = facts->is_durable;
    if (facts->has_moved)
        it->moved_us = now_us;
    it->is_busy = it->is_mute = false;
    it->replaced = 0;    /* a restart voids a record, too */
    it->trace[0] = '\0'; /* of another connection, perhaps to a restored copy */
    takeover_on_lost(&members->takeover, node);
    it->probed_us = 0;
    it->not_before_us = 0;
    members_probe_soon(it, now_us);
    witness_on_lost(&members->witness, node);
    firststart_on_up(&members->start, now_us);
}

void members_on_down(struct members *members, int node)
{
    struct member *it = &members->node[node];
    it->phase = MEMBER_DOWN;
    it->is_busy = false;
    takeover_on_lost(&members->takeover, node);
    firststart_on_trouble(&members->start, node);
}

/* "": there is none, or it was written by hand; other nodes are told
 * incarnations. */
static void read_incarnation(const char *state,
                             char incarnation[INCARNATION_LEN + 1])
{
    struct span part = call_state_part(span_of(state), CALL_STATE_INCARNATION);
    incarnation[0] = '\0';
    if (part.len == INCARNATION_LEN)
        incarnation[span_copy(incarnation, part)] = '\0';
    if (strspn(incarnation, "0123456789") != INCARNATION_LEN)
        incarnation[0] = '\0';
}

static void note_incarnation(struct members *members, int node,
                             const char *state, int64_t now_us)
{
    struct member *it = &members->node[node];
    char incarnation[INCARNATION_LEN + 1];
    read_incarnation(state, incarnation);
    /* the earlier reports of another one are void */
    if (strcmp(incarnation, it->incarnation) != 0) {
        memcpy(it->incarnation, incarnation, sizeof incarnation);
        it->life++;
        witness_on_lost(&members->witness, node);
    }
    witness_on_incarnation(&members->witness, node, incarnation, now_us);
}

/* Whether an admission is of this node, perhaps with another run_id and
 * replication ID. */
static bool is_of_this_node(const struct member *node, const char *admit)
{
    size_t len = (size_t)(strrchr(node->admit, ':') - node->admit) + 1;
    return strncmp(admit, node->admit, len) == 0;
}

/* The node carries an admission of ours. */
static void note_established(struct members *members, int64_t now_us)
{
    if (members->established_us == 0)
        members->established_us = now_us;
    if (!rules_is_established(members) || members->epoch_us == 0)
        members->epoch_us = now_us;
    members->established_epoch = members->epoch;
}

/* The same quarantine record, perhaps with another replication ID: no two have
 * one incarnation. */
static bool is_same_quarantine(const struct member *node,
                               struct span quarantine)
{
    struct span incarnation =
        call_state_part(quarantine, CALL_STATE_INCARNATION);
    return span_is(quarantine, node->quarantine) ||
           (incarnation.len == INCARNATION_LEN && node->quarantine[0] != '\0' &&
            span_is_same(incarnation, call_state_part(span_of(node->quarantine),
                                                      CALL_STATE_INCARNATION)));
}

/* It carries our admission, or this quarantine record. */
static void on_ours(struct members *members, int node, struct span quarantine,
                    int64_t now_us)
{
    struct member *it = &members->node[node];
    bool is_own = is_of_this_node(it, it->found);
    it->is_restarted = is_own && it->phase == MEMBER_QUARANTINED;
    if (is_own)
        note_established(members, now_us);
    it->moved_us = 0;
    bool is_new = !is_same_quarantine(it, quarantine);
    takeover_copy(it->quarantine, quarantine);
    if (is_new) {
        it->sighted_us = it->news_us = now_us;
        it->asked = (struct member_asked){0};
    }
    note_incarnation(members, node,
                     quarantine.len > 0 ? it->quarantine : it->found, now_us);
}

/*
 * It was taken from our names by newer ones, or serves them under its name. A
 * node of other names altogether is another installation's: a name may have led
 * there by mistake.
 */
static bool is_succeeding(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return (it->epoch_other > members->epoch &&
            witness_is_named(&members->witness, node, it->found)) ||
           (it->epoch_quarantine > members->epoch &&
            members->takeover.node[node].taken[0] != '\0');
}

/* The incarnation that it has, or had, under its name, but with other names
 * beside it; "": none. */
static void read_other_incarnation(const struct members *members, int node,
                                   char incarnation[INCARNATION_LEN + 1])
{
    const char *const found[] = {members->node[node].found,
                                 members->takeover.node[node].taken};
    incarnation[0] = '\0';
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (incarnation[0] == '\0' &&
            witness_is_named(&members->witness, node, found[i]))
            read_incarnation(found[i], incarnation);
}

/*
 * Whether another machine has had the name since. One that was not seen with
 * our names is judged by its incarnation under others: at any time if it is the
 * very machine that had the name last; if its incarnation is later, only until
 * ours vote.
 */
static bool is_outdated(const struct members *members, int node)
{
    const char *own = members->node[node].incarnation;
    const char *latest = members->witness.node[node].latest;
    char other[INCARNATION_LEN + 1];
    read_other_incarnation(members, node, other);
    bool counts = own[0] == '\0' && (strcmp(other, latest) == 0 ||
                                     !rules_is_established(members));
    return witness_knows_later(&members->witness, node, counts ? other : own);
}

/* What is known after a probe of any node. */
static void note_query(struct members *members)
{
    int answered = 0;
    for (int i = 0; i < members->settings.nodes; i++) {
        struct member *it = &members->node[i];
        it->is_outdated = is_outdated(members, i);
        answered += it->probed_us != 0;
    }
    members->is_queried |= answered >= members->quorum;
}

/*
 * It is quarantined as soon as that is allowed, and cannot disturb a first
 * start. If only the replication ID has changed, at the next heartbeat: until
 * then the probe of another server may show that the data is the same.
 */
static void on_bare(struct members *members, int node, int64_t now_us)
{
    const struct firststart *start = &members->start;
    int64_t at_us = at_least(start->yield_until_us, now_us);
    if (start->step == FIRSTSTART_OVER &&
        may_quarantine(members, node, at_us) &&
        !rules_is_in_this_life(members, node))
        members_want_probe(members, node, at_us);
}

/*
 * Two configurations that wait for the same node replace each other's
 * quarantine records, so that neither ever gets it.
 */
static void note_rival(struct member *it, enum call_probe_word word,
                       int64_t now_us)
{
    if (now_us - it->replaced_us >= SILENT_US)
        it->replaced = 0;
    if (word == PROBE_CREATED && it->quarantine[0] != '\0') {
        it->replaced++;
        it->replaced_us = now_us;
    }
}

/*
 * The order matters, as each step reads what those before it noted: the first
 * start, the quarantine record of the probe before; the epochs and who was left
 * over, the lists that takeover keeps. A new incarnation voids what the node
 * reported, so it comes before the witness; who is outdated follows from all
 * incarnations, and outdated machines have neither generation nor promises, and
 * are not quarantined. An epoch that is followed begins all anew, so it comes
 * last.
 */
void members_on_probe(struct members *members, int node,
                      const struct call_probe *probe, int64_t sent_us,
                      int64_t now_us)
{
    static const enum member_phase phases[PROBE_WORDS] = {
        [PROBE_ADMITTED] = MEMBER_ADMITTED,
        [PROBE_SUPERSEDED] = MEMBER_SUPERSEDED,
        [PROBE_OTHER] = MEMBER_OTHER,
        [PROBE_MISNAMED] = MEMBER_MISNAMED,
        [PROBE_EMPTY] = MEMBER_EMPTY,
        [PROBE_BARE] = MEMBER_EMPTY,
        [PROBE_FRESH] = MEMBER_QUARANTINED,
        [PROBE_CREATED] = MEMBER_QUARANTINED,
        [PROBE_QUARANTINED] = MEMBER_QUARANTINED,
    };
    struct member *it = &members->node[node];
    if (it->phase == MEMBER_DOWN)
        return;
    assert(probe->word < PROBE_WORDS); /* script.c reads no other */
    firststart_on_probe(&members->start, node, probe->word,
                        span_is(probe->quarantine, it->quarantine), now_us);
    note_rival(it, probe->word, now_us);
    it->phase = phases[probe->word];
    bool is_admitted = it->phase == MEMBER_ADMITTED;
    it->is_busy = it->is_mute = it->is_restarted = false;
    it->is_known = true;
    it->has_voted |= is_admitted;
    it->probed_us = sent_us;
    it->max_ttl_ms = at_most(probe->max_ttl_ms, MAX_TTL_MOST_MS);
    it->held_us = now_us + probe->rest_us;
    it->was_durable = probe->is_durable;
    it->generation = probe->generation;
    takeover_copy(it->found, probe->admit);
    assert(probe->trace.len <= CALL_TRACE_MAX); /* script.c reads no longer */
    it->trace[span_copy(it->trace, probe->trace)] = '\0';
    takeover_on_probe(members, node, probe, now_us);
    rules_note_epochs(members, node, probe->quarantine);
    members->is_succeeded |= is_succeeding(members, node);
    bool is_left_over = rules_note_left_over(members, node, now_us);
    if (is_admitted || it->phase == MEMBER_QUARANTINED) {
        on_ours(members, node, is_admitted ? span_of("") : probe->quarantine,
                now_us);
    } else if (it->phase == MEMBER_EMPTY && is_of_this_node(it, it->found)) {
        /* from before a restart: it is no other machine of its name */
        note_incarnation(members, node, it->found, now_us);
        note_established(members, now_us);
        it->moved_us = 0;
    } else if (it->phase == MEMBER_EMPTY && it->epoch_other != 0 &&
               !is_left_over && !rules_may_take_over(members)) {
        it->phase = MEMBER_OTHER;
    }
    if (it->phase == MEMBER_OTHER || it->phase == MEMBER_SUPERSEDED)
        it->other_us = it->left_us != 0 ? it->left_us : now_us;
    if (is_admitted || (it->is_restarted && it->was_durable && it->is_durable))
        witness_on_report(&members->witness, node, probe, sent_us, now_us);
    else
        witness_on_lost(&members->witness, node);
    note_query(members);
    if (is_admitted) {
        firststart_forget(&members->start, node);
        members_on_generation(members, node, probe->generation);
        rules_on_report(members, node, probe, now_us);
    }
    if (it->phase == MEMBER_EMPTY)
        on_bare(members, node, now_us);
    if (rules_follow_epoch(members))
        begin_epoch(members, now_us);
    rules_on_taken(members);
}

/* Whatever the result, and whatever other servers did, a probe shows it. */
void members_on_done(struct members *members,
                     const struct member_action *action, int64_t now_us)
{
    struct member *it = &members->node[action->node];
    if (it->phase == MEMBER_DOWN)
        return;
    it->is_busy = false;
    if (action->kind == MEMBER_REVOKE)
        it->must_revoke = false;
    firststart_forget(&members->start, action->node);
    members_probe_soon(it, now_us);
}

/* The action may have been carried out: a probe shows it. If this was a probe,
 * the node is mute. */
void members_on_failure(struct members *members,
                        const struct member_action *action, int64_t now_us)
{
    struct member *it = &members->node[action->node];
    if (it->phase == MEMBER_DOWN)
        return;
    it->is_busy = false;
    it->not_before_us = now_us + HEARTBEAT_US;
    if (action->kind == MEMBER_OBSERVE || action->kind == MEMBER_PROBE)
        it->is_mute = true;
    else
        members_probe_soon(it, now_us);
    firststart_on_trouble(&members->start, action->node);
}

void members_on_quarantined(struct members *members, int node, int64_t now_us)
{
    struct member *it = &members->node[node];
    if (it->phase == MEMBER_ADMITTED)
        members_probe_soon(it, now_us);
}

void members_on_step(struct members *members, int node)
{
    members->node[node].must_revoke = true;
    witness_on_lost(&members->witness, node);
    for (int i = 0; i < members->settings.nodes; i++) {
        struct member *it = &members->node[i];
        it->asked.again &=
            (uint16_t) ~(1u << node); /* it reported a wrong expiry */
    }
    takeover_on_lost(&members->takeover, node);
    members->takeover.is_over = false;
}

void members_on_durable(struct members *members, int node, bool is_durable,
                        int64_t now_us)
{
    struct member *it = &members->node[node];
    if (it->is_durable && !is_durable)
        members_want_probe(members, node, now_us); /* which stores it */
    it->is_durable = is_durable;
}

/* The generation of an outdated machine says nothing of the later one. */
void members_on_generation(struct members *members, int node,
                           int64_t generation)
{
    if (!rules_is_outdated(members, node))
        witness_on_generation(&members->witness, node, generation);
}

/* ---- the vote ----------------------------------------------------------- */

enum node_state members_refusal(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    switch (it->phase) {
    case MEMBER_DOWN:
        return STATE_UNREACHABLE;
    case MEMBER_QUARANTINED:
        if (members_is_contested(members, node))
            return STATE_OTHER;
        return (members->start.quarantined & nodeset_of(node)) != 0
                   ? STATE_WAITING
                   : STATE_QUARANTINED;
    case MEMBER_UNSEEN:
        return STATE_QUARANTINED;
    case MEMBER_EMPTY:
        return it->left_us != 0 || rules_is_outdated(members, node)
                   ? STATE_QUARANTINED
                   : STATE_WAITING;
    case MEMBER_OTHER:
        return STATE_OTHER;
    case MEMBER_SUPERSEDED:
        return STATE_SUPERSEDED;
    case MEMBER_MISNAMED:
        return STATE_DUPLICATE;
    case MEMBER_ADMITTED:
        if (it->must_revoke)
            return STATE_STEPPED;
        return rules_is_outdated(members, node) ? STATE_QUARANTINED
                                                : STATE_NONE;
    }
    abort();
}

bool members_is_contested(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->phase == MEMBER_QUARANTINED && it->replaced >= RIVAL_MIN;
}

bool members_is_unseen(const struct members *members, int node)
{
    return members->node[node].phase == MEMBER_UNSEEN;
}

bool members_has_data(const struct members *members, int node, uint32_t life)
{
    const struct member *it = &members->node[node];
    return it->life == life && !it->is_outdated;
}
