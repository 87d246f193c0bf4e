#include "rivals.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../server/engine/port/token.h"
#include "../../../server/engine/voting/eligibility.h"

enum {
    SERVERS = RIVALS,
    NODES = RIVALS_NODES,
    QUORUM = NODES / 2 + 1,
    CALLS_MAX = RIVALS_CALLS_MAX,
    MS = 1000,
    SECOND = 1000000,
    TTL_MS = 5000,
    SILENCE_US = 1000000,
    ROUND_US = 300 * MS,
    FAULTS_END_US = RIVALS_FAULTS_END_US,
};

/* The nodes' clocks minus ours. */
#define EPOCH_US INT64_C(1795221641000000)

struct rivals rivals;

/* They need not have the same. */
static const int64_t timeouts_us[SERVERS] = {50 * MS, SECOND};

/* ---- chance -------------------------------------------------------------- */

int64_t rivals_draw(int64_t below)
{
    rivals.random ^= rivals.random << 13;
    rivals.random ^= rivals.random >> 7;
    rivals.random ^= rivals.random << 17;
    return (int64_t)(rivals.random % (uint64_t)below);
}

bool rivals_chance(int percent)
{
    return rivals_draw(100) < percent;
}

static bool is_calm(void)
{
    return rivals.now_us > FAULTS_END_US;
}

static int64_t draw_delay_us(void)
{
    int64_t of_100 = is_calm() || rivals.is_calm ? 0 : rivals_draw(100);
    if (of_100 < 75)
        return 100 + rivals_draw(MS);
    if (of_100 < 90)
        return rivals_draw(300 * MS);
    return of_100 < 97 ? rivals_draw(3 * SECOND) : rivals_draw(30 * SECOND);
}

/* ---- servers ------------------------------------------------------------- */

#define FINGERPRINT "0011223344556605"

static void begin_server(int server)
{
    struct rival *it = &rivals.server[server];
    struct engine_settings settings = {
        .nodes = NODES,
        .node_names = {"b", "a", "c", "d", "e"},
        .config_epoch = rivals.epochs[server],
        .fingerprint = FINGERPRINT,
        .max_ttl_ms = TTL_MS,
        .node_timeout_us = timeouts_us[server],
        .first_start = FIRST_START_AUTO,
    };
    if (server == 1 && rivals.is_other)
        memset(settings.fingerprint, 'f', FINGERPRINT_LEN - 2);
    admission_init(&it->admission, &settings);
    admission_on_median(&it->admission, true, EPOCH_US);
    it->round_us = rivals.now_us;
    for (int i = 0; i < NODES; i++) {
        if (rivals.node[i].has_stepped)
            promises_on_unseen_step(&rivals.promises, i);
        it->to[i].number++;
        it->to[i].is_up = false;
        it->to[i].waiting_us = 0;
        it->to[i].up_us = rivals.now_us + rivals_draw(300 * MS);
    }
}

void rivals_restart_server(int server)
{
    begin_server(server);
}

void rivals_drop(int server, int node)
{
    struct rivals_connection *to = &rivals.server[server].to[node];
    if (!to->is_up)
        return;
    to->number++;
    to->is_up = false;
    to->waiting_us = 0;
    to->up_us = rivals.now_us + 10 * MS + rivals_draw(500 * MS);
    admission_on_down(&rivals.server[server].admission, node);
}

static void name_life(int node, char run_id[41])
{
    snprintf(run_id, 41, "%020d%020d", node, rivals.node[node].life);
}

bool rivals_is_admitted(int node)
{
    char run_id[41];
    name_life(node, run_id);
    return strstr(rivals.node[node].memory.admit, run_id) != NULL;
}

