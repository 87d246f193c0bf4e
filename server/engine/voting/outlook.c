/* SPDX-License-Identifier: MIT */
#include "outlook.h"

#include <stdio.h>

enum {
    /* a restarted node is back after two heartbeats, and a probe */
    BACK_US = 3 * HEARTBEAT_US,
    /* quarantines, and the probes after them at the other nodes */
    PROBES_US = 2 * HEARTBEAT_US,
    /* twice the generation of a machine in use rises, however busy its server
       is */
    GENERATIONS_US = 3 * HEARTBEAT_US,
};

/* ---- one node ------------------------------------------------------------ */

/* Which of our names the admission or quarantine record has; -1: none. */
static int name_in(const struct members *members, const char *state)
{
    for (int i = 0; i < members->settings.nodes; i++)
        if (witness_is_named(&members->witness, i, state))
            return i;
    return -1;
}

/* It was admitted for these names, but under another one than the node's. */
static bool is_misplaced(const struct members *members, int node)
{
    const char *found = members->node[node].found;
    int name = name_in(members, found);
    return takeover_is_ours(members, found) && name >= 0 && name != node;
}

/* It carries these names, but a lower epoch than this server was given. */
static bool is_of_lower(const struct members *members, int node)
{
    int epoch = rules_epoch_of(members, node);
    return epoch != 0 && epoch < members->epoch &&
           !rules_is_established(members);
}

static bool is_of_others(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->epoch_other != 0 || it->epoch_quarantine != 0 ||
           is_of_lower(members, node);
}

static enum outlook_kind outlook_kind_of(const struct nodes *nodes, int node)
{
    const struct members *members = &nodes->members;
    const struct member *it = &members->node[node];
    if (!nodes->node[node].is_up)
        return nodes->node[node].down_reason == STATE_NO_PERMISSION
                   ? OUTLOOK_UNFIT
                   : OUTLOOK_DOWN;
    if (it->probed_us == 0 || status_is_broken(nodes, node))
        return OUTLOOK_UNFIT;
    if (status_twin_of(nodes, node) >= 0)
        return OUTLOOK_TWICE;
    if (is_of_others(members, node))
        return OUTLOOK_OTHERS;
    if (is_misplaced(members, node))
        return OUTLOOK_MISPLACED;
    if (rules_is_outdated(members, node))
        return OUTLOOK_OUTDATED;
    switch (it->phase) {
    case MEMBER_ADMITTED:
        return status_is_voting(nodes, node) ? OUTLOOK_VOTES : OUTLOOK_UNFIT;
    case MEMBER_QUARANTINED:
        return OUTLOOK_QUARANTINED;
    case MEMBER_EMPTY:
        return name_in(members, it->found) == node ? OUTLOOK_RESTARTED
                                                   : OUTLOOK_EMPTY;
    default:
        return OUTLOOK_UNFIT;
    }
}

static void describe(struct outlook_node *it, const struct nodes *nodes,
                     int node, int64_t now_us)
{
    const struct member *seen = &nodes->members.node[node];
    const char *state = seen->found[0] != '\0' ? seen->found : seen->quarantine;
    it->kind = outlook_kind_of(nodes, node);
    it->under = -1;
    it->is_lower =
        it->kind == OUTLOOK_OTHERS && is_of_lower(&nodes->members, node);
    if (it->kind == OUTLOOK_TWICE)
        it->under = status_twin_of(nodes, node);
    else if (it->kind == OUTLOOK_MISPLACED || it->kind == OUTLOOK_OTHERS)
        it->under = name_in(&nodes->members, state);
    it->epoch = seen->epoch_other != 0        ? seen->epoch_other
                : seen->epoch_quarantine != 0 ? seen->epoch_quarantine
                                              : seen->epoch_ours;
    it->is_whole = rules_is_lasting(&nodes->members, node);
    it->is_in_use = seen->phase == MEMBER_MISNAMED;
    status_describe(nodes, node, now_us, it->detail);
    if (nodes->node[node].is_up)
        status_note(&nodes->node[node], it->note);
}

/* ---- how long they wait -------------------------------------------------- */

/*
 * Until the node votes, if it is quarantined now: as members.h has it. The
 * promises of the others end, if a majority of them can be asked.
 */
static int64_t quarantined_us(const struct outlook *outlook,
                              const struct nodes *nodes, int node,
                              int64_t now_us)
{
    int64_t end_us = now_us;
    int others = 0;
    for (int i = 0; i < outlook->nodes; i++) {
        if (i == node || outlook->node[i].kind != OUTLOOK_VOTES)
            continue;
        others++;
        end_us = at_least(nodes->members.node[i].held_us, end_us);
    }
    if (others < outlook->quorum)
        return at_least(rules_quarantine_us(&nodes->members), PROBES_US);
    return at_least((end_us - now_us) + (end_us - now_us) / 100, PROBES_US);
}

