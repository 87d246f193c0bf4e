/* SPDX-License-Identifier: MIT */
#include "play.h"

#include <check.h>
#include <stdio.h>

#include "../../server/base/log.h"
#include "../../server/engine/port/token.h"
#include "starve.h"

enum { CONFIRM_US = 1000000 };

struct play play;

/* ---- the port ----------------------------------------------------------- */

static void record(int node, const struct call *call, uint64_t tag)
{
    ck_assert_int_lt(play.sent_count, PLAY_CALLS_MAX);
    struct play_call *sent = &play.sent[play.sent_count++];
    *sent = (struct play_call){.node = node, .tag = tag, .call = *call};
    snprintf(sent->resource, sizeof sent->resource, "%.*s",
             (int)call->resource.len, call->resource.ptr);
    (void)span_copy(sent->token, call->token);
    (void)span_copy(sent->admit, call->admit);
    (void)span_copy(sent->nonce, call->nonce);
    (void)span_copy(sent->quarantine, call->quarantine);
    (void)span_copy(sent->witnesses, call->witnesses);
    (void)span_copy(sent->found, call->found);
    (void)span_copy(sent->latest, call->latest);
    (void)span_copy(sent->trace, call->trace);
}

static enum vote port_send(void *ctx, int node, const struct call *call,
                           uint64_t tag)
{
    bool is_starved = starve.is_on;
    (void)ctx;
    if (play.is_losing[node])
        return VOTE_DISCONNECTED;
    if (play.is_refusing[node])
        return VOTE_STALLED;
    starve.is_on = false; /* Check allocates, too */
    record(node, call, tag);
    starve.is_on = is_starved;
    return VOTE_PENDING;
}

static int64_t port_now(void *ctx)
{
    (void)ctx;
    return play.now_us;
}

static void port_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, play.random_byte++, len);
}

static bool port_timer(void *ctx, uint32_t id, int64_t at_us)
{
    bool is_starved = starve.is_on;
    (void)ctx;
    starve.is_on = false;
    ck_assert_uint_lt(id, PLAY_TIMERS);
    play.timer_us[id] = at_us;
    starve.is_on = is_starved;
    return true;
}

static void port_answer(void *ctx, void *client)
{
    (void)ctx;
    play.answers++;
    if (play.on_answer != NULL)
        play.on_answer(client);
}

static void port_listen(void *ctx, bool is_on)
{
    (void)ctx;
    play.is_listening = is_on;
}

static void port_subscribe(void *ctx, int node, struct span resource,
                           bool is_on)
{
    (void)ctx;
    (void)resource;
    play.subscriptions[node] += is_on ? 1 : -1;
}

/* ---- the play ----------------------------------------------------------- */

struct node_facts play_facts(int node)
{
    static const char run_ids[PLAY_NODES][41] = {
        PLAY_RUN_ID "0", PLAY_RUN_ID "1", PLAY_RUN_ID "2",
        PLAY_RUN_ID "3", PLAY_RUN_ID "4",
    };
    return (struct node_facts){
        .run_id = run_ids[node],
        .is_durable = true,
        .confirmed_us = play.now_us,
        .node_now_us = PLAY_EPOCH_US + play.now_us + play.offset_us[node],
        .sent_us = play.now_us,
        .received_us = play.now_us,
    };
}

const char *play_name(int node)
{
    static char names[PLAY_NODES][FINGERPRINT_LEN + 1];
    fingerprint_of_name(names[node], play_settings.node_names[node]);
    return names[node];
}

const char *play_admission(int node, bool is_older)
{
    static char admissions[PLAY_NODES][CALL_STATE_MAX + 1];
    snprintf(admissions[node], sizeof admissions[node], "1:%s:%s:%s:%d:%s:%s",
             PLAY_FINGERPRINT, play_name(node), play.incarnation[node],
             play.news[node], is_older ? "older" : play_facts(node).run_id,
             PLAY_MEMORY);
    return admissions[node];
}

struct span play_heard(int node, int other, int64_t generation,
                       const char *incarnation)
{
    static char heard[CALL_WITNESSES_MAX + 1];
    size_t len = 0;
    for (int i = 0; i < PLAY_NODES; i++)
        if (i != node)
            len +=
                (size_t)snprintf(heard + len, sizeof heard - len, "%026lld%s",
                                 i == other ? (long long)generation : 0,
                                 i == other ? incarnation : PLAY_NONE);
    return (struct span){heard, len};
}

/* The numbers of "name=number name=number ", all equally long. */
static struct span numbers_of(const char *told)
{
    static char numbers[CALL_WITNESSES_MAX + 1] = "";
    size_t len = 0;
    while ((told = strchr(told, '=')) != NULL)
        len += span_copy(numbers + len, (struct span){++told, INCARNATION_LEN});
    return (struct span){numbers, len};
}

void play_confirm(int node)
{
    struct node_facts facts = play_facts(node);
    engine_on_node_confirmed(play.engine, node, &facts);
}

