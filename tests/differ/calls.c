/* SPDX-License-Identifier: MIT */
#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../server/engine/port/token.h"
#include "../../server/lock/names.h"

static struct span any_text(struct run *run, const char *const *texts,
                            int count)
{
    return span_of(texts[hands_pick(run, count)]);
}

static const char *const nonces[] = {
    "0000000001:", "0000000002:", "9999999999:", "0000000003:first"};
static const char *const others[] = {"00000000000000a1", "00000000000000b2",
                                     "m00000000000000b2", "00000000000000c3"};

static const char *const generations[] = {
    "00000000000000000000000000", "00000000000000000000000003",
    "00000000000000000000000012", "00000000009007199254740991"};

enum { NONCES = 4, OTHERS = 4, NO_LOCK = -1 };

static int64_t any_number(struct run *run, int resource)
{
    static const int64_t offsets_us[] = {0,      -500000, 500000,
                                         900000, 1100000, -1200000};
    int64_t highest = run->memory.highest[resource];
    if (highest != 0 && hands_pick(run, 3) == 0)
        return highest + hands_pick(run, 3) - 1;
    return run->clock_us + offsets_us[hands_pick(run, 6)];
}

/* A text of our own, for as long as the batch is made. */
typedef char state_text[CALL_STATE_MAX + 1];

static struct span make_admission(struct run *run, state_text text)
{
    hands_print_admission(run, text);
    return span_of(text);
}

static struct span make_quarantine(struct run *run, state_text text)
{
    state_text admission;
    (void)make_admission(run, admission);
    const char *colon = strchr(admission, ':');
    for (int colons = 1; colons < 4; colons++)
        colon = strchr(colon + 1, ':');
    snprintf(text, sizeof(state_text), "%.*s:%s%s", (int)(colon - admission),
             admission, hands_pick(run, 2) != 0 ? "first" : "",
             strchr(colon + 1, ':'));
    return span_of(text);
}

/* The admission that is there, or another: whole, or what a caller gives. */
static struct span any_admit(struct run *run, bool is_whole, state_text text)
{
    char run_id[CALL_STATE_MAX / 2];
    bool is_that = hands_pick(run, 6) != 0;
    if (is_whole && is_that)
        return span_of(run->memory.admit);
    if (is_whole && hands_pick(run, 2) == 0)
        return make_admission(run, text);
    if (is_that &&
        sscanf(run->memory.admit, "%*[^:]:%*[^:]:%*[^:]:%*d:%*d:%95[^:]",
               run_id) == 1) {
        const char *end = run->memory.admit;
        for (int colons = 0; colons < 3; end++)
            colons += *end == ':';
        snprintf(text, sizeof(state_text), "%.*s%s",
                 (int)(end - run->memory.admit), run->memory.admit, run_id);
        return span_of(text);
    }
    return span_of(hands_admit(run));
}

/* The admission that is there, or another, or none. */
static struct span any_found(struct run *run, state_text text)
{
    if (hands_pick(run, 4) != 0)
        return span_of(run->memory.admit);
    if (hands_pick(run, 2) == 0)
        return span_of("");
    return make_admission(run, text);
}

/* The quarantine record that is there, or another, or none. */
static struct span any_quarantine(struct run *run, state_text text)
{
    if (hands_pick(run, 4) != 0)
        return span_of(run->memory.quarantine);
    if (hands_pick(run, 4) == 0)
        return span_of("");
    return make_quarantine(run, text);
}

/* The greatest generation that a caller knows: about that of the node, or less.
 */
static int64_t any_high_water(struct run *run)
{
    int64_t generation = run->memory.generation.it + (hands_pick(run, 4) == 0);
    int64_t high_water = generation - hands_pick(run, 3);
    return high_water < 0 || hands_pick(run, 8) == 0 ? 0 : high_water;
}

/* What the nodes' clocks show: not known, about now, or long ago. */
static int64_t any_median(struct run *run)
{
    switch (hands_pick(run, 8)) {
    case 0:
    case 1:
        return 0;
    case 2:
        return 5 + hands_pick(run, 3);
    default:
        return run->clock_us + hands_pick(run, 3) * 1000000;
    }
}

