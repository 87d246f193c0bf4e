#include "nodestate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

int nodestate_epoch(const char *text)
{
    return atoi(text); /* of what servers write, and nobody else */
}

static bool begins_with(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* What its admission must be, as the caller knows it: with the memory. */
static void expect_admission(const struct nodestate_call *call,
                             const char *memory, nodestate_text admission)
{
    int len = snprintf(admission, sizeof(nodestate_text), "%s:%s", call->admit,
                       memory);
    assert(len < (int)sizeof(nodestate_text));
}

/* "<epoch>:<run_id>:<memory>:", as a mark begins. */
static void expect_life(const struct nodestate_call *call, const char *memory,
                        nodestate_text life)
{
    snprintf(life, sizeof(nodestate_text),
             "%d:%s:%s:", nodestate_epoch(call->admit),
             strrchr(call->admit, ':') + 1, memory);
}

/* ---- witnesses ----------------------------------------------------------- */

static int64_t hear_one(struct nodestate *state, const char *name, int64_t beat,
                        bool is_raised)
{
    int i = 0;
    while (i < state->heard_count && strcmp(state->heard[i].name, name) != 0)
        i++;
    int64_t kept = i < state->heard_count ? state->heard[i].beat : 0;
    if (!is_raised || beat <= kept)
        return kept;
    assert(i < NODES_MAX);
    if (i == state->heard_count)
        state->heard_count++;
    snprintf(state->heard[i].name, sizeof state->heard[i].name, "%s", name);
    state->heard[i].beat = beat;
    return beat;
}

static void hear(struct nodestate *state, const char *told, bool is_raised,
                 nodestate_words heard)
{
    char name[FINGERPRINT_LEN + 1];
    long long beat;
    size_t len = 0;
    int used;
    heard[0] = '\0';
    while (sscanf(told, " %16[0-9a-f]=%lld%n", name, &beat, &used) == 2) {
        told += used;
        len +=
            (size_t)snprintf(heard + len, sizeof(nodestate_words) - len,
                             "%s%s=%lld", len > 0 ? " " : "", name,
                             (long long)hear_one(state, name, beat, is_raised));
    }
}

/* What is told of others is kept where the memory counts. */
static bool counts(const struct nodestate *state,
                   const struct nodestate_call *call, enum call_look_word word)
{
    size_t len = (size_t)(strrchr(call->admit, ':') - call->admit) + 1;
    return word == LOOK_ADMITTED ||
           (state->is_durable && strncmp(state->admit, call->admit, len) == 0);
}

/* ---- looks --------------------------------------------------------------- */

static void write_mark(struct nodestate *state, const char *life,
                       const struct nodestate_call *call, int64_t now_us)
{
    int64_t born_us = now_us <= call->deadline_us ? call->median_us : 0;
    int len = snprintf(state->mark, sizeof state->mark, "%s%lld:%s", life,
                       (long long)born_us, call->nonce);
    assert(len < (int)sizeof state->mark);
    state->exists = true;
}

/* "<epoch>:<fingerprint>:" */
static bool is_foreign(const char *admit, const char *expected)
{
    size_t epoch = (size_t)(strchr(expected, ':') - expected) + 1;
    size_t len = (size_t)(strchr(expected + epoch, ':') - expected) + 1;
    return strncmp(admit, expected, len) != 0;
}

static enum call_look_word mark_it(struct nodestate *state, const char *life,
                                   const struct nodestate_call *call,
                                   int64_t now_us)
{
    bool is_first = strstr(state->mark, ":first-") != NULL;
    bool is_fresh = !state->exists;
    bool is_marking = call->nonce[0] != '\0';
    if (begins_with(state->mark, life) &&
        !(is_first && call->is_objecting && is_marking))
        return LOOK_MARKED;
    if (!is_marking)
        return is_fresh ? LOOK_EMPTY : LOOK_BARE;
    write_mark(state, life, call, now_us);
    if (nodestate_epoch(state->admit) < nodestate_epoch(call->admit))
        state->admit[0] = '\0';
    return is_fresh ? LOOK_FRESH : LOOK_CREATED;
}

static enum call_look_word look(struct nodestate *state, const char *memory,
                                const struct nodestate_call *call,
                                int64_t now_us, int64_t *beat)
{
    int epoch = nodestate_epoch(call->admit);
    nodestate_text current, life;
    expect_admission(call, memory, current);
    expect_life(call, memory, life);
    if (nodestate_epoch(state->admit) > epoch ||
        nodestate_epoch(state->mark) > epoch)
        return LOOK_SUPERSEDED;
    if (nodestate_epoch(state->admit) == epoch &&
        is_foreign(state->admit, current))
        return LOOK_FOREIGN;
    if (!call->is_durable)
        state->is_durable = false;
    if (state->beat < call->floor && call->nonce[0] != '\0') {
        state->admit[0] = '\0';
        state->beat = call->floor;
        write_mark(state, life, call, now_us);
        return LOOK_CREATED;
    }
    if (strcmp(state->admit, current) != 0)
        return mark_it(state, life, call, now_us);
    *beat = ++state->beat;
    if (call->median_us != 0)
        state->seen_us = call->median_us;
    return LOOK_ADMITTED;
}

/* What is behind the word is as it is then. */
static void run_look(struct nodestate *state, const char *memory,
                     const struct nodestate_call *call, int64_t now_us,
                     struct nodestate_reply *reply)
{
    reply->look.word = look(state, memory, call, now_us, &reply->beat);
    hear(state, call->told, counts(state, call, reply->look.word),
         reply->witnesses);
    memcpy(reply->admit, state->admit, sizeof reply->admit);
    memcpy(reply->mark, state->mark, sizeof reply->mark);
    reply->look.max_ttl_ms = state->max_ttl_ms;
    reply->look.is_durable = state->is_durable;
    reply->look.beat = state->beat;
    reply->look.seen_us = state->seen_us;
    reply->look.voted_us = state->voted_us;
}

/* ---- changes ------------------------------------------------------------- */

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void write_admission(struct nodestate *state, const char *current,
                            const struct nodestate_call *call)
{
    snprintf(state->admit, sizeof state->admit, "%s", current);
    state->mark[0] = '\0';
    state->is_durable = call->is_durable;
    state->beat =
        greater(state->beat, greater(call->floor, call->median_us)) + 1;
    state->seen_us = call->median_us;
}

/* A field that is not there equals nothing. */
static bool has(const char *field, const char *text)
{
    return field[0] != '\0' && strcmp(field, text) == 0;
}

/* For admit and readmit alike. */
static bool is_marked(const struct nodestate *state, const char *memory,
                      const struct nodestate_call *call)
{
    nodestate_text life;
    expect_life(call, memory, life);
    return has(state->mark, call->mark) && begins_with(call->mark, life);
}

static bool admit(struct nodestate *state, const char *memory,
                  const struct nodestate_call *call)
{
    nodestate_text current;
    expect_admission(call, memory, current);
    if (!is_marked(state, memory, call))
        return false;
    state->max_ttl_ms = call->max_ttl_ms;
    write_admission(state, current, call);
    return true;
}

static bool readmit(struct nodestate *state, const char *memory,
                    const struct nodestate_call *call)
{
    nodestate_text current;
    expect_admission(call, memory, current);
    if (!is_marked(state, memory, call) || !has(state->admit, call->found))
        return false;
    bool was_durable = state->is_durable;
    write_admission(state, current, call);
    state->is_durable = was_durable && call->is_durable;
    return true;
}

static bool revoke(struct nodestate *state, const char *memory,
                   const struct nodestate_call *call, int64_t now_us)
{
    nodestate_text current, life;
    expect_admission(call, memory, current);
    expect_life(call, memory, life);
    if (!has(state->admit, current) && !has(state->admit, call->found))
        return false;
    state->admit[0] = '\0';
    write_mark(state, life, call, now_us);
    return true;
}

void nodestate_run(struct nodestate *state, const char *memory,
                   const struct nodestate_call *call, int64_t now_us,
                   struct nodestate_reply *reply)
{
    memset(reply, 0, sizeof *reply);
    switch (call->kind) {
    case ADMISSION_PROBE:
    case ADMISSION_LOOK:
        run_look(state, memory, call, now_us, reply);
        return;
    case ADMISSION_ADMIT:
        reply->is_done = admit(state, memory, call);
        break;
    case ADMISSION_READMIT:
        reply->is_done = readmit(state, memory, call);
        break;
    case ADMISSION_REVOKE:
        reply->is_done = revoke(state, memory, call, now_us);
        return;
    }
    reply->beat = reply->is_done ? state->beat : 0;
}

int64_t nodestate_promise(struct nodestate *state, const char *memory,
                          const char *admission, int64_t median_us)
{
    const char *end = strrchr(admission, ':');
    if (!has(state->admit, admission) || end == NULL ||
        strcmp(end + 1, memory) != 0)
        return 0;
    if (median_us != 0)
        state->voted_us = median_us;
    return ++state->beat;
}
