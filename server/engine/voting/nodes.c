/* SPDX-License-Identifier: MIT */
#include "nodes.h"

#include <assert.h>
#include <stdio.h>

#include "../../base/log.h"
#include "../../base/types.h"
#include "../port/port.h"
#include "../port/token.h"

/* ---- pace ---------------------------------------------------------------- */

enum {
    SMOOTHING = 8,   /* round trips that an average remembers */
    SLOWER_US = 500, /* a smaller difference is noise */
    OUTLIER = 4,     /* of what is slow; longer counts no more: we may have
                        stood still */
    UNKNOWN_US = 1000000000,
};

void pace_init(struct pace *pace, int total)
{
    *pace = (struct pace){.total = total, .slow_us = UNKNOWN_US};
}

void pace_on_sent(struct pace *pace, int node, int64_t now_us)
{
    struct pace_node *it = &pace->node[node];
    if (it->under_way++ == 0)
        it->since_us = now_us;
}

void pace_on_reply(struct pace *pace, int node, bool is_round, int64_t sent_us,
                   int64_t received_us)
{
    struct pace_node *it = &pace->node[node];
    int64_t trip_us =
        at_most(at_least(received_us - sent_us, 1), OUTLIER * pace->slow_us);
    if (is_round && it->under_way > 0)
        it->under_way--;
    it->since_us = received_us;
    it->trip_us +=
        it->trip_us == 0 ? trip_us : (trip_us - it->trip_us) / SMOOTHING;
}

void pace_on_down(struct pace *pace, int node)
{
    pace->node[node] = (struct pace_node){0};
}

void pace_tick(struct pace *pace)
{
    int64_t trips_us[NODES_MAX];
    int known = 0;
    for (int i = 0; i < pace->total; i++)
        if (pace->node[i].trip_us > 0)
            trips_us[known++] = pace->node[i].trip_us;
    pace->slow_us = UNKNOWN_US;
    if (known == 0)
        return;
    int needed = quorum_of(pace->total);
    int64_t last_us =
        order_statistic(trips_us, known, (needed < known ? needed : known) - 1);
    pace->slow_us = at_least(2 * last_us, last_us + SLOWER_US);
}

bool pace_leaves_time(const struct pace *pace, int64_t timeout_us)
{
    return pace->slow_us == UNKNOWN_US ||
           pace->slow_us + pace->slow_us / 2 <= timeout_us;
}

bool pace_is_slow(const struct pace *pace, int node, int64_t now_us)
{
    const struct pace_node *it = &pace->node[node];
    return it->trip_us > pace->slow_us ||
           (it->under_way > 0 && now_us - it->since_us > pace->slow_us);
}

/* ---- the nodes ----------------------------------------------------------- */

enum {
    REFUSED_US = 5000000, /* until then, nodes may only be late */
    /*
     * A loss of the quorum that no request met is logged only if it lasts so
     * long. Where one node restarts, servers probe the others again, whose
     * votes are back after a reply or two: a heartbeat is time for all probes.
     */
    LOSS_US = HEARTBEAT_US,
    FIRST_START_US = 3 * HEARTBEAT_US, /* it lasts for little more than one */
};

void nodes_init(struct nodes *nodes, const struct environment *env)
{
    const struct engine_settings *settings = &env->settings;
    *nodes = (struct nodes){
        .env = env,
        .loss = {.since_us = environment_now(env), .is_first = true},
        .epoch = settings->config_epoch,
    };
    members_init(&nodes->members, settings);
    clocks_init(&nodes->clocks, settings->nodes, settings->max_ttl_ms);
    pace_init(&nodes->pace, settings->nodes);
    for (int i = 0; i < settings->nodes; i++) {
        struct node *it = &nodes->node[i];
        it->down_reason = it->condition = STATE_NONE;
        it->refusal = it->shown = STATE_UNREACHABLE;
        it->since_us = environment_now(env);
        it->is_log_due = true;
        snprintf(it->down_detail, sizeof it->down_detail, "not connected yet");
    }
}

bool nodes_is_before(const struct nodes *nodes, int node, int64_t node_us,
                     int64_t moment_us)
{
    const struct nodeclock *clock = &nodes->clocks.node[node].base;
    return clock->is_known && node_us < nodeclock_earliest_at(clock, moment_us);
}

