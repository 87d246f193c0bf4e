/* SPDX-License-Identifier: MIT */
/*
 * Why a node does not vote: one reason, with a name and a sentence.
 */
#include "nodes.h"

#include <stdarg.h>
#include <stdio.h>

#include "../../base/types.h"

bool status_is_confirmed(const struct node *node, int64_t now_us)
{
    return node->confirmed_us != 0 &&
           now_us - node->confirmed_us < CONFIRMED_US;
}

int status_twin_of(const struct nodes *nodes, int node)
{
    const struct member *member = nodes->members.node;
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        if (i != node && nodes->node[i].is_up &&
            strcmp(member[i].run_id, member[node].run_id) == 0)
            return i;
    return -1;
}

enum node_state status_refusal(const struct nodes *nodes, int node,
                               int64_t now_us)
{
    const struct node *it = &nodes->node[node];
    if (!it->is_up)
        return it->down_reason != STATE_NONE ? it->down_reason
                                             : STATE_UNREACHABLE;
    if (status_twin_of(nodes, node) >= 0)
        return STATE_DUPLICATE;
    enum node_state refusal = members_refusal(&nodes->members, node);
    if (refusal != STATE_NONE)
        return refusal;
    if (!status_is_confirmed(it, now_us))
        return STATE_UNCONFIRMED;
    return clocks_refusal(&nodes->clocks, node);
}

bool status_is_probed(const struct nodes *nodes, int node)
{
    const struct member *it = &nodes->members.node[node];
    return members_is_unseen(&nodes->members, node) && it->is_busy &&
           !it->must_revoke &&
           clocks_refusal(&nodes->clocks, node) == STATE_NONE;
}

bool status_is_voting(const struct nodes *nodes, int node)
{
    const struct node *it = &nodes->node[node];
    return it->refusal == STATE_NONE && it->condition == STATE_NONE;
}

bool status_is_full(const struct nodes *nodes, int node)
{
    return nodes->node[node].condition == STATE_OUT_OF_MEMORY;
}

bool status_is_broken(const struct nodes *nodes, int node)
{
    return nodes->node[node].condition != STATE_NONE &&
           !status_is_full(nodes, node);
}

bool status_is_serving(const struct nodes *nodes, int node)
{
    return nodes->node[node].refusal == STATE_NONE &&
           !status_is_broken(nodes, node);
}

/* An error says more than its consequences; but a full node extends and
 * releases all the same. */
enum node_state status_shown(const struct nodes *nodes, int node)
{
    const struct node *it = &nodes->node[node];
    if (it->is_up && it->condition != STATE_NONE &&
        it->refusal != STATE_SUPERSEDED &&
        (!status_is_full(nodes, node) || it->refusal == STATE_NONE))
        return it->condition;
    if (it->refusal == STATE_QUARANTINED &&
        members_is_unseen(&nodes->members, node))
        return STATE_ADMITTING;
    return it->refusal;
}

const char *status_name(const struct nodes *nodes, int node)
{
    const struct node *it = &nodes->node[node];
    if (!it->is_up && it->down_reason == STATE_NONE)
        return "connecting";
    return state_name(status_shown(nodes, node));
}

/* It has never voted, as far as it and this server know. */
static bool is_new(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->is_only_quarantined && !it->has_voted;
}

bool status_is_starting(const struct members *members, int node)
{
    return is_new(members, node) &&
           span_is(call_state_part(span_of(members->node[node].quarantine),
                                   CALL_STATE_NEWS),
                   "first");
}

/* Adds this to a sentence, as far as it fits. */
__attribute__((format(printf, 2, 3))) static void
say(char detail[NODE_DETAIL_MAX], const char *format, ...)
{
    size_t len = strlen(detail);
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail + len, NODE_DETAIL_MAX - len, format, args);
    va_end(args);
}

void status_note(const struct node *node, char note[NODE_DETAIL_MAX])
{
    note[0] = '\0';
    if (node->not_durable[0] != '\0')
        say(note, "not durable: %s", node->not_durable);
    if (node->lacks[0] != '\0')
        say(note, "%s%s", note[0] != '\0' ? "; " : "", node->lacks);
}

