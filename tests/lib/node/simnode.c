#include "simnode.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../server/engine/port/fence.h"
#include "../../../server/engine/port/token.h"
#include "../../../server/lock/names.h"
#include "simstate.h"

enum { UNTIL_STEP_US = 100000 };

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

int simnode_resource_numbers(struct span all, int numbers[SIM_RESOURCES])
{
    int count = 0;
    while (all.len > 0) {
        assert(count < SIM_RESOURCES);
        numbers[count++] = simnode_resource_number(names_next(&all));
    }
    return count;
}

size_t simnode_join(char text[SIM_NAMES_MAX], const int *numbers, int count)
{
    struct span list[SIM_RESOURCES];
    for (int i = 0; i < count; i++)
        list[i] = span_of(names[numbers[i]]);
    return names_join(text, list, count);
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
    copy->names = simnode_resource_numbers(call->resource, copy->resources);
    copy->resource = copy->names > 0 ? copy->resources[0] : -1;
    keep(&copy->call.resource, copy->resource_names,
         sizeof copy->resource_names);
    keep(&copy->call.token, copy->token, sizeof copy->token);
    keep(&copy->call.admit, copy->admit, sizeof copy->admit);
    keep(&copy->call.nonce, copy->nonce, sizeof copy->nonce);
    keep(&copy->call.found, copy->found, sizeof copy->found);
    keep(&copy->call.mark, copy->mark, sizeof copy->mark);
    keep(&copy->call.latest, copy->latest, sizeof copy->latest);
    keep(&copy->call.witnesses, copy->witnesses, sizeof copy->witnesses);
}

