#include "nodestate.h"

#include <stdio.h>
#include <stdlib.h>

int nodestate_epoch(const char *text)
{
    return atoi(text); /* of what guards write, and nobody else */
}

/* "<epoch>:<run_id>:" of "<epoch>:<fingerprint>:<run_id>". */
static void life_of(const char *admit, nodestate_text life)
{
    snprintf(life, sizeof(nodestate_text), "%d:%s:", nodestate_epoch(admit),
             strrchr(admit, ':') + 1);
}

static bool begins_with(const char *text, const char *begin, size_t len)
{
    return strncmp(text, begin, len) == 0;
}

static enum script_look_word make_mark(struct nodestate *state,
                                       const struct nodestate_call *call,
                                       struct nodestate_reply *reply)
{
    bool is_fresh = !state->exists;
    if (call->nonce[0] == '\0')
        return is_fresh ? LOOK_EMPTY : LOOK_BARE;
    life_of(call->admit, state->mark);
    strcat(state->mark, call->nonce);
    memcpy(reply->mark, state->mark, sizeof reply->mark);
    state->exists = true;
    if (nodestate_epoch(state->admit) < nodestate_epoch(call->admit))
        state->admit[0] = '\0';
    return is_fresh ? LOOK_FRESH : LOOK_CREATED;
}

static enum script_look_word look(struct nodestate *state,
                                  const struct nodestate_call *call,
                                  int64_t now_us, struct nodestate_reply *reply)
{
    int epoch = nodestate_epoch(call->admit);
    size_t configuration = (size_t)(strrchr(call->admit, ':') - call->admit);
    nodestate_text life;
    if (nodestate_epoch(state->admit) > epoch ||
        nodestate_epoch(state->mark) > epoch)
        return LOOK_SUPERSEDED;
    if (!call->is_durable)
        state->is_durable = reply->look.is_durable = false;
    if (strcmp(state->admit, call->admit) == 0) {
        if (now_us > state->beat_us)
            state->beat_us = now_us;
        return LOOK_ADMITTED;
    }
    if (nodestate_epoch(state->admit) == epoch &&
        !begins_with(state->admit, call->admit, configuration + 1))
        return LOOK_FOREIGN;
    life_of(call->admit, life);
    if (begins_with(state->mark, life, strlen(life)))
        return LOOK_MARKED;
    return make_mark(state, call, reply);
}

static void write_admission(struct nodestate *state,
                            const struct nodestate_call *call, int64_t now_us)
{
    memcpy(state->admit, call->admit, sizeof state->admit);
    state->mark[0] = '\0';
    state->beat_us = now_us;
    if (call->max_ttl_ms > state->max_ttl_ms)
        state->max_ttl_ms = call->max_ttl_ms;
}

/* A field that is not there equals nothing. */
static bool has(const char *field, const char *text)
{
    return field[0] != '\0' && strcmp(field, text) == 0;
}

static bool admit(struct nodestate *state, const struct nodestate_call *call,
                  int64_t now_us)
{
    if (!has(state->mark, call->found))
        return false;
    state->is_durable = call->is_durable;
    write_admission(state, call, now_us);
    return true;
}

static bool readmit(struct nodestate *state, const struct nodestate_call *call,
                    int64_t now_us)
{
    if (!has(state->admit, call->found) || !state->is_durable ||
        state->beat_us < call->beat_us || state->beat_us > now_us ||
        now_us - state->beat_us >= call->max_ttl_ms * 1000)
        return false;
    write_admission(state, call, now_us);
    return true;
}

static bool revoke(struct nodestate *state, const struct nodestate_call *call)
{
    if (!has(state->admit, call->admit) && !has(state->mark, call->found))
        return false;
    state->admit[0] = '\0';
    life_of(call->admit, state->mark);
    strcat(state->mark, call->nonce);
    return true;
}

void nodestate_run(struct nodestate *state, const struct nodestate_call *call,
                   int64_t now_us, struct nodestate_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    reply->now_us = now_us;
    memcpy(reply->admit, state->admit, sizeof reply->admit);
    memcpy(reply->mark, state->mark, sizeof reply->mark);
    reply->look.max_ttl_ms = state->max_ttl_ms;
    reply->look.is_durable = state->is_durable;
    reply->look.beat_us = state->beat_us;
    switch (call->kind) {
    case GUARD_PEEK:
    case GUARD_LOOK:
        reply->look.word = look(state, call, now_us, reply);
        return;
    case GUARD_ADMIT:
        reply->is_done = admit(state, call, now_us);
        return;
    case GUARD_READMIT:
        reply->is_done = readmit(state, call, now_us);
        return;
    case GUARD_REVOKE:
        reply->is_done = revoke(state, call);
        return;
    }
}