bool nodes_is_past(const struct nodes *nodes, int node, int64_t node_us,
                   int64_t moment_us)
{
    const struct nodeclock *clock = &nodes->clocks.node[node].base;
    return clock->is_known && node_us > nodeclock_latest_at(clock, moment_us);
}

int64_t nodes_next_number(struct nodes *nodes, int64_t median_us, int64_t seen)
{
    assert(median_us != 0); /* each of a quorum told its time as it came up */
    /* clocks were far ahead and have been corrected: none accepts a higher one
     */
    if (nodes->last_number > median_us + CLOCK_FAR_US)
        nodes->last_number = 0;
    nodes->last_number = fence_next(median_us, nodes->last_number);
    /* a slot that is far ahead must not raise the numbers of all others */
    return fence_next(nodes->last_number, seen);
}

int64_t nodes_asked_us(struct nodes *nodes, int64_t now_us)
{
    int64_t median_us = clocks_median_at(&nodes->clocks, now_us);
    return median_us != 0 ? nodes_next_number(nodes, median_us, 0) : 0;
}

int64_t nodes_barred_us(const struct nodes *nodes, int64_t number)
{
    int64_t most =
        clocks_median_at(&nodes->clocks, environment_now(nodes->env)) +
        FENCE_WINDOW_US;
    return number > most ? number - most : 0;
}

/* ---- who votes ----------------------------------------------------------- */

static void log_state(const struct nodes *nodes, int node, int64_t now_us)
{
    char detail[NODE_DETAIL_MAX];
    status_describe(nodes, node, now_us, detail);
    enum node_state shown = nodes->node[node].shown;
    const struct engine_settings *settings = &nodes->env->settings;
    enum log_level level = shown == STATE_ADMITTING        ? LOG_DEBUG
                           : status_is_voting(nodes, node) ? LOG_INFO
                                                           : LOG_WARN;
    const char *name = settings->node_names[node];
    const char *address = settings->node_addresses[node];
    bool has_name = address != NULL && strcmp(address, name) != 0;
    log_write(level, "node",
              (struct log_field[]){
                  LOG_S("node", name), LOG_S("state", status_name(nodes, node)),
                  LOG_S("detail", detail),
                  has_name ? LOG_S("address", address) : LOG_END, LOG_END});
}

static bool nodes_has_quorum(const struct nodes *nodes)
{
    return nodes->voting >= nodes->members.quorum;
}

/* How many vote, who does not, and what a loss that was logged has cost. */
static void log_quorum(const struct nodes *nodes, int64_t now_us)
{
    char others[256] = ""; /* names that do not vote, parted by commas */
    size_t len = 0;
    bool is_back = nodes_has_quorum(nodes);
    bool was_lost = is_back && nodes->loss.is_logged;
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        if (!status_is_voting(nodes, i) && len < sizeof others)
            len += (size_t)snprintf(others + len, sizeof others - len, "%s%s",
                                    len > 0 ? "," : "",
                                    nodes->env->settings.node_names[i]);
    struct log_field fields[8] = {
        LOG_N("voting", nodes->voting),
        LOG_N("quorum", nodes->members.quorum),
        LOG_N("total", nodes->env->settings.nodes),
    };
    int count = 3;
    if (len > 0)
        fields[count++] = LOG_S("not_voting", others);
    if (was_lost) {
        fields[count++] =
            LOG_N("lasted_ms", (now_us - nodes->loss.since_us) / US_PER_MS);
        fields[count++] = LOG_N("failed", nodes->loss.failed);
    }
    fields[count] = LOG_END;
    log_write(is_back ? LOG_INFO : LOG_ERROR, is_back ? "quorum" : "no_quorum",
              fields);
}

static void count_voters(struct nodes *nodes, int64_t now_us)
{
    bool had_quorum = nodes_has_quorum(nodes);
    nodes->voting = 0;
    for (int i = 0; i < nodes->env->settings.nodes; i++) {
        bool is_voting = status_is_voting(nodes, i);
        nodes->env->metrics->node_is_voting[i] = is_voting;
        nodes->voting += is_voting;
    }
    if (had_quorum && !nodes_has_quorum(nodes))
        nodes->loss = (struct quorum_loss){.since_us = now_us};
    else if (!had_quorum && nodes_has_quorum(nodes) &&
             (nodes->loss.is_first || nodes->loss.is_logged))
        log_quorum(nodes, now_us);
}