void simcall_repeat(struct simcall *copy, const struct simcall *from)
{
    *copy = *from;
    copy->call.resource.ptr = copy->resource_names;
    copy->call.token.ptr = copy->token;
    copy->call.admit.ptr = copy->admit;
    copy->call.nonce.ptr = copy->nonce;
    copy->call.found.ptr = copy->found;
    copy->call.mark.ptr = copy->mark;
    copy->call.latest.ptr = copy->latest;
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

/* The beat rises once a batch; until is rounded up. */
static void promise(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    int64_t until_us = batch->clock_us + call->call.ttl_ms * 1000;
    if (until_us > memory->until_us.it)
        memory->until_us =
            simnumber(divide_up(until_us, UNTIL_STEP_US) * UNTIL_STEP_US);
    if (batch->beat > 0)
        return;
    batch->beat = memory->beat.it + 1;
    memory->beat = simnumber(batch->beat);
}

/* What acquire, extend and repair answer before they look at the lock. */
static enum vote refusal(struct simbatch *batch, const struct simcall *call)
{
    if (!is_admitted(batch, call))
        return VOTE_NOT_ADMITTED;
    return batch->clock_us > call->call.node_deadline_us ? VOTE_LATE
                                                         : VOTE_PENDING;
}

static void set_key(const struct simbatch *batch, const struct simcall *call,
                    int resource, int64_t ttl_ms)
{
    struct simkey *key = &batch->memory->keys[resource];
    key->is_set = true;
    key->expires_ms = batch->clock_us / 1000 + ttl_ms;
    key->token_len = span_copy(key->token, call->call.token);
}

/* The key of one of the call's names, by its place. */
static const struct simkey *key_of(const struct simbatch *batch,
                                   const struct simcall *call, int place)
{
    return simnode_key(batch->memory, call->resources[place], batch->clock_us);
}

static int64_t *slot_of(const struct simbatch *batch,
                        const struct simcall *call, int place)
{
    return &batch->memory->highest[slot_number(call->call.slots[place])];
}

/* What is left of the key's TTL; 0: there is none. */
static int64_t left_ms(const struct simbatch *batch, const struct simkey *key)
{
    return key != NULL ? key->expires_ms - batch->clock_us / 1000 : 0;
}

/* A token of the same client, with the same key hash, and not too high. */
static bool may_replace(const struct simkey *key, const struct call *call)
{
    enum { HASH_AT = 57, HASH_LEN = 1 + KEY_HASH_LEN };
    struct token_parts earlier;
    return call->kind == CALL_REPEAT &&
           token_parse((struct span){key->token, key->token_len}, &earlier) &&
           earlier.key_hash.len > 0 && call->token.len >= HASH_AT + HASH_LEN &&
           memcmp(key->token + HASH_AT, call->token.ptr + HASH_AT, HASH_LEN) ==
               0 &&
           earlier.number <= call->seen;
}

static void write_slot(struct simmemory *memory, int64_t *slot, int64_t number)
{
    *slot = number;
    if (memory->top.is_there && number > memory->top.it)
        memory->top.it = number;
}

/* A new lock needs a higher number. */
static int64_t highest_of(const struct simbatch *batch,
                          const struct simcall *call, int place)
{
    int64_t highest = *slot_of(batch, call, place);
    int64_t bar = batch->memory->bar.it;
    return highest > bar ? highest : bar;
}

/* An acquire, or a repeat. */
static enum vote acquire(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    const struct call *ask = &call->call;
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    if (llabs(ask->number - batch->clock_us) > ask->window_us)
        return VOTE_OUT_OF_RANGE;
    for (int i = 0; i < call->names; i++) {
        const struct simkey *held = key_of(batch, call, i);
        if (held != NULL && !may_replace(held, ask))
            return look_at_key(held, batch->clock_us, answer);
        int64_t highest = highest_of(batch, call, i);
        if (highest >= ask->number) {
            answer->reply.highest = highest;
            return VOTE_STALE;
        }
    }
    promise(batch, call);
    answer->reply.was_free = ask->kind == CALL_REPEAT;
    for (int i = 0; i < call->names; i++) {
        int64_t left = left_ms(batch, key_of(batch, call, i));
        answer->reply.was_free &= key_of(batch, call, i) == NULL;
        write_slot(batch->memory, slot_of(batch, call, i), ask->number);
        set_key(batch, call, call->resources[i],
                left > ask->ttl_ms ? left : ask->ttl_ms);
    }
    return VOTE_GRANTED;
}

int64_t simnode_seen(const struct simmemory *memory, const uint16_t *slots,
                     int count)
{
    int64_t sum = 0;
    if (count == 1)
        return memory->highest[slot_number(slots[0])];
    for (int i = 0; i < count; i++)
        sum += memory->highest[slot_number(slots[i])] % (INT64_C(1) << 49);
    return sum;
}

/*
 * The first key with another value; NULL: there is none. Says in missing how
 * many names have no key.
 */
static const struct simkey *find_other(const struct simbatch *batch,
                                       const struct simcall *call, int *missing)
{
    *missing = 0;
    for (int i = 0; i < call->names; i++) {
        const struct simkey *key = key_of(batch, call, i);
        if (key != NULL && !is_own(key, call))
            return key;
        *missing += key == NULL;
    }
    return NULL;
}

static enum vote extend(struct simbatch *batch, const struct simcall *call,
                        struct simreply *answer)
{
    int missing;
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    const struct simkey *other = find_other(batch, call, &missing);
    if (other != NULL)
        return look_at_key(other, batch->clock_us, answer);
    if (missing > 0) {
        answer->reply.highest =
            simnode_seen(batch->memory, call->call.slots, call->names);
        return VOTE_FREE;
    }
    promise(batch, call);
    for (int i = 0; i < call->names; i++) {
        struct simkey *key = &batch->memory->keys[call->resources[i]];
        int64_t expires_ms = batch->clock_us / 1000 + call->call.ttl_ms;
        if (expires_ms > key->expires_ms)
            key->expires_ms = expires_ms;
    }
    return VOTE_EXTENDED;
}

static enum vote repair(struct simbatch *batch, const struct simcall *call,
                        struct simreply *answer)
{
    int missing;
    const struct call *ask = &call->call;
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    if (ask->number - batch->clock_us > ask->window_us)
        return VOTE_OUT_OF_RANGE;
    if (simnode_seen(batch->memory, ask->slots, call->names) != ask->seen)
        return VOTE_CHANGED;
    const struct simkey *other = find_other(batch, call, &missing);
    if (call->names == 1 && missing == 0) /* even if it has the token */
        other = key_of(batch, call, 0);
    if (other != NULL)
        return look_at_key(other, batch->clock_us, answer);
    for (int i = 0; i < call->names; i++) {
        int64_t *highest = slot_of(batch, call, i);
        if (key_of(batch, call, i) != NULL)
            continue;
        write_slot(batch->memory, highest,
                   ask->number > *highest ? ask->number : *highest + 1);
        set_key(batch, call, call->resources[i], ask->ttl_ms);
    }
    return VOTE_GRANTED;
}

/* What an inspection or a release answers that found no key. */
static enum vote answer_missing(struct simbatch *batch,
                                const struct simcall *call)
{
    return is_admitted(batch, call) ? VOTE_FREE : VOTE_NOT_ADMITTED;
}

static enum vote inspect(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    for (int i = 0; i < call->names; i++) {
        const struct simkey *held = key_of(batch, call, i);
        if (held != NULL)
            return look_at_key(held, batch->clock_us, answer);
    }
    return answer_missing(batch, call);
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
    int missing, most = 0;
    const struct simkey *other = find_other(batch, call, &missing);
    for (int i = 0; i < call->names; i++) {
        const struct simkey *key = key_of(batch, call, i);
        if (!is_own(key, call))
            continue;
        batch->memory->keys[call->resources[i]].is_set = false;
        if (batch->memory->listened_until_us.it > batch->clock_us) {
            int told = announce(batch, call->resources[i], number_of(key));
            most = told > most ? told : most;
        }
    }
    if (other != NULL)
        return look_at_key(other, batch->clock_us, answer);
    if (missing > 0)
        return answer_missing(batch, call);
    answer->reply.listeners = most;
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
    case CALL_ACQUIRE:
    case CALL_REPEAT:
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
    case CALL_SCAN: /* nobody lists here: it changes nothing */
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
