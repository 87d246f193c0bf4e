/* SPDX-License-Identifier: MIT */
/*
 * The rules by which a node gets its permission to vote, and which
 * configuration counts.
 */
#include "members.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "../port/token.h"

enum {
    SLACK_US = 1000000,
    /* within this time each live server reports data that it has seen */
    SAID_US = 2 * HEARTBEAT_US,
};

/* ---- machines under one name -------------------------------------------- */

bool rules_is_outdated(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->is_outdated &&
           (it->phase == MEMBER_ADMITTED || it->phase == MEMBER_QUARANTINED ||
            it->phase == MEMBER_EMPTY);
}

bool rules_may_be_elsewhere(const struct members *members, int node,
                            int64_t now_us)
{
    int64_t moved_us = members->node[node].moved_us;
    int64_t rose_us = members->witness.node[node].rose_us;
    return moved_us != 0 && now_us < at_least(moved_us, rose_us) + SILENT_US;
}

/*
 * Whether a quarantine record of a higher epoch, which has taken the node from
 * nobody, may be replaced. Nodes of another epoch must not come back whom that
 * quarantine replaced: so if the node has voted, quarantine records of ours are
 * not enough, as a node that lost data may have got them.
 */
static bool may_lower(const struct members *members, int node)
{
    int admitted = 0, ours = 0, counting = 0;
    for (int i = 0; i < members->settings.nodes; i++) {
        const struct member *it = &members->node[i];
        admitted += it->phase == MEMBER_ADMITTED || it->is_restarted;
        ours += it->epoch_ours == members->epoch;
        counting += rules_epoch_of(members, i) == members->epoch;
    }
    if (admitted >= members->quorum)
        return true;
    if (!members->node[node].is_only_quarantined)
        return false;
    return ours >= members->quorum ||
           (rules_epoch_of(members, node) == 0 &&
            (counting > 0 || (rules_epoch_below(members) != 0 &&
                              rules_may_take_over(members))));
}

bool rules_may_renew(const struct members *members, int node, int64_t now_us)
{
    const struct witness_node *it = &members->witness.node[node];
    if (members->node[node].is_quarantined_above)
        return may_lower(members, node);
    if (!members->node[node].is_outdated)
        return false;
    int64_t patience_us = witness_is_waiting(&members->witness, node)
                              ? rules_quarantine_us(members)
                              : SILENT_US;
    return now_us >= it->rose_us + SILENT_US &&
           now_us >= it->born_us + patience_us;
}

/* ---- promises of the other nodes ---------------------------------------- */

static bool is_majority(const struct members *members, uint16_t nodes)
{
    return nodeset_count(nodes) >= members->quorum;
}

/* The other nodes that vote and have a good clock. */
static uint16_t voters_beside(const struct members *members, int node)
{
    uint16_t beside = 0;
    for (int i = 0; i < members->settings.nodes; i++) {
        const struct member *it = &members->node[i];
        if (i != node && it->phase == MEMBER_ADMITTED && !it->must_revoke &&
            it->is_clock_good && !rules_is_outdated(members, i))
            beside |= nodeset_of(i);
    }
    return beside;
}

static bool has_others(const struct members *members, int node)
{
    return is_majority(members, voters_beside(members, node));
}

/* Those members that carry the node's incarnation as the latest. */
static uint16_t carriers_of(const struct members *members, int node)
{
    const struct witness_node *known = &members->witness.node[node];
    if (strcmp(known->latest, members->node[node].incarnation) != 0)
        return 0;
    return known->carriers & voters_beside(members, node);
}

/* After each new carrier of the incarnation all are asked again: a probe counts
 * only if it was sent after all counted nodes carried the incarnation. */
static void ask_reporter(struct members *members, int node, int reporter,
                         const struct call_probe *probe, int64_t now_us)
{
    struct member *it = &members->node[node];
    struct member_asked *asked = &it->asked;
    uint32_t joins = members->witness.node[node].joins;
    uint16_t carriers = carriers_of(members, node);
    asked->again &= carriers;
    if (asked->joins != joins) {
        *asked = (struct member_asked){.joins = joins, .since_us = now_us};
        if (is_majority(members, carriers))
            it->news_us = now_us;
    } else if ((carriers & nodeset_of(reporter)) != 0 &&
               members->node[reporter].probed_us >= asked->since_us) {
        asked->again |= nodeset_of(reporter);
        asked->end_us = at_least(takeover_end_of(probe, now_us), asked->end_us);
        asked->number = at_least(probe->number, asked->number);
    }
}

void rules_on_report(struct members *members, int node,
                     const struct call_probe *probe, int64_t now_us)
{
    for (int i = 0; i < members->settings.nodes; i++)
        if (i != node && members->node[i].phase == MEMBER_QUARANTINED &&
            !is_majority(members, members->node[i].asked.again))
            ask_reporter(members, i, node, probe, now_us);
}