/* After another machine with its name has fallen silent. */
static int64_t renewed_us(const struct members *members, int node)
{
    return witness_is_waiting(&members->witness, node)
               ? at_least(rules_quarantine_us(members), SILENT_US)
               : SILENT_US;
}

/* How long it takes until the rest votes beside those that are taken. */
static int64_t rest_us(const struct outlook *outlook,
                       const struct members *members)
{
    int64_t most_us = at_least(rules_quarantine_us(members), PROBES_US);
    if (rules_has_word(members))
        return most_us;
    return nodeset_count(outlook->reporters) >= outlook->quorum
               ? outlook->reported_us + PROBES_US
               : outlook->reported_us + most_us;
}

/*
 * How long other names are replaced: until what they promised has ended, if a
 * majority of these nodes tells it; otherwise the rest waits as well.
 */
static void take_over(struct outlook *outlook, const struct members *members,
                      int64_t now_us)
{
    int64_t most_us = at_least(rules_quarantine_us(members), PROBES_US);
    struct takeover_count count;
    takeover_count(members, TAKEOVER_POSSIBLE, &count);
    outlook->old_names = count.names;
    outlook->reporters = count.reporters;
    outlook->has_rivals = count.has_others;
    outlook->reported_us = PROBES_US;
    for (int i = 0; i < outlook->nodes; i++)
        if (members->takeover.node[i].taken[0] != '\0')
            outlook->reported_us =
                at_least(members->takeover.node[i].end_us - now_us,
                         outlook->reported_us);
    if (outlook->change != OUTLOOK_TAKE_OVER || rules_has_word(members)) {
        outlook->pause_us = outlook->most_us = most_us; /* by time alone */
        outlook->reported_us = most_us;
        return;
    }
    bool is_enough = nodeset_count(count.reporters) >= outlook->quorum;
    outlook->most_us = is_enough ? most_us : outlook->reported_us + most_us;
    outlook->pause_us =
        is_enough ? at_most(outlook->reported_us, most_us) : outlook->most_us;
}

static void wait(struct outlook *outlook, const struct nodes *nodes, int node,
                 int64_t now_us)
{
    const struct members *members = &nodes->members;
    struct outlook_node *it = &outlook->node[node];
    bool is_change = outlook->change == OUTLOOK_REFUSED ||
                     outlook->change == OUTLOOK_WRONG_EPOCH;
    it->will_vote = !is_change && !outlook->is_blocked;
    if (outlook->change == OUTLOOK_TAKE_OVER &&
        (it->kind == OUTLOOK_OTHERS || it->kind == OUTLOOK_EMPTY ||
         it->kind == OUTLOOK_QUARANTINED))
        it->wait_us = (outlook->reporters & 1u << node) != 0
                          ? outlook->reported_us
                          : rest_us(outlook, members);
    else if (outlook->change == OUTLOOK_FIRST_START)
        it->wait_us = members->start.hold_us + PROBES_US;
    else if (it->kind == OUTLOOK_RESTARTED && it->is_whole)
        it->wait_us = BACK_US;
    else if (it->kind == OUTLOOK_RESTARTED || it->kind == OUTLOOK_EMPTY)
        it->wait_us = quarantined_us(outlook, nodes, node, now_us);
    else if (it->kind == OUTLOOK_QUARANTINED)
        it->wait_us =
            at_least(rules_remaining_us(members, node, now_us), HEARTBEAT_US);
    else if (it->kind == OUTLOOK_OUTDATED)
        it->wait_us = renewed_us(members, node) +
                      quarantined_us(outlook, nodes, node, now_us);
    else
        it->will_vote = it->kind == OUTLOOK_VOTES;
}

/* ---- all of them --------------------------------------------------------- */

static bool are_all(const struct outlook *outlook, enum outlook_kind kind)
{
    for (int i = 0; i < outlook->nodes; i++)
        if (outlook->node[i].kind != kind)
            return false;
    return true;
}

static bool are_durable(const struct members *members)
{
    for (int i = 0; i < members->settings.nodes; i++)
        if (!members->node[i].is_durable)
            return false;
    return true;
}

