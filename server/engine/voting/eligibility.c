#include "eligibility.h"

#include <stdio.h>

#include "../port/token.h"

enum {
    SLACK_US = 1000000,
    /* within this time each live server reports a memory that it has seen */
    SAID_US = 2 * HEARTBEAT_US,
};

/* ---- machines under one name -------------------------------------------- */

bool eligibility_is_outdated(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return it->is_outdated &&
           (it->phase == ADMISSION_ADMITTED || it->phase == ADMISSION_MARKED ||
            it->phase == ADMISSION_EMPTY);
}

bool eligibility_may_be_elsewhere(const struct admission *admission, int node,
                                  int64_t now_us)
{
    int64_t moved_us = admission->node[node].moved_us;
    int64_t rose_us = admission->witness.node[node].rose_us;
    return moved_us != 0 && now_us < at_least(moved_us, rose_us) + SILENT_US;
}

/*
 * Whether a mark of a higher epoch, which has taken the node from nobody, may
 * be replaced. Nodes of another epoch must not come back whom that mark
 * replaced: so if the node has voted, marks of ours are not enough, as a node
 * that forgot may have got them.
 */
static bool may_lower(const struct admission *admission, int node)
{
    int admitted = 0, ours = 0, counting = 0;
    for (int i = 0; i < admission->settings.nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        admitted += it->phase == ADMISSION_ADMITTED || it->is_restarted;
        ours += it->epoch_ours == admission->epoch;
        counting += eligibility_epoch_of(admission, i) == admission->epoch;
    }
    if (admitted >= admission->quorum)
        return true;
    if (!admission->node[node].is_only_marked)
        return false;
    return ours >= admission->quorum ||
           (eligibility_epoch_of(admission, node) == 0 &&
            (counting > 0 || (eligibility_epoch_below(admission) != 0 &&
                              eligibility_may_take_over(admission))));
}

/*
 * The later machine has no beats while it waits to be admitted; once it was,
 * its beat is above the time of its birth.
 */
bool eligibility_may_renew(const struct admission *admission, int node,
                           int64_t now_us)
{
    const struct witness_node *it = &admission->witness.node[node];
    if (admission->node[node].is_marked_above)
        return may_lower(admission, node);
    if (!admission->node[node].is_outdated)
        return false;
    bool is_waiting = it->floor < witness_born_at(it->latest);
    int64_t patience_us =
        is_waiting ? eligibility_quarantine_us(admission) : SILENT_US;
    return now_us >= it->rose_us + SILENT_US &&
           now_us >= it->born_us + patience_us;
}

/* ---- promises of the other nodes ---------------------------------------- */

static bool eligibility_is_majority(const struct admission *admission,
                                    uint16_t nodes)
{
    return nodeset_count(nodes) >= admission->quorum;
}

/* The other nodes, a bit each, that vote and have a good clock. */
static uint16_t members_beside(const struct admission *admission, int node)
{
    uint16_t members = 0;
    for (int i = 0; i < admission->settings.nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        if (i != node && it->phase == ADMISSION_ADMITTED && !it->must_revoke &&
            it->is_clock_good && !eligibility_is_outdated(admission, i))
            members |= (uint16_t)(1u << i);
    }
    return members;
}

static bool has_others(const struct admission *admission, int node)
{
    return eligibility_is_majority(admission, members_beside(admission, node));
}

/* Those members that carry the node's birth as the latest. */
static uint16_t carriers_of(const struct admission *admission, int node)
{
    const struct witness_node *known = &admission->witness.node[node];
    if (strcmp(known->latest, admission->node[node].birth) != 0)
        return 0;
    return known->carriers & members_beside(admission, node);
}

/* After each new carrier of the birth all are asked again: a look counts only
 * if it was sent after all counted nodes carried the birth. */
static void eligibility_ask(struct admission *admission, int node, int teller,
                            const struct call_look *look, int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    struct admission_asked *asked = &it->asked;
    uint32_t joins = admission->witness.node[node].joins;
    uint16_t carriers = carriers_of(admission, node);
    uint16_t bit = (uint16_t)(1u << teller);
    asked->again &= carriers;
    if (asked->joins != joins) {
        *asked = (struct admission_asked){.joins = joins, .since_us = now_us};
        if (eligibility_is_majority(admission, carriers))
            it->news_us = now_us;
    } else if ((carriers & bit) != 0 &&
               admission->node[teller].looked_us >= asked->since_us) {
        int64_t end_us = now_us + look->rest_us + look->rest_us / 100 + 1;
        asked->again |= bit;
        asked->end_us = at_least(end_us, asked->end_us);
        asked->number = at_least(look->number, asked->number);
    }
}

