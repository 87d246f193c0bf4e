/* SPDX-License-Identifier: MIT */
#include "simnode.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "simholders.h"
#include "simkeys.h"
#include "simshared.h"
#include "simstate.h"

/* ---- votes -------------------------------------------------------------- */

/* The node has the admission that the caller saw, and it is of this data. */
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

/* What acquire, extend and replicate answer before they examine the lock. */
static enum vote refusal(struct simbatch *batch, const struct simcall *call)
{
    if (!is_admitted(batch, call))
        return VOTE_NOT_ADMITTED;
    return batch->clock_us > call->call.node_deadline_us ? VOTE_LATE
                                                         : VOTE_PENDING;
}

/* A new lock needs a higher number. */
static int64_t highest_of(const struct simbatch *batch,
                          const struct simcall *call, int place)
{
    int64_t highest = simkeys_number(batch, call, place);
    int64_t min_token = batch->memory->min_token.it;
    return highest > min_token ? highest : min_token;
}

static bool may_replace(const struct simkey *key, const struct call *call)
{
    return !key->is_shared &&
           simkeys_may_replace((struct span){key->token, key->token_len}, call);
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
    if (simshared_is(call))
        return simshared_acquire(batch, call, answer);
    for (int i = 0; i < call->names; i++) {
        const struct simkey *held = simkeys_at(batch, call, i);
        int64_t highest = highest_of(batch, call, i);
        bool is_tried = ask->kind == CALL_REPEAT || call->names > 1 ||
                        highest < ask->number;
        if (held != NULL && held->is_shared && is_tried &&
            batch->process->is_full) {
            if (simholders_count(batch->memory, call->resources[i],
                                 batch->clock_us / 1000) == 0)
                return simkeys_lack_memory(answer);
        } else if (held != NULL && held->is_shared && is_tried &&
                   simholders_may_take(batch->memory, call->resources[i],
                                       batch->clock_us / 1000))
            held = NULL;
        if (held != NULL && !may_replace(held, ask))
            return simkeys_probe(batch, held, answer);
        if (highest >= ask->number) {
            answer->reply.highest = highest;
            return VOTE_STALE;
        }
    }
    for (int i = 0; i < call->names; i++)
        if (batch->process->is_full && simkeys_at(batch, call, i) == NULL)
            return simkeys_lack_memory(answer);
    simkeys_promise(batch, call);
    answer->reply.was_free = ask->kind == CALL_REPEAT;
    for (int i = 0; i < call->names; i++) {
        const struct simkey *key = simkeys_at(batch, call, i);
        int64_t left = simkeys_left_ms(batch, key);
        answer->reply.was_free &= key == NULL;
        simkeys_write(batch, call, i, ask->number);
        simkeys_set(batch, call, call->resources[i],
                    left > ask->ttl_ms ? left : ask->ttl_ms);
    }
    return VOTE_GRANTED;
}

/* The key of one of the names; NULL: there is none, or only the intent of a
 * writer. */
static const struct simkey *lock_at(const struct simbatch *batch,
                                    const struct simcall *call, int place)
{
    const struct simkey *key = simkeys_at(batch, call, place);
    bool is_wanted = key != NULL && key->is_shared &&
                     simholders_count(batch->memory, call->resources[place],
                                      batch->clock_us / 1000) == 0;
    return is_wanted ? NULL : key;
}

/*
 * The first key with another value; NULL: there is none. Says in missing which
 * names have not the token, a bit each; but those that are shared may have it.
 */
static const struct simkey *find_other(const struct simbatch *batch,
                                       const struct simcall *call, int *missing)
{
    const struct simkey *other = NULL;
    *missing = 0;
    for (int i = 0; i < call->names; i++) {
        const struct simkey *key = lock_at(batch, call, i);
        if (key != NULL && simkeys_has(key, call->call.token))
            continue;
        *missing |= (key == NULL || !key->is_shared) << i;
        if (other == NULL)
            other = key;
    }
    return other;
}

static enum vote extend(struct simbatch *batch, const struct simcall *call,
                        struct simreply *answer)
{
    int missing;
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    if (simshared_is(call))
        return simshared_extend(batch, call, answer);
    const struct simkey *other = find_other(batch, call, &missing);
    if (missing > 0 && (other == NULL || call->names > 1))
        answer->reply.highest = missing;
    if (other != NULL)
        return simkeys_probe(batch, other, answer);
    if (missing > 0)
        return VOTE_FREE;
    if (call->call.ttl_ms == 0) /* only a probe */
        return VOTE_EXTENDED;
    simkeys_promise(batch, call);
    for (int i = 0; i < call->names; i++) {
        struct simkey *key = &batch->memory->keys[call->resources[i]];
        int64_t expires_ms = batch->clock_us / 1000 + call->call.ttl_ms;
        if (expires_ms > key->expires_ms)
            key->expires_ms = expires_ms;
    }
    return VOTE_EXTENDED;
}

static enum vote replication(struct simbatch *batch, const struct simcall *call,
                             struct simreply *answer)
{
    int missing;
    const struct call *ask = &call->call;
    enum vote refused = refusal(batch, call);
    if (refused != VOTE_PENDING)
        return refused;
    if (ask->number - batch->clock_us > ask->window_us)
        return VOTE_OUT_OF_RANGE;
    if (simshared_is(call))
        return simshared_replication(batch, call, answer);
    const struct simkey *other = find_other(batch, call, &missing);
    if (other != NULL)
        return simkeys_probe(batch, other, answer);
    if (missing == 0)
        return VOTE_GRANTED;
    if ((missing & ~ask->seen) != 0 || simkeys_is_buried(batch, call))
        return VOTE_CHANGED;
    if (batch->process->is_full)
        return simkeys_lack_memory(answer);
    simkeys_bury(batch, call);
    simkeys_promise(batch, call);
    for (int i = 0; i < call->names; i++) {
        if (lock_at(batch, call, i) != NULL)
            continue;
        if (ask->number > simkeys_number(batch, call, i))
            simkeys_write(batch, call, i, ask->number);
        simkeys_set(batch, call, call->resources[i], ask->ttl_ms);
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
        const struct simkey *held = lock_at(batch, call, i);
        if (held != NULL)
            return simkeys_probe(batch, held, answer);
    }
    return answer_missing(batch, call);
}