/* A server that has just started has not reached its nodes yet; and while
 * nobody asks it for locks, their states say enough. */
static void judge_loss(struct nodes *nodes, int64_t now_us)
{
    struct quorum_loss *loss = &nodes->loss;
    bool has_lasted = now_us - loss->since_us >= LOSS_US;
    bool has_failed = loss->failed > 0;
    if (nodes_has_quorum(nodes) || loss->is_logged)
        return; /* they vote, but were late; or it is told */
    loss->is_logged =
        loss->is_first ? has_lasted && has_failed : has_lasted || has_failed;
    if (loss->is_logged)
        log_quorum(nodes, now_us);
}

void nodes_on_failed(struct nodes *nodes)
{
    nodes->loss.failed++; /* from 0 when a loss begins */
    judge_loss(nodes, environment_now(nodes->env));
}

/*
 * A node whose data turns out to be whole leaves these states after an answer
 * or two, and one that starts with this server is not there at once: the log
 * reports them only if they last. So does a first start, through whichever
 * server: its quarantine records are held for a second before the nodes are
 * admitted.
 */
static bool is_worth_a_line(const struct nodes *nodes, int node, int64_t now_us)
{
    const struct node *it = &nodes->node[node];
    bool may_pass = it->shown == STATE_QUARANTINED ||
                    it->shown == STATE_WAITING ||
                    (it->shown == STATE_UNREACHABLE && !it->was_logged);
    if (!it->is_up && it->down_reason == STATE_NONE)
        return false; /* the first attempt is under way */
    int64_t patience_us = status_is_starting(&nodes->members, node)
                              ? FIRST_START_US
                              : HEARTBEAT_US;
    return !may_pass || now_us - it->since_us >= patience_us;
}

static void nodes_update(struct nodes *nodes, int node, int64_t now_us)
{
    struct node *it = &nodes->node[node];
    it->refusal = status_refusal(nodes, node, now_us);
    enum node_state shown = status_shown(nodes, node);
    bool is_change = shown != it->shown;
    if (is_change) {
        it->shown = shown;
        it->since_us = now_us;
        it->is_log_due = true;
        if (status_is_voting(nodes, node))
            it->lost_by_us = 0;
    }
    if (it->is_log_due && is_worth_a_line(nodes, node, now_us)) {
        it->is_log_due = false;
        it->was_logged = true;
        log_state(nodes, node, now_us);
    }
    if (is_change)
        count_voters(nodes, now_us);
}

/* ---- actions, judgements ------------------------------------------------- */

/* The nonce tells that a quarantine record is for a first start: other servers
 * may object.
 */
static struct span make_nonce(const struct nodes *nodes,
                              char nonce[CALL_NONCE_MAX + 1])
{
    const uint64_t digits = 10000000000;
    bool is_first = firststart_is_quarantining(&nodes->members.start);
    snprintf(nonce, CALL_NONCE_MAX + 1, "%010llu:%s",
             (unsigned long long)(environment_random(nodes->env) % digits),
             is_first ? "first" : "");
    return span_of(nonce);
}

static const enum call_kind script_of[] = {
    [MEMBER_OBSERVE] = CALL_PROBE, [MEMBER_PROBE] = CALL_PROBE,
    [MEMBER_ADMIT] = CALL_ADMIT,   [MEMBER_READMIT] = CALL_READMIT,
    [MEMBER_REVOKE] = CALL_REVOKE,
};

