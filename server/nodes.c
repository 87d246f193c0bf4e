#include "nodes.h"

#include <assert.h>

#include "fence.h"
#include "log.h"
#include "round.h"
#include "tag.h"

enum {
    CONFIG_EPOCH = 1,
    HEARTBEAT_US = 1000000,
};

void nodes_init(struct nodes *nodes, const struct engine_settings *settings,
                const struct engine_port *port, struct metrics *metrics)
{
    assert(settings->nodes >= 1 && settings->nodes <= NODES_MAX);
    *nodes = (struct nodes){
        .settings = *settings,
        .port = *port,
        .metrics = metrics,
    };
    for (int i = 0; i < settings->nodes; i++)
        guard_init(&nodes->node[i].guard);
}

int64_t nodes_now(const struct nodes *nodes)
{
    return nodes->port.now(nodes->port.ctx);
}

int64_t nodes_median_us(const struct nodes *nodes, int64_t now_us)
{
    const struct nodeclock *clocks[NODES_MAX];
    int count = 0;
    for (int i = 0; i < nodes->settings.nodes; i++)
        if (nodes->node[i].is_up)
            clocks[count++] = &nodes->node[i].clock;
    return nodeclock_median_at(clocks, count, now_us);
}

int64_t nodes_lead_us(const struct nodes *nodes, int node)
{
    int64_t now_us = nodes_now(nodes);
    int64_t median_us = nodes_median_us(nodes, now_us);
    const struct nodeclock *clock = &nodes->node[node].clock;
    if (median_us == 0 || !clock->is_known)
        return 0;
    return nodeclock_at(clock, now_us) - median_us;
}

int64_t nodes_doubt_us(const struct nodes *nodes)
{
    int64_t now_us = nodes_now(nodes);
    int64_t widest_us = 0;
    for (int i = 0; i < nodes->settings.nodes; i++) {
        int64_t doubt_us = nodeclock_doubt_us(&nodes->node[i].clock, now_us);
        if (doubt_us > widest_us)
            widest_us = doubt_us;
    }
    return widest_us;
}

int64_t nodes_next_number(struct nodes *nodes, int64_t now_us, int64_t seen)
{
    int64_t median_us = nodes_median_us(nodes, now_us);
    if (median_us == 0)
        return 0;
    nodes->last_number = fence_next(median_us, nodes->last_number);
    /* a slot that is far ahead must not take all others along with it */
    return fence_next(nodes->last_number, seen);
}

enum vote nodes_send(struct nodes *nodes, int node, struct script_call *call,
                     int64_t deadline_us, uint64_t tag)
{
    struct node *to = &nodes->node[node];
    bool needs_vote =
        call->kind == SCRIPT_ACQUIRE || call->kind == SCRIPT_EXTEND;
    if (!to->is_up || (needs_vote && !guard_may_vote(&to->guard)))
        return guard_refusal(&to->guard);
    if (needs_vote) {
        call->admit = span_of(to->guard.admit);
        call->node_deadline_us = nodeclock_latest_at(&to->clock, deadline_us);
        call->window_us = fence_window_us(nodes->settings.max_ttl_ms);
    }
    return nodes->port.send(nodes->port.ctx, node, call, tag);
}

static void log_quorum(const struct nodes *nodes)
{
    int quorum = round_quorum(nodes->settings.nodes);
    enum log_level level = nodes->voting >= quorum ? LOG_INFO : LOG_ERROR;
    log_write(level, nodes->voting >= quorum ? "quorum" : "no_quorum",
              (struct log_field[]){
                  LOG_N("voting", nodes->voting), LOG_N("quorum", quorum),
                  LOG_N("total", nodes->settings.nodes), LOG_END});
}