static enum vote tell_tokens(struct simbatch *batch, const struct simcall *call,
                             struct simreply *answer)
{
    enum vote vote = simshared_tokens(batch, call, answer);
    return vote == VOTE_FREE ? answer_missing(batch, call) : vote;
}

static enum vote release(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    int missing = 0, most = 0;
    const struct simkey *other = NULL;
    if (call->call.tombstone_ms > 0 && simstate_is_there(batch->memory))
        simkeys_bury(batch, call);
    for (int i = 0; i < call->names; i++) {
        enum simleft left = simshared_leave(batch, call, i);
        missing += left == SIMLEFT_FREE;
        if (left == SIMLEFT_HELD && other == NULL)
            other = simkeys_at(batch, call, i);
        if (left == SIMLEFT_ALL) {
            int told =
                simkeys_announce(batch, call->resources[i], call->call.token);
            most = told > most ? told : most;
        }
    }
    if (other != NULL)
        return simkeys_probe(batch, other, answer);
    if (missing > 0)
        return answer_missing(batch, call);
    answer->reply.listeners = most;
    return VOTE_DELETED;
}

/* As the script finds it: anywhere in the value. */
static bool has_key_hash(const struct simkey *key, struct span hash)
{
    char text[1 + KEY_HASH_LEN] = "+";
    size_t len = 1 + span_copy(text + 1, hash);
    return hash.len > 0 && !key->is_shared &&
           memmem(key->token, key->token_len, text, len) != NULL;
}

static enum vote tell_slots(struct simbatch *batch, const struct simcall *call,
                            struct simreply *answer)
{
    struct call_reply *reply = &answer->reply;
    enum vote vote = answer_missing(batch, call);
    if (vote != VOTE_FREE)
        return vote;
    assert(call->call.count <= (int)sizeof answer->slots);
    reply->pttl_ms = -1;
    for (int i = 0; i < call->call.count; i++) {
        const struct simkey *key =
            i < SIM_SLOTS
                ? simnode_key(batch->memory, SIM_PLAIN + i, batch->clock_us)
                : NULL;
        answer->slots[i] = CALL_SLOT_FREE;
        if (key == NULL)
            continue;
        answer->slots[i] = has_key_hash(key, call->call.key_hash)
                               ? CALL_SLOT_OWN
                               : CALL_SLOT_TAKEN;
        int64_t left = simkeys_left_ms(batch, key);
        if (key->expires_ms != SIM_ENDLESS &&
            (reply->pttl_ms < 0 || left < reply->pttl_ms))
            reply->pttl_ms = left;
    }
    reply->slots = (struct span){answer->slots, (size_t)call->call.count};
    return VOTE_DONE;
}

static size_t write_name(char *to, struct span name)
{
    size_t len = (size_t)sprintf(to, "%zu:", name.len);
    return len + span_copy(to + len, name);
}

/* The cursor is the next resource, in their order. */
static enum vote scan(const struct simbatch *batch, const struct simcall *call,
                      struct simreply *answer)
{
    struct call_reply *reply = &answer->reply;
    struct span prefix = call->call.resource;
    int at = (int)call->call.cursor, count = 0;
    size_t len = 0;
    for (; at < SIM_RESOURCES && count < call->call.count; at++) {
        struct span name = span_of(simnode_resource(at));
        if (simnode_key(batch->memory, at, batch->clock_us) == NULL ||
            name.len < prefix.len ||
            memcmp(name.ptr, prefix.ptr, prefix.len) != 0)
            continue;
        len += write_name(answer->names + len, name);
        count++;
    }
    reply->names = (struct span){answer->names, len};
    reply->cursor = at < SIM_RESOURCES ? at : 0;
    return VOTE_DONE;
}

/* A node without state gets none by this. */
static enum vote listen(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    if (simstate_is_there(memory))
        memory->listened_until_us =
            simnumber(batch->clock_us + call->call.listen_us);
    if (memory->listened_until_us.is_there)
        (void)simkeys_publish(batch, -1, span_of(""));
    return VOTE_DONE;
}

/* ---- batches ------------------------------------------------------------ */

static enum vote execute(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    switch (call->call.kind) {
    case CALL_PROBE:
    case CALL_ADMIT:
    case CALL_READMIT:
    case CALL_REVOKE:
        return simstate_execute(batch, call, answer);
    case CALL_ACQUIRE:
    case CALL_REPEAT:
        return acquire(batch, call, answer);
    case CALL_EXTEND:
        return extend(batch, call, answer);
    case CALL_REPLICATE:
        return replication(batch, call, answer);
    case CALL_RELEASE:
        return release(batch, call, answer);
    case CALL_INSPECT:
        return inspect(batch, call, answer);
    case CALL_TOKENS:
        return tell_tokens(batch, call, answer);
    case CALL_LISTEN:
        return listen(batch, call);
    case CALL_SLOTS:
        return tell_slots(batch, call, answer);
    case CALL_SCAN:
        return scan(batch, call, answer);
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
    answer->reply.generation = batch->generation;
    simreply_keep(answer);
}
