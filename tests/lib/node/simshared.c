/* SPDX-License-Identifier: MIT */
#include "simshared.h"

#include <stdio.h>

#include "../../../server/engine/port/token.h"
#include "simholders.h"
#include "simkeys.h"

bool simshared_is(const struct simcall *call)
{
    return token_is_shared(call->call.token);
}

/* The call's token in one of its forms; what is too short for a token gets one
 * byte more, as in the script. */
static struct span in_form(const struct simcall *call, char form,
                           char text[SIM_TOKEN_MAX + 1])
{
    size_t len = span_copy(text, call->call.token);
    bool is_longer = len > TOKEN_NUMBER_LEN;
    text[is_longer ? (size_t)TOKEN_NUMBER_LEN : len] = form;
    return (struct span){text, is_longer ? len : len + 1};
}

static int64_t now_ms(const struct simbatch *batch)
{
    return batch->clock_us / 1000;
}

/* The holder of the lock at this place, whether it has ended or not. */
static struct simholder *find(const struct simbatch *batch,
                              const struct simcall *call, int place)
{
    char text[SIM_TOKEN_MAX + 1];
    if (simkeys_at(batch, call, place) == NULL)
        return NULL;
    return simholders_find(batch->memory, call->resources[place],
                           in_form(call, TOKEN_SHARED, text));
}

static bool is_holding(const struct simbatch *batch, const struct simcall *call,
                       int place)
{
    const struct simholder *holder = find(batch, call, place);
    return holder != NULL && holder->ends_ms >= now_ms(batch);
}

/* Whether it has the exclusive form of the token. */
static bool is_writing(const struct simbatch *batch, const struct simcall *call,
                       int place)
{
    char text[SIM_TOKEN_MAX + 1];
    return simkeys_has(simkeys_at(batch, call, place),
                       in_form(call, '.', text));
}

/* A key that no reader can join; NULL: it can. */
static const struct simkey *refusing(const struct simbatch *batch,
                                     const struct simcall *call, int place)
{
    const struct simkey *key = simkeys_at(batch, call, place);
    if (key == NULL || !key->is_shared)
        return key;
    const struct simholder *last =
        simholders_last(batch->memory, call->resources[place]);
    return simholders_is_token(last) ? NULL : key;
}

/* ---- readers with a key -------------------------------------------------- */

/* As scripts cut it from a token; empty: it has none. */
static struct span key_of(struct span token)
{
    enum { HASH_AT = 58 };
    if (token.len < HASH_AT || token.ptr[HASH_AT - 1] != '+')
        return (struct span){0};
    size_t len = token.len - HASH_AT;
    return (struct span){token.ptr + HASH_AT,
                         len < KEY_HASH_LEN ? len : (size_t)KEY_HASH_LEN};
}

static struct span repeat_token(const struct simrepeat *it)
{
    return (struct span){it->token, it->token_len};
}

static bool has_key(const struct simrepeat *it, struct span key_hash,
                    int64_t now_ms)
{
    return it->token_len > 0 && it->until_ms >= now_ms &&
           span_is_same(key_of(repeat_token(it)), key_hash);
}

static struct simrepeat *find_repeat(struct simmemory *memory,
                                     struct span key_hash, int resource,
                                     int64_t now_ms)
{
    for (int i = 0; i < SIM_REPEATS; i++) {
        struct simrepeat *it = &memory->repeats[i];
        if (has_key(it, key_hash, now_ms) && it->resource == resource)
            return it;
    }
    return NULL;
}

const struct simrepeat *simnode_with_key(const struct simmemory *memory,
                                         struct span key_hash, int resource,
                                         int64_t clock_us)
{
    return find_repeat((struct simmemory *)memory, key_hash, resource,
                       clock_us / 1000);
}