/* The incarnation of the quarantine record or admission that is there, or
 * another, or none.
 */
static struct span any_latest(struct run *run, char text[INCARNATION_LEN + 1])
{
    const char *of =
        hands_pick(run, 2) != 0 ? run->memory.quarantine : run->memory.admit;
    if (hands_pick(run, 3) == 0)
        return span_of("");
    text[0] = '\0';
    (void)sscanf(of, "%*[^:]:%*[^:]:%*[^:]:%26[0-9]", text);
    if (strlen(text) != INCARNATION_LEN)
        text[0] = '\0';
    return span_of(hands_incarnation(run, text));
}

/* "name=number name=number…", of some. */
static struct span any_witnesses(struct run *run,
                                 char text[CALL_WITNESSES_MAX + 1])
{
    size_t len = 0;
    text[0] = '\0';
    for (int i = 0; i < OTHERS; i++)
        if (hands_pick(run, 3) != 0)
            len += (size_t)snprintf(text + len, CALL_WITNESSES_MAX + 1 - len,
                                    "%s%s=%s", len > 0 ? " " : "", others[i],
                                    others[i][0] == 'm'
                                        ? hands_incarnation(run, "")
                                        : generations[hands_pick(run, 4)]);
    return (struct span){text, len};
}

/* One that the lock has, or one of those that share it; empty: none does. */
static struct span token_there(struct run *run, int resource)
{
    const struct simkey *key = &run->memory.keys[resource];
    if (!key->is_set)
        return (struct span){0};
    return key->is_shared ? hands_holder(run, resource)
                          : (struct span){key->token, key->token_len};
}

static void flip_form(char *token)
{
    char *form = token + TOKEN_NUMBER_LEN;
    *form = *form == TOKEN_SHARED ? '.' : TOKEN_SHARED;
}

/* That of the lock that is there, or another; a third of them have the other
 * form. */
static struct span any_token(struct run *run, int resource,
                             char text[SIM_TOKEN_MAX])
{
    struct span token = token_there(run, resource);
    if (token.len == 0 || hands_pick(run, 2) == 0)
        token = span_of(hands_token(run));
    size_t len = span_copy(text, token);
    if (len > TOKEN_NUMBER_LEN && hands_pick(run, 3) == 0)
        flip_form(text);
    return (struct span){text, len};
}

/* What all calls of a batch have in common. */
struct shared {
    bool is_of_locks; /* none examines the permission or changes it */
    int crowd;        /* the lock whose readers make most calls; or NO_LOCK */
    bool has_keys;    /* half of these have a key */
    struct span admit;
    state_text admit_text;
    int64_t median_us;
    int64_t deadline_us;
};

/* What its spans may borrow from. */
struct call_texts {
    char names[SIM_NAMES_MAX];
    char token[SIM_TOKEN_MAX], number[SIM_TOKEN_MAX];
    state_text found, quarantine;
    char latest[INCARNATION_LEN + 1];
    char witnesses[CALL_WITNESSES_MAX + 1];
    char trace[CALL_TRACE_MAX + 1];
};

/* The names of one to three resources, of which first is one; of what acquires
   and releases mostly one, so that they make rows. */
static struct span any_names(struct run *run, enum call_kind kind, int first,
                             char text[SIM_NAMES_MAX])
{
    int numbers[CALLS_NAMES_MAX] = {first, (first + 1) % SIM_RESOURCES,
                                    (first + 2) % SIM_RESOURCES};
    bool is_common = kind == CALL_ACQUIRE || kind == CALL_RELEASE;
    bool is_one = is_common && hands_pick(run, 4) != 0;
    int count = is_one ? 1 : 1 + (int)hands_pick(run, CALLS_NAMES_MAX);
    return (struct span){text, simnode_join(text, numbers, count)};
}

/*
 * Of a replication: mostly that all were missing. Of a repeat: about the number
 * of the token that is there, or of one that somebody may have set, or all that
 * are not ahead. An acquire replaces nobody.
 */