/* False: it was not sent. */
static bool send_action(struct nodes *nodes, const struct member_action *action)
{
    const struct members *members = &nodes->members;
    const struct member *it = &members->node[action->node];
    int64_t now_us = environment_now(nodes->env);
    /* cppcheck-suppress variableScope; the call points to it */
    char nonce[CALL_NONCE_MAX + 1];
    /* cppcheck-suppress variableScope; likewise */
    char witnesses[CALL_WITNESSES_MAX + 1];
    struct call call = {
        .kind = script_of[action->kind],
        .admit = span_of(it->admit),
        .max_ttl_ms = nodes->env->settings.max_ttl_ms,
        .high_water = members->witness.node[action->node].high_water,
        .latest = span_of(members->witness.node[action->node].latest),
        .trace = span_of(now_us - it->probed_us < TRACE_US ? it->trace : ""),
        .witnesses = witness_text(&members->witness, action->node, witnesses,
                                  sizeof witnesses),
        .median_us =
            members->has_median ? now_us + members->median_ahead_us : 0,
        .is_durable = it->is_durable,
        .is_objecting = members_is_objecting(members, now_us),
        .is_renewing = rules_may_renew(members, action->node, now_us),
        .is_watching = nodes->env->settings.is_observer,
        .is_established =
            rules_is_established(members) || rules_has_word(members),
        .number = rules_number(members, action->node),
        .window_us = FENCE_WINDOW_US,
    };
    assert(!call.is_watching || action->kind == MEMBER_OBSERVE);
    if (action->kind == MEMBER_PROBE || action->kind == MEMBER_REVOKE)
        call.nonce = make_nonce(nodes, nonce);
    if (action->kind == MEMBER_ADMIT || action->kind == MEMBER_READMIT) {
        call.quarantine = span_of(it->quarantine);
        call.dead = span_of(members->takeover.dead);
    }
    if (action->kind == MEMBER_READMIT || action->kind == MEMBER_REVOKE)
        call.found = span_of(it->found);
    nodes->node[action->node].action = *action;
    return nodes->node[action->node].is_up &&
           nodes->env->port.send(nodes->env->port.ctx, action->node, &call,
                                 tag_plain(TAG_ADMISSION)) == VOTE_PENDING;
}

static void judge_clocks(struct nodes *nodes, int64_t now_us)
{
    struct clocks_judgement judgement;
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        if (clocks_wants_reply(&nodes->clocks, i))
            members_want_probe(&nodes->members, i, now_us);
    if (!clocks_judge(&nodes->clocks, now_us, &judgement))
        return;
    if (judgement.is_own)
        log_detail(LOG_WARN, "own_clock_suspect",
                   "the clocks of a majority of the nodes stepped at once; all "
                   "clocks are measured again");
    for (int i = 0; i < nodes->env->settings.nodes; i++) {
        if (judgement.step_us[i] == 0)
            continue;
        log_write(LOG_WARN, "clock_step",
                  (struct log_field[]){
                      LOG_S("node", nodes->env->settings.node_names[i]),
                      LOG_N("step_us", judgement.step_us[i]), LOG_END});
        nodes->env->metrics->clock_steps[i]++;
        nodes->node[i].lost_by_us = judgement.step_us[i];
        members_on_step(&nodes->members, i);
    }
}

static void log_epoch(struct nodes *nodes)
{
    int epoch = nodes->members.epoch;
    if (epoch == nodes->epoch)
        return;
    log_write(
        LOG_INFO, "config_epoch",
        (struct log_field[]){
            LOG_N("epoch", epoch), LOG_N("before", nodes->epoch),
            LOG_S("detail", "using the nodes' epoch instead of --config-epoch"),
            LOG_END});
    nodes->epoch = epoch;
}

/* New names that cannot replace the old ones are mostly a mistake. */
static void nodes_log_refusal(struct nodes *nodes, int64_t now_us)
{
    const struct members *members = &nodes->members;
    if (!members->is_queried || !rules_is_refused(members)) {
        nodes->refused_us = 0;
        nodes->is_refusal_logged = false;
        return;
    }
    if (nodes->refused_us == 0)
        nodes->refused_us = now_us;
    if (nodes->is_refusal_logged || now_us - nodes->refused_us < REFUSED_US)
        return;
    struct takeover_count count;
    takeover_count(members, TAKEOVER_POSSIBLE, &count);
    log_write(
        LOG_WARN, "names_refused",
        (struct log_field[]){
            LOG_N("epoch", members->epoch), LOG_N("old_names", count.names),
            LOG_N("found", nodeset_count(count.reporters)),
            LOG_S("detail",
                  count.has_others
                      ? "another change of the names is under way, or another "
                        "installation has used a node; let the change finish, "
                        "or flush the node; see redlockd --plan"
                      : "too few of the old names are in the new list with all "
                        "their data, so the old servers may still reach a "
                        "majority without them; see redlockd --plan"),
            LOG_END});
    nodes->is_refusal_logged = true;
}