/* A place for one more: that of the one that ends first. */
static struct simrepeat *new_repeat(struct simmemory *memory)
{
    struct simrepeat *first = &memory->repeats[0];
    for (int i = 1; i < SIM_REPEATS; i++)
        if (memory->repeats[i].until_ms < first->until_ms)
            first = &memory->repeats[i];
    return first;
}

/* They end together: the latest moment of one is that of all. */
static void lengthen(struct simmemory *memory, struct span key_hash,
                     int64_t now_ms)
{
    int64_t until_ms = 0;
    for (int i = 0; i < SIM_REPEATS; i++)
        if (has_key(&memory->repeats[i], key_hash, now_ms))
            until_ms = at_least(until_ms, memory->repeats[i].until_ms);
    for (int i = 0; i < SIM_REPEATS; i++)
        if (has_key(&memory->repeats[i], key_hash, now_ms))
            memory->repeats[i].until_ms = until_ms;
}

/* The call's token has the lock until then, at least. */
static void remember(const struct simbatch *batch, const struct simcall *call,
                     int resource, int64_t ends_ms)
{
    struct span token = call->call.token, key_hash = key_of(token);
    struct simmemory *memory = batch->memory;
    if (token.len < 58 || token.ptr[57] != '+')
        return;
    struct simrepeat *it =
        find_repeat(memory, key_hash, resource, now_ms(batch));
    if (it != NULL && memcmp(it->token, token.ptr, SIM_NUMBER_LEN) > 0)
        return;
    if (it == NULL) {
        it = new_repeat(memory);
        *it = (struct simrepeat){.resource = (uint8_t)resource};
    }
    it->token_len = (uint8_t)span_copy(it->token, token);
    it->until_ms = at_least(it->until_ms, ends_ms);
    lengthen(memory, key_hash, now_ms(batch));
}

/* It has the lock no more. */
static void forget(const struct simbatch *batch, int resource,
                   struct span token)
{
    struct simrepeat *it =
        find_repeat(batch->memory, key_of(token), resource, now_ms(batch));
    if (it != NULL && span_is_same(repeat_token(it), token))
        *it = (struct simrepeat){0};
}

/*
 * The holder of the lock at this place whom the call repeats, by what is known
 * of its key; NULL: none. number: that of the latest with the key.
 */
static struct simholder *find_latest(const struct simbatch *batch,
                                     const struct simcall *call, int place,
                                     int64_t *number)
{
    const struct simrepeat *latest =
        find_repeat(batch->memory, key_of(call->call.token),
                    call->resources[place], now_ms(batch));
    if (latest == NULL || key_of(call->call.token).len == 0 ||
        span_is_same(repeat_token(latest), call->call.token) ||
        simkeys_at(batch, call, place) == NULL)
        return NULL;
    *number = simkeys_repeated(repeat_token(latest), &call->call);
    struct simholder *it = simholders_find(
        batch->memory, call->resources[place], repeat_token(latest));
    return *number >= 0 && it != NULL && it->ends_ms >= now_ms(batch) ? it
                                                                      : NULL;
}

/* ---- join --------------------------------------------------------------- */

static void join(const struct simbatch *batch, const struct simcall *call,
                 int place, int64_t ends_ms)
{
    int resource = call->resources[place];
    struct simholder *holder = find(batch, call, place);
    if (simkeys_at(batch, call, place) == NULL)
        batch->memory->keys[resource].is_set = false;
    if (holder == NULL)
        simholders_add(batch->memory, resource, call->call.token, ends_ms);
    else if (ends_ms > holder->ends_ms)
        holder->ends_ms = ends_ms;
    simholders_settle(batch->memory, resource, now_ms(batch));
    remember(batch, call, resource, ends_ms);
}

/* The highest number of a writer in the slot. */
static int64_t writers_number(const struct simbatch *batch,
                              const struct simcall *call, int place)
{
    const struct simwriters *writers = simkeys_writers(batch, call, place);
    int64_t highest = simkeys_number(batch, call, place);
    return writers->of == highest ? writers->number : highest;
}