/* ---- quarantine --------------------------------------------------------- */

int64_t rules_greatest_ttl_ms(const struct members *members)
{
    int64_t greatest_ms = members->settings.max_ttl_ms;
    for (int i = 0; i < members->settings.nodes; i++)
        greatest_ms = at_least(greatest_ms, members->node[i].max_ttl_ms);
    return greatest_ms;
}

int64_t rules_quarantine_us(const struct members *members)
{
    if (members->settings.is_guard_off)
        return 0;
    int64_t locks_us = rules_greatest_ttl_ms(members) * 1010;
    return at_least(locks_us, 4 * (int64_t)FENCE_WINDOW_US) + CONFIRMED_US +
           SLACK_US;
}

bool rules_is_established(const struct members *members)
{
    return members->established_epoch == members->epoch;
}

bool rules_is_in_this_life(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->phase != MEMBER_ADMITTED &&
           span_is(call_state_part(span_of(it->found), CALL_STATE_RUN_ID),
                   it->run_id);
}

bool rules_has_word(const struct members *members)
{
    return members->settings.has_take_over &&
           members->epoch == members->settings.config_epoch;
}

bool rules_is_taking_over(const struct members *members)
{
    return members->epoch > 1 && !rules_is_established(members) &&
           !rules_has_word(members) && !members->settings.is_guard_off;
}

/*
 * The end of the quarantine if the other nodes cannot be asked. Of a later
 * epoch it begins when a node votes: until then the old names may have granted
 * locks, with higher numbers than such a node has.
 */
static int64_t due_us(const struct members *members, int node)
{
    int64_t since_us = members->node[node].sighted_us;
    if (members->epoch > 1)
        since_us = at_least(since_us, members->epoch_us);
    return since_us + rules_quarantine_us(members);
}

/* The old names are dead, and it has not voted under the new ones. */
static bool is_taken(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return members->takeover.is_over && !it->must_revoke && it->is_clock_good &&
           takeover_reports(&members->takeover, node);
}

/* When all that the node may have lost has ended; INT64_MAX: that is not
 * known yet. */
static int64_t forgotten_until_us(const struct members *members, int node)
{
    const struct member_asked *asked = &members->node[node].asked;
    if (is_taken(members, node))
        return at_least(members->takeover.node[node].end_us,
                        members->takeover.end_us);
    if (is_majority(members, asked->again))
        return asked->end_us;
    return has_others(members, node) ? INT64_MAX : due_us(members, node);
}

static bool has_ended(const struct members *members, int node, int64_t now_us)
{
    int64_t until_us = forgotten_until_us(members, node);
    if (members->settings.is_guard_off)
        return true;
    if (is_taken(members, node))
        return now_us >= until_us;
    if (rules_is_taking_over(members))
        return false;
    return now_us >= until_us &&
           (is_majority(members, members->node[node].asked.again) ||
            (!members->is_succeeded && rules_probed_us(members) >= until_us));
}

/* ---- whole data --------------------------------------------------------- */

/*
 * True if each server that knows later data had time to report it, and
 * enough other nodes have answered since. Nodes that do not vote may have lost
 * the report as well: if they are needed, no node may be missing, as it could
 * be the only one with the report. A single node has no others.
 */
static bool is_agreed(const struct members *members, int node, int64_t now_us)
{
    int nodes = members->settings.nodes;
    int enough = nodes - members->quorum + 1;
    int64_t since_us = members->node[node].sighted_us + SAID_US;
    int whole = 0, voting = 0, there = 1;
    for (int i = 0; i < nodes; i++) {
        const struct member *it = &members->node[i];
        const struct witness_node *known = &members->witness.node[i];
        if (i == node || it->probed_us < since_us)
            continue;
        there += it->phase != MEMBER_DOWN && !it->is_mute;
        if (known->reported_us < since_us ||
            known->reported_us < known->counts_us + SAID_US)
            continue;
        whole++;
        voting += it->phase == MEMBER_ADMITTED;
    }
    return now_us >= since_us && (nodes == 1 || voting >= enough ||
                                  (whole >= enough && there == nodes));
}

/* No later data is known. */
static bool is_latest_data(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->generation >= members->witness.node[node].high_water;
}

bool rules_is_lasting(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->is_durable && it->was_durable && is_latest_data(members, node);
}