/* What was said of the old servers holds for one change only. */
static void log_taken_over(struct nodes *nodes)
{
    const struct members *members = &nodes->members;
    if (nodes->is_word_logged || !members->settings.has_take_over ||
        !rules_is_established(members))
        return;
    log_write(
        LOG_WARN, "take_over_done",
        (struct log_field[]){
            LOG_N("epoch", members->epoch),
            LOG_S("detail",
                  "the nodes vote under the new names; remove --take-over"),
            LOG_END});
    nodes->is_word_logged = true;
}

/* To be called after everything that may change which nodes vote. */
static void nodes_settle(struct nodes *nodes, int64_t now_us)
{
    struct member_action action;
    judge_clocks(nodes, now_us);
    clocks_tick(&nodes->clocks, now_us);
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        nodes->members.node[i].is_clock_good =
            clocks_refusal(&nodes->clocks, i) == STATE_NONE;
    nodes->clocks.steady_us = rules_greatest_ttl_ms(&nodes->members) * 1000;
    nodes->members.has_median = clocks_are_known(&nodes->clocks);
    nodes->members.median_ahead_us =
        clocks_median_at(&nodes->clocks, now_us) - now_us;
    log_epoch(nodes);
    nodes_log_refusal(nodes, now_us);
    log_taken_over(nodes);
    while (members_next(&nodes->members, now_us, &action))
        if (!send_action(nodes, &action))
            members_on_failure(&nodes->members, &action, now_us);
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        nodes_update(nodes, i, now_us);
    judge_loss(nodes, now_us);
}

void nodes_tick(struct nodes *nodes, int64_t now_us)
{
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        status_measure(nodes, i, now_us);
    pace_tick(&nodes->pace);
    nodes_settle(nodes, now_us);
}

int64_t nodes_probe_due_us(const struct nodes *nodes)
{
    int64_t due_us = INT64_MAX;
    for (int i = 0; i < nodes->env->settings.nodes; i++)
        due_us = at_most(due_us, nodes->members.node[i].probe_due_us);
    return due_us;
}

/* ---- calls -------------------------------------------------------------- */

/*
 * The deadline by the node's clock. Where our estimate is uncertain, it is late
 * for an acquire or extend, which must not fail for that reason, and early for
 * what is never undone.
 */
static int64_t deadline_of(const struct nodes *nodes, int node,
                           const struct call *call, int64_t deadline_us)
{
    const struct nodeclock *clock = &nodes->clocks.node[node].base;
    bool is_undone = call->kind == CALL_ACQUIRE && !call->is_early;
    return is_undone || call->kind == CALL_EXTEND
               ? nodeclock_latest_at(clock, deadline_us)
               : nodeclock_earliest_at(clock, deadline_us);
}

enum node_state nodes_refusal(const struct nodes *nodes, int node,
                              enum call_kind kind)
{
    const struct node *it = &nodes->node[node];
    return (it->is_up || it->is_open) && !call_asks_for_vote(kind)
               ? STATE_NONE
               : it->refusal;
}

struct ballot nodes_send(struct nodes *nodes, int node, struct call *call,
                         int64_t deadline_us, uint64_t tag)
{
    assert(node >= 0 && node < nodes->env->settings.nodes);
    assert(!nodes->env->settings.is_observer); /* it has no clients */
    enum node_state refusal = nodes_refusal(nodes, node, call->kind);
    if (refusal != STATE_NONE)
        return ballot_unfit(refusal);
    call->admit = span_of(nodes->members.node[node].found);
    if (call_asks_for_vote(call->kind)) {
        assert(deadline_us > 0);
        call->node_deadline_us = deadline_of(nodes, node, call, deadline_us);
        call->window_us = FENCE_WINDOW_US;
    }
    enum vote vote =
        nodes->env->port.send(nodes->env->port.ctx, node, call, tag);
    if (vote == VOTE_PENDING && tag_kind_of(tag) == TAG_OPERATION)
        pace_on_sent(&nodes->pace, node, environment_now(nodes->env));
    return (struct ballot){.vote = vote};
}

/* ---- events ------------------------------------------------------------- */

/*
 * Keeps what is reported of a node. What its last handshake did not tell is
 * logged again: it votes on, but its next restart may cost its vote.
 */
