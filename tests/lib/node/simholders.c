/* SPDX-License-Identifier: MIT */
#include "simholders.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../../server/engine/port/token.h"

static bool is_of(const struct simmemory *memory, int i, int resource)
{
    const struct simkey *key = &memory->keys[resource];
    const struct simholder *it = &memory->holders[i];
    return key->is_set && key->is_shared && it->token_len > 0 &&
           it->resource == resource;
}

struct simholder *simholders_find(struct simmemory *memory, int resource,
                                  struct span token)
{
    for (int i = 0; i < SIM_HOLDERS; i++) {
        struct simholder *it = &memory->holders[i];
        if (is_of(memory, i, resource) &&
            span_is_same(simholder_token(it), token))
            return it;
    }
    return NULL;
}

static int compare(const struct simholder *a, const struct simholder *b)
{
    if (a->ends_ms != b->ends_ms)
        return a->ends_ms < b->ends_ms ? -1 : 1;
    size_t len = a->token_len < b->token_len ? a->token_len : b->token_len;
    int order = memcmp(a->token, b->token, len);
    return order != 0 ? order : a->token_len - b->token_len;
}

const struct simholder *simholders_next(const struct simmemory *memory,
                                        int resource,
                                        const struct simholder *after)
{
    const struct simholder *next = NULL;
    for (int i = 0; i < SIM_HOLDERS; i++) {
        const struct simholder *it = &memory->holders[i];
        if (is_of(memory, i, resource) &&
            (after == NULL || compare(it, after) > 0) &&
            (next == NULL || compare(it, next) < 0))
            next = it;
    }
    return next;
}

const struct simholder *simholders_last(const struct simmemory *memory,
                                        int resource)
{
    const struct simholder *last = NULL;
    for (int i = 0; i < SIM_HOLDERS; i++)
        if (is_of(memory, i, resource) &&
            (last == NULL || compare(&memory->holders[i], last) > 0))
            last = &memory->holders[i];
    return last;
}

bool simholders_is_token(const struct simholder *holder)
{
    return token_is_shared(simholder_token(holder));
}

int simholders_members(const struct simmemory *memory, int resource)
{
    int count = 0;
    for (int i = 0; i < SIM_HOLDERS; i++)
        count += is_of(memory, i, resource);
    return count;
}

int simholders_count(const struct simmemory *memory, int resource,
                     int64_t now_ms)
{
    int count = 0;
    const struct simholder *last = simholders_last(memory, resource);
    if (last == NULL || !simholders_is_token(last) ||
        memory->keys[resource].expires_ms == SIM_ENDLESS)
        return -1;
    for (int i = 0; i < SIM_HOLDERS; i++)
        count += is_of(memory, i, resource) &&
                 memory->holders[i].ends_ms >= now_ms &&
                 !span_is(simholder_token(&memory->holders[i]), SIM_INTENT);
    return count;
}

bool simholders_is_wanted(struct simmemory *memory, int resource,
                          int64_t now_ms)
{
    const struct simholder *intent =
        simholders_find(memory, resource, span_of(SIM_INTENT));
    return intent != NULL && intent->ends_ms >= now_ms;
}

/* Of keys that are no more, or of another type by now. */
static void forget_old(struct simmemory *memory)
{
    for (int i = 0; i < SIM_HOLDERS; i++)
        if (!is_of(memory, i, memory->holders[i].resource))
            memory->holders[i].token_len = 0;
}

void simholders_add(struct simmemory *memory, int resource, struct span token,
                    int64_t ends_ms)
{
    struct simkey *key = &memory->keys[resource];
    forget_old(memory);
    if (!key->is_set || !key->is_shared)
        *key = (struct simkey){.is_set = true, .is_shared = true};
    for (int i = 0; i < SIM_HOLDERS; i++) {
        struct simholder *it = &memory->holders[i];
        if (it->token_len > 0)
            continue;
        it->resource = (uint8_t)resource;
        it->ends_ms = ends_ms;
        it->token_len = (uint8_t)span_copy(it->token, token);
        return;
    }
    fprintf(stderr, "simholders: too many\n");
    abort();
}

void simholders_drop_ended(struct simmemory *memory, int resource,
                           int64_t now_ms)
{
    struct simkey *key = &memory->keys[resource];
    for (int i = 0; i < SIM_HOLDERS; i++)
        if (is_of(memory, i, resource) && memory->holders[i].ends_ms < now_ms)
            memory->holders[i].token_len = 0;
    if (key->is_shared && simholders_last(memory, resource) == NULL)
        key->is_set = false;
}

void simholders_settle(struct simmemory *memory, int resource, int64_t now_ms)
{
    simholders_drop_ended(memory, resource, now_ms);
    const struct simholder *last = simholders_last(memory, resource);
    if (last != NULL)
        memory->keys[resource].expires_ms = last->ends_ms;
}

bool simholders_may_take(struct simmemory *memory, int resource, int64_t now_ms)
{
    struct simkey *key = &memory->keys[resource];
    int count = simholders_count(memory, resource, now_ms);
    struct simholder *intent =
        simholders_find(memory, resource, span_of(SIM_INTENT));
    int64_t until_ms = now_ms + SIM_INTENT_MS;
    if (count < 0)
        return false;
    if (count == 0) {
        key->is_set = false;
        return true;
    }
    if (intent != NULL)
        intent->ends_ms = until_ms;
    else
        simholders_add(memory, resource, span_of(SIM_INTENT), until_ms);
    if (until_ms > key->expires_ms)
        key->expires_ms = until_ms;
    return false;
}
