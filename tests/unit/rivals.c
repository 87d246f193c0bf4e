#include "rivals.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SERVERS = RIVALS,
    NODES = RIVALS_NODES,
    QUORUM = NODES / 2 + 1,
    CALLS_MAX = RIVALS_CALLS_MAX,
    MS = 1000,
    SECOND = 1000000,
    TTL_MS = 5000,
    SILENCE_US = 1000000,
    FAULTS_END_US = RIVALS_FAULTS_END_US,
};

/* The nodes' clocks minus ours. */
#define EPOCH_US INT64_C(1795221641000000)

struct rivals rivals;

/* ---- chance ---------------------------------------------------------------
 */

static int64_t draw(int64_t below)
{
    rivals.random ^= rivals.random << 13;
    rivals.random ^= rivals.random >> 7;
    rivals.random ^= rivals.random << 17;
    return (int64_t)(rivals.random % (uint64_t)below);
}

static bool chance(int percent)
{
    return draw(100) < percent;
}

static bool is_calm(void)
{
    return rivals.now_us > FAULTS_END_US;
}

static int64_t draw_delay_us(void)
{
    int64_t of_100 = is_calm() ? 0 : draw(100);
    if (of_100 < 75)
        return 100 + draw(MS);
    if (of_100 < 90)
        return draw(300 * MS);
    return of_100 < 97 ? draw(3 * SECOND) : draw(30 * SECOND);
}

/* ---- servers ---------------------------------------------------------------
 */

static void begin_server(int server)
{
    struct rival *it = &rivals.server[server];
    struct guard_settings settings = {
        .nodes = NODES,
        .lead = 1,
        .epoch = rivals.epochs[server],
        .fingerprint = "00112233445566ff",
        .max_ttl_ms = TTL_MS,
        .node_timeout_us = 50 * MS,
        .first_start = FIRST_START_AUTO,
    };
    guard_init(&it->guard, &settings);
    for (int i = 0; i < NODES; i++) {
        if (rivals.node[i].has_stepped) /* one less who has seen it */
            rivals.node[i].forgot_us = 0;
        it->to[i].number++;
        it->to[i].is_up = false;
        it->to[i].waiting_us = 0;
        it->to[i].up_us = rivals.now_us + draw(300 * MS);
    }
}

static void drop(int server, int node)
{
    struct rivals_connection *to = &rivals.server[server].to[node];
    if (!to->is_up)
        return;
    to->number++;
    to->is_up = false;
    to->waiting_us = 0;
    to->up_us = rivals.now_us + 10 * MS + draw(500 * MS);
    guard_on_down(&rivals.server[server].guard, node);
}

static void name_life(int node, char run_id[41])
{
    snprintf(run_id, 41, "%020d%020d", node, rivals.node[node].life);
}

static bool is_admitted(int node)
{
    char run_id[41];
    name_life(node, run_id);
    return strstr(rivals.node[node].state.admit, run_id) != NULL;
}

static void connect_to(int server, int node)
{
    struct rivals_connection *to = &rivals.server[server].to[node];
    char run_id[41];
    name_life(node, run_id);
    to->is_up = true;
    guard_on_up(&rivals.server[server].guard, node, run_id, true,
                rivals.now_us);
    guard_on_clock(&rivals.server[server].guard, node, chance(90));
}

static struct rivals_call *new_call(void)
{
    for (int i = 0; i < CALLS_MAX; i++)
        if (!rivals.call[i].is_open)
            return &rivals.call[i];
    ck_abort_msg("seed %u: too many calls", rivals.seed);
    return NULL;
}

/* As nodes.c does it. */
static void send_action(int server, const struct guard_action *action)
{
    const struct guard *guard = &rivals.server[server].guard;
    const struct guard_node *it = &guard->node[action->node];
    struct rivals_connection *to = &rivals.server[server].to[action->node];
    struct rivals_call *call = new_call();
    *call = (struct rivals_call){
        .is_open = true,
        .server = server,
        .node = action->node,
        .connection = to->number,
        .life = rivals.node[action->node].life,
        .sent_us = rivals.now_us,
        .at_us = rivals.now_us + draw_delay_us(),
        .action = *action,
        .call = {.kind = action->kind,
                 .max_ttl_ms = TTL_MS,
                 .beat_us = it->beat_us,
                 .is_durable = it->is_durable},
    };
    const char *found = action->kind == GUARD_ADMIT     ? it->mark
                        : action->kind == GUARD_READMIT ? it->found
                        : action->kind == GUARD_REVOKE  ? it->spent
                                                        : "";
    strcpy(call->call.admit, it->admit);
    strcpy(call->call.found, found);
    if (action->kind == GUARD_LOOK || action->kind == GUARD_REVOKE)
        snprintf(call->call.nonce, sizeof call->call.nonce, "%016llx",
                 (unsigned long long)draw(INT64_MAX));
    to->waiting_us = rivals.now_us;
}