static void note_facts(struct nodes *nodes, int node,
                       const struct node_facts *facts)
{
    struct node *it = &nodes->node[node];
    const char *why = facts->not_durable != NULL ? facts->not_durable : "";
    const char *lacks = facts->lacks != NULL ? facts->lacks : "";
    bool was_durable = nodes->members.node[node].is_durable;
    bool is_change = facts->is_durable != was_durable && it->is_known;
    if (is_change)
        log_write(facts->is_durable ? LOG_INFO : LOG_WARN,
                  facts->is_durable ? "node_durable" : "node_not_durable",
                  (struct log_field[]){
                      LOG_S("node", nodes->env->settings.node_names[node]),
                      LOG_S("detail",
                            facts->is_durable
                                ? "keeps its data across a restart from now on"
                                : why),
                      LOG_END});
    it->is_log_due |=
        it->is_known && strncmp(lacks, it->lacks, sizeof it->lacks - 1) != 0;
    it->is_known = true;
    snprintf(it->not_durable, sizeof it->not_durable, "%s", why);
    snprintf(it->lacks, sizeof it->lacks, "%s", lacks);
    nodes->env->metrics->node_is_known[node] = true;
    nodes->env->metrics->node_is_durable[node] = facts->is_durable;
}

/* It is not asked for votes any more. */
static void nodes_leave(struct nodes *nodes, int node, enum node_state reason,
                        const char *detail)
{
    struct node *it = &nodes->node[node];
    /* a call met it, and now there is a better detail */
    it->is_log_due |= it->is_up && it->condition == reason;
    it->is_up = it->is_open = false;
    it->down_reason = reason;
    snprintf(it->down_detail, sizeof it->down_detail, "%s", detail);
    clocks_note_up(&nodes->clocks, node, false);
    pace_on_down(&nodes->pace, node);
    members_on_down(&nodes->members, node);
    nodes_settle(nodes, environment_now(nodes->env));
}

void nodes_on_up(struct nodes *nodes, int node, const struct node_facts *facts)
{
    struct node *it = &nodes->node[node];
    int64_t now_us = environment_now(nodes->env);
    if (facts->evicts != NULL && facts->evicts[0] != '\0') {
        nodes_leave(nodes, node, STATE_EVICTS, facts->evicts);
        it->is_open = true;
        return;
    }
    it->is_up = true;
    it->is_open = false;
    it->condition = STATE_NONE;
    it->confirmed_us = facts->confirmed_us;
    note_facts(nodes, node, facts);
    clocks_note_up(&nodes->clocks, node, true);
    (void)clocks_observe(&nodes->clocks, node, facts->node_now_us,
                         facts->sent_us, facts->received_us);
    members_on_up(&nodes->members, node, facts, now_us);
    nodes_settle(nodes, now_us);
}

void nodes_on_down(struct nodes *nodes, int node, enum node_state reason,
                   const char *detail)
{
    nodes->env->metrics->reconnects[node]++;
    nodes_leave(nodes, node, reason, detail);
}

void nodes_on_confirmed(struct nodes *nodes, int node,
                        const struct node_facts *facts)
{
    struct node *it = &nodes->node[node];
    int64_t now_us = environment_now(nodes->env);
    if (!it->is_up ||
        strcmp(nodes->members.node[node].run_id, facts->run_id) != 0)
        return;
    it->confirmed_us = at_least(facts->confirmed_us, it->confirmed_us);
    (void)clocks_observe(&nodes->clocks, node, facts->node_now_us,
                         facts->sent_us, facts->received_us);
    note_facts(nodes, node, facts);
    members_on_durable(&nodes->members, node, facts->is_durable, now_us);
    nodes_settle(nodes, now_us);
}

static void on_admission_reply(struct nodes *nodes, int node,
                               const struct call_reply *reply, int64_t sent_us,
                               int64_t received_us)
{
    struct member_action action = nodes->node[node].action;
    bool is_check =
        action.kind == MEMBER_OBSERVE || action.kind == MEMBER_PROBE;
    if (reply->vote != VOTE_DONE && reply->vote != VOTE_CHANGED) {
        members_on_failure(&nodes->members, &action, received_us);
        return;
    }
    if (is_check)
        nodes->node[node].condition =
            reply->probe.is_full ? STATE_OUT_OF_MEMORY : STATE_NONE;
    else if (!status_is_full(nodes, node)) /* only a probe reports that */
        nodes->node[node].condition = STATE_NONE;
    if (is_check)
        members_on_probe(&nodes->members, node, &reply->probe, sent_us,
                         received_us);
    else
        members_on_done(&nodes->members, &action, received_us);
}

