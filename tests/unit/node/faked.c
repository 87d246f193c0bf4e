/* SPDX-License-Identifier: MIT */
#include "faked.h"

#include <signal.h>
#include <stdio.h>

#include "../../lib/suite/suite.h"

enum { NODE = 3 };

struct faked faked;

enum vote faked_inspect(uint64_t tag)
{
    struct call call = {.kind = CALL_INSPECT, .resource = span_of("r")};
    return link_send(faked.link, &call, tag);
}

static void on_up(struct engine *engine, int node,
                  const struct node_facts *facts)
{
    ck_assert_ptr_eq(engine, &faked);
    ck_assert_int_eq(node, NODE);
    faked.facts = *facts;
    snprintf(faked.run_id, sizeof faked.run_id, "%s", facts->run_id);
    snprintf(faked.lacks, sizeof faked.lacks, "%s", facts->lacks);
    faked.ups++;
}

static void on_confirmed(struct engine *engine, int node,
                         const struct node_facts *facts)
{
    ck_assert_ptr_eq(engine, &faked);
    ck_assert_int_eq(node, NODE);
    ck_assert_str_eq(facts->run_id, faked.run_id);
    faked.facts = *facts;
    faked.confirmed++;
}

static void on_down(struct engine *engine, int node, enum node_state reason,
                    const char *detail)
{
    ck_assert_ptr_eq(engine, &faked);
    ck_assert_int_eq(node, NODE);
    faked.reason = reason;
    snprintf(faked.detail, sizeof faked.detail, "%s", detail);
    faked.replies_at_down = faked.replies;
    faked.downs++;
}

static void on_reply(struct engine *engine, int node, uint64_t tag,
                     const struct call_reply *reply, int64_t sent_us,
                     int64_t received_us)
{
    ck_assert_ptr_eq(engine, &faked);
    ck_assert_int_eq(node, NODE);
    ck_assert_int_lt(faked.replies, FAKED_REPLIES_MAX);
    faked.tags[faked.replies] = tag;
    faked.votes[faked.replies++] = ballot_of_reply(reply);
    faked.sent_us = sent_us;
    faked.received_us = received_us;
    if (faked.sends_in_reply)
        faked.sent_in_reply = faked_inspect(tag + 1);
}

static void flush(void *arg)
{
    (void)arg;
    link_flush(faked.link);
}

void faked_start_link(void)
{
    static const struct node_events events = {.engine = (struct engine *)&faked,
                                              .up = on_up,
                                              .confirmed = on_confirmed,
                                              .down = on_down,
                                              .reply = on_reply};
    const struct line_setup setup = {.loop = faked.loop,
                                     .config = &faked.config,
                                     .trust = faked.trust,
                                     .silence_us = faked.silence_us,
                                     .prefix = "p:"};
    faked.link = link_new(NODE, &setup, &events);
    ck_assert_ptr_nonnull(faked.link);
    loop_set_stage(faked.loop, LOOP_FLUSH, flush, NULL);
}

void faked_bring_up(void)
{
    faked_start_link();
    faked_until_up(faked.ups + 1);
}

void faked_inspect_all(int count)
{
    for (int tag = 0; tag < count; tag++)
        ck_assert_int_eq(faked_inspect((uint64_t)tag), VOTE_PENDING);
}

void faked_expect_replies(int count, int ballot)
{
    for (int i = 0; i < count; i++) {
        ck_assert_uint_eq(faked.tags[i], (uint64_t)i);
        ck_assert_int_eq(faked.votes[i], ballot);
    }
}

void faked_setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    memset(&faked, 0, sizeof faked);
    faked.silence_us = FAKED_SILENCE_US;
    faked.loop = loop_new();
    ck_assert_ptr_nonnull(faked.loop);
    fake_start(&faked.node, faked.loop);
    snprintf(faked.config.host, sizeof faked.config.host, "127.0.0.1");
    faked.config.port = faked.node.port;
}

void faked_teardown(void)
{
    link_free(faked.link);
    fake_stop(&faked.node);
    loop_free(faked.loop);
}

void faked_until_up(int ups)
{
    turns_until_count(faked.loop, &faked.ups, ups);
}

void faked_until_down(int downs)
{
    turns_until_count(faked.loop, &faked.downs, downs);
}

void faked_expect_down(enum node_state reason, const char *detail)
{
    faked_until_down(faked.downs + 1);
    ck_assert_str_eq(state_name(faked.reason), state_name(reason));
    ck_assert_has(faked.detail, detail);
}