void eligibility_on_told(struct admission *admission, int node,
                         const struct call_look *look, int64_t now_us)
{
    for (int i = 0; i < admission->settings.nodes; i++)
        if (i != node && admission->node[i].phase == ADMISSION_MARKED &&
            !eligibility_is_majority(admission, admission->node[i].asked.again))
            eligibility_ask(admission, i, node, look, now_us);
}

/* ---- quarantine --------------------------------------------------------- */

int64_t eligibility_greatest_ttl_ms(const struct admission *admission)
{
    int64_t greatest_ms = admission->settings.max_ttl_ms;
    for (int i = 0; i < admission->settings.nodes; i++)
        greatest_ms = at_least(greatest_ms, admission->node[i].max_ttl_ms);
    return greatest_ms;
}

/*
 * All that the node has forgotten must have expired: its locks, even if our
 * clock runs 1% fast; its numbers, within four windows; and the grants of
 * servers for which its name still leads to another machine (CONFIRMED_US).
 */
int64_t eligibility_quarantine_us(const struct admission *admission)
{
    if (admission->settings.is_guard_off)
        return 0;
    int64_t locks_us = eligibility_greatest_ttl_ms(admission) * 1010;
    return at_least(locks_us, 4 * (int64_t)FENCE_WINDOW_US) + CONFIRMED_US +
           SLACK_US;
}

bool eligibility_is_established(const struct admission *admission)
{
    return admission->established_epoch == admission->epoch;
}

bool eligibility_is_in_this_life(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return it->phase != ADMISSION_ADMITTED &&
           span_is(call_state_part(span_of(it->found), CALL_STATE_RUN_ID),
                   it->run_id);
}

bool eligibility_has_word(const struct admission *admission)
{
    return admission->settings.has_take_over &&
           admission->epoch == admission->settings.config_epoch;
}

bool eligibility_is_taking_over(const struct admission *admission)
{
    return admission->epoch > 1 && !eligibility_is_established(admission) &&
           !eligibility_has_word(admission) &&
           !admission->settings.is_guard_off;
}

/*
 * The end of the quarantine if the other nodes cannot be asked. Of a later
 * epoch it begins when a node votes: until then the old names may have granted
 * locks, with higher numbers than such a node has.
 */
static int64_t eligibility_due_us(const struct admission *admission, int node)
{
    int64_t since_us = admission->node[node].sighted_us;
    if (admission->epoch > 1)
        since_us = at_least(since_us, admission->epoch_us);
    return since_us + eligibility_quarantine_us(admission);
}

/* The old names are dead, and it has not voted under the new ones. */
static bool is_taken(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return admission->takeover.is_over && !it->must_revoke &&
           it->is_clock_good && takeover_tells(&admission->takeover, node);
}

static int64_t taken_until_us(const struct admission *admission, int node)
{
    return at_least(admission->takeover.node[node].end_us,
                    admission->takeover.end_us);
}

/* True if all that the node may have forgotten has ended. */
static bool has_ended(const struct admission *admission, int node,
                      int64_t now_us)
{
    const struct admission_asked *asked = &admission->node[node].asked;
    if (admission->settings.is_guard_off)
        return true;
    if (is_taken(admission, node))
        return now_us >= taken_until_us(admission, node);
    if (eligibility_is_taking_over(admission))
        return false;
    if (eligibility_is_majority(admission, asked->again))
        return now_us >= asked->end_us;
    int64_t due = eligibility_due_us(admission, node);
    return !has_others(admission, node) && !admission->is_succeeded &&
           now_us >= due && eligibility_looked_us(admission) >= due;
}

/* ---- whole memories -------------------------------------------------------
 */

/*
 * True if each server that knows a later memory had time to report it, and
 * enough other nodes have answered since. Nodes that do not vote may have lost
 * the report as well: if they are needed, no node may be missing, as it could
 * be the only one with the report. A single node has no others.
 */
static bool is_agreed(const struct admission *admission, int node,
                      int64_t now_us)
{
    int nodes = admission->settings.nodes;
    int enough = nodes - admission->quorum + 1;
    int64_t since_us = admission->node[node].sighted_us + SAID_US;
    int whole = 0, voting = 0, there = 1;
    for (int i = 0; i < nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        const struct witness_node *known = &admission->witness.node[i];
        if (i == node || it->looked_us < since_us)
            continue;
        there += it->phase != ADMISSION_DOWN && !it->is_mute;
        if (known->told_us < since_us ||
            known->told_us < known->counts_us + SAID_US)
            continue;
        whole++;
        voting += it->phase == ADMISSION_ADMITTED;
    }
    return now_us >= since_us && (nodes == 1 || voting >= enough ||
                                  (whole >= enough && there == nodes));
}

