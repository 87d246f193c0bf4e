#include "simnode.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../server/engine/fence.h"
#include "simstate.h"

static const char *const names[SIM_RESOURCES] = {
    "order:1", "order:2", "order:3", "order:4", "stock:84", "mail:220"};

const char *simnode_resource(int number)
{
    return names[number];
}

int simnode_resource_number(struct span name)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (name.len == strlen(names[i]) &&
            memcmp(name.ptr, names[i], name.len) == 0)
            return i;
    abort();
}

/* The first resource in this slot. */
static int slot_number(int slot)
{
    static int slots[SIM_RESOURCES];
    if (slots[0] == 0)
        for (int i = 0; i < SIM_RESOURCES; i++)
            slots[i] = fence_slot(span_of(names[i]));
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (slots[i] == slot)
            return i;
    abort();
}

static void keep(struct span *span, char *storage, size_t room)
{
    assert(span->len <= room);
    if (span->ptr != storage)
        (void)span_copy(storage, *span);
    span->ptr = storage;
}

void simcall_copy(struct simcall *copy, const struct call *call)
{
    copy->call = *call;
    copy->resource =
        call->resource.len > 0 ? simnode_resource_number(call->resource) : -1;
    copy->call.resource = (struct span){0};
    keep(&copy->call.token, copy->token, sizeof copy->token);
    keep(&copy->call.admit, copy->admit, sizeof copy->admit);
    keep(&copy->call.nonce, copy->nonce, sizeof copy->nonce);
    keep(&copy->call.found, copy->found, sizeof copy->found);
    keep(&copy->call.mark, copy->mark, sizeof copy->mark);
    keep(&copy->call.witnesses, copy->witnesses, sizeof copy->witnesses);
}

void simcall_repeat(struct simcall *copy, const struct simcall *from)
{
    *copy = *from;
    copy->call.token.ptr = copy->token;
    copy->call.admit.ptr = copy->admit;
    copy->call.nonce.ptr = copy->nonce;
    copy->call.found.ptr = copy->found;
    copy->call.mark.ptr = copy->mark;
    copy->call.witnesses.ptr = copy->witnesses;
}

void simreply_keep(struct simreply *answer)
{
    struct call_reply *reply = &answer->reply;
    keep(&reply->value, answer->value, sizeof answer->value);
    keep(&reply->look.admit, answer->admit, sizeof answer->admit);
    keep(&reply->look.mark, answer->mark, sizeof answer->mark);
    keep(&reply->look.witnesses, answer->witnesses, sizeof answer->witnesses);
}

/* ---- keys --------------------------------------------------------------- */

const struct simkey *simnode_key(const struct simmemory *memory, int resource,
                                 int64_t clock_us)
{
    const struct simkey *key = &memory->keys[resource];
    return key->is_set && clock_us / 1000 <= key->expires_ms ? key : NULL;
}

void simnode_expire(struct simmemory *memory, int64_t clock_us)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (simnode_key(memory, i, clock_us) == NULL)
            memory->keys[i].is_set = false;
}

static bool is_own(const struct simkey *key, const struct simcall *call)
{
    return key != NULL && key->token_len == call->call.token.len &&
           memcmp(key->token, call->token, key->token_len) == 0;
}

static enum vote look_at_key(const struct simkey *key, int64_t clock_us,
                             struct simreply *answer)
{
    if (key == NULL)
        return VOTE_FREE;
    answer->reply.pttl_ms = key->expires_ms - clock_us / 1000;
    answer->reply.value = (struct span){key->token, key->token_len};
    return VOTE_HELD;
}

/* ---- votes -------------------------------------------------------------- */

/* The node has the admission that the caller saw, and it is of this memory. */
static bool has_admission(const struct simbatch *batch,
                          const struct simcall *call)
{
    const char *admit = batch->memory->admit;
    const char *replid = strrchr(admit, ':');
    return replid != NULL && strlen(admit) == call->call.admit.len &&
           memcmp(admit, call->admit, call->call.admit.len) == 0 &&
           strcmp(replid + 1, batch->process->replid) == 0;
}

static bool is_admitted(struct simbatch *batch, const struct simcall *call)
{
    if (!batch->is_known) {
        batch->is_known = true;
        batch->is_admitted = has_admission(batch, call);
    }
    return batch->is_admitted;
}

/* Once a batch. */
static void promise(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    if (batch->beat > 0)
        return;
    batch->beat = memory->beat.it + 1;
    memory->beat = simnumber(batch->beat);
    if (call->call.median_us != 0 || !memory->voted_us.is_there)
        memory->voted_us = simnumber(call->call.median_us);
}

/* What acquire, extend and repair answer before they look at the lock. */
static enum vote refusal(struct simbatch *batch, const struct simcall *call)
{
    if (!is_admitted(batch, call))
        return VOTE_QUARANTINED;
    return batch->clock_us > call->call.node_deadline_us ? VOTE_LATE
                                                         : VOTE_PENDING;
}