/* That of a reader need not rise above the slot's number. */
static void record(const struct simbatch *batch, const struct simcall *call,
                   int place)
{
    int64_t number = call->call.number;
    if (number <= simkeys_number(batch, call, place))
        return;
    *simkeys_writers(batch, call, place) =
        (struct simwriters){number, writers_number(batch, call, place)};
    simkeys_write(batch, call, place, number);
}

/* Of an earlier try of the same request: it begins alike behind the number. */
static bool is_own(const struct simholder *it, const struct call *call)
{
    enum { NONCE_AT = SIM_NUMBER_LEN + 1, NONCE_LEN = 2 * TOKEN_NONCE_BYTES };
    return it->token_len >= NONCE_AT + NONCE_LEN &&
           memcmp(it->token + NONCE_AT, call->token.ptr + NONCE_AT,
                  NONCE_LEN) == 0;
}

/* An earlier holder that it replaces; NULL: there is none. */
static struct simholder *find_earlier(const struct simbatch *batch,
                                      const struct simcall *call, int place)
{
    int64_t number;
    struct simholder *it = find_latest(batch, call, place, &number);
    bool is_earlier =
        it != NULL && (number <= call->call.seen ||
                       (number < call->call.number && is_own(it, &call->call)));
    return is_earlier ? it : NULL;
}

/* That of a reader with the key of this repeat, which is in its way; 0: there
 * is none. */
static int64_t other_number(const struct simbatch *batch,
                            const struct simcall *call, int place)
{
    int64_t number;
    return call->call.kind == CALL_REPEAT &&
                   find_earlier(batch, call, place) == NULL &&
                   find_latest(batch, call, place, &number) != NULL
               ? number
               : 0;
}

/* A writer wants it, or as many as may are in: only who is in gets in. Nor
 * does another reader with its key. */
static bool is_kept(const struct simbatch *batch, const struct simcall *call,
                    int place)
{
    struct simmemory *memory = batch->memory;
    int resource = call->resources[place];
    if (find_earlier(batch, call, place) != NULL)
        return false;
    if (call->call.readers_max == 0 || other_number(batch, call, place) != 0)
        return true;
    if (simkeys_at(batch, call, place) == NULL)
        return false;
    int count = simholders_count(memory, resource, now_ms(batch));
    return count >= 0 &&
           (count >= call->call.readers_max ||
            simholders_is_wanted(memory, resource, now_ms(batch)));
}

/* Who is in already are at least one. */
static enum vote tell_kept(const struct simbatch *batch,
                           const struct simcall *call, int place,
                           struct simreply *answer)
{
    struct call_reply *reply = &answer->reply;
    (void)simkeys_probe(batch, simkeys_at(batch, call, place), answer);
    if (reply->holders == 0)
        reply->holders = 1;
    if (reply->pttl_ms < 0)
        reply->pttl_ms = 0;
    reply->highest = other_number(batch, call, place);
    return VOTE_HELD;
}

enum vote simshared_acquire(struct simbatch *batch, const struct simcall *call,
                            struct simreply *answer)
{
    const struct call *ask = &call->call;
    int64_t ends_ms[SIM_RESOURCES];
    for (int i = 0; i < call->names; i++) {
        const struct simkey *held = refusing(batch, call, i);
        if (held != NULL)
            return simkeys_probe(batch, held, answer);
        int64_t least = writers_number(batch, call, i);
        int64_t min_token = batch->memory->min_token.it;
        if (ask->number <= (least > min_token ? least : min_token)) {
            answer->reply.highest = least > min_token ? least : min_token;
            return VOTE_STALE;
        }
        if (is_kept(batch, call, i))
            return tell_kept(batch, call, i, answer);
    }
    for (int i = 0; i < call->names; i++)
        if (batch->process->is_full && find_earlier(batch, call, i) == NULL)
            return simkeys_lack_memory(answer);
    answer->reply.was_free = ask->kind == CALL_REPEAT;
    for (int i = 0; i < call->names; i++) {
        ends_ms[i] = now_ms(batch) + ask->ttl_ms;
        struct simholder *earlier = find_earlier(batch, call, i);
        if (earlier == NULL)
            continue;
        ends_ms[i] = at_least(ends_ms[i], earlier->ends_ms);
        earlier->token_len = 0;
        answer->reply.was_free = false;
    }
    for (int i = 0; i < call->names; i++) {
        join(batch, call, i, ends_ms[i]);
        record(batch, call, i);
    }
    simkeys_promise(batch, call);
    return VOTE_GRANTED;
}