int64_t rules_remaining_us(const struct members *members, int node,
                           int64_t now_us)
{
    const struct member *it = &members->node[node];
    int64_t first_us = firststart_remaining_us(&members->start, now_us);
    if (it->phase == MEMBER_EMPTY && first_us > 0)
        return first_us + rules_quarantine_us(members);
    if (it->quarantine[0] == '\0' ||
        (members->start.quarantined & nodeset_of(node)) != 0)
        return 0;
    if (rules_is_taking_over(members) && !is_taken(members, node))
        return 0;
    int64_t end_us = forgotten_until_us(members, node);
    if (end_us == INT64_MAX)
        end_us = now_us + HEARTBEAT_US;
    if (it->is_restarted && rules_is_lasting(members, node))
        end_us = at_most(end_us, it->sighted_us + SAID_US);
    return at_least(end_us - now_us, 0);
}

/* ---- another configuration ---------------------------------------------- */

static bool is_bound(const struct members *members)
{
    for (int i = 0; i < members->settings.nodes; i++) {
        const struct member *it = &members->node[i];
        if (it->epoch_other != 0 || it->epoch_quarantine != 0 ||
            (it->epoch_ours != 0 && !it->is_only_quarantined))
            return true;
    }
    return false;
}

int rules_epoch_of(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return it->is_only_quarantined && is_bound(members) ? 0 : it->epoch_ours;
}

int rules_epoch_below(const struct members *members)
{
    int64_t below = 0;
    for (int i = 0; i < members->settings.nodes; i++) {
        const struct member *it = &members->node[i];
        const int found[] = {rules_epoch_of(members, i), it->epoch_other,
                             it->epoch_quarantine,
                             takeover_epoch_below(members, i)};
        for (size_t k = 0; k < sizeof found / sizeof *found; k++)
            if (found[k] < members->epoch)
                below = at_least(found[k], below);
    }
    return (int)below;
}

static bool may_take_over(const struct members *members,
                          enum takeover_when when)
{
    struct takeover_count count;
    int there = 0;
    int skipped = members->epoch - rules_epoch_below(members) - 1;
    if (rules_is_established(members) ||
        (skipped > 0 && !rules_has_word(members)))
        return false;
    for (int i = 0; i < members->settings.nodes; i++)
        there += members->node[i].phase != MEMBER_DOWN &&
                 members->node[i].probed_us != 0;
    if (!rules_is_taking_over(members))
        return there >= members->quorum;
    takeover_count(members, when, &count);
    return count.is_dead;
}

bool rules_may_take_over(const struct members *members)
{
    return may_take_over(members, TAKEOVER_POSSIBLE);
}

/* Once the old names were dead, some node must still tell so. */
bool rules_is_refused(const struct members *members)
{
    if (!rules_is_taking_over(members))
        return false;
    if (!members->takeover.is_over)
        return !may_take_over(members, TAKEOVER_EARLY);
    for (int i = 0; i < members->settings.nodes; i++)
        if (takeover_reports(&members->takeover, i))
            return false;
    return true;
}

/* Once: those who are dead stay so. */
void rules_on_taken(struct members *members)
{
    struct takeover_count count;
    if (!rules_is_taking_over(members) || members->takeover.is_over)
        return;
    takeover_count(members, TAKEOVER_NOW, &count);
    if (!count.is_dead)
        return;
    takeover_end(&members->takeover, count.base);
    for (int i = 0; i < members->settings.nodes; i++)
        if (members->node[i].phase != MEMBER_OTHER &&
            members->node[i].phase != MEMBER_SUPERSEDED)
            members->node[i].other_us = 0;
}

int64_t rules_number(const struct members *members, int node)
{
    const struct member *it = &members->node[node];
    return is_taken(members, node)
               ? at_least(members->takeover.node[node].number,
                          members->takeover.number)
               : at_least(it->asked.number, members->takeover.number);
}

/* What it has promised under the other names is waited for from then on; if
 * these are dead, it was waited for. */
bool rules_note_left_over(struct members *members, int node, int64_t now_us)
{
    struct member *it = &members->node[node];
    if (it->epoch_other == 0 || it->epoch_other >= members->epoch ||
        it->epoch_quarantine >= members->epoch ||
        !rules_is_established(members) ||
        !witness_is_named(&members->witness, node, it->found)) {
        it->left_us = 0;
        return false;
    }
    if (takeover_is_of_dead(members, node))
        return true;
    if (it->left_us == 0 || it->generation != it->left_generation) {
        it->left_us = now_us;
        it->left_generation = it->generation;
    }
    it->other_us = it->left_us;
    return now_us >= it->left_us + SILENT_US;
}

bool rules_is_others(const struct members *members, int node, int64_t now_us)
{
    const struct member *it = &members->node[node];
    return it->epoch_other != 0 && !takeover_is_of_dead(members, node) &&
           (it->left_us == 0 || now_us < it->left_us + SILENT_US);
}

/* ---- obstacles ---------------------------------------------------------- */

