#include "calls.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../server/engine/port/fence.h"
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

static const char *const beats[] = {
    "00000000000000000000000000", "00000000000000000000000003",
    "00000000000000000000000012", "00000000009007199254740991"};

enum { NONCES = 4, OTHERS = 4 };

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

static struct span make_mark(struct run *run, state_text text)
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
    char name[CALL_STATE_MAX + 1], run_id[CALL_STATE_MAX / 2];
    bool is_that = hands_pick(run, 6) != 0;
    if (is_whole && is_that)
        return span_of(run->memory.admit);
    if (is_whole && hands_pick(run, 2) == 0)
        return make_admission(run, text);
    if (is_that &&
        sscanf(run->memory.admit, "%[^:]:%*[^:]:%*[^:]:%*d:%*d:%95[^:]", name,
               run_id) == 2) {
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

/* The mark that is there, or another, or none. */
static struct span any_mark(struct run *run, state_text text)
{
    if (hands_pick(run, 4) != 0)
        return span_of(run->memory.mark);
    if (hands_pick(run, 4) == 0)
        return span_of("");
    return make_mark(run, text);
}

/* The greatest beat that a caller knows: about that of the node, or less. */
static int64_t any_floor(struct run *run)
{
    int64_t beat = run->memory.beat.it + (hands_pick(run, 4) == 0);
    int64_t floor = beat - hands_pick(run, 3);
    return floor < 0 || hands_pick(run, 8) == 0 ? 0 : floor;
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

/* The birth of the mark or admission that is there, or another, or none. */
static struct span any_latest(struct run *run, char text[CALL_BIRTH_LEN + 1])
{
    const char *of =
        hands_pick(run, 2) != 0 ? run->memory.mark : run->memory.admit;
    if (hands_pick(run, 3) == 0)
        return span_of("");
    text[0] = '\0';
    (void)sscanf(of, "%*[^:]:%*[^:]:%*[^:]:%26[0-9]", text);
    if (strlen(text) != CALL_BIRTH_LEN)
        text[0] = '\0';
    return span_of(hands_birth(run, text));
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
                                        ? hands_birth(run, "")
                                        : beats[hands_pick(run, 4)]);
    return (struct span){text, len};
}

/* That of the lock that is there, or another. */
static struct span any_token(struct run *run, int resource)
{
    const struct simkey *key = &run->memory.keys[resource];
    if (key->is_set && hands_pick(run, 2) == 0)
        return (struct span){key->token, key->token_len};
    return span_of(hands_token(run));
}

/* What all calls of a batch have in common. */
struct shared {
    bool is_of_locks; /* none looks at the permission or changes it */
    struct span admit;
    state_text admit_text;
    int64_t median_us;
    int64_t deadline_us;
};

/* What its spans may borrow from. */
struct texts {
    char names[SIM_NAMES_MAX];
    char token[SIM_TOKEN_MAX];
    state_text found, mark;
    char latest[CALL_BIRTH_LEN + 1];
    char witnesses[CALL_WITNESSES_MAX + 1];
};

/* The names of one to three resources, of which first is one; of what acquires
   and releases mostly one, so that they make rows. */
static struct span any_names(struct run *run, enum call_kind kind, int first,
                             char text[SIM_NAMES_MAX])
{
    int numbers[] = {first, (first + 1) % SIM_RESOURCES,
                     (first + 2) % SIM_RESOURCES};
    bool is_common = kind == CALL_ACQUIRE || kind == CALL_RELEASE;
    bool is_one = is_common && hands_pick(run, 4) != 0;
    int count = is_one ? 1 : 1 + (int)hands_pick(run, 3);
    return (struct span){text, simnode_join(text, numbers, count)};
}

/*
 * Of a repair: mostly what the slots say. Of a repeat: about the number of the
 * token that is there, or of one that somebody may have set.
 */
static int64_t any_seen(struct run *run, const struct call *call, int resource)
{
    struct token_parts parts;
    const struct simkey *key = &run->memory.keys[resource];
    if (call->kind == CALL_REPEAT && hands_pick(run, 2) == 0 &&
        token_parse((struct span){key->token, key->token_len}, &parts))
        return parts.number + hands_pick(run, 3) - 1;
    if (call->kind == CALL_REPEAT)
        return INT64_C(1700000000000000) + hands_pick(run, 5);
    int64_t seen =
        simnode_seen(&run->memory, call->slots, names_count(call->resource)) -
        (hands_pick(run, 4) == 0);
    return seen > 0 ? seen : 0;
}

/* Acquires and releases of one lock are most of what a node gets. */
static enum call_kind any_kind_of_locks(struct run *run)
{
    if (hands_pick(run, 2) == 0)
        return hands_pick(run, 2) == 0 ? CALL_ACQUIRE : CALL_RELEASE;
    return (enum call_kind)(CALL_ACQUIRE +
                            hands_pick(run, CALL_SCAN - CALL_ACQUIRE));
}

/* A token that begins with the number, as those do that calls set. */
static struct span token_of_number(struct run *run, int64_t number,
                                   char text[SIM_TOKEN_MAX])
{
    const char *token = hands_token(run);
    const char *rest =
        strlen(token) > SIM_NUMBER_LEN ? token + SIM_NUMBER_LEN : ".b";
    int len = snprintf(text, SIM_TOKEN_MAX, "%0*lld%s", SIM_NUMBER_LEN,
                       (long long)number, rest);
    return (struct span){text, (size_t)len};
}

/* The number is the token's; a repair mostly has the token that is there. */
static void choose_number(struct run *run, struct call *call, int resource,
                          char text[SIM_TOKEN_MAX])
{
    struct token_parts parts;
    call->number = any_number(run, resource);
    if (call->kind == CALL_REPAIR && hands_pick(run, 3) != 0 &&
        token_parse(call->token, &parts))
        call->number = parts.number;
    else
        call->token = token_of_number(run, call->number, text);
}

static void make_call(struct run *run, const struct shared *shared,
                      struct call *call, struct texts *texts)
{
    bool has_lock = shared->is_of_locks || hands_pick(run, 9) == 0;
    enum call_kind kind = has_lock
                              ? any_kind_of_locks(run)
                              : (enum call_kind)hands_pick(run, CALL_ACQUIRE);
    /* mostly the first ones, so that calls meet */
    int resource = (int)hands_pick(run, 1 + hands_pick(run, SIM_RESOURCES));
    bool has_names = has_lock && kind != CALL_LISTEN;
    static const int64_t ttls_ms[] = {1, 10, 30, 500, 60000, 90000};
    *call = (struct call){
        .kind = kind,
        .resource = has_names ? any_names(run, kind, resource, texts->names)
                              : (struct span){0},
        .token = has_lock ? any_token(run, resource) : (struct span){0},
        .admit = shared->admit,
        .nonce = any_text(run, nonces, NONCES),
        .found = any_found(run, texts->found),
        .mark = any_mark(run, texts->mark),
        .witnesses = any_witnesses(run, texts->witnesses),
        .max_ttl_ms = 1000 + 1000 * hands_pick(run, 3),
        .floor = any_floor(run),
        .latest = any_latest(run, texts->latest),
        .median_us = shared->median_us,
        .is_durable = hands_pick(run, 3) != 0,
        .is_objecting = hands_pick(run, 2) != 0,
        .is_renewing = hands_pick(run, 3) == 0,
        .ttl_ms = ttls_ms[hands_pick(run, 6)],
        .node_deadline_us = shared->deadline_us,
        .window_us = CALLS_WINDOW_US,
    };
    if (has_names) {
        fence_slots(call->resource, call->slots);
        call->seen = any_seen(run, call, resource);
    }
    if (kind == CALL_ACQUIRE || kind == CALL_REPEAT || kind == CALL_REPAIR)
        choose_number(run, call, resource, texts->token);
    if (kind == CALL_ADMIT)
        call->number = hands_pick(run, 3) == 0
                           ? 0
                           : run->clock_us + (hands_pick(run, 3) - 1) * 500000;
    if (kind == CALL_LISTEN)
        call->listen_us = hands_pick(run, 3) * (CALL_LISTEN_US / 2);
    if (kind == CALL_LOOK && hands_pick(run, 3) == 0)
        call->nonce = (struct span){0};
    if (kind == CALL_LOOK && call->nonce.len == 0)
        call->is_watching = hands_pick(run, 2) != 0;
}

void calls_make(struct run *run, int count, struct call calls[CALLS_MAX],
                struct simcall copies[CALLS_MAX])
{
    bool is_of_locks = hands_pick(run, 4) != 0;
    struct shared shared = {
        .is_of_locks = is_of_locks,
        .median_us = any_median(run),
        .deadline_us = run->clock_us + (hands_pick(run, 12) - 1) * 1000000,
    };
    shared.admit = any_admit(run, is_of_locks, shared.admit_text);
    for (int i = 0; i < count; i++) {
        struct texts texts;
        make_call(run, &shared, &calls[i], &texts);
        simcall_copy(&copies[i], &calls[i]);
        calls[i] = copies[i].call;
    }
}