enum vote simshared_extend(struct simbatch *batch, const struct simcall *call,
                           struct simreply *answer)
{
    int missing = 0;
    const struct simkey *other = NULL;
    for (int i = 0; i < call->names; i++) {
        const struct simkey *key = simkeys_at(batch, call, i);
        if (is_writing(batch, call, i))
            continue;
        bool is_other = key != NULL && !key->is_shared;
        if (is_other && other == NULL)
            other = key;
        missing |= (is_other || !is_holding(batch, call, i)) << i;
    }
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
        int64_t ends_ms = now_ms(batch) + call->call.ttl_ms;
        bool is_downgrade = is_writing(batch, call, i);
        if (is_downgrade) {
            if (key->expires_ms != SIM_ENDLESS) /* none of ours is without */
                ends_ms = at_least(ends_ms, key->expires_ms);
            key->is_set = false;
        }
        join(batch, call, i, ends_ms);
        if (is_downgrade) /* for readers that wait */
            (void)simkeys_announce(batch, call->resources[i], call->call.token);
    }
    return VOTE_EXTENDED;
}

/* Whether a repeat with the same key has replaced this reader. */
static bool is_replaced(const struct simbatch *batch,
                        const struct simcall *call, int place)
{
    int64_t number;
    return find_latest(batch, call, place, &number) != NULL &&
           number > call->call.number;
}

enum vote simshared_replication(struct simbatch *batch,
                                const struct simcall *call,
                                struct simreply *answer)
{
    for (int i = 0; i < call->names; i++) {
        const struct simkey *held = refusing(batch, call, i);
        if (held != NULL)
            return simkeys_probe(batch, held, answer);
    }
    int missing = 0;
    bool is_other = false;
    for (int i = 0; i < call->names; i++)
        if (!is_holding(batch, call, i)) {
            missing |= 1 << i;
            is_other |= is_replaced(batch, call, i);
        }
    if (missing == 0)
        return VOTE_GRANTED;
    if (is_other || (missing & ~call->call.seen) != 0 ||
        simkeys_is_buried(batch, call))
        return VOTE_CHANGED;
    if (batch->process->is_full)
        return simkeys_lack_memory(answer);
    simkeys_bury(batch, call);
    simkeys_promise(batch, call);
    for (int i = 0; i < call->names; i++) {
        if ((missing & 1 << i) == 0)
            continue;
        join(batch, call, i, now_ms(batch) + call->call.ttl_ms);
        record(batch, call, i);
    }
    return VOTE_GRANTED;
}

/* Whether anything but an intent is left. */
static bool has_readers(const struct simbatch *batch,
                        const struct simcall *call, int place)
{
    for (const struct simholder *it = NULL;
         (it = simholders_next(batch->memory, call->resources[place], it)) !=
         NULL;)
        if (!span_is(simholder_token(it), SIM_INTENT))
            return true;
    return false;
}

/* Of a lock that has not the token. */
static enum simleft what_is_left(const struct simbatch *batch,
                                 const struct simcall *call, int place)
{
    bool is_free = simkeys_at(batch, call, place) == NULL ||
                   simshared_is(call) ||
                   simholders_count(batch->memory, call->resources[place],
                                    now_ms(batch)) == 0;
    return is_free ? SIMLEFT_FREE : SIMLEFT_HELD;
}