static void connect_to(int server, int node)
{
    struct rivals_connection *to = &rivals.server[server].to[node];
    char run_id[41];
    name_life(node, run_id);
    to->is_up = true;
    to->there_us = to->back_us = 0;
    const struct node_facts facts = {.run_id = run_id, .is_durable = true};
    admission_on_up(&rivals.server[server].admission, node, &facts,
                    rivals.now_us);
    admission_on_clock(&rivals.server[server].admission, node,
                       rivals_chance(90));
}

/* As a connection does. */
static int64_t in_order(int64_t *last_us, int64_t at_us)
{
    if (*last_us < at_us)
        *last_us = at_us;
    return *last_us;
}

static struct rivals_call *new_call(void)
{
    for (int i = 0; i < CALLS_MAX; i++)
        if (!rivals.call[i].is_open)
            return &rivals.call[i];
    ck_abort_msg("seed %u: too many calls", rivals.seed);
    return NULL;
}

/* What leaves now, or behind what left before it. */
static struct rivals_call *begin_call(int server, int node, int64_t delay_us)
{
    struct rivals_connection *to = &rivals.server[server].to[node];
    struct rivals_call *call = new_call();
    *call = (struct rivals_call){
        .is_open = true,
        .server = server,
        .node = node,
        .connection = to->number,
        .life = rivals.node[node].life,
        .sent_us = rivals.now_us,
        .at_us = in_order(&to->there_us, rivals.now_us + delay_us),
    };
    return call;
}

/* As nodes.c does it. */
static void send_action(int server, const struct admission_action *action)
{
    static const enum call_kind script_of[] = {
        [ADMISSION_PROBE] = CALL_LOOK,    [ADMISSION_LOOK] = CALL_LOOK,
        [ADMISSION_ADMIT] = CALL_ADMIT,   [ADMISSION_READMIT] = CALL_READMIT,
        [ADMISSION_REVOKE] = CALL_REVOKE,
    };
    const struct admission *admission = &rivals.server[server].admission;
    const struct admission_node *it = &admission->node[action->node];
    /* cppcheck-suppress variableScope; ask points to it */
    char nonce[CALL_NONCE_MAX + 1];
    /* cppcheck-suppress variableScope; likewise */
    char witnesses[CALL_WITNESSES_MAX + 1];
    struct call ask = {
        .kind = script_of[action->kind],
        .admit = span_of(it->admit),
        .found = span_of(it->found),
        .mark = span_of(it->mark),
        .trace = span_of(it->trace),
        .max_ttl_ms = TTL_MS,
        .floor = admission->witness.node[action->node].floor,
        .latest = span_of(admission->witness.node[action->node].latest),
        .witnesses = witness_text(&admission->witness, action->node, witnesses,
                                  sizeof witnesses),
        .median_us = EPOCH_US + rivals.now_us,
        .window_us = SECOND,
        .is_durable = it->is_durable,
        .is_objecting = admission_is_objecting(admission, rivals.now_us),
        .is_renewing =
            eligibility_may_renew(admission, action->node, rivals.now_us),
        .is_established = eligibility_is_established(admission),
        .number = eligibility_number(admission, action->node),
    };
    struct rivals_call *call =
        begin_call(server, action->node, draw_delay_us());
    if (action->kind == ADMISSION_LOOK || action->kind == ADMISSION_REVOKE) {
        snprintf(nonce, sizeof nonce, "%010lld:%s",
                 (long long)rivals_draw(10000000000),
                 firststart_is_marking(&admission->start) ? "first" : "");
        ask.nonce = span_of(nonce);
    }
    simcall_copy(&call->call, &ask);
    call->action = *action;
    rivals.server[server].to[action->node].waiting_us = rivals.now_us;
}

