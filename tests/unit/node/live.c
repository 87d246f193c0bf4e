/* SPDX-License-Identifier: MIT */
#include "live.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../server/base/clock.h"
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "../turns.h"

enum { SILENCE_US = 2000000, DEADLINE_US = 5000000, RUN_ID_DIGITS = 40 };

struct live live;

static void note_facts(const struct node_facts *facts)
{
    live.is_durable = facts->is_durable;
    PRINT_TO(live.evicts, "%s", facts->evicts);
}

static void on_up(struct engine *engine, int node,
                  const struct node_facts *facts)
{
    (void)engine, (void)node;
    ck_assert_uint_eq(strlen(facts->run_id), RUN_ID_DIGITS);
    ck_assert_int_le(facts->sent_us, facts->received_us);
    live.clock_offset_us = facts->node_now_us - facts->received_us;
    note_facts(facts);
    live.ups++;
}

static void on_confirmed(struct engine *engine, int node,
                         const struct node_facts *facts)
{
    (void)engine, (void)node;
    note_facts(facts);
    live.confirmed++;
}

static void on_down(struct engine *engine, int node, enum node_state reason,
                    const char *detail)
{
    (void)engine, (void)node;
    live.reason = reason;
    PRINT_TO(live.detail, "%s", detail);
    live.downs++;
}

static void on_reply(struct engine *engine, int node, uint64_t tag,
                     const struct call_reply *reply, int64_t sent_us,
                     int64_t received_us)
{
    (void)engine, (void)node;
    ck_assert_int_le(sent_us, received_us);
    ck_assert_uint_lt(tag, LIVE_VOTES_MAX);
    live.votes[tag] = ballot_of_reply(reply);
    live.reply = *reply;
    live.admit[span_copy(live.admit, reply->probe.admit)] = '\0';
    live.quarantine[span_copy(live.quarantine, reply->probe.quarantine)] = '\0';
    if (live.quarantine[0] != '\0')
        memcpy(live.quarantined, live.quarantine, sizeof live.quarantined);
    if (reply->probe.trace.len > 0)
        live.trace[span_copy(live.trace, reply->probe.trace)] = '\0';
    live.replies++;
}

static void flush(void *arg)
{
    (void)arg;
    link_flush(live.link);
}

void live_reconnect(void)
{
    live.trace[0] = '\0';
    static const struct node_events events = {.up = on_up,
                                              .confirmed = on_confirmed,
                                              .down = on_down,
                                              .reply = on_reply};
    const struct line_setup setup = {.loop = live.loop,
                                     .config = &live.config,
                                     .silence_us = SILENCE_US,
                                     .prefix = "p:"};
    link_free(live.link);
    live.link = link_new(0, &setup, &events);
    ck_assert_ptr_nonnull(live.link);
}

void live_setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    memset(&live, 0, sizeof live);
    tokens_begin();
    real_start(&live.real);
    PRINT_TO(live.config.host, "%s", live.real.path);
    live.config.is_unix = true;
    live.loop = loop_new();
    ck_assert_ptr_nonnull(live.loop);
    live_reconnect();
    loop_set_stage(live.loop, LOOP_FLUSH, flush, NULL);
    turns_until_count(live.loop, &live.ups, 1);
    live_learn_memory();
}

void live_teardown(void)
{
    link_free(live.link);
    loop_free(live.loop);
    real_stop(&live.real);
}

int64_t live_node_now_us(void)
{
    return clock_now_us() + live.clock_offset_us;
}

void live_learn_memory(void)
{
    char id[SIM_REPLID_LEN + 1];
    real_info(&live.real, "replication", "master_replid:", id);
    PRINT_TO(live.of_this_life, ":run:%s", id);
    if (live.admission[0] == '\0') /* as no node has it */
        PRINT_TO(live.admission, LIVE_NAME "0:0%s", live.of_this_life);
}

/* The admission that follows this quarantine record. */
static void make_admission(struct span quarantine)
{
    struct span incarnation =
        call_state_part(quarantine, CALL_STATE_INCARNATION);
    PRINT_TO(live.admission, LIVE_NAME "%.*s:0%s", (int)incarnation.len,
             incarnation.ptr, live.of_this_life);
}

struct call live_call(enum call_kind kind, const char *resource,
                      const char *token)
{
    int64_t now_us = live_node_now_us();
    /* what needs a vote carries the whole admission, as a probe returns it */
    bool is_admission = kind == CALL_PROBE || kind == CALL_ADMIT;
    return (struct call){
        .kind = kind,
        .resource = span_of(resource),
        .token = span_of(token),
        .admit = span_of(is_admission ? LIVE_ADMIT : live.admission),
        .nonce = span_of(LIVE_NONCE),
        .quarantine = span_of(live.quarantined),
        .trace = span_of(kind == CALL_PROBE ? live.trace : ""),
        .median_us = LIVE_MEDIAN_US,
        .max_ttl_ms = LIVE_TTL_MS,
        .is_durable = true,
        .ttl_ms = LIVE_TTL_MS,
        .number = kind == CALL_ACQUIRE ? now_us : 0,
        .node_deadline_us = now_us + DEADLINE_US,
        .window_us = LIVE_WINDOW_US,
        .buckets = {7},
        .listen_us = CALL_LISTEN_US,
    };
}

/* With the token that its name stands for; what it sets has its number. */
static void send_call(const struct call *call, uint64_t tag)
{
    char text[TOKEN_MAX + 1];
    struct call sent = *call;
    if (call->kind == CALL_ACQUIRE)
        tokens_renumber(call->token, call->number);
    sent.token = tokens_make(
        call->token, tokens_number(call->token, live_node_now_us()), text);
    ck_assert_int_eq(link_send(live.link, &sent, tag), VOTE_PENDING);
}

void live_ask_all(const struct call *calls, int count)
{
    int before = live.replies;
    ck_assert_int_le(count, LIVE_VOTES_MAX);
    for (int i = 0; i < count; i++)
        send_call(&calls[i], (uint64_t)i);
    turns_until_count(live.loop, &live.replies, before + count);
}

int live_ask(const struct call *call)
{
    live_ask_all(call, 1);
    if (live.reply.vote == VOTE_DONE && call->kind == CALL_ADMIT)
        make_admission(call->quarantine);
    return ballot_of_reply(&live.reply);
}

int live_run(enum call_kind kind, const char *resource, const char *token)
{
    struct call call = live_call(kind, resource, token);
    return live_ask(&call);
}

void live_admit(void)
{
    ck_assert_int_eq(live_run(CALL_PROBE, "", ""), VOTE_DONE);
    ck_assert_int_eq(live_run(CALL_ADMIT, "", ""), VOTE_DONE);
}

void live_listen(int64_t us)
{
    struct call call = live_call(CALL_LISTEN, "", "");
    call.admit = span_of("");
    call.listen_us = us;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
}
