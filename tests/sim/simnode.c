#include "simnode.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../server/fence.h"

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
    span->len = span_copy(storage, *span);
    span->ptr = storage;
}

void simcall_copy(struct simcall *copy, const struct script_call *call)
{
    copy->call = *call;
    copy->resource =
        call->resource.len > 0 ? simnode_resource_number(call->resource) : -1;
    copy->call.resource = (struct span){0};
    keep(&copy->call.token, copy->token, sizeof copy->token);
    keep(&copy->call.admit, copy->admit, sizeof copy->admit);
    keep(&copy->call.nonce, copy->nonce, sizeof copy->nonce);
    keep(&copy->call.found, copy->found, sizeof copy->found);
}

void simcall_repeat(struct simcall *copy, const struct simcall *from)
{
    *copy = *from;
    copy->call.token.ptr = copy->token;
    copy->call.admit.ptr = copy->admit;
    copy->call.nonce.ptr = copy->nonce;
    copy->call.found.ptr = copy->found;
}

void simreply_keep(struct simreply *answer)
{
    struct script_reply *reply = &answer->reply;
    keep(&reply->value, answer->value, sizeof answer->value);
    keep(&reply->look.admit, answer->admit, sizeof answer->admit);
    keep(&reply->look.mark, answer->mark, sizeof answer->mark);
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
    keep(&answer->reply.value, answer->value, sizeof answer->value);
    return VOTE_HELD;
}

/* ---- the state hash ----------------------------------------------------- */

static bool is_text(struct span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.ptr, text, span.len) == 0;
}

bool simnode_has_state(const struct simmemory *memory)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (memory->highest[i] != 0)
            return true;
    return memory->admit[0] != '\0' || memory->mark[0] != '\0' ||
           memory->durable != 0 || memory->max_ttl_ms != 0 ||
           memory->beat_us != 0;
}

static int epoch_of(const char *text)
{
    return atoi(text);
}

/* "<epoch>:<run_id>:" of the admission that the caller expects. */
static size_t life_of(const struct simcall *call,
                      char life[SCRIPT_STATE_MAX + 1])
{
    struct span admit = call->call.admit;
    const char *first = memchr(admit.ptr, ':', admit.len);
    assert(first != NULL);
    size_t head = (size_t)(first - admit.ptr) + 1;
    const char *second = memchr(first + 1, ':', admit.len - head);
    assert(second != NULL);
    size_t skipped = (size_t)(second - admit.ptr) + 1;
    int len = snprintf(life, SCRIPT_STATE_MAX + 1, "%.*s%.*s:", (int)head,
                       admit.ptr, (int)(admit.len - skipped), second + 1);
    return (size_t)len;
}

static void write_mark(struct simmemory *memory, const struct simcall *call)
{
    size_t len = life_of(call, memory->mark);
    assert(len + call->call.nonce.len <= SCRIPT_STATE_MAX);
    len += span_copy(memory->mark + len, call->call.nonce);
    memory->mark[len] = '\0';
}

static void write_admission(struct simmemory *memory,
                            const struct simcall *call, int64_t clock_us)
{
    if (call->call.max_ttl_ms > memory->max_ttl_ms)
        memory->max_ttl_ms = call->call.max_ttl_ms;
    memory->admit[span_copy(memory->admit, call->call.admit)] = '\0';
    memory->beat_us = clock_us;
    memory->mark[0] = '\0';
}

static bool is_foreign(const struct simmemory *memory,
                       const struct simcall *call)
{
    const char *first = strchr(call->admit, ':');
    const char *second = memchr(first + 1, ':', SCRIPT_STATE_MAX);
    size_t len = (size_t)(second - call->admit) + 1;
    return epoch_of(memory->admit) == epoch_of(call->admit) &&
           strncmp(memory->admit, call->admit, len) != 0;
}

/* The word of a look, and what it writes. */
static enum script_look_word look_at_state(struct simmemory *memory,
                                           const struct simcall *call,
                                           int64_t clock_us,
                                           struct script_look *seen)
{
    char life[SCRIPT_STATE_MAX + 1];
    int epoch = epoch_of(call->admit);
    if (epoch_of(memory->admit) > epoch || epoch_of(memory->mark) > epoch)
        return LOOK_SUPERSEDED;
    if (memory->durable == '1' && !call->call.is_durable) {
        memory->durable = '0';
        seen->is_durable = false;
    }
    if (is_text(call->call.admit, memory->admit)) {
        if (clock_us > memory->beat_us)
            memory->beat_us = clock_us;
        return LOOK_ADMITTED;
    }
    if (is_foreign(memory, call))
        return LOOK_FOREIGN;
    size_t len = life_of(call, life);
    if (strncmp(memory->mark, life, len) == 0)
        return LOOK_MARKED;
    bool is_fresh = !simnode_has_state(memory);
    if (call->call.nonce.len == 0)
        return is_fresh ? LOOK_EMPTY : LOOK_BARE;
    write_mark(memory, call);
    if (epoch_of(memory->admit) < epoch)
        memory->admit[0] = '\0';
    return is_fresh ? LOOK_FRESH : LOOK_CREATED;
}