/* Drops a holder. */
static enum simleft drop(struct simbatch *batch, const struct simcall *call,
                         int place, struct simholder *holder)
{
    bool is_ended = holder->ends_ms < now_ms(batch);
    forget(batch, call->resources[place], simholder_token(holder));
    holder->token_len = 0;
    simholders_settle(batch->memory, call->resources[place], now_ms(batch));
    if (!is_ended)
        return has_readers(batch, call, place) ? SIMLEFT_OTHERS : SIMLEFT_ALL;
    return what_is_left(batch, call, place);
}

enum simleft simshared_leave(struct simbatch *batch, const struct simcall *call,
                             int place)
{
    struct simkey *key = &batch->memory->keys[call->resources[place]];
    struct simholder *holder = find(batch, call, place);
    if (simkeys_at(batch, call, place) == NULL)
        return SIMLEFT_FREE;
    if (holder != NULL)
        return drop(batch, call, place, holder);
    if (key->is_shared)
        return what_is_left(batch, call, place);
    if (!(simshared_is(call) ? is_writing(batch, call, place)
                             : simkeys_has(key, call->call.token)))
        return SIMLEFT_HELD;
    key->is_set = false;
    return SIMLEFT_ALL;
}

static bool is_token(struct span token)
{
    char form = '\0';
    if (token.len > TOKEN_NUMBER_LEN)
        form = token.ptr[TOKEN_NUMBER_LEN];
    return (form == '.' || form == TOKEN_SHARED) && token.len <= TOKEN_MAX &&
           !span_is(token, SIM_INTENT);
}

/* Whether it has the number that is asked for. */
static bool is_asked_for(const struct simcall *call, struct span token)
{
    return call->call.number == 0 ||
           span_number((struct span){token.ptr, SIM_NUMBER_LEN},
                       SIM_NUMBER_LEN) == call->call.number;
}

/* Adds it to those that are told. */
static bool tell(const struct simcall *call, struct simreply *answer,
                 struct span token, int *told)
{
    struct call_reply *reply = &answer->reply;
    if (*told == CALL_TOKENS_REPORTED || !is_token(token) ||
        !is_asked_for(call, token))
        return false;
    reply->names.ptr = answer->names;
    reply->names.len +=
        (size_t)snprintf(answer->names + reply->names.len,
                         sizeof answer->names - reply->names.len, "%zu:%.*s",
                         token.len, (int)token.len, token.ptr);
    (*told)++;
    return true;
}

/* The script reads one more than it tells: that may be the intent. */
static void tell_holders(struct simbatch *batch, const struct simcall *call,
                         int resource, struct simreply *answer, int *told)
{
    int64_t count = simholders_count(batch->memory, resource, now_ms(batch));
    int before = *told, read = 0;
    for (const struct simholder *it = NULL;
         count >= 0 &&
         (it = simholders_next(batch->memory, resource, it)) != NULL;) {
        if (it->ends_ms < now_ms(batch))
            continue;
        if (call->call.number == 0 && read++ > CALL_TOKENS_REPORTED)
            break;
        (void)tell(call, answer, simholder_token(it), told);
    }
    if (call->call.number == 0 && count > *told - before)
        answer->reply.left += count - (*told - before);
}

enum vote simshared_tokens(struct simbatch *batch, const struct simcall *call,
                           struct simreply *answer)
{
    bool is_there = false;
    int told = 0;
    for (int i = 0; i < call->names; i++) {
        const struct simkey *key = simkeys_at(batch, call, i);
        int resource = call->resources[i];
        if (key == NULL)
            continue;
        is_there |= !key->is_shared ||
                    simholders_count(batch->memory, resource, now_ms(batch));
        if (key->is_shared)
            tell_holders(batch, call, resource, answer, &told);
        else
            (void)tell(call, answer, (struct span){key->token, key->token_len},
                       &told);
    }
    return is_there ? VOTE_HELD : VOTE_FREE;
}