/* No later memory is known. */
static bool is_latest_memory(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return it->beat >= admission->witness.node[node].floor;
}

/* True if it was restarted with its memory, which is durable. */
static bool is_lasting(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return it->is_restarted && it->is_durable && it->was_durable &&
           is_latest_memory(admission, node);
}

int64_t eligibility_remaining_us(const struct admission *admission, int node,
                                 int64_t now_us)
{
    const struct admission_node *it = &admission->node[node];
    int64_t first_us = firststart_remaining_us(&admission->start, now_us);
    if (it->phase == ADMISSION_EMPTY && first_us > 0)
        return first_us + eligibility_quarantine_us(admission);
    if (it->mark[0] == '\0' || admission->start.is_marked[node])
        return 0;
    if (eligibility_is_taking_over(admission) && !is_taken(admission, node))
        return 0;
    int64_t end_us = eligibility_due_us(admission, node);
    if (is_taken(admission, node))
        end_us = taken_until_us(admission, node);
    else if (eligibility_is_majority(admission, it->asked.again))
        end_us = it->asked.end_us;
    else if (has_others(admission, node))
        end_us = now_us + HEARTBEAT_US;
    if (is_lasting(admission, node) && it->sighted_us + SAID_US < end_us)
        end_us = it->sighted_us + SAID_US;
    return end_us > now_us ? end_us - now_us : 0;
}

/* ---- another configuration ---------------------------------------------- */

bool eligibility_is_bound(const struct admission *admission)
{
    for (int i = 0; i < admission->settings.nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        if (it->epoch_other != 0 || it->epoch_mark != 0 ||
            (it->epoch_ours != 0 && !it->is_only_marked))
            return true;
    }
    return false;
}

int eligibility_epoch_of(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return it->is_only_marked && eligibility_is_bound(admission)
               ? 0
               : it->epoch_ours;
}

int eligibility_epoch_below(const struct admission *admission)
{
    int64_t below = 0;
    for (int i = 0; i < admission->settings.nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        const int found[] = {
            eligibility_epoch_of(admission, i), it->epoch_other, it->epoch_mark,
            takeover_epoch_below(&admission->takeover, i, admission->epoch)};
        for (size_t k = 0; k < sizeof found / sizeof *found; k++)
            if (found[k] < admission->epoch)
                below = at_least(found[k], below);
    }
    return (int)below;
}

/* "epoch:fingerprint:" */
static void print_ours(const struct admission *admission,
                       char ours[CALL_STATE_MAX + 1])
{
    snprintf(ours, CALL_STATE_MAX + 1, "%d:%s:", admission->epoch,
             admission->settings.fingerprint);
}

/* Whose word on what they promised counts; is_early: or will count, once their
 * clocks are known. An observer knows none yet. */
static uint16_t reliable_nodes(const struct admission *admission, bool is_early)
{
    uint16_t nodes = 0;
    for (int i = 0; i < admission->settings.nodes; i++) {
        const struct admission_node *it = &admission->node[i];
        if (!it->is_mute && !it->must_revoke &&
            (it->is_clock_good || (is_early && !admission->has_median) ||
             admission->settings.is_observer) &&
            !it->is_outdated)
            nodes |= (uint16_t)(1u << i);
    }
    return nodes;
}

static void count_possible(const struct admission *admission, bool is_early,
                           struct takeover_count *count)
{
    char ours[CALL_STATE_MAX + 1];
    print_ours(admission, ours);
    takeover_count_possible(&admission->takeover, ours,
                            reliable_nodes(admission, is_early), count);
}

void eligibility_count(const struct admission *admission,
                       struct takeover_count *count)
{
    count_possible(admission, false, count);
}

static bool may_take_over(const struct admission *admission, bool is_early)
{
    struct takeover_count count;
    int there = 0;
    int skipped = admission->epoch - eligibility_epoch_below(admission) - 1;
    if (eligibility_is_established(admission) ||
        (skipped > 0 && !eligibility_has_word(admission)))
        return false;
    for (int i = 0; i < admission->settings.nodes; i++)
        there += admission->node[i].phase != ADMISSION_DOWN &&
                 admission->node[i].looked_us != 0;
    if (!eligibility_is_taking_over(admission))
        return there >= admission->quorum;
    count_possible(admission, is_early, &count);
    return count.is_dead;
}

bool eligibility_may_take_over(const struct admission *admission)
{
    return may_take_over(admission, false);
}