static void act(int server)
{
    struct guard_action action;
    while (guard_next(&rivals.server[server].guard, rivals.now_us, &action))
        send_action(server, &action);
}

static void tick(int server)
{
    struct rival *it = &rivals.server[server];
    it->tick_us = rivals.now_us + 10 * MS + draw(40 * MS);
    for (int i = 0; i < NODES; i++) {
        struct rivals_connection *to = &it->to[i];
        if (to->waiting_us != 0 && rivals.now_us > to->waiting_us + SILENCE_US)
            drop(server, i);
        if (!to->is_up && rivals.now_us >= to->up_us)
            connect_to(server, i);
        if (to->is_up && it->guard.node[i].phase != GUARD_DOWN)
            guard_on_clock(&it->guard, i, true);
    }
    act(server);
}

/* ---- nodes -----------------------------------------------------------------
 */

static void count_configurations(void)
{
    int admitted[3] = {0};
    for (int i = 0; i < NODES; i++)
        admitted[nodestate_epoch(rivals.node[i].state.admit)]++;
    ck_assert_msg(admitted[1] < QUORUM || admitted[2] < QUORUM,
                  "seed %u: two majorities", rivals.seed);
    ck_assert_msg(admitted[2] == 0 || admitted[1] < QUORUM,
                  "seed %u: epoch 2 began beside a majority of epoch 1",
                  rivals.seed);
}

static void note_admission(const struct rivals_call *call)
{
    struct rivals_node *node = &rivals.node[call->node];
    const struct guard *guard = &rivals.server[call->server].guard;
    int64_t quarantine_us = guard_quarantine_us(guard);
    rivals.admissions++;
    ck_assert_msg(node->forgot_us == 0 ||
                      rivals.now_us >= node->forgot_us + quarantine_us,
                  "seed %u: server %d admits node %d %lld us after its loss",
                  rivals.seed, call->server, call->node,
                  (long long)(rivals.now_us - node->forgot_us));
    node->granted_us = rivals.now_us;
    count_configurations();
}

static void run_call(struct rivals_call *call)
{
    struct rivals_node *node = &rivals.node[call->node];
    if (node->life != call->life) { /* the process that had it is gone */
        call->is_open = false;
        return;
    }
    if (is_admitted(call->node))
        node->granted_us = rivals.now_us;
    nodestate_run(&node->state, &call->call, EPOCH_US + rivals.now_us,
                  &call->reply);
    if (call->reply.is_done && call->action.kind == GUARD_REVOKE)
        node->has_stepped = false;
    else if (call->reply.is_done)
        note_admission(call);
    call->is_reply = true;
    call->at_us = rivals.now_us + draw_delay_us();
}

static void take_reply(struct rivals_call *call)
{
    struct rival *it = &rivals.server[call->server];
    struct rivals_connection *to = &it->to[call->node];
    call->is_open = false;
    if (call->connection != to->number)
        return;
    to->waiting_us = 0;
    bool is_look =
        call->action.kind == GUARD_PEEK || call->action.kind == GUARD_LOOK;
    int64_t node_now_us = call->reply.now_us;
    if (is_look) {
        call->reply.look.admit = span_of(call->reply.admit);
        call->reply.look.mark = span_of(call->reply.mark);
        guard_on_look(&it->guard, call->node, &call->reply.look, node_now_us,
                      call->sent_us, rivals.now_us);
    } else {
        guard_on_done(&it->guard, &call->action, call->reply.is_done,
                      node_now_us, rivals.now_us);
    }
    act(call->server);
}

/* ---- faults ----------------------------------------------------------------
 */

