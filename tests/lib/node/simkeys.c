/* SPDX-License-Identifier: MIT */
#include "simkeys.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../server/engine/port/token.h"
#include "../../../server/lock/names.h"
#include "simholders.h"

enum { UNTIL_STEP_US = 100000 };

/* ---- keys --------------------------------------------------------------- */

const struct simkey *simnode_key(const struct simmemory *memory, int resource,
                                 int64_t clock_us)
{
    const struct simkey *key = &memory->keys[resource];
    return key->is_set && clock_us / 1000 <= key->expires_ms ? key : NULL;
}

bool simnode_has(const struct simmemory *memory, int resource,
                 struct span token, int64_t clock_us)
{
    const struct simkey *key = simnode_key(memory, resource, clock_us);
    if (key == NULL || !key->is_shared)
        return simkeys_has(key, token);
    for (const struct simholder *it = NULL;
         (it = simholders_next(memory, resource, it)) != NULL;)
        if (it->token_len == token.len && it->ends_ms >= clock_us / 1000 &&
            memcmp(it->token, token.ptr, token.len) == 0)
            return true;
    return false;
}

void simnode_expire(struct simmemory *memory, int64_t clock_us)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (simnode_key(memory, i, clock_us) == NULL)
            memory->keys[i].is_set = false;
}

const struct simkey *simkeys_at(const struct simbatch *batch,
                                const struct simcall *call, int place)
{
    return simnode_key(batch->memory, call->resources[place], batch->clock_us);
}

bool simkeys_has(const struct simkey *key, struct span value)
{
    return key != NULL && !key->is_shared && key->token_len == value.len &&
           memcmp(key->token, value.ptr, key->token_len) == 0;
}

int64_t simkeys_left_ms(const struct simbatch *batch, const struct simkey *key)
{
    return key != NULL && key->expires_ms != SIM_ENDLESS
               ? key->expires_ms - batch->clock_us / 1000
               : 0;
}

void simkeys_set(const struct simbatch *batch, const struct simcall *call,
                 int resource, int64_t ttl_ms)
{
    struct simkey *key = &batch->memory->keys[resource];
    key->is_set = true;
    key->is_shared = false;
    key->expires_ms = batch->clock_us / 1000 + ttl_ms;
    key->token_len = span_copy(key->token, call->call.token);
}

enum vote simkeys_lack_memory(struct simreply *answer)
{
    answer->reply = (struct call_reply){.state = STATE_OUT_OF_MEMORY};
    return VOTE_UNFIT;
}

enum vote simkeys_probe(const struct simbatch *batch, const struct simkey *key,
                        struct simreply *answer)
{
    struct call_reply *reply = &answer->reply;
    if (key == NULL)
        return VOTE_FREE;
    reply->pttl_ms =
        key->expires_ms == SIM_ENDLESS ? -1 : simkeys_left_ms(batch, key);
    if (!key->is_shared) {
        reply->value = (struct span){key->token, key->token_len};
        return VOTE_HELD;
    }
    int resource = (int)(key - batch->memory->keys);
    int count =
        simholders_count(batch->memory, resource, batch->clock_us / 1000);
    if (count > 0)
        reply->holders = count;
    return VOTE_HELD;
}

/* ---- slots -------------------------------------------------------------- */

/* The first resource in this slot. */
static int slot_number(int slot)
{
    static int slots[SIM_RESOURCES];
    if (slots[0] == 0)
        for (int i = 0; i < SIM_RESOURCES; i++)
            slots[i] = fence_bucket(span_of(simnode_resource(i)));
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (slots[i] == slot)
            return i;
    abort();
}

int64_t simkeys_number(const struct simbatch *batch, const struct simcall *call,
                       int place)
{
    return batch->memory->highest[slot_number(call->call.buckets[place])];
}

void simkeys_write(const struct simbatch *batch, const struct simcall *call,
                   int place, int64_t number)
{
    struct simmemory *memory = batch->memory;
    memory->highest[slot_number(call->call.buckets[place])] = number;
    if (memory->max_token.is_there && number > memory->max_token.it)
        memory->max_token.it = number;
}

struct simwriters *simkeys_writers(const struct simbatch *batch,
                                   const struct simcall *call, int place)
{
    return &batch->memory->writers[slot_number(call->call.buckets[place])];
}