static int64_t any_seen(struct run *run, const struct call *call, int resource)
{
    struct token_parts parts;
    if (call->kind == CALL_ACQUIRE)
        return 0;
    if (call->kind == CALL_REPEAT && hands_pick(run, 2) == 0 &&
        token_parse(token_there(run, resource), &parts))
        return parts.number + hands_pick(run, 3) - 1;
    if (call->kind == CALL_REPEAT)
        return hands_pick(run, 2) == 0
                   ? INT64_C(1700000000000000) + hands_pick(run, 5)
                   : run->clock_us;
    return hands_pick(run, 4) != 0 ? (1 << CALLS_NAMES_MAX) - 1
                                   : hands_pick(run, 1 << CALLS_NAMES_MAX);
}

/* Acquires and releases of one lock are most of what a node gets. */
static enum call_kind any_kind_of_locks(struct run *run)
{
    if (hands_pick(run, 2) == 0)
        return hands_pick(run, 2) == 0 ? CALL_ACQUIRE : CALL_RELEASE;
    if (hands_pick(run, 4) == 0)
        return hands_pick(run, 2) == 0 ? CALL_EXTEND : CALL_REPLICATE;
    int kind =
        CALL_ACQUIRE + (int)hands_pick(run, CALL_SCAN + 1 - CALL_ACQUIRE);
    return kind == CALL_SCAN ? CALL_SLOTS : (enum call_kind)kind;
}

/* A token that begins with the number, as those do that calls set. Half of the
 * repeats may have the key of a lock that is there. */
static struct span token_of_number(struct run *run, const struct call *call,
                                   char text[SIM_TOKEN_MAX])
{
    char other[SIM_TOKEN_MAX + 1];
    const char *token = hands_token(run);
    if (call->kind == CALL_REPEAT && hands_pick(run, 2) == 0) {
        other[span_copy(other, call->token)] = '\0';
        token = other;
    }
    const char *rest =
        strlen(token) > SIM_NUMBER_LEN ? token + SIM_NUMBER_LEN : ".b";
    int len = snprintf(text, SIM_TOKEN_MAX, "%0*lld%s", SIM_NUMBER_LEN,
                       (long long)call->number, rest);
    if (hands_pick(run, 3) == 0)
        flip_form(text);
    return (struct span){text, (size_t)len};
}

/* The number is the token's; a replication mostly has the token that is there.
 */
static void choose_number(struct run *run, struct call *call, int resource,
                          char text[SIM_TOKEN_MAX])
{
    struct token_parts parts;
    call->number = any_number(run, resource);
    if (call->kind == CALL_REPLICATE && hands_pick(run, 3) != 0 &&
        token_parse(call->token, &parts))
        call->number = parts.number;
    else
        call->token = token_of_number(run, call, text);
}

/* Of one who has the lock, or 0. */
static int64_t any_holder(struct run *run, int resource)
{
    struct token_parts parts;
    bool is_it = hands_pick(run, 2) == 0 &&
                 token_parse(token_there(run, resource), &parts);
    return is_it ? parts.number : 0;
}

/* A holder's time ends while the batch runs: the real node is asked to delete
 * a key whose end has come, which the simulated one cannot know. */
static int64_t any_ttl_ms(struct run *run, const struct call *call)
{
    static const int64_t ttls_ms[] = {1, 10, 30, 500, 60000, 90000};
    int64_t ttl_ms = ttls_ms[hands_pick(run, 6)];
    return token_is_shared(call->token) && ttl_ms < 10 ? 10 : ttl_ms;
}

/* So few that they are reached, or more than there are; 0: of a repeat. */
static int any_readers_max(struct run *run, enum call_kind kind)
{
    int least = kind == CALL_REPEAT ? 0 : 1;
    return hands_pick(run, 2) == 0 ? 1000 : least + (int)hands_pick(run, 5);
}

static void choose_slots(struct run *run, struct call *call)
{
    static const char *const hashes[] = {"", "abcdefghijklmnopqrst-_",
                                         "ABCDEFGHIJKLMNOPQRST01"};
    call->resource = span_of(simnode_resource(SIM_POOL));
    call->count = 1 + (int)hands_pick(run, SIM_SLOTS + 2);
    call->key_hash = span_of(hashes[hands_pick(run, 3)]);
}