static void describe_quarantine(const struct members *members, int node,
                                int left_s, char detail[NODE_DETAIL_MAX])
{
    if (members->node[node].is_restarted) {
        say(detail,
            "%s; votes again in %d s, or as soon as the other nodes confirm "
            "its data",
            rules_is_in_this_life(members, node)
                ? "may have been a replica: its replication ID has changed, "
                  "and no redlockd saw the reason (a first replica, such as a "
                  "backup with redis-cli --rdb, or a freed replication backlog "
                  "changes it, too)"
                : "was restarted",
            left_s);
    } else if (status_is_starting(members, node)) {
        say(detail,
            "is new; votes as soon as the server that quarantined it has "
            "quarantined "
            "all nodes, or in %d s",
            left_s);
    } else if (is_new(members, node)) {
        say(detail, "is new, or has lost its data; votes in %d s", left_s);
        if (!rules_is_established(members) &&
            members->settings.first_start == FIRST_START_AUTO)
            say(detail,
                ", as new nodes vote at once only if they are all durable");
    } else {
        say(detail, "may have lost locks; votes again in %d s", left_s);
    }
}

static void describe_admission(const struct members *members, int node,
                               int64_t now_us, char detail[NODE_DETAIL_MAX])
{
    const struct member *it = &members->node[node];
    enum node_state refusal = members_refusal(members, node);
    int left_s =
        (int)divide_up(rules_remaining_us(members, node, now_us), US_PER_S);
    int epoch = members->epoch;
    if (members_is_contested(members, node))
        say(detail,
            "a server with other --nodes, or with another name for this node, "
            "waits for it, too, and as long as both wait, neither gets it; "
            "give all servers the same --nodes");
    else if (refusal == STATE_SUPERSEDED && it->epoch_ours > epoch &&
             rules_epoch_of(members, node) == 0)
        say(detail,
            "has never voted; its quarantine record of epoch %d does not "
            "count: a server with the right --config-epoch replaces it",
            it->epoch_ours);
    else if (refusal == STATE_SUPERSEDED)
        say(detail,
            "stores configuration epoch %d, this server has %d; restart this "
            "server with the new configuration",
            it->epoch_other > epoch
                ? it->epoch_other
                : (int)at_least(it->epoch_quarantine, it->epoch_ours),
            epoch);
    else if (refusal == STATE_OTHER && it->epoch_other < epoch &&
             !rules_is_established(members) &&
             epoch == rules_epoch_below(members) + 1)
        say(detail,
            "serves another configuration of epoch %d, which is replaced once "
            "a majority of its nodes is connected here and has reported its "
            "grants; see redlockd --plan",
            it->epoch_other);
    else if (refusal == STATE_OTHER)
        say(detail,
            "serves another configuration (other nodes) of epoch %d; if the "
            "address is right, replace that configuration by --config-epoch %d",
            (int)at_least(it->epoch_quarantine, it->epoch_other),
            (int)at_least(it->epoch_quarantine, it->epoch_other) + 1);
    else if (members_is_unseen(members, node))
        say(detail, "%s", state_detail(STATE_ADMITTING));
    else if (it->left_us != 0)
        say(detail,
            "has old data of other names; is taken over when no server has "
            "used it for %d s",
            (int)(SILENT_US / US_PER_S));
    else if (rules_is_outdated(members, node))
        say(detail, "waits: another machine still replies under this name");
    else if (it->phase == MEMBER_EMPTY && left_s > 0)
        say(detail,
            "is new; votes as soon as all nodes are connected and new, or in "
            "%d s",
            left_s);
    else if (refusal != STATE_QUARANTINED)
        say(detail, "%s", state_detail(refusal));
    else if (left_s > 0)
        describe_quarantine(members, node, left_s, detail);
    else if (rules_has_other(members, now_us))
        say(detail, "waits: another node serves, or recently served, another "
                    "configuration");
    else if (!rules_has_taken_over(members))
        say(detail,
            "waits until epoch %d has taken over a majority of the old names; "
            "if that majority is permanently lost, stop the old servers and "
            "give --take-over %d",
            epoch, epoch);
    else
        say(detail, "about to be admitted");
}