static void confirm(void)
{
    if (play.now_us < play.confirmed_us + CONFIRM_US)
        return;
    play.confirmed_us = play.now_us;
    for (int i = 0; i < PLAY_NODES; i++)
        if (play.is_up[i] && !play.is_unconfirmed[i])
            play_confirm(i);
}

void play_advance(int64_t us)
{
    int64_t until_us = play.now_us + us;
    for (;;) {
        int next = -1;
        for (int i = 0; i < PLAY_TIMERS; i++)
            if (play.timer_us[i] != 0 && play.timer_us[i] <= until_us &&
                (next < 0 || play.timer_us[i] < play.timer_us[next]))
                next = i;
        if (next < 0)
            break;
        if (play.timer_us[next] > play.now_us)
            play.now_us = play.timer_us[next];
        play.timer_us[next] = 0;
        confirm();
        engine_on_timer(play.engine, (uint32_t)next);
    }
    play.now_us = until_us;
}

void play_reply(struct play_call *sent, struct call_reply reply)
{
    ck_assert(sent != NULL && !sent->is_answered);
    sent->is_answered = true;
    if (reply.vote != VOTE_DISCONNECTED)
        reply.node_now_us =
            PLAY_EPOCH_US + play.now_us + play.offset_us[sent->node];
    engine_on_reply(play.engine, sent->node, sent->tag, &reply, play.now_us,
                    play.now_us);
}

struct play_call *play_find(enum call_kind kind, int node)
{
    for (int i = 0; i < play.sent_count; i++) {
        struct play_call *sent = &play.sent[i];
        if (sent->call.kind == kind && sent->node == node && !sent->is_answered)
            return sent;
    }
    return NULL;
}

void play_answer(enum call_kind kind, int node, int ballot)
{
    struct play_call *sent = play_find(kind, node);
    ck_assert_msg(sent != NULL, "no %d for node %d", kind, node);
    play_reply(sent, reply_of_ballot(ballot));
}

void play_answer_held(enum call_kind kind, int node, const char *value)
{
    if (kind == CALL_TOKENS)
        play_answer_tokens(node, value, 0);
    else
        PLAY_REPLY(kind, node, .vote = VOTE_HELD, .pttl_ms = 5000,
                   .value = span_of(value));
}

void play_answer_tokens(int node, const char *tokens, int64_t left)
{
    char list[64 * (TOKEN_MAX + 4)] = "";
    size_t len = 0;
    while (*tokens != '\0') {
        size_t size = strcspn(tokens, " ");
        len += (size_t)snprintf(list + len, sizeof list - len, "%zu:%.*s", size,
                                (int)size, tokens);
        tokens += size + (tokens[size] == ' ');
    }
    PLAY_REPLY(CALL_TOKENS, node, .vote = VOTE_HELD, .left = left,
               .names = {list, len});
}

void play_answer_range(enum call_kind kind, int from, int to, int ballot)
{
    for (int i = from; i < to; i++)
        play_answer(kind, i, ballot);
}

void play_hold_range(enum call_kind kind, int from, int to, const char *value)
{
    for (int i = from; i < to; i++)
        play_answer_held(kind, i, value);
}

int play_count(enum call_kind kind)
{
    int count = 0;
    for (int i = 0; i < play.sent_count; i++)
        count += play.sent[i].call.kind == kind;
    return count;
}

void play_await_round(int calls)
{
    for (int ms = 0; ms <= 200 && play_count(CALL_ACQUIRE) < calls; ms++)
        play_advance(1000);
    ck_assert_int_eq(play_count(CALL_ACQUIRE), calls);
}

void play_answer_probe(int node, enum call_probe_word word, const char *admit,
                       const char *quarantine)
{
    struct play_call *sent = play_find(CALL_PROBE, node);
    ck_assert_msg(sent != NULL, "no probe of node %d", node);
    bool is_admitted = word == PROBE_ADMITTED;
    (void)sscanf(quarantine, "%*[^:]:%*[^:]:%*[^:]:%26[0-9]",
                 play.incarnation[node]);
    if (is_admitted && admit[0] == '\0')
        admit = play_admission(node, false);
    play_reply(sent, (struct call_reply){
                         .vote = VOTE_DONE,
                         .probe = {.word = word,
                                   .admit = span_of(admit),
                                   .quarantine = span_of(quarantine),
                                   .is_durable = true,
                                   .generation = 1,
                                   .rest_us = is_admitted ? play.rest_us : 0,
                                   .number = is_admitted ? play.number : 0,
                                   .witnesses = numbers_of(
                                       is_admitted ? sent->witnesses : "")},
                     });
}

void play_answer_probes(int node, enum call_probe_word word,
                        const char *quarantine)
{
    while (play_find(CALL_PROBE, node) != NULL)
        play_answer_probe(node, word, "", quarantine);
}