/* It has a key: what it does is mostly a repeat of its own. */
static void give_key(struct run *run, struct call *call,
                     struct call_texts *texts)
{
    struct span there =
        token_there(run, simnode_resource_number(call->resource));
    call->kind = CALL_REPEAT;
    if (hands_pick(run, 4) == 0)
        call->kind = hands_pick(run, 2) == 0 ? CALL_EXTEND : CALL_REPLICATE;
    struct token_parts parts;
    bool is_there = call->kind != CALL_REPEAT && token_parse(there, &parts);
    /* of two requests: the second half tells tries of one from each other */
    int len = snprintf(texts->number, SIM_TOKEN_MAX, "%0*lld~%s%s%s",
                       SIM_NUMBER_LEN, (long long)call->number,
                       hands_pick(run, 2) == 0 ? "0123456789abcdef0123"
                                               : "89abcdef0123456789ab",
                       "456789abcdef01234567+",
                       hands_keys[hands_pick(run, HANDS_KEYS)]);
    call->token = (struct span){texts->number, (size_t)len};
    if (is_there) {
        call->number = parts.number;
        call->token.len = span_copy(texts->number, there);
    }
    call->seen = call->kind == CALL_REPLICATE
                     ? (1 << CALLS_NAMES_MAX) - 1
                     : call->number - 1 - (hands_pick(run, 3) == 0) * 10;
    call->tombstone_ms = call->kind == CALL_REPLICATE ? 60000 : 0;
    call->ttl_ms = any_ttl_ms(run, call);
    if (call->kind == CALL_EXTEND && hands_pick(run, 6) == 0)
        call->ttl_ms = 0; /* only a probe */
    call->readers_max = any_readers_max(run, call->kind);
}

/* Comes to the readers of a lock, or leaves them: what one command may do for
 * many, if most is in order. */
static void make_reader(struct run *run, const struct shared *shared,
                        struct call *call, struct call_texts *texts)
{
    int64_t highest = run->memory.highest[shared->crowd];
    bool is_late = highest == 0 || hands_pick(run, 3) == 0;
    char *token = texts->token;
    *call = (struct call){
        .kind = hands_pick(run, 2) == 0 ? CALL_ACQUIRE : CALL_RELEASE,
        .resource = {texts->names,
                     simnode_join(texts->names, &shared->crowd, 1)},
        .admit = shared->admit,
        .number = (is_late ? run->clock_us : highest) + hands_pick(run, 20),
        .node_deadline_us = shared->deadline_us,
        .window_us = CALLS_WINDOW_US,
    };
    fence_buckets(call->resource, call->buckets);
    if (hands_pick(run, 20) == 0)
        call->number = any_number(run, shared->crowd);
    call->token = any_token(run, shared->crowd, token);
    if (call->kind == CALL_ACQUIRE)
        call->token = token_of_number(run, call, token = texts->number);
    if (call->token.len > TOKEN_NUMBER_LEN && hands_pick(run, 20) != 0)
        token_share(token);
    call->ttl_ms = any_ttl_ms(run, call);
    call->readers_max = any_readers_max(run, call->kind);
    if (shared->has_keys && hands_pick(run, 2) == 0)
        give_key(run, call, texts);
}

/* That of the last probe; or one that is too old, or of another memory, or that
 * shows the other ID of hands_replid; or none. */
static struct span any_trace(const struct run *run, const struct call *call,
                             char text[CALL_TRACE_MAX + 1])
{
    if (call->max_ttl_ms == 1000)
        return span_of(run->trace);
    if (call->max_ttl_ms == 2000)
        return (struct span){0};
    snprintf(text, CALL_TRACE_MAX + 1, "%s:%lld:%lld", "00ff00ff00ff00ff",
             (long long)run->process.read + call->is_objecting,
             (long long)run->clock_us - (call->is_durable ? 1000 : 6000000));
    return span_of(text);
}

