#include "simnode.h"

#include <stdlib.h>

static const char *const names[SIM_RESOURCES] = {"order:1", "order:2",
                                                 "order:3", "order:4"};

const char *simnode_resource(int number)
{
    return names[number];
}

int simnode_resource_number(struct span name)
{
    return name.ptr[name.len - 1] - '1';
}

int64_t simnode_clock(const struct simnode *node, int64_t now_us)
{
    return node->lead_us + (int64_t)((double)now_us * node->rate);
}

const struct simkey *simnode_key(const struct simnode *node, int resource,
                                 int64_t now_us)
{
    const struct simkey *key = &node->keys[resource];
    bool is_there =
        key->is_set && key->expires_us > simnode_clock(node, now_us);
    return is_there ? key : NULL;
}

static bool is_own(const struct simkey *key, const struct simcall *call)
{
    return key != NULL && key->token_len == call->call.token.len &&
           memcmp(key->token, call->token, key->token_len) == 0;
}

static struct script_reply look(const struct simkey *key, int64_t clock_us)
{
    if (key == NULL)
        return (struct script_reply){VOTE_FREE, clock_us, 0, 0, {0}};
    return (struct script_reply){
        .vote = VOTE_HELD,
        .node_now_us = clock_us,
        .pttl_ms = (key->expires_us - clock_us) / 1000,
        .value = {key->token, key->token_len},
    };
}

static struct script_reply acquire(struct simnode *node,
                                   const struct simcall *call, int64_t now_us)
{
    const struct script_call *ask = &call->call;
    int64_t clock_us = simnode_clock(node, now_us);
    struct script_reply reply = {.node_now_us = clock_us};
    if (llabs(ask->number - clock_us) > ask->window_us) {
        reply.vote = VOTE_SKEWED;
        return reply;
    }
    const struct simkey *held = simnode_key(node, call->resource, now_us);
    if (held != NULL)
        return look(held, clock_us);
    if (node->highest[ask->slot] >= ask->number) {
        reply.vote = VOTE_STALE;
        reply.highest = node->highest[ask->slot];
        return reply;
    }
    struct simkey *key = &node->keys[call->resource];
    node->highest[ask->slot] = ask->number;
    key->is_set = true;
    key->expires_us = clock_us + ask->ttl_ms * 1000;
    key->token_len = span_copy(key->token, ask->token);
    reply.vote = VOTE_GRANTED;
    return reply;
}

static struct script_reply extend(struct simnode *node,
                                  const struct simcall *call, int64_t now_us)
{
    int64_t clock_us = simnode_clock(node, now_us);
    const struct simkey *held = simnode_key(node, call->resource, now_us);
    if (!is_own(held, call))
        return look(held, clock_us);
    struct simkey *key = &node->keys[call->resource];
    int64_t expires_us = clock_us + call->call.ttl_ms * 1000;
    if (expires_us > key->expires_us)
        key->expires_us = expires_us;
    return (struct script_reply){.vote = VOTE_EXTENDED,
                                 .node_now_us = clock_us};
}

static struct script_reply release(struct simnode *node,
                                   const struct simcall *call, int64_t now_us)
{
    int64_t clock_us = simnode_clock(node, now_us);
    const struct simkey *held = simnode_key(node, call->resource, now_us);
    if (!is_own(held, call))
        return look(held, clock_us);
    node->keys[call->resource].is_set = false;
    return (struct script_reply){.vote = VOTE_DELETED, .node_now_us = clock_us};
}

static struct script_reply admit(struct simnode *node,
                                 const struct simcall *call, int64_t now_us)
{
    memcpy(node->admit, call->admit, sizeof node->admit);
    return (struct script_reply){.vote = VOTE_DONE,
                                 .node_now_us = simnode_clock(node, now_us)};
}

/* The checks that acquire and extend have in common. */
static enum vote refusal(const struct simnode *node, const struct simcall *call,
                         int64_t now_us)
{
    if (strcmp(node->admit, call->admit) != 0)
        return VOTE_QUARANTINED;
    if (simnode_clock(node, now_us) > call->call.node_deadline_us)
        return VOTE_LATE;
    return VOTE_PENDING;
}

struct script_reply simnode_execute(struct simnode *node,
                                    const struct simcall *call, int64_t now_us)
{
    enum script_kind kind = call->call.kind;
    if (kind == SCRIPT_ADMIT)
        return admit(node, call, now_us);
    if (kind == SCRIPT_RELEASE)
        return release(node, call, now_us);
    if (kind == SCRIPT_INSPECT)
        return look(simnode_key(node, call->resource, now_us),
                    simnode_clock(node, now_us));
    enum vote refused = refusal(node, call, now_us);
    if (refused != VOTE_PENDING)
        return (struct script_reply){
            .vote = refused, .node_now_us = simnode_clock(node, now_us)};
    return kind == SCRIPT_ACQUIRE ? acquire(node, call, now_us)
                                  : extend(node, call, now_us);
}