static void describe_clock(const struct nodes *nodes, int node, int64_t now_us,
                           enum node_state shown, char detail[NODE_DETAIL_MAX])
{
    const struct clocks *clocks = &nodes->clocks;
    int64_t offset_ms = clocks_offset_us(clocks, node, now_us) / 1000;
    if (shown == STATE_UNPROVEN)
        say(detail,
            "its clock is %lld ms ahead of the others; the node votes once its "
            "clock agrees, or has been steady for another %d s",
            (long long)offset_ms,
            (int)(clocks_remaining_us(clocks, node, now_us) / 1000000) + 1);
    else if (shown == STATE_SKEWED)
        say(detail, "its clock is %lld ms ahead of the others; correct it",
            (long long)offset_ms);
    else
        say(detail, "%s", state_detail(shown));
}

void status_describe(const struct nodes *nodes, int node, int64_t now_us,
                     char detail[NODE_DETAIL_MAX])
{
    const struct node *it = &nodes->node[node];
    enum node_state shown = status_shown(nodes, node);
    char note[NODE_DETAIL_MAX];
    detail[0] = '\0';
    if (!it->is_up) {
        say(detail, "%s", it->down_detail);
        return;
    }
    if (shown != STATE_NONE && shown == it->condition &&
        shown != STATE_OUT_OF_MEMORY && it->words[0] != '\0') {
        say(detail, "%s: %s", state_detail(shown), it->words);
        return;
    }
    switch (shown) {
    case STATE_NONE:
        status_note(it, note);
        say(detail, "admitted%s%s", note[0] != '\0' ? "; " : "", note);
        return;
    case STATE_SUPERSEDED:
    case STATE_OTHER:
    case STATE_WAITING:
    case STATE_QUARANTINED:
    case STATE_ADMITTING:
        describe_admission(&nodes->members, node, now_us, detail);
        break;
    default:
        describe_clock(nodes, node, now_us, shown, detail);
    }
    if ((shown == STATE_QUARANTINED || shown == STATE_ADMITTING) &&
        it->lost_by_us != 0)
        say(detail, " (its clock stepped by %lld ms)",
            (long long)(it->lost_by_us / 1000));
    if (shown == STATE_QUARANTINED && it->not_durable[0] != '\0' &&
        rules_remaining_us(&nodes->members, node, now_us) > 0)
        say(detail, "; not durable: %s", it->not_durable);
}

int64_t status_wait_us(int64_t waits_us[], int count, int missing)
{
    return missing > 0 && missing <= count
               ? order_statistic(waits_us, count, missing - 1)
               : 0;
}

int64_t status_quorum_in_us(const struct nodes *nodes, int64_t now_us)
{
    int64_t waits_us[NODES_MAX];
    int count = 0;
    for (int i = 0; i < nodes->env->settings.nodes; i++) {
        int64_t wait_us = rules_remaining_us(&nodes->members, i, now_us);
        if (wait_us != 0 && nodes->node[i].is_up)
            waits_us[count++] = wait_us;
    }
    return status_wait_us(waits_us, count,
                          nodes->members.quorum - nodes->voting);
}

void status_measure(const struct nodes *nodes, int node, int64_t now_us)
{
    struct metrics *metrics = nodes->env->metrics;
    const struct members *members = &nodes->members;
    int64_t left_us = rules_remaining_us(members, node, now_us);
    metrics->clock_offset_us[node] =
        clocks_offset_us(&nodes->clocks, node, now_us);
    metrics->quarantine_us[node] = left_us;
    metrics->node_is_new[node] = left_us > 0 && is_new(members, node);
    metrics->node_is_restarted[node] =
        left_us > 0 && members->node[node].is_restarted;
}