static void set_key(const struct simbatch *batch, const struct simcall *call)
{
    struct simkey *key = &batch->memory->keys[call->resource];
    key->is_set = true;
    key->expires_ms = batch->clock_us / 1000 + call->call.ttl_ms;
    key->token_len = span_copy(key->token, call->call.token);
}

static enum vote acquire(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    struct simmemory *memory = batch->memory;
    const struct call *ask = &call->call;
    int64_t *highest = &memory->highest[slot_number(ask->slots[0])];
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    if (llabs(ask->number - batch->clock_us) > ask->window_us)
        return VOTE_SKEWED;
    const struct simkey *held =
        simnode_key(memory, call->resource, batch->clock_us);
    if (held != NULL)
        return look_at_key(held, batch->clock_us, answer);
    if (*highest >= ask->number) {
        answer->reply.highest = *highest;
        return VOTE_STALE;
    }
    promise(batch, call);
    *highest = ask->number;
    set_key(batch, call);
    return VOTE_GRANTED;
}

static enum vote extend(struct simbatch *batch, const struct simcall *call,
                        struct simreply *answer)
{
    struct simkey *key = &batch->memory->keys[call->resource];
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    const struct simkey *held =
        simnode_key(batch->memory, call->resource, batch->clock_us);
    if (held == NULL)
        answer->reply.highest =
            batch->memory->highest[slot_number(call->call.slots[0])];
    if (!is_own(held, call))
        return look_at_key(held, batch->clock_us, answer);
    promise(batch, call);
    int64_t expires_ms = batch->clock_us / 1000 + call->call.ttl_ms;
    if (expires_ms > key->expires_ms)
        key->expires_ms = expires_ms;
    return VOTE_EXTENDED;
}

static enum vote repair(struct simbatch *batch, const struct simcall *call,
                        struct simreply *answer)
{
    const struct call *ask = &call->call;
    int64_t *highest = &batch->memory->highest[slot_number(ask->slots[0])];
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    if (ask->number - batch->clock_us > ask->window_us)
        return VOTE_SKEWED;
    if (*highest != ask->seen)
        return VOTE_CHANGED;
    const struct simkey *held =
        simnode_key(batch->memory, call->resource, batch->clock_us);
    if (held != NULL)
        return look_at_key(held, batch->clock_us, answer);
    *highest = ask->number > ask->seen ? ask->number : ask->seen + 1;
    set_key(batch, call);
    return VOTE_GRANTED;
}

static enum vote inspect(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    const struct simkey *held =
        simnode_key(batch->memory, call->resource, batch->clock_us);
    if (held == NULL && !is_admitted(batch, call))
        return VOTE_QUARANTINED;
    return look_at_key(held, batch->clock_us, answer);
}

static int announce(const struct simbatch *batch, int resource,
                    struct span message)
{
    const struct simlisteners *listeners = &batch->listeners;
    return listeners->announce != NULL
               ? listeners->announce(listeners->ctx, resource, message)
               : 0;
}

/* As the script cuts it from the value, if there is one. */
static struct span number_of(const struct simkey *key)
{
    return (struct span){key->token, key->token_len < SIM_NUMBER_LEN
                                         ? key->token_len
                                         : (size_t)SIM_NUMBER_LEN};
}

static enum vote release(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    const struct simkey *held =
        simnode_key(batch->memory, call->resource, batch->clock_us);
    if (!is_own(held, call))
        return inspect(batch, call, answer);
    batch->memory->keys[call->resource].is_set = false;
    if (batch->memory->listened_until_us.it > batch->clock_us)
        answer->reply.listeners =
            announce(batch, call->resource, number_of(held));
    return VOTE_DELETED;
}

/* A node without state gets none by this. */
static enum vote listen(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    if (simstate_is_there(memory))
        memory->listened_until_us =
            simnumber(batch->clock_us + call->call.listen_us);
    if (memory->listened_until_us.is_there)
        (void)announce(batch, -1, span_of(""));
    return VOTE_DONE;
}

/* ---- batches ------------------------------------------------------------ */

static enum vote execute(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    switch (call->call.kind) {
    case CALL_LOOK:
    case CALL_ADMIT:
    case CALL_READMIT:
    case CALL_REVOKE:
        return simstate_execute(batch, call, answer);
    case CALL_REPEAT:
    case CALL_ACQUIRE:
        return acquire(batch, call, answer);
    case CALL_EXTEND:
        return extend(batch, call, answer);
    case CALL_REPAIR:
        return repair(batch, call, answer);
    case CALL_RELEASE:
        return release(batch, call, answer);
    case CALL_INSPECT:
        return inspect(batch, call, answer);
    case CALL_LISTEN:
        return listen(batch, call);
    case CALL_KINDS:
        break;
    }
    abort();
}

void simnode_execute(struct simbatch *batch, const struct simcall *call,
                     struct simreply *answer)
{
    answer->reply = (struct call_reply){.node_now_us = batch->clock_us};
    answer->reply.vote = execute(batch, call, answer);
    answer->reply.beat = batch->beat;
    simreply_keep(answer);
}