/* Errors that concern the node as a whole, not one command. */
static const bool is_condition[STATE_KINDS] = {
    [STATE_LOADING] = true,       [STATE_READ_ONLY] = true,
    [STATE_MISCONFIGURED] = true, [STATE_OUT_OF_MEMORY] = true,
    [STATE_BUSY] = true,          [STATE_NO_PERMISSION] = true,
    [STATE_FAILED] = true,
};

/*
 * A grant counts only if the node still qualified when the reply arrived, or
 * its admission is being read again: the script compared the admission. "No
 * such lock" counts only from a node that cannot have lost locks.
 */
static struct ballot nodes_judge(const struct nodes *nodes, int node,
                                 const struct call_reply *reply, bool is_same,
                                 int64_t received_us)
{
    const struct node *it = &nodes->node[node];
    struct ballot ballot = call_ballot(reply);
    bool is_refused = it->refusal != STATE_NONE;
    bool is_probed =
        it->refusal == STATE_QUARANTINED && status_is_probed(nodes, node);
    if (reply->vote == VOTE_DELETED)
        return ballot;
    if (!is_same)
        return ballot_unfit(STATE_STEPPED);
    if (reply->vote == VOTE_FREE && is_probed)
        ballot.vote = VOTE_NOT_ADMITTED;
    else if (reply->vote == VOTE_FREE && is_refused)
        return ballot_unfit(it->refusal);
    if ((reply->vote == VOTE_GRANTED || reply->vote == VOTE_EXTENDED) &&
        ((is_refused && !is_probed) || !status_is_confirmed(it, received_us)))
        ballot.vote = VOTE_DISTRUSTED;
    return ballot;
}

/*
 * Whether a node that evicts says that it has not what is being released: for
 * that it need not have kept its data, as the lock is not to be there.
 */
static bool nodes_is_gone(const struct node *it, uint64_t tag,
                          const struct call_reply *reply)
{
    return it->is_open && tag_kind_of(tag) == TAG_RELEASE &&
           (reply->vote == VOTE_FREE || reply->vote == VOTE_NOT_ADMITTED);
}

/* True if a ballot may change which nodes vote. */
static bool nodes_is_news(struct ballot ballot)
{
    return ballot.vote == VOTE_NOT_ADMITTED || ballot.vote == VOTE_DISTRUSTED ||
           ballot.state == STATE_QUARANTINED || is_condition[ballot.state];
}

struct ballot nodes_on_reply(struct nodes *nodes, int node, uint64_t tag,
                             const struct call_reply *reply, int64_t sent_us,
                             int64_t received_us)
{
    struct node *it = &nodes->node[node];
    bool is_admission = tag_kind_of(tag) == TAG_ADMISSION, is_same = true;
    if (reply->vote != VOTE_DISCONNECTED) {
        it->rtt_us = received_us - sent_us;
        pace_on_reply(&nodes->pace, node, tag_kind_of(tag) == TAG_OPERATION,
                      sent_us, received_us);
        metrics_observe(&nodes->env->metrics->node_rtt[node], it->rtt_us);
    }
    if (reply->node_now_us > 0)
        is_same = clocks_observe(&nodes->clocks, node, reply->node_now_us,
                                 sent_us, received_us);
    if (vote_is_answer(reply->vote))
        members_on_generation(&nodes->members, node, reply->generation);
    if (is_admission)
        on_admission_reply(nodes, node, reply, sent_us, received_us);
    if (reply->vote == VOTE_NOT_ADMITTED)
        members_on_quarantined(&nodes->members, node, received_us);
    if (is_condition[reply->state]) {
        it->condition = reply->state;
        span_print(it->words, sizeof it->words, reply->words);
    }
    struct ballot ballot = call_ballot(reply);
    if (nodes_is_gone(it, tag, reply))
        ballot.vote = VOTE_FREE;
    else if (!is_admission)
        ballot = nodes_judge(nodes, node, reply, is_same, received_us);
    nodes->env->metrics->votes[node][ballot_number(ballot)]++;
    if (is_admission || !is_same || nodes_is_news(ballot))
        nodes_settle(nodes, received_us);
    return ballot;
}
