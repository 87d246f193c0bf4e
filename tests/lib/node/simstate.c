#include "simstate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

bool simstate_is_there(const struct simmemory *memory)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (memory->highest[i] != 0)
            return true;
    return memory->admit[0] != '\0' || memory->mark[0] != '\0' ||
           memory->durable != 0 || memory->max_ttl_ms.is_there ||
           memory->beat.is_there || memory->seen_us.is_there ||
           memory->voted_us.is_there || memory->evicted.is_there ||
           memory->listened_until_us.is_there || memory->top.is_there ||
           memory->witnesses[0].name[0] != '\0';
}

/* ---- admissions and marks ----------------------------------------------- */

static bool is_text(struct span span, const char *text)
{
    return span.len == strlen(text) && memcmp(span.ptr, text, span.len) == 0;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static int epoch_of(const char *text)
{
    return atoi(text);
}

/* A part of an admission or a mark, by number, from 0 on. */
static struct span part_of(struct span text, int number)
{
    const char *end = text.ptr + text.len;
    for (; number > 0; number--) {
        const char *colon = memchr(text.ptr, ':', (size_t)(end - text.ptr));
        assert(colon != NULL);
        text.ptr = colon + 1;
    }
    const char *colon = memchr(text.ptr, ':', (size_t)(end - text.ptr));
    text.len = (size_t)((colon != NULL ? colon : end) - text.ptr);
    return text;
}

/* When the mark was made; 0: unknown. */
static int64_t born_us(const char *mark)
{
    if (mark[0] == '\0')
        return 0;
    return atoll(part_of(span_of(mark), 3).ptr);
}

/* "<epoch>:<fingerprint>:" of the caller. */
static void print_configuration(const struct simcall *call,
                                char text[CALL_STATE_MAX + 1])
{
    struct span epoch = part_of(call->call.admit, 0);
    struct span fingerprint = part_of(call->call.admit, 1);
    snprintf(text, CALL_STATE_MAX + 1, "%.*s:%.*s:", (int)epoch.len, epoch.ptr,
             (int)fingerprint.len, fingerprint.ptr);
}

/* "<epoch>:<run_id>:<replication ID>:" of the caller and of this memory. */
static int print_memory(const struct simbatch *batch,
                        const struct simcall *call,
                        char text[CALL_STATE_MAX + 1])
{
    struct span epoch = part_of(call->call.admit, 0);
    struct span run_id = part_of(call->call.admit, 3);
    return snprintf(text, CALL_STATE_MAX + 1, "%.*s:%.*s:%s:", (int)epoch.len,
                    epoch.ptr, (int)run_id.len, run_id.ptr,
                    batch->process->replid);
}

/* Whether it has the admission that this caller gives to this memory. */
static bool is_admitted(const struct simbatch *batch,
                        const struct simcall *call)
{
    const char *admit = batch->memory->admit;
    size_t len = call->call.admit.len;
    return strncmp(admit, call->admit, len) == 0 && admit[len] == ':' &&
           strcmp(admit + len + 1, batch->process->replid) == 0;
}

static void write_mark(struct simbatch *batch, const struct simcall *call)
{
    char memory[CALL_STATE_MAX + 1];
    const struct call *ask = &call->call;
    bool is_in_time = batch->clock_us <= ask->node_deadline_us;
    if (!simstate_is_there(batch->memory))
        batch->memory->top = simnumber(0);
    (void)print_memory(batch, call, memory);
    int len =
        snprintf(batch->memory->mark, sizeof batch->memory->mark, "%s%lld:%.*s",
                 memory, is_in_time ? (long long)ask->median_us : 0LL,
                 (int)ask->nonce.len, ask->nonce.ptr);
    assert(len < (int)sizeof batch->memory->mark);
}

static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void write_admission(struct simbatch *batch, const struct simcall *call,
                            bool is_durable)
{
    struct simmemory *memory = batch->memory;
    int64_t above = greater(memory->beat.it, call->call.floor);
    int len = snprintf(memory->admit, sizeof memory->admit, "%.*s:%s",
                       (int)call->call.admit.len, call->admit,
                       batch->process->replid);
    assert(len < (int)sizeof memory->admit);
    batch->beat = greater(above, call->call.median_us) + 1;
    memory->durable = is_durable ? '1' : '0';
    memory->beat = simnumber(batch->beat);
    memory->seen_us = simnumber(call->call.median_us);
    memory->evicted = simnumber(batch->process->evicted);
    memory->mark[0] = '\0';
    batch->is_known = false;
}

/* ---- witnesses ---------------------------------------------------------- */

static struct simwitness *find(struct simmemory *memory, const char *name)
{
    for (int i = 0; i < SIM_WITNESSES; i++) {
        struct simwitness *it = &memory->witnesses[i];
        if (it->name[0] == '\0' || strcmp(it->name, name) == 0)
            return it;
    }
    abort();
}

int64_t simstate_witness(const struct simmemory *memory, const char *name)
{
    for (int i = 0; i < SIM_WITNESSES; i++)
        if (strcmp(memory->witnesses[i].name, name) == 0)
            return memory->witnesses[i].beat;
    return 0;
}

static size_t print_number(char *text, int64_t number)
{
    char digits[24];
    size_t at = sizeof digits;
    for (; at == sizeof digits || number > 0; number /= 10)
        digits[--at] = (char)('0' + number % 10);
    memcpy(text, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

/*
 * "name=number name=number…": stores it, and replies with what is stored. Each
 * heartbeat of each server brings one: too often for snprintf.
 */
static void hear(struct simmemory *memory, struct span told, bool is_raised,
                 struct simreply *answer)
{
    enum { NUMBER_MOST = 20, AROUND = 2 /* the space, the sign */ };
    const char *at = told.ptr;
    const char *end = at + told.len;
    size_t len = 0;
    while (at < end) {
        const char *equals = memchr(at, '=', (size_t)(end - at));
        char name[sizeof memory->witnesses[0].name];
        assert(equals != NULL && equals - at < (int)sizeof name);
        size_t name_len =
            span_copy(name, (struct span){at, (size_t)(equals - at)});
        name[name_len] = '\0';
        int64_t beat = 0;
        for (at = equals + 1; at < end && *at != ' '; at++)
            beat = beat * 10 + (*at - '0');
        struct simwitness *it = find(memory, name);
        if (is_raised && beat > it->beat) {
            memcpy(it->name, name, name_len + 1);
            it->beat = beat;
        }
        assert(len + name_len + NUMBER_MOST + AROUND <
               sizeof answer->witnesses);
        if (len > 0)
            answer->witnesses[len++] = ' ';
        len +=
            span_copy(answer->witnesses + len, (struct span){name, name_len});
        answer->witnesses[len++] = '=';
        len += print_number(answer->witnesses + len, it->beat);
        at++;
    }
    answer->reply.look.witnesses = (struct span){answer->witnesses, len};
}

/* ---- the calls ---------------------------------------------------------- */

static void forget(struct simbatch *batch)
{
    batch->memory->admit[0] = '\0';
    batch->is_known = false;
}

/* Whether it has lost keys in this life; if admitted, since its admission. */
static bool has_evicted(const struct simbatch *batch,
                        const struct simcall *call)
{
    int64_t known = is_admitted(batch, call) ? batch->memory->evicted.it : 0;
    return batch->process->evicted != known;
}

static enum call_look_word mark_if_bare(struct simbatch *batch,
                                        const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    char of_this[CALL_STATE_MAX + 1];
    bool may_mark = call->call.nonce.len > 0;
    (void)print_memory(batch, call, of_this);
    bool is_old = born_us(memory->mark) < call->call.latest_us;
    bool is_disputed = is_old || (strstr(memory->mark, ":first-") != NULL &&
                                  call->call.is_objecting);
    if (begins(memory->mark, of_this) && !(is_disputed && may_mark))
        return LOOK_MARKED;
    bool is_fresh = !simstate_is_there(memory);
    if (!may_mark)
        return is_fresh ? LOOK_EMPTY : LOOK_BARE;
    write_mark(batch, call);
    if (epoch_of(memory->admit) < epoch_of(call->admit))
        forget(batch);
    return is_fresh ? LOOK_FRESH : LOOK_CREATED;
}

/* The word of a look; writes what a look writes. */
static enum call_look_word look_at_state(struct simbatch *batch,
                                         const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    char configuration[CALL_STATE_MAX + 1];
    int epoch = epoch_of(call->admit);
    if (epoch_of(memory->admit) > epoch || epoch_of(memory->mark) > epoch)
        return LOOK_SUPERSEDED;
    print_configuration(call, configuration);
    if (epoch_of(memory->admit) == epoch &&
        !begins(memory->admit, configuration))
        return LOOK_FOREIGN;
    if (memory->durable == '1' && !call->call.is_durable)
        memory->durable = '0';
    if (memory->admit[0] != '\0' && has_evicted(batch, call))
        forget(batch);
    if (memory->beat.it < call->call.floor && call->call.nonce.len > 0) {
        forget(batch);
        write_mark(batch, call);
        memory->beat = simnumber(call->call.floor);
        return LOOK_CREATED;
    }
    if (!is_admitted(batch, call))
        return mark_if_bare(batch, call);
    batch->beat = memory->beat.it + 1;
    memory->beat = simnumber(batch->beat);
    if (call->call.median_us != 0)
        memory->seen_us = simnumber(call->call.median_us);
    return LOOK_ADMITTED;
}

/* Whether servers trust what it has heard of others. */
static bool counts(const struct simbatch *batch, const struct simcall *call)
{
    const struct simmemory *memory = batch->memory;
    const struct span admit = call->call.admit;
    struct span run_id = part_of(admit, 3);
    return memory->durable == '1' &&
           strncmp(memory->admit, admit.ptr,
                   (size_t)(run_id.ptr - admit.ptr)) == 0;
}

static enum vote look(struct simbatch *batch, const struct simcall *call,
                      struct simreply *answer)
{
    struct simmemory *memory = batch->memory;
    struct call_look *seen = &answer->reply.look;
    seen->word = look_at_state(batch, call);
    seen->seen_us = memory->seen_us.it;
    seen->voted_us = memory->voted_us.it;
    seen->admit = span_of(memory->admit);
    seen->mark = span_of(memory->mark);
    seen->max_ttl_ms = memory->max_ttl_ms.it;
    seen->is_durable = memory->durable == '1';
    seen->beat = memory->beat.it;
    hear(memory, call->call.witnesses,
         seen->word == LOOK_ADMITTED || counts(batch, call), answer);
    return VOTE_DONE;
}

/* Whether its mark is still the one that the caller has seen. */
static bool is_marked(const struct simbatch *batch, const struct simcall *call)
{
    const char *mark = batch->memory->mark;
    char of_this[CALL_STATE_MAX + 1];
    (void)print_memory(batch, call, of_this);
    return mark[0] != '\0' && is_text(call->call.mark, mark) &&
           begins(mark, of_this);
}

static enum vote give(struct simbatch *batch, const struct simcall *call)
{
    if (!is_marked(batch, call))
        return VOTE_CHANGED;
    batch->memory->max_ttl_ms = simnumber(call->call.max_ttl_ms);
    write_admission(batch, call, call->call.is_durable);
    return VOTE_DONE;
}

static enum vote readmit(struct simbatch *batch, const struct simcall *call)
{
    const struct simmemory *memory = batch->memory;
    if (!is_marked(batch, call) || memory->admit[0] == '\0' ||
        !is_text(call->call.found, memory->admit) ||
        batch->process->evicted != 0)
        return VOTE_CHANGED;
    write_admission(batch, call,
                    call->call.is_durable && memory->durable == '1');
    return VOTE_DONE;
}

static enum vote revoke(struct simbatch *batch, const struct simcall *call)
{
    const struct simmemory *memory = batch->memory;
    if (memory->admit[0] == '\0' || (!is_admitted(batch, call) &&
                                     !is_text(call->call.found, memory->admit)))
        return VOTE_CHANGED;
    forget(batch);
    write_mark(batch, call);
    return VOTE_DONE;
}

enum vote simstate_execute(struct simbatch *batch, const struct simcall *call,
                           struct simreply *answer)
{
    switch (call->call.kind) {
    case CALL_LOOK:
        return look(batch, call, answer);
    case CALL_ADMIT:
        return give(batch, call);
    case CALL_READMIT:
        return readmit(batch, call);
    case CALL_REVOKE:
        return revoke(batch, call);
    default:
        abort();
    }
}