static enum vote look(struct simmemory *memory, const struct simcall *call,
                      int64_t clock_us, struct simreply *answer)
{
    struct script_look *seen = &answer->reply.look;
    seen->max_ttl_ms = memory->max_ttl_ms;
    seen->is_durable = memory->durable == '1';
    seen->beat_us = memory->beat_us;
    seen->admit = span_of(memory->admit);
    keep(&seen->admit, answer->admit, sizeof answer->admit);
    seen->mark = span_of(memory->mark);
    seen->word = look_at_state(memory, call, clock_us, seen);
    if (seen->word == LOOK_FRESH || seen->word == LOOK_CREATED)
        seen->mark = span_of(memory->mark);
    keep(&seen->mark, answer->mark, sizeof answer->mark);
    return VOTE_DONE;
}

static enum vote give_admission(struct simmemory *memory,
                                const struct simcall *call, int64_t clock_us)
{
    if (memory->mark[0] == '\0' || !is_text(call->call.found, memory->mark))
        return VOTE_CHANGED;
    memory->durable = call->call.is_durable ? '1' : '0';
    write_admission(memory, call, clock_us);
    return VOTE_DONE;
}

static enum vote readmit(struct simmemory *memory, const struct simcall *call,
                         int64_t clock_us)
{
    int64_t beat_us = memory->beat_us;
    if (memory->admit[0] == '\0' || !is_text(call->call.found, memory->admit) ||
        memory->durable != '1' || beat_us < call->call.beat_us ||
        beat_us > clock_us ||
        clock_us - beat_us >= call->call.max_ttl_ms * 1000)
        return VOTE_CHANGED;
    write_admission(memory, call, clock_us);
    return VOTE_DONE;
}

static enum vote revoke(struct simmemory *memory, const struct simcall *call)
{
    bool is_marked =
        memory->mark[0] != '\0' && is_text(call->call.found, memory->mark);
    if (!is_text(call->call.admit, memory->admit) && !is_marked)
        return VOTE_CHANGED;
    memory->admit[0] = '\0';
    write_mark(memory, call);
    return VOTE_DONE;
}

/* ---- locks -------------------------------------------------------------- */

static enum vote acquire(struct simmemory *memory, const struct simcall *call,
                         int64_t clock_us, struct simreply *answer)
{
    const struct script_call *ask = &call->call;
    int64_t *highest = &memory->highest[slot_number(ask->slot)];
    struct simkey *key = &memory->keys[call->resource];
    if (llabs(ask->number - clock_us) > ask->window_us)
        return VOTE_SKEWED;
    const struct simkey *held = simnode_key(memory, call->resource, clock_us);
    if (held != NULL)
        return look_at_key(held, clock_us, answer);
    if (*highest >= ask->number) {
        answer->reply.highest = *highest;
        return VOTE_STALE;
    }
    *highest = ask->number;
    key->is_set = true;
    key->expires_ms = clock_us / 1000 + ask->ttl_ms;
    key->token_len = span_copy(key->token, ask->token);
    return VOTE_GRANTED;
}

static enum vote extend(struct simmemory *memory, const struct simcall *call,
                        int64_t clock_us, struct simreply *answer)
{
    const struct simkey *held = simnode_key(memory, call->resource, clock_us);
    if (!is_own(held, call))
        return look_at_key(held, clock_us, answer);
    struct simkey *key = &memory->keys[call->resource];
    int64_t expires_ms = clock_us / 1000 + call->call.ttl_ms;
    if (expires_ms > key->expires_ms)
        key->expires_ms = expires_ms;
    return VOTE_EXTENDED;
}

static enum vote release(struct simmemory *memory, const struct simcall *call,
                         int64_t clock_us, struct simreply *answer)
{
    const struct simkey *held = simnode_key(memory, call->resource, clock_us);
    if (!is_own(held, call))
        return look_at_key(held, clock_us, answer);
    memory->keys[call->resource].is_set = false;
    return VOTE_DELETED;
}

/* The checks that acquire and extend have in common. */
static enum vote refusal(const struct simmemory *memory,
                         const struct simcall *call, int64_t clock_us)
{
    if (memory->admit[0] == '\0' || !is_text(call->call.admit, memory->admit))
        return VOTE_QUARANTINED;
    return clock_us > call->call.node_deadline_us ? VOTE_LATE : VOTE_PENDING;
}

static enum vote execute(struct simmemory *memory, const struct simcall *call,
                         int64_t clock_us, struct simreply *answer)
{
    enum vote refused = refusal(memory, call, clock_us);
    switch (call->call.kind) {
    case SCRIPT_LOOK:
        return look(memory, call, clock_us, answer);
    case SCRIPT_ADMIT:
        return give_admission(memory, call, clock_us);
    case SCRIPT_READMIT:
        return readmit(memory, call, clock_us);
    case SCRIPT_REVOKE:
        return revoke(memory, call);
    case SCRIPT_ACQUIRE:
        return refused != VOTE_PENDING
                   ? refused
                   : acquire(memory, call, clock_us, answer);
    case SCRIPT_EXTEND:
        return refused != VOTE_PENDING ? refused
                                       : extend(memory, call, clock_us, answer);
    case SCRIPT_RELEASE:
        return release(memory, call, clock_us, answer);
    case SCRIPT_INSPECT:
        return look_at_key(simnode_key(memory, call->resource, clock_us),
                           clock_us, answer);
    case SCRIPT_KINDS:
        break;
    }
    abort();
}

void simnode_execute(struct simmemory *memory, const struct simcall *call,
                     int64_t clock_us, struct simreply *answer)
{
    answer->reply = (struct script_reply){.node_now_us = clock_us};
    answer->reply.vote = execute(memory, call, clock_us, answer);
}