/* ---- tombstones ---------------------------------------------------------- */

/* FNV-1a of all but the byte that tells the form. */
static uint64_t hash_of(struct span token)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < token.len; i++)
        if (i != TOKEN_NUMBER_LEN)
            hash =
                (hash ^ (unsigned char)token.ptr[i]) * UINT64_C(0x100000001b3);
    return hash;
}

bool simkeys_is_buried(const struct simbatch *batch, const struct simcall *call)
{
    uint64_t token = hash_of(call->call.token);
    for (int i = 0; i < SIM_TOMBSTONES; i++) {
        const struct simtombstone *it = &batch->memory->tombstones[i];
        if (it->token == token && it->until_ms >= batch->clock_us / 1000)
            return true;
    }
    return false;
}

/* In place of the one it has, or of one that is over. */
void simkeys_bury(const struct simbatch *batch, const struct simcall *call)
{
    struct simtombstone *it = NULL;
    uint64_t token = hash_of(call->call.token);
    int64_t now_ms = batch->clock_us / 1000;
    for (int i = 0; i < SIM_TOMBSTONES; i++) {
        struct simtombstone *place = &batch->memory->tombstones[i];
        bool is_over = place->until_ms < now_ms;
        if (!is_over && place->token == token) {
            it = place;
            break;
        }
        if (is_over && it == NULL)
            it = place;
    }
    assert(it != NULL);
    it->until_ms = now_ms + call->call.tombstone_ms;
    it->token = token;
}

/* ---- promises ----------------------------------------------------------- */

void simkeys_promise(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    int64_t until_us = batch->clock_us + call->call.ttl_ms * 1000;
    if (until_us > memory->until_us.it)
        memory->until_us =
            simnumber(divide_up(until_us, UNTIL_STEP_US) * UNTIL_STEP_US);
    if (batch->generation > 0)
        return;
    batch->generation = memory->generation.it + 1;
    memory->generation = simnumber(batch->generation);
}

int64_t simkeys_repeated(struct span value, const struct call *call)
{
    enum { HASH_AT = 57, HASH_LEN = 1 + KEY_HASH_LEN };
    struct token_parts other;
    bool is_repeated =
        (call->kind == CALL_REPEAT || call->kind == CALL_REPLICATE) &&
        token_parse(value, &other) && other.key_hash.len > 0 &&
        call->token.len >= HASH_AT + HASH_LEN &&
        value.ptr[TOKEN_NUMBER_LEN] == call->token.ptr[TOKEN_NUMBER_LEN] &&
        memcmp(value.ptr + HASH_AT, call->token.ptr + HASH_AT, HASH_LEN) == 0;
    return is_repeated ? other.number : -1;
}

bool simkeys_may_replace(struct span value, const struct call *call)
{
    int64_t number = simkeys_repeated(value, call);
    return number >= 0 && number <= call->seen;
}

/* ---- announcements ------------------------------------------------------ */

int simkeys_publish(const struct simbatch *batch, int resource,
                    struct span message)
{
    const struct simlisteners *listeners = &batch->listeners;
    return listeners->announce != NULL
               ? listeners->announce(listeners->ctx, resource, message)
               : 0;
}

/* As the script cuts it from the token. */
static struct span number_of(struct span token)
{
    return (struct span){token.ptr, token.len < SIM_NUMBER_LEN
                                        ? token.len
                                        : (size_t)SIM_NUMBER_LEN};
}

int simkeys_announce(const struct simbatch *batch, int resource,
                     struct span token)
{
    char text[SIM_NUMBER_LEN + 8];
    struct span pool, number = number_of(token);
    if (batch->memory->listened_until_us.it <= batch->clock_us)
        return 0;
    int told = simkeys_publish(batch, resource, number);
    int slot = names_slot(span_of(simnode_resource(resource)), &pool);
    if (slot < 0)
        return told;
    int len = snprintf(text, sizeof text, "%.*s" NAMES_SLOT "%d",
                       (int)number.len, number.ptr, slot);
    int of_pool =
        simkeys_publish(batch, SIM_POOL, (struct span){text, (size_t)len});
    return of_pool > told ? of_pool : told;
}