bool rules_has_other(const struct members *members, int64_t now_us)
{
    for (int i = 0; i < members->settings.nodes; i++)
        if (members->node[i].other_us != 0 &&
            now_us - members->node[i].other_us < rules_quarantine_us(members))
            return true;
    return false;
}

bool rules_has_taken_over(const struct members *members)
{
    return !rules_is_taking_over(members) || members->takeover.is_over;
}

static bool may_admit(const struct members *members, int node, int64_t now_us)
{
    return members->node[node].phase == MEMBER_QUARANTINED &&
           (members->has_median || members->settings.is_guard_off) &&
           (is_taken(members, node) || !rules_has_other(members, now_us)) &&
           rules_has_taken_over(members) && !rules_is_outdated(members, node);
}

/* ---- decisions ---------------------------------------------------------- */

int64_t rules_probed_us(const struct members *members)
{
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < members->settings.nodes; i++)
        if (members->node[i].phase != MEMBER_DOWN && !members->node[i].is_mute)
            least_us = at_most(members->node[i].probed_us, least_us);
    return least_us;
}

bool rules_is_due(const struct members *members, int node, int64_t now_us)
{
    return may_admit(members, node, now_us) &&
           (firststart_may_admit(&members->start, node) ||
            (has_ended(members, node, now_us) &&
             is_latest_data(members, node) && !members->node[node].is_mute));
}

bool rules_is_back(const struct members *members, int node, int64_t now_us)
{
    const struct member *it = &members->node[node];
    return it->is_restarted && it->is_clock_good &&
           may_admit(members, node, now_us) &&
           rules_is_lasting(members, node) && is_agreed(members, node, now_us);
}

/* ---- the epoch of the configuration -------------------------------------- */

void rules_note_epochs(struct members *members, int node,
                       struct span quarantine)
{
    struct member *it = &members->node[node];
    char text[CALL_STATE_MAX + 1];
    takeover_copy(text, quarantine);
    int admitted = takeover_epoch_of(it->found);
    int quarantined = takeover_epoch_of(text);
    it->epoch_ours = it->epoch_other = it->epoch_quarantine = 0;
    if (takeover_is_ours(members, it->found))
        it->epoch_ours = admitted;
    else
        it->epoch_other = admitted;
    it->is_quarantined_above = takeover_is_ours(members, text) &&
                               quarantined > members->epoch &&
                               admitted <= members->epoch;
    if (!takeover_is_ours(members, text))
        it->epoch_quarantine = quarantined;
    else if (quarantined > it->epoch_ours)
        it->epoch_ours = quarantined;
    it->is_only_quarantined = it->epoch_ours > admitted && it->max_ttl_ms == 0;
}

/* Those that carry this epoch, and not only by a quarantine record on one that
 * never voted: such a quarantine record may cease to count. */
static int count_certain(const struct members *members, int epoch)
{
    int count = 0;
    for (int i = 0; i < members->settings.nodes; i++)
        count += members->node[i].epoch_ours == epoch &&
                 !members->node[i].is_only_quarantined;
    return count;
}

/* The epoch of most nodes that carry our configuration, and of how many. */
static int common_epoch(const struct members *members, int *most)
{
    int common = 0;
    *most = 0;
    for (int i = 0; i < members->settings.nodes; i++) {
        int epoch = rules_epoch_of(members, i), count = 0;
        for (int k = 0; k < members->settings.nodes; k++)
            count += rules_epoch_of(members, k) == epoch;
        if (epoch == 0 || count < *most || (count == *most && epoch < common))
            continue;
        common = epoch;
        *most = count;
    }
    return common;
}

bool rules_follow_epoch(struct members *members)
{
    int most, epoch = common_epoch(members, &most);
    bool is_common = most >= members->quorum;
    bool is_highest = true;
    for (int i = 0; i < members->settings.nodes; i++)
        if (members->node[i].epoch_other > epoch ||
            members->node[i].epoch_quarantine > epoch)
            is_highest = false;
    /* Names between may have taken the nodes that are missing; or all, if the
     * operator's word was enough. */
    if (epoch < members->settings.config_epoch &&
        (members->settings.has_take_over || !is_highest ||
         count_certain(members, epoch) < members->quorum))
        epoch = 0;
    bool counts = epoch != 0 &&
                  (members->is_epoch_known ? is_common && epoch > members->epoch
                                           : is_common || is_highest);
    if (!counts && (members->is_epoch_known || !is_bound(members)))
        return false;
    if (!counts) /* it may have followed quarantine records, before it saw the
                  * others
                  */
        epoch = members->settings.config_epoch;
    members->is_epoch_known |=
        counts && count_certain(members, epoch) >= members->quorum;
    bool is_new = epoch != members->epoch;
    members->epoch = epoch;
    return is_new;
}