/* Asks for a lock that nobody has; as operation.c and nodes.c do it. */
static void ask_for_votes(int server)
{
    struct rival *it = &rivals.server[server];
    const struct admission *admission = &it->admission;
    int number = promises_add(&rivals.promises, rivals.now_us + TTL_MS * MS);
    it->round[number % RIVALS_ROUNDS] =
        (struct rivals_round){.promise = number};
    struct call ask = {
        .kind = CALL_ACQUIRE,
        .resource = span_of(simnode_resource(0)),
        .token = span_of("rival"),
        .ttl_ms = TTL_MS,
        .number = EPOCH_US + rivals.now_us,
        .node_deadline_us = EPOCH_US + rivals.now_us + timeouts_us[server],
        .window_us = SECOND,
    };
    fence_slots(ask.resource, ask.slots);
    for (int i = 0; i < NODES; i++) {
        if (!rivals.server[server].to[i].is_up ||
            admission_refusal(admission, i) != STATE_NONE)
            continue;
        struct rivals_call *call =
            begin_call(server, i, rivals_draw(2 * timeouts_us[server]));
        ask.admit = span_of(admission->node[i].found);
        simcall_copy(&call->call, &ask);
        call->is_vote = true;
        call->promise = number;
        call->voter = admission->node[i].life;
    }
}

static void act(int server)
{
    struct admission_action action;
    while (admission_next(&rivals.server[server].admission, rivals.now_us,
                          &action))
        send_action(server, &action);
}

static void tick(int server)
{
    struct rival *it = &rivals.server[server];
    it->tick_us = rivals.now_us + 10 * MS + rivals_draw(40 * MS);
    for (int i = 0; i < NODES; i++) {
        struct rivals_connection *to = &it->to[i];
        if (to->waiting_us != 0 && rivals.now_us > to->waiting_us + SILENCE_US)
            rivals_drop(server, i);
        if (!to->is_up && rivals.now_us >= to->up_us)
            connect_to(server, i);
        if (to->is_up && it->admission.node[i].phase != ADMISSION_DOWN)
            admission_on_clock(&it->admission, i, true);
    }
    act(server);
    rivals_keep_copies();
    if (rivals.now_us >= it->round_us && !is_calm()) {
        it->round_us = rivals.now_us + rivals_draw(2 * ROUND_US);
        ask_for_votes(server);
    }
}

/* ---- nodes --------------------------------------------------------------- */

/* The epoch in front of an admission; 0: there is none. */
static int epoch_of(const char *admit)
{
    return atoi(admit); /* of what servers write, and nobody else */
}

static void count_configurations(void)
{
    if (!rivals.is_other)
        return;
    int admitted[3] = {0};
    for (int i = 0; i < NODES; i++)
        admitted[epoch_of(rivals.node[i].memory.admit)]++;
    ck_assert_msg(admitted[1] < QUORUM || admitted[2] < QUORUM,
                  "seed %u: two majorities", rivals.seed);
    ck_assert_msg(admitted[2] == 0 || admitted[1] < QUORUM,
                  "seed %u: epoch 2 began beside a majority of epoch 1",
                  rivals.seed);
}

static void check_promises(void)
{
    int broken = promises_find_broken(&rivals.promises);
    ck_assert_msg(broken < 0,
                  "seed %u: promise %d is not over at %lld, and nodes %x vote "
                  "that have forgotten it",
                  rivals.seed, broken, (long long)rivals.now_us,
                  rivals.promises.promise[broken].back);
}

static void note_admission(const struct rivals_call *call)
{
    rivals.admissions++;
    rivals.readmissions += call->action.kind == ADMISSION_READMIT;
    promises_on_admission(&rivals.promises, call->node, rivals.now_us);
    check_promises();
    count_configurations();
}

static enum vote execute(struct rivals_call *call)
{
    struct rivals_node *node = &rivals.node[call->node];
    struct simprocess process = {.read = node->replid,
                                 .was_replica = node->replid > 0};
    struct simbatch batch = {
        .memory = &node->memory,
        .process = &process,
        .clock_us = EPOCH_US + rivals.now_us,
    };
    snprintf(process.replid, sizeof process.replid, "%020d%020d", call->node,
             node->replid);
    simnode_execute(&batch, &call->call, &call->reply);
    return call->reply.reply.vote;
}