/* Once per change: the log line, the count of voters, the gauge. */
static void note_change(struct nodes *nodes, int node)
{
    struct node *it = &nodes->node[node];
    bool is_voting = guard_is_voting(&it->guard);
    it->since_us = nodes_now(nodes);
    enum log_level level = LOG_WARN;
    if (it->guard.refusal == VOTE_DONE)
        level = is_voting ? LOG_INFO : LOG_DEBUG;
    log_write(
        level, "node",
        (struct log_field[]){LOG_S("node", nodes->settings.node_names[node]),
                             LOG_S("state", guard_state(&it->guard)),
                             LOG_S("detail", it->guard.detail), LOG_END});
    nodes->metrics->node_is_voting[node] = is_voting;

    int voting = 0;
    for (int i = 0; i < nodes->settings.nodes; i++)
        voting += guard_is_voting(&nodes->node[i].guard);
    int quorum = round_quorum(nodes->settings.nodes);
    bool is_crossing = (voting >= quorum) != (nodes->voting >= quorum);
    nodes->voting = voting;
    if (is_crossing)
        log_quorum(nodes);
}

static void send_admit(struct nodes *nodes, int node, int64_t now_us)
{
    struct node *to = &nodes->node[node];
    if (!to->is_up || to->is_admit_pending)
        return;
    struct script_call call = {
        .kind = SCRIPT_ADMIT,
        .admit = span_of(to->guard.admit),
    };
    to->next_admit_us = now_us + HEARTBEAT_US;
    to->is_admit_pending =
        nodes_send(nodes, node, &call, 0, tag_admit()) == VOTE_PENDING;
}

void nodes_tick(struct nodes *nodes, int64_t now_us)
{
    for (int i = 0; i < nodes->settings.nodes; i++)
        if (nodes->node[i].next_admit_us <= now_us)
            send_admit(nodes, i, now_us);
}

static void observe_clock(struct nodes *nodes, int node, int64_t node_now_us,
                          int64_t sent_us, int64_t received_us)
{
    int64_t step_us = nodeclock_observe(&nodes->node[node].clock, node_now_us,
                                        sent_us, received_us);
    if (step_us != 0)
        log_write(LOG_WARN, "clock_step",
                  (struct log_field[]){
                      LOG_S("node", nodes->settings.node_names[node]),
                      LOG_N("step_us", step_us), LOG_END});
}

void nodes_on_up(struct nodes *nodes, int node, const char *run_id,
                 int64_t node_now_us, int64_t sent_us, int64_t received_us)
{
    struct node *it = &nodes->node[node];
    it->is_up = true;
    it->is_admit_pending = false;
    observe_clock(nodes, node, node_now_us, sent_us, received_us);
    if (guard_on_up(&it->guard, CONFIG_EPOCH, nodes->settings.fingerprint,
                    run_id))
        note_change(nodes, node);
    send_admit(nodes, node, nodes_now(nodes));
}

void nodes_on_down(struct nodes *nodes, int node, enum vote reason,
                   const char *detail)
{
    struct node *it = &nodes->node[node];
    it->is_up = false;
    it->is_admit_pending = false;
    nodes->metrics->reconnects[node]++;
    if (guard_on_down(&it->guard, reason, detail))
        note_change(nodes, node);
}

void nodes_on_reply(struct nodes *nodes, int node, uint64_t tag,
                    const struct script_reply *reply, int64_t sent_us,
                    int64_t received_us)
{
    struct node *it = &nodes->node[node];
    nodes->metrics->votes[node][reply->vote]++;
    if (reply->vote != VOTE_UNREACHABLE) {
        it->rtt_us = received_us - sent_us;
        metrics_observe(&nodes->metrics->node_rtt[node], it->rtt_us);
    }
    if (reply->node_now_us > 0)
        observe_clock(nodes, node, reply->node_now_us, sent_us, received_us);

    bool is_change;
    if (tag_kind_of(tag) == TAG_ADMIT) {
        it->is_admit_pending = false;
        is_change = guard_on_admit(&it->guard, reply->vote);
    } else {
        is_change = guard_on_vote(&it->guard, reply->vote);
    }
    if (is_change) {
        note_change(nodes, node);
        if (reply->vote == VOTE_QUARANTINED)
            send_admit(nodes, node, received_us);
    }
}