/* Once the old names were dead, some node must still tell so. */
bool eligibility_is_refused(const struct admission *admission)
{
    if (!eligibility_is_taking_over(admission))
        return false;
    if (!admission->takeover.is_over)
        return !may_take_over(admission, true);
    for (int i = 0; i < admission->settings.nodes; i++)
        if (takeover_tells(&admission->takeover, i))
            return false;
    return true;
}

/* Once: those who are dead stay so. */
void eligibility_on_taken(struct admission *admission)
{
    struct takeover_count count;
    char ours[CALL_STATE_MAX + 1];
    if (!eligibility_is_taking_over(admission) || admission->takeover.is_over)
        return;
    print_ours(admission, ours);
    takeover_count_now(&admission->takeover, ours,
                       reliable_nodes(admission, false), &count);
    if (!count.is_dead)
        return;
    takeover_end(&admission->takeover, &count);
    for (int i = 0; i < admission->settings.nodes; i++)
        if (admission->node[i].phase != ADMISSION_FOREIGN &&
            admission->node[i].phase != ADMISSION_SUPERSEDED)
            admission->node[i].foreign_us = 0;
}

int64_t eligibility_number(const struct admission *admission, int node)
{
    const struct admission_node *it = &admission->node[node];
    return is_taken(admission, node)
               ? at_least(admission->takeover.node[node].number,
                          admission->takeover.number)
               : at_least(it->asked.number, admission->takeover.number);
}

/* What it has promised under the other names is waited for from then on; if
 * these are dead, it was waited for. */
bool eligibility_note_left_over(struct admission *admission, int node,
                                int64_t now_us)
{
    struct admission_node *it = &admission->node[node];
    struct span name = call_state_part(span_of(it->found), CALL_STATE_NAME);
    if (it->epoch_other == 0 || it->epoch_other >= admission->epoch ||
        it->epoch_mark >= admission->epoch ||
        !eligibility_is_established(admission) ||
        !span_is(name, admission->witness.node[node].name)) {
        it->left_us = 0;
        return false;
    }
    if (takeover_is_of_dead(&admission->takeover, node))
        return true;
    if (it->left_us == 0 || it->beat != it->left_beat) {
        it->left_us = now_us;
        it->left_beat = it->beat;
    }
    it->foreign_us = it->left_us;
    return now_us >= it->left_us + SILENT_US;
}

bool eligibility_is_others(const struct admission *admission, int node,
                           int64_t now_us)
{
    const struct admission_node *it = &admission->node[node];
    return it->epoch_other != 0 &&
           !takeover_is_of_dead(&admission->takeover, node) &&
           (it->left_us == 0 || now_us < it->left_us + SILENT_US);
}

/* ---- obstacles ---------------------------------------------------------- */

bool eligibility_has_foreign(const struct admission *admission, int64_t now_us)
{
    for (int i = 0; i < admission->settings.nodes; i++)
        if (admission->node[i].foreign_us != 0 &&
            now_us - admission->node[i].foreign_us <
                eligibility_quarantine_us(admission))
            return true;
    return false;
}

bool eligibility_has_taken_over(const struct admission *admission)
{
    return !eligibility_is_taking_over(admission) ||
           admission->takeover.is_over;
}

static bool may_admit(const struct admission *admission, int node,
                      int64_t now_us)
{
    return admission->node[node].phase == ADMISSION_MARKED &&
           (admission->has_median || admission->settings.is_guard_off) &&
           (is_taken(admission, node) ||
            !eligibility_has_foreign(admission, now_us)) &&
           eligibility_has_taken_over(admission) &&
           !eligibility_is_outdated(admission, node);
}

/* ---- decisions ---------------------------------------------------------- */

int64_t eligibility_looked_us(const struct admission *admission)
{
    int64_t least_us = INT64_MAX;
    for (int i = 0; i < admission->settings.nodes; i++)
        if (admission->node[i].phase != ADMISSION_DOWN &&
            !admission->node[i].is_mute &&
            admission->node[i].looked_us < least_us)
            least_us = admission->node[i].looked_us;
    return least_us;
}

bool eligibility_is_due(const struct admission *admission, int node,
                        int64_t now_us)
{
    return may_admit(admission, node, now_us) &&
           (firststart_may_admit(&admission->start, node) ||
            (has_ended(admission, node, now_us) &&
             is_latest_memory(admission, node) &&
             !admission->node[node].is_mute));
}

bool eligibility_is_back(const struct admission *admission, int node,
                         int64_t now_us)
{
    return admission->node[node].is_clock_good &&
           may_admit(admission, node, now_us) && is_lasting(admission, node) &&
           is_agreed(admission, node, now_us);
}