static void vote(struct rivals_call *call)
{
    struct simmemory *memory = &rivals.node[call->node].memory;
    if (execute(call) != VOTE_GRANTED)
        return;
    /* the next vote is for another lock, in another slot */
    memory->keys[0].is_set = false;
    memory->highest[0] = 0;
    promises_on_vote(&rivals.promises, call->promise, call->node,
                     rivals.now_us);
}

static void act_on_state(struct rivals_call *call)
{
    if (execute(call) != VOTE_DONE)
        return;
    if (call->action.kind == ADMISSION_REVOKE)
        rivals.node[call->node].has_stepped = false;
    else if (call->call.call.kind != CALL_LOOK)
        note_admission(call);
}

static void run_call(struct rivals_call *call)
{
    struct rivals_connection *to = &rivals.server[call->server].to[call->node];
    if (rivals.node[call->node].life != call->life) {
        call->is_open = false; /* the process that had it is gone */
        return;
    }
    call->is_reply = true;
    call->at_us = rivals.now_us + draw_delay_us();
    if (call->is_vote) /* else few would come back before the connection ends */
        call->at_us = rivals.now_us + rivals_draw(timeouts_us[call->server]);
    else if (call->connection == to->number)
        call->at_us = in_order(&to->back_us, call->at_us);
    if (call->is_vote)
        vote(call);
    else
        act_on_state(call);
}

/* As operation.c and nodes.c do it, but with all the time in the world. */
static void count_votes(const struct rivals_call *call)
{
    struct rival *it = &rivals.server[call->server];
    struct rivals_round *round = &it->round[call->promise % RIVALS_ROUNDS];
    if (round->promise != call->promise)
        return;
    if (call->reply.reply.vote == VOTE_GRANTED &&
        admission_refusal(&it->admission, call->node) == STATE_NONE) {
        round->votes |= 1u << call->node;
        round->voter[call->node] = call->voter;
    }
    for (int i = 0; i < NODES; i++)
        if (!admission_has_memory(&it->admission, i, round->voter[i]))
            round->votes &= ~(1u << i);
    promises_on_count(&rivals.promises, call->promise, round->votes);
    check_promises();
}

static void take_reply(struct rivals_call *call)
{
    struct rival *it = &rivals.server[call->server];
    struct rivals_connection *to = &it->to[call->node];
    const struct call_reply *reply = &call->reply.reply;
    call->is_open = false;
    if (call->connection != to->number)
        return;
    admission_on_beat(&it->admission, call->node, reply->beat);
    if (call->is_vote)
        count_votes(call);
    else
        to->waiting_us = 0;
    if (reply->vote == VOTE_NOT_ADMITTED)
        admission_on_quarantined(&it->admission, call->node, rivals.now_us);
    else if (call->call.call.kind == CALL_LOOK)
        admission_on_look(&it->admission, call->node, &reply->look,
                          call->sent_us, rivals.now_us);
    else if (!call->is_vote)
        admission_on_done(&it->admission, &call->action, rivals.now_us);
    act(call->server);
}

/* ---- the play ------------------------------------------------------------ */

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

void rivals_begin(unsigned seed, int other_epoch, bool is_other)
{
    memset(&rivals, 0, sizeof rivals);
    rivals.seed = seed;
    rivals.random = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    rivals.now_us = SECOND;
    promises_init(&rivals.promises, QUORUM);
    rivals.witness = (int)rivals_draw(NODES);
    rivals.victim = (rivals.witness + 1 + (int)rivals_draw(NODES - 1)) % NODES;
    rivals.epochs[0] = 1;
    rivals.epochs[1] = other_epoch;
    rivals.is_other = is_other;
    for (int i = 0; i < SERVERS; i++)
        begin_server(i);
    if (rivals_chance(50)) /* the second one comes when the first has begun */
        rivals.server[1].wakes_us = SECOND + rivals_draw(3 * SECOND);
}