void play_answer_all_probes(void)
{
    for (int i = 0; i < PLAY_NODES; i++)
        play_answer_probes(i, PROBE_ADMITTED, "");
}

void play_node_connect(int node)
{
    struct node_facts facts = play_facts(node);
    play.is_up[node] = true;
    engine_on_node_up(play.engine, node, &facts);
}

void play_node_up(int node)
{
    play_node_connect(node);
    play_answer_probe(node, PROBE_ADMITTED, "", "");
}

void play_node_down(int node)
{
    play.is_losing[node] = true; /* what its replies cause is refused */
    for (int i = 0; i < play.sent_count; i++)
        if (play.sent[i].node == node && !play.sent[i].is_answered)
            play_reply(&play.sent[i],
                       (struct call_reply){.vote = VOTE_DISCONNECTED});
    play.is_losing[node] = play.is_up[node] = false;
    engine_on_node_down(play.engine, node, STATE_UNREACHABLE, "reset");
}

void play_nodes_up(void)
{
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_up(i);
}

void play_nodes_down(int count)
{
    for (int i = 0; i < count; i++)
        play_node_down(i);
}

void play_reconnect(int node)
{
    play_node_down(node);
    play_node_connect(node);
}

void play_lose_memory(int node)
{
    play_reconnect(node);
    play_answer_probe(node, PROBE_CREATED, "", PLAY_QUARANTINE(2));
}

const struct engine_settings play_settings = {
    .nodes = PLAY_NODES,
    .node_names = {"a", "b", "c", "d", "e"},
    .node_addresses = {"a", "b", "c", "d", "e"},
    .node_timeout_us = 50000,
    .max_ttl_ms = 60000,
    .max_hold_ms = 100000,
    .readers_max = 1000,
    .retry_delay_us = 200000,
    .retry_count = 3,
    .waiters_max = WAITERS_MAX,
    .drift_factor = 0.01,
    .fingerprint = PLAY_FINGERPRINT,
    .config_epoch = 1,
};

void play_begin_with(const struct engine_settings *settings)
{
    memset(&play, 0, sizeof play);
    play.now_us = play.confirmed_us = 1000000;
    for (int i = 0; i < PLAY_NODES; i++)
        strcpy(play.incarnation[i], PLAY_INCARNATION(1));
    log_set_level(LOG_OFF);
    struct engine_port port = {
        .send = port_send,
        .now = port_now,
        .random = port_random,
        .timer = port_timer,
        .answer = port_answer,
        .listen = port_listen,
        .subscribe = port_subscribe,
    };
    play.engine = engine_new(settings, &port, &play.metrics);
    ck_assert_ptr_nonnull(play.engine);
}

void play_begin(void)
{
    play_begin_with(&play_settings);
    play_nodes_up();
    play.sent_count = 0;
}

void play_end(void)
{
    engine_free(play.engine);
}

void play_begin_again(const struct engine_settings *settings)
{
    play_end();
    play_begin_with(settings);
}

struct span play_token(int64_t number)
{
    static char text[TOKEN_MAX];
    static const unsigned char random[TOKEN_RANDOM_BYTES];
    const struct token_parts parts = {.number = number, .owner = span_of("me")};
    return (struct span){text, token_make(text, random, &parts)};
}

engine_op play_acquire_of(struct span owner, int64_t ttl_ms)
{
    const struct engine_acquire acquire = {
        .resource = PLAY_RESOURCE, .owner = owner, .ttl_ms = ttl_ms};
    return engine_acquire(play.engine, &acquire, NULL);
}

engine_op play_acquire(void)
{
    return play_acquire_of(span_of("web-3"), 30000);
}

engine_op play_ask_again(void)
{
    const struct engine_acquire acquire = {.resource = PLAY_RESOURCE,
                                           .owner = span_of("me"),
                                           .key_hash = span_of(PLAY_KEY),
                                           .ttl_ms = 30000};
    return engine_acquire(play.engine, &acquire, NULL);
}

engine_op play_win(void)
{
    engine_op op = play_acquire();
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    return op;
}

engine_op play_extend(struct span token, int64_t ttl_ms)
{
    return engine_extend(play.engine, PLAY_RESOURCE, token, ttl_ms, false,
                         NULL);
}

engine_op play_release(struct span token)
{
    return engine_release(play.engine, PLAY_RESOURCE, token, NULL);
}

const struct engine_result *play_result(engine_op op)
{
    return engine_take(play.engine, op, play.now_us);
}

enum outcome play_outcome(engine_op op)
{
    return play_result(op)->outcome;
}

void play_split_votes(void)
{
    play_answer_range(CALL_ACQUIRE, 0, 2, VOTE_GRANTED);
    play_answer_held(CALL_ACQUIRE, 2, PLAY_TOKEN_OF(1));
    play_answer_held(CALL_ACQUIRE, 3, PLAY_TOKEN_OF(1));
    play_answer_held(CALL_ACQUIRE, 4, PLAY_TOKEN_OF(2));
}