/* The next epoch after all that nodes of other names carry; 0: none do. */
static int next_epoch(const struct outlook *outlook)
{
    int greatest = 0;
    for (int i = 0; i < outlook->nodes; i++)
        if (outlook->node[i].kind == OUTLOOK_OTHERS)
            greatest = (int)at_least(outlook->node[i].epoch, greatest);
    return greatest == 0 ? 0 : greatest + 1;
}

static enum outlook_change change_of(const struct outlook *outlook,
                                     const struct members *members)
{
    enum first_start first = members->settings.first_start;
    if (outlook->reached < outlook->quorum)
        return OUTLOOK_UNKNOWN;
    if (outlook->epoch_needed == 0 && rules_is_taking_over(members))
        return rules_may_take_over(members) ? OUTLOOK_TAKE_OVER
                                            : OUTLOOK_REFUSED;
    if (are_all(outlook, OUTLOOK_EMPTY) &&
        (first == FIRST_START_YES ||
         (first == FIRST_START_AUTO && are_durable(members))))
        return OUTLOOK_FIRST_START;
    if (outlook->epoch_needed == 0 || rules_is_established(members))
        return OUTLOOK_SAME;
    if (outlook->epoch != outlook->epoch_needed)
        return OUTLOOK_WRONG_EPOCH;
    return rules_may_take_over(members) ? OUTLOOK_TAKE_OVER : OUTLOOK_REFUSED;
}

/* How long until a quorum votes; 0: it does, or not by waiting alone. */
static int64_t quorum_us(const struct outlook *outlook)
{
    int64_t waits_us[NODES_MAX];
    int count = 0;
    for (int i = 0; i < outlook->nodes; i++) {
        const struct outlook_node *it = &outlook->node[i];
        bool is_open = it->kind == OUTLOOK_OUTDATED && it->is_in_use;
        if (it->kind != OUTLOOK_VOTES && it->will_vote && !is_open)
            waits_us[count++] = it->wait_us;
    }
    return status_wait_us(waits_us, count, outlook->quorum - outlook->voting);
}

/* Whether the node needs no further probe. */
static bool is_settled(const struct outlook *outlook, const struct nodes *nodes,
                       int node, int64_t since_us, int64_t now_us)
{
    const struct node *it = &nodes->node[node];
    const struct outlook_node *seen = &outlook->node[node];
    if (!it->is_up)
        return it->down_reason != STATE_NONE;
    if (status_is_broken(nodes, node))
        return true;
    if (nodes->members.node[node].probed_us <= since_us)
        return false;
    if (since_us == 0)
        return true;
    if (seen->kind == OUTLOOK_OUTDATED && !seen->is_in_use)
        return now_us >= since_us + GENERATIONS_US;
    return it->refusal != STATE_UNPROVEN;
}

void outlook_make(struct outlook *outlook, const struct nodes *nodes,
                  int64_t since_us, int64_t now_us)
{
    const struct members *members = &nodes->members;
    *outlook = (struct outlook){
        .nodes = nodes->env->settings.nodes,
        .quorum = nodes->members.quorum,
        .epoch_given = nodes->env->settings.config_epoch,
        .epoch = members->epoch,
        .is_settled = true,
    };
    for (int i = 0; i < outlook->nodes; i++) {
        struct outlook_node *it = &outlook->node[i];
        describe(it, nodes, i, now_us);
        if (it->kind == OUTLOOK_OUTDATED)
            it->is_in_use =
                since_us != 0 && members->witness.node[i].rose_us > since_us;
        outlook->reached +=
            nodes->node[i].is_up && members->node[i].probed_us != 0;
        outlook->voting += it->kind == OUTLOOK_VOTES;
        outlook->is_settled &= is_settled(outlook, nodes, i, since_us, now_us);
    }
    outlook->epoch_needed = next_epoch(outlook);
    outlook->change = change_of(outlook, members);
    outlook->is_blocked =
        outlook->change == OUTLOOK_SAME && outlook->epoch_needed != 0;
    outlook->are_empty =
        are_all(outlook, OUTLOOK_EMPTY) && outlook->change == OUTLOOK_SAME;
    if (outlook->change > OUTLOOK_FIRST_START)
        take_over(outlook, members, now_us);
    for (int i = 0; i < outlook->nodes; i++) {
        bool is_counted =
            nodes->node[i].is_up &&
            (!outlook->is_blocked || outlook->node[i].kind != OUTLOOK_OTHERS);
        if (is_counted && members->node[i].held_us > now_us)
            outlook->held_us =
                at_least(members->node[i].held_us - now_us, outlook->held_us);
        wait(outlook, nodes, i, now_us);
    }
    if (outlook->change <= OUTLOOK_FIRST_START)
        outlook->pause_us = outlook->most_us = quorum_us(outlook);
}