static void make_call(struct run *run, const struct shared *shared,
                      struct call *call, struct call_texts *texts)
{
    bool has_lock = shared->is_of_locks || hands_pick(run, 9) == 0;
    enum call_kind kind = has_lock
                              ? any_kind_of_locks(run)
                              : (enum call_kind)hands_pick(run, CALL_ACQUIRE);
    /* mostly the first ones, so that calls meet */
    int resource = (int)hands_pick(run, 1 + hands_pick(run, SIM_RESOURCES));
    bool has_names = has_lock && kind != CALL_LISTEN && kind != CALL_SLOTS;
    *call = (struct call){
        .kind = kind,
        .resource = has_names ? any_names(run, kind, resource, texts->names)
                              : (struct span){0},
        .token = has_lock ? any_token(run, resource, texts->token)
                          : (struct span){0},
        .admit = shared->admit,
        .nonce = any_text(run, nonces, NONCES),
        .found = any_found(run, texts->found),
        .quarantine = any_quarantine(run, texts->quarantine),
        .witnesses = any_witnesses(run, texts->witnesses),
        .max_ttl_ms = 1000 + 1000 * hands_pick(run, 3),
        .high_water = any_high_water(run),
        .latest = any_latest(run, texts->latest),
        .median_us = shared->median_us,
        .is_durable = hands_pick(run, 3) != 0,
        .is_objecting = hands_pick(run, 2) != 0,
        .is_renewing = hands_pick(run, 3) == 0,
        .is_established = hands_pick(run, 3) == 0,
        .node_deadline_us = shared->deadline_us,
        .window_us = CALLS_WINDOW_US,
        .tombstone_ms = 60000,
    };
    /* without a draw of its own, so that the seeds that are kept stay */
    call->dead = span_of(call->max_ttl_ms == 1000 ? "" : "1:dead:");
    if (kind == CALL_PROBE)
        call->trace = any_trace(run, call, texts->trace);
    if (kind == CALL_RELEASE && call->max_ttl_ms != 1000) /* not by force */
        call->tombstone_ms = 0;
    if (has_names) {
        fence_buckets(call->resource, call->buckets);
        call->seen = any_seen(run, call, resource);
    }
    if (kind == CALL_ACQUIRE || kind == CALL_REPEAT || kind == CALL_REPLICATE)
        choose_number(run, call, resource, texts->number);
    call->ttl_ms = any_ttl_ms(run, call);
    call->readers_max = any_readers_max(run, call->kind);
    if (kind == CALL_TOKENS)
        call->number = any_holder(run, resource);
    if (kind == CALL_SLOTS)
        choose_slots(run, call);
    if (kind == CALL_ADMIT)
        call->number = hands_pick(run, 3) == 0
                           ? 0
                           : run->clock_us + (hands_pick(run, 3) - 1) * 500000;
    if (kind == CALL_LISTEN)
        call->listen_us = hands_pick(run, 3) * (CALL_LISTEN_US / 2);
    if (kind == CALL_PROBE && hands_pick(run, 3) == 0)
        call->nonce = (struct span){0};
    if (kind == CALL_PROBE && call->nonce.len == 0)
        call->is_watching = hands_pick(run, 2) != 0;
}

void calls_make(struct run *run, int count, struct call calls[CALLS_MAX],
                struct simcall copies[CALLS_MAX])
{
    bool is_of_locks = hands_pick(run, 4) != 0;
    bool is_crowd = is_of_locks && hands_pick(run, 6) == 0;
    struct shared shared = {
        .is_of_locks = is_of_locks,
        .crowd = is_crowd ? (int)hands_pick(run, SIM_RESOURCES) : NO_LOCK,
        .has_keys = is_crowd && hands_pick(run, 3) == 0,
        .median_us = any_median(run),
        .deadline_us = run->clock_us + (hands_pick(run, 12) - 1) * 1000000,
    };
    shared.admit = any_admit(run, is_of_locks, shared.admit_text);
    bool has_tokens = false;
    hands_make_room(run, CALLS_MAX * CALLS_NAMES_MAX);
    for (int i = 0; i < count; i++) {
        struct call_texts texts;
        bool is_reader = is_crowd && hands_pick(run, 24) != 0;
        /* cppcheck-suppress uninitvar; the call fills them */
        (is_reader ? make_reader : make_call)(run, &shared, &calls[i], &texts);
        if (calls[i].kind == CALL_TOKENS && has_tokens) /* one in a batch */
            calls[i].kind = CALL_INSPECT;
        has_tokens |= calls[i].kind == CALL_TOKENS;
        simcall_copy(&copies[i], &calls[i]);
        calls[i] = copies[i].call;
    }
}