static void lose_memory(int node)
{
    struct rivals_node *it = &rivals.node[node];
    bool had_granted = is_admitted(node) || it->granted_us != 0;
    if (had_granted && node == rivals.witness)
        return;
    if (had_granted)
        it->forgot_us = rivals.now_us;
    it->has_stepped = false;
    memset(&it->state, 0, sizeof it->state);
}

static void restart_node(int node)
{
    rivals.node[node].life++;
    for (int i = 0; i < SERVERS; i++)
        drop(i, node);
}

/* A server loses some of its connections, for a moment or for a while. */
static void part(int server)
{
    int64_t most_us = chance(50) ? 20 * SECOND : SECOND;
    for (int i = 0; i < NODES; i++)
        if (chance(50)) {
            drop(server, i);
            rivals.server[server].to[i].up_us = rivals.now_us + draw(most_us);
        }
}

/* Its locks end too early, which both servers notice, wherever they are. */
static void step_clock(int node)
{
    struct rivals_node *it = &rivals.node[node];
    if (!is_admitted(node))
        return;
    it->has_stepped = true;
    it->forgot_us = rivals.now_us;
    for (int i = 0; i < SERVERS; i++)
        guard_on_step(&rivals.server[i].guard, node);
}

static void strike(void)
{
    int node = (int)draw(NODES);
    int server = (int)draw(SERVERS);
    switch (draw(8)) {
    case 0:
        lose_memory(node); /* FLUSHALL */
        break;
    case 1:
    case 2:
        lose_memory(node);
        restart_node(node);
        break;
    case 3:
        restart_node(node); /* durable */
        break;
    case 4:
        part(server);
        break;
    case 5:
        begin_server(server);
        break;
    case 6:
        rivals.server[server].wakes_us = rivals.now_us + draw(20 * SECOND);
        break;
    case 7:
        step_clock(node);
        break;
    default:
        break;
    }
}

/* ---- the play --------------------------------------------------------------
 */

static int64_t due_us(const struct rivals_call *call)
{
    int64_t wakes_us = rivals.server[call->server].wakes_us;
    return call->is_reply && call->at_us < wakes_us ? wakes_us : call->at_us;
}

/* The next thing that happens before until_us; false: nothing. */
static bool happen(int64_t until_us)
{
    struct rivals_call *next = NULL;
    int next_tick = -1;
    int64_t at_us = until_us;
    for (int i = 0; i < SERVERS; i++) {
        struct rival *it = &rivals.server[i];
        int64_t tick_us =
            it->tick_us > it->wakes_us ? it->tick_us : it->wakes_us;
        if (tick_us < at_us) {
            at_us = tick_us;
            next_tick = i;
        }
    }
    for (int i = 0; i < CALLS_MAX; i++)
        if (rivals.call[i].is_open && due_us(&rivals.call[i]) < at_us) {
            next = &rivals.call[i];
            at_us = due_us(next);
        }
    if (at_us >= until_us)
        return false;
    if (at_us > rivals.now_us)
        rivals.now_us = at_us;
    if (next == NULL)
        tick(next_tick);
    else if (next->is_reply)
        take_reply(next);
    else
        run_call(next);
    return true;
}

void rivals_run_until(int64_t until_us)
{
    while (happen(until_us))
        ;
    rivals.now_us = until_us;
}

static int compare(const void *a, const void *b)
{
    const int64_t *left = a;
    const int64_t *right = b;
    return *left < *right ? -1 : *left > *right;
}

void rivals_play_faults(void)
{
    int64_t at_us[12] = {0};
    int count = (int)draw(13);
    for (int i = 0; i < count; i++)
        at_us[i] = SECOND + draw(chance(60) ? 2 * SECOND : 38 * SECOND);
    qsort(at_us, (size_t)count, sizeof *at_us, compare);
    for (int i = 0; i < count; i++) {
        rivals_run_until(at_us[i]);
        strike();
    }
    rivals_run_until(FAULTS_END_US);
}

void rivals_begin(unsigned seed, int other_epoch)
{
    memset(&rivals, 0, sizeof rivals);
    rivals.seed = seed;
    rivals.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    rivals.now_us = SECOND;
    rivals.witness = (int)draw(NODES);
    rivals.epochs[0] = 1;
    rivals.epochs[1] = other_epoch;
    for (int i = 0; i < SERVERS; i++)
        begin_server(i);
    if (chance(50)) /* the second one comes when the first has begun */
        rivals.server[1].wakes_us = SECOND + draw(3 * SECOND);
}
