#include "debts.h"

#include "../../base/log.h"
#include "../port/fence.h"
#include "../port/tag.h"
#include "../port/token.h"

enum {
    STORE_BYTES = 256 * 1024 * 1024,
    PAUSE_US = 500000,
    MARGIN_US = 1000000, /* the moment of a disconnect is not known better */
    TELL_US = 10000000,
};

void debts_init(struct debts *debts, struct nodes *nodes)
{
    memset(debts, 0, sizeof *debts);
    debts->env = nodes->env;
    debts->nodes = nodes;
    debts->store.limit = STORE_BYTES;
    for (int i = 0; i < NODES_MAX; i++) {
        /* other servers may have granted until now */
        debts->seen_us[i] = environment_now(nodes->env);
        for (int kind = 0; kind < DEBT_KINDS; kind++)
            debts->queue[i][kind].store = &debts->store;
    }
}

void debts_fini(struct debts *debts)
{
    for (int i = 0; i < NODES_MAX; i++)
        for (int kind = 0; kind < DEBT_KINDS; kind++)
            owed_fini(&debts->queue[i][kind]);
}

/* ---- what is owed ------------------------------------------------------- */

/* A token's number is the median of the clocks at the time of its acquire. */
static enum debt_kind kind_of(const struct debts *debts, int node,
                              struct span token, int64_t now_us)
{
    const struct nodes *nodes = debts->nodes;
    struct token_parts parts;
    int64_t median_us = clocks_median_at(&nodes->clocks, now_us);
    if (nodes->node[node].is_up || median_us == 0 ||
        !token_parse(token, &parts))
        return DEBT_SURE;
    int64_t away_us = now_us - debts->seen_us[node] - MARGIN_US;
    return parts.number <= median_us - away_us ? DEBT_SURE : DEBT_UNLIKELY;
}

static void note_dropped(struct debts *debts, enum debt_kind kind)
{
    struct metrics *metrics = debts->env->metrics;
    if (kind == DEBT_SURE)
        metrics->releases_dropped++;
    else
        metrics->releases_forgone++;
}

void debts_add(struct debts *debts, int node, const struct owed_item *item)
{
    int64_t now_us = environment_now(debts->env);
    if (now_us >= item->until_us)
        return;
    enum debt_kind kind = kind_of(debts, node, item->token, now_us);
    size_t limit = debts->store.limit;
    size_t most = kind == DEBT_SURE ? limit : limit / 2;
    if (!owed_push(&debts->queue[node][kind], item, most))
        note_dropped(debts, kind);
}

/* ---- calls -------------------------------------------------------------- */

/* False: nothing more can be sent now. */
static bool send_next(struct debts *debts, int node, enum debt_kind kind,
                      int64_t now_us)
{
    struct owed *owed = &debts->queue[node][kind];
    struct owed_item item;
    uint32_t number;
    if (!owed_next(owed, now_us, &item, &number))
        return false;
    struct call call = fence_call(CALL_RELEASE, item.resource, item.token);
    if (nodes_send(debts->nodes, node, &call, 0,
                   tag_debt((unsigned)kind, number))
            .vote != VOTE_PENDING)
        return false;
    owed_note_sent(owed);
    return true;
}

static void send_all(struct debts *debts, int node, int64_t now_us)
{
    if (!debts->nodes->node[node].is_up || now_us < debts->paused_us[node])
        return;
    for (int kind = 0; kind < DEBT_KINDS; kind++)
        while (send_next(debts, node, (enum debt_kind)kind, now_us))
            continue;
}

/* ---- events ------------------------------------------------------------- */

void debts_on_reply(struct debts *debts, int node, uint64_t tag, enum vote vote,
                    int64_t now_us)
{
    enum owed_answer answer = OWED_DONE;
    if (vote == VOTE_DISCONNECTED)
        answer = OWED_LOST;
    else if (!vote_ends_release(vote))
        answer = OWED_REFUSED;
    if (answer == OWED_REFUSED)
        debts->paused_us[node] = now_us + PAUSE_US;
    enum debt_kind kind = (enum debt_kind)tag_debt_kind_of(tag);
    if (!owed_note_answer(&debts->queue[node][kind], tag_debt_number_of(tag),
                          answer))
        note_dropped(debts, kind);
    send_all(debts, node, now_us);
}

void debts_on_up(struct debts *debts, int node, int64_t now_us)
{
    debts->paused_us[node] = 0;
    send_all(debts, node, now_us);
}

void debts_tick(struct debts *debts, int64_t now_us)
{
    for (int i = 0; i < debts->env->settings.nodes; i++) {
        if (debts->nodes->node[i].is_up)
            debts->seen_us[i] = now_us;
        for (int kind = 0; kind < DEBT_KINDS; kind++)
            owed_expire(&debts->queue[i][kind], now_us);
        send_all(debts, i, now_us);
    }
    uint64_t dropped = debts->env->metrics->releases_dropped;
    if (dropped == debts->told || now_us < debts->told_us + TELL_US)
        return;
    log_write(
        LOG_WARN, "releases_dropped",
        (struct log_field[]){
            LOG_N("count", (int64_t)(dropped - debts->told)),
            LOG_S("detail", "too many releases wait for unreachable "
                            "nodes: these keys stay until their TTL ends"),
            LOG_END});
    debts->told = dropped;
    debts->told_us = now_us;
}
