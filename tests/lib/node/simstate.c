/* SPDX-License-Identifier: MIT */
#include "simstate.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

bool simstate_is_there(const struct simmemory *memory)
{
    for (int i = 0; i < SIM_RESOURCES; i++)
        if (memory->highest[i] != 0)
            return true;
    return memory->admit[0] != '\0' || memory->quarantine[0] != '\0' ||
           memory->durable != 0 || memory->max_ttl_ms.is_there ||
           memory->generation.is_there || memory->until_us.is_there ||
           memory->min_token.is_there || memory->evicted.is_there ||
           memory->listened_until_us.is_there || memory->max_token.is_there ||
           memory->taken[0] != '\0' || memory->passed[0] != '\0' ||
           memory->dead[0] != '\0' || memory->witnesses[0].name[0] != '\0';
}

/* ---- admissions and quarantine records ----------------------------------- */

static bool begins(const char *text, struct span with)
{
    return strncmp(text, with.ptr, with.len) == 0;
}

static int epoch_of(const char *text)
{
    return atoi(text);
}

/* The incarnation in an admission or a quarantine record, "" if there is none.
 */
static void read_incarnation(const char *state,
                             char incarnation[INCARNATION_LEN + 1])
{
    struct span part = {"", 0};
    if (state[0] != '\0')
        part = call_state_part(span_of(state), CALL_STATE_INCARNATION);
    assert(part.len <= INCARNATION_LEN);
    incarnation[span_copy(incarnation, part)] = '\0';
}

static bool is_before(const char *state, struct span latest)
{
    char incarnation[INCARNATION_LEN + 1], other[INCARNATION_LEN + 1];
    read_incarnation(state, incarnation);
    other[span_copy(other, latest)] = '\0';
    return strcmp(incarnation, other) < 0;
}

/* What the caller's admission has in front of a part. */
static struct span before(const struct simcall *call, enum call_state_part part)
{
    struct span admit = call->call.admit;
    return (struct span){
        admit.ptr, (size_t)(call_state_part(admit, part).ptr - admit.ptr)};
}

/* "<epoch>:<fingerprint>:" of the caller. */
static struct span configuration_of(const struct simcall *call)
{
    return before(call, CALL_STATE_NAME);
}

/* That of the quarantine record; empty: it has none. */
static struct span quarantined_by(const struct simmemory *memory)
{
    const char *quarantine = memory->quarantine,
               *colon = strchr(quarantine, ':');
    colon = colon != NULL ? strchr(colon + 1, ':') : NULL;
    return (struct span){quarantine,
                         colon != NULL ? (size_t)(colon + 1 - quarantine) : 0};
}

/* "<epoch>:<fingerprint>:<name>:" of the caller. */
static struct span name_of(const struct simcall *call)
{
    return before(call, CALL_STATE_INCARNATION);
}

static bool is_named(const char *text, const struct simcall *call)
{
    return begins(text, name_of(call));
}

/* ":<run_id>:<replication ID>" of the caller and of this data. */
static void print_life(const struct simbatch *batch, const struct simcall *call,
                       char text[CALL_STATE_MAX + 1])
{
    struct span run_id =
        call_state_part(call->call.admit, CALL_STATE_INCARNATION);
    snprintf(text, CALL_STATE_MAX + 1, ":%.*s:%s", (int)run_id.len, run_id.ptr,
             batch->process->replid);
}

static bool is_of_life(const struct simbatch *batch, const struct simcall *call,
                       const char *text)
{
    char life[CALL_STATE_MAX + 1];
    print_life(batch, call, life);
    size_t len = strlen(text), tail = strlen(life);
    return len >= tail && strcmp(text + len - tail, life) == 0;
}

/* Whether it is the admission or the quarantine record of this node, in this
 * data. */
static bool is_current(const struct simbatch *batch, const struct simcall *call,
                       const char *text)
{
    return is_named(text, call) && is_of_life(batch, call, text) &&
           call_state_part(span_of(text), CALL_STATE_INCARNATION).len ==
               INCARNATION_LEN;
}

static bool has_name(const struct simcall *call, const char *text)
{
    struct span name = call_state_part(span_of(text), CALL_STATE_NAME),
                own = call_state_part(call->call.admit, CALL_STATE_NAME);
    return span_is_same(name, own) &&
           call_state_part(span_of(text), CALL_STATE_INCARNATION).len ==
               INCARNATION_LEN;
}

/* Whether a quarantine record takes the node from the configuration that
 * admitted it. */
static bool is_to_be_taken(const struct simbatch *batch,
                           const struct simcall *call)
{
    const char *admit = batch->memory->admit;
    return admit[0] != '\0' && epoch_of(admit) < atoi(call->call.admit.ptr) &&
           has_name(call, admit) && is_of_life(batch, call, admit);
}

/* What is taken and passed counts in this life only. */
static bool is_taken(const struct simbatch *batch, const struct simcall *call)
{
    return is_of_life(batch, call, batch->memory->taken);
}

static bool is_admitted(const struct simbatch *batch,
                        const struct simcall *call)
{
    return is_current(batch, call, batch->memory->admit);
}

static void write_admit(struct simbatch *batch, const struct simcall *call,
                        const char *incarnation, int64_t news)
{
    char text[CALL_STATE_MAX + 1], life[CALL_STATE_MAX + 1];
    struct span name = name_of(call);
    print_life(batch, call, life);
    int len = snprintf(text, sizeof text, "%.*s%s:%lld%s", (int)name.len,
                       name.ptr, incarnation, (long long)news, life);
    assert(len < (int)sizeof text);
    memcpy(batch->memory->admit, text, sizeof text);
    batch->is_known = false;
}

static void write_quarantine(struct simbatch *batch, const struct simcall *call)
{
    char life[CALL_STATE_MAX + 1];
    enum { TIME_DIGITS = 16 };
    struct span name = name_of(call), nonce = call->call.nonce,
                latest = call->call.latest;
    int64_t time_us = batch->clock_us;
    if (latest.len > 0) {
        char digits[TIME_DIGITS + 1];
        digits[span_copy(digits, (struct span){latest.ptr, TIME_DIGITS})] =
            '\0';
        if (atoll(digits) >= time_us)
            time_us = atoll(digits) + 1;
    }
    print_life(batch, call, life);
    int len =
        snprintf(batch->memory->quarantine, sizeof batch->memory->quarantine,
                 "%.*s%016lld%.*s%s", (int)name.len, name.ptr,
                 (long long)time_us, (int)nonce.len, nonce.ptr, life);
    assert(len < (int)sizeof batch->memory->quarantine);
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
            return atoll(memory->witnesses[i].digits);
    return 0;
}

/*
 * "name=digits name=digits …", all equally long: stores it, and replies with
 * the digits that are stored. Each heartbeat of each server brings one: too
 * often for snprintf. True if an incarnation was stored.
 */
static bool hear(struct simmemory *memory, struct span told, bool is_stored,
                 struct simreply *answer)
{
    const char *at = told.ptr;
    const char *end = at + told.len;
    size_t len = 0;
    bool is_news = false;
    assert(told.len <= sizeof answer->witnesses);
    while (at < end) {
        struct simwitness known;
        const char *equals = memchr(at, '=', (size_t)(end - at));
        assert(equals != NULL && equals - at < (int)sizeof known.name);
        known.name[span_copy(known.name,
                             (struct span){at, (size_t)(equals - at)})] = '\0';
        known.digits[span_copy(
            known.digits, (struct span){equals + 1, INCARNATION_LEN})] = '\0';
        struct simwitness *it = find(memory, known.name);
        bool has_any = it->digits[0] != '\0';
        if (is_stored &&
            (has_any ? strcmp(known.digits, it->digits) > 0
                     : strspn(known.digits, "0") < INCARNATION_LEN)) {
            *it = known;
            has_any = true;
            is_news |= *at == 'm';
        }
        if (has_any)
            memcpy(answer->witnesses + len, it->digits, INCARNATION_LEN);
        else
            memset(answer->witnesses + len, '0', INCARNATION_LEN);
        len += INCARNATION_LEN;
        at = equals + 1 + INCARNATION_LEN + 1;
    }
    answer->reply.probe.witnesses = (struct span){answer->witnesses, len};
    return is_news;
}

static void clear_taken(struct simmemory *memory)
{
    memory->taken[0] = memory->passed[0] = '\0';
}

/* Adds those configurations that are missing, and still fit. */
static void join(char list[SIM_PASSED_MAX + 1], const char *others, size_t most)
{
    char all[SIM_PASSED_MAX + 2] = ":";
    size_t len = strlen(list);
    memcpy(all + 1, list, len + 1);
    for (const char *at = others; *at != '\0';) {
        char each[CALL_STATE_MAX + 2] = ":";
        size_t more = (size_t)(strchr(strchr(at, ':') + 1, ':') + 1 - at);
        memcpy(each + 1, at, more);
        each[1 + more] = '\0';
        if (len + more <= most && strstr(all, each) == NULL) {
            memcpy(all + 1 + len, each + 1, more + 1);
            len += more;
        }
        at += more;
    }
    memcpy(list, all + 1, len + 1);
}

/* The newest first; of many the oldest are dropped. */
static void keep_dead(struct simmemory *memory, struct span newest)
{
    char all[SIM_PASSED_MAX + 1];
    all[span_copy(all, newest)] = '\0';
    join(all, memory->dead, CALL_STATE_MAX);
    strcpy(memory->dead, all);
}

static void write_admission(struct simbatch *batch, const struct simcall *call,
                            bool is_durable, struct simreply *answer)
{
    struct simmemory *memory = batch->memory;
    int64_t above = at_least(memory->generation.it, call->call.high_water);
    char incarnation[INCARNATION_LEN + 1];
    read_incarnation(memory->quarantine, incarnation);
    write_admit(batch, call, incarnation, 0);
    batch->generation = at_least(above, call->call.median_us) + 1;
    memory->durable = is_durable ? '1' : '0';
    memory->generation = simnumber(batch->generation);
    memory->evicted = simnumber(batch->process->evicted);
    memory->quarantine[0] = '\0';
    clear_taken(memory);
    keep_dead(memory, call->call.dead);
    (void)hear(memory, call->call.witnesses, true, answer);
    answer->reply.probe.witnesses = (struct span){NULL, 0};
}

/* ---- traces ------------------------------------------------------------- */

static void make_trace(const struct simbatch *batch, struct simreply *answer)
{
    int len = snprintf(answer->trace, sizeof answer->trace, "%s:%lld:%lld",
                       batch->process->replid, (long long)batch->process->read,
                       (long long)batch->clock_us);
    assert(len < (int)sizeof answer->trace);
    answer->reply.probe.trace = (struct span){answer->trace, (size_t)len};
}

/* The replication ID of the trace, if that shows that this data is still the
 * one from then, although its ID is another one; empty: it does not. */
static struct span id_before(const struct simbatch *batch,
                             const struct simcall *call)
{
    enum { DIGITS = 18 };
    struct span rest = call->call.trace, none = {"", 0};
    struct span id = span_take(&rest, ':');
    int64_t read = span_number(span_take(&rest, ':'), DIGITS);
    int64_t at_us = span_number(rest, DIGITS);
    bool is_recent = at_us >= 0 && at_us <= batch->clock_us &&
                     batch->clock_us < at_us + SIM_TRACE_US;
    return is_recent && read == batch->process->read &&
                   !batch->process->was_replica &&
                   !span_is(id, batch->process->replid)
               ? id
               : none;
}

/* Lets it end with the present replication ID, if it ends with that one. */
static void follow(const struct simbatch *batch, const struct simcall *call,
                   struct span id, char text[CALL_STATE_MAX + 1])
{
    char old[CALL_STATE_MAX + 1], life[CALL_STATE_MAX + 1];
    struct span run_id =
        call_state_part(call->call.admit, CALL_STATE_INCARNATION);
    snprintf(old, sizeof old, ":%.*s:%.*s", (int)run_id.len, run_id.ptr,
             (int)id.len, id.ptr);
    print_life(batch, call, life);
    size_t len = strlen(text), tail = strlen(old);
    if (len < tail || strcmp(text + len - tail, old) != 0)
        return;
    assert(len - tail + strlen(life) <= CALL_STATE_MAX);
    strcpy(text + len - tail, life);
}

static void follow_all(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    struct span id = id_before(batch, call);
    if (id.len == 0 || is_current(batch, call, memory->quarantine))
        return;
    follow(batch, call, id, memory->admit);
    follow(batch, call, id, memory->quarantine);
    follow(batch, call, id, memory->taken);
    batch->is_known = false;
}

/* Whether its admission is from before, but of this run_id. */
static bool is_of_run_id(const struct simcall *call, const char *admit)
{
    char text[CALL_STATE_MAX + 3];
    struct span run_id =
        call_state_part(call->call.admit, CALL_STATE_INCARNATION);
    snprintf(text, sizeof text, ":%.*s:", (int)run_id.len, run_id.ptr);
    return is_named(admit, call) && strstr(admit, text) != NULL;
}

/* ---- the calls ---------------------------------------------------------- */

static void forget(struct simbatch *batch)
{
    batch->memory->admit[0] = '\0';
    batch->is_known = false;
}

/* Whether it has lost keys in this life, if admitted in it, since its
 * admission. A count that fell was reset. */
static bool has_lost(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    int64_t evicted = batch->process->evicted;
    int64_t known =
        is_of_life(batch, call, memory->admit) ? memory->evicted.it : 0;
    if (evicted > known)
        return true;
    if (evicted < known)
        memory->evicted = simnumber(evicted);
    return false;
}

/* What is taken is kept through the quarantine records of others, not through a
 * loss. */
static void quarantine_anew(struct simbatch *batch, const struct simcall *call,
                            bool is_lost)
{
    struct simmemory *memory = batch->memory;
    struct span other = quarantined_by(memory);
    size_t len = strlen(memory->passed);
    if (is_lost || !is_taken(batch, call))
        clear_taken(memory);
    if (is_lost) {
        /* nothing to be told */
    } else if (is_to_be_taken(batch, call)) {
        strcpy(memory->taken, memory->admit);
        memory->passed[0] = '\0';
    } else if (memory->taken[0] != '\0' &&
               !span_is_same(other, configuration_of(call))) {
        assert(len + other.len <= SIM_PASSED_MAX);
        len += span_copy(memory->passed + len, other);
        memory->passed[len] = '\0';
    }
    write_quarantine(batch, call);
}

/* Whether it could not tell of one more quarantine record that it passed. */
static bool is_full(const struct simbatch *batch, const struct simcall *call)
{
    const struct simmemory *memory = batch->memory;
    struct span other = quarantined_by(memory);
    return is_taken(batch, call) && !is_to_be_taken(batch, call) &&
           !span_is_same(other, configuration_of(call)) &&
           strlen(memory->passed) + other.len > SIM_PASSED_TOLD;
}

static enum call_probe_word quarantine_if_bare(struct simbatch *batch,
                                               const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    const struct call *ask = &call->call;
    bool may_quarantine = ask->nonce.len > 0;
    bool may_renew = may_quarantine && ask->is_renewing;
    bool is_disputed =
        (ask->is_renewing && is_before(memory->quarantine, ask->latest)) ||
        (ask->is_objecting && memory->quarantine[0] != '\0' &&
         span_is(call_state_part(span_of(memory->quarantine), CALL_STATE_NEWS),
                 "first"));
    bool has_record = is_current(batch, call, memory->quarantine);
    if (has_record && !(is_disputed && may_quarantine))
        return PROBE_QUARANTINED;
    if (is_full(batch, call) && !ask->is_established && !may_renew)
        return PROBE_OTHER;
    bool is_fresh = !simstate_is_there(memory);
    bool is_early = ask->trace.len == 0 && is_of_run_id(call, memory->admit);
    if (!may_quarantine || is_early)
        return is_fresh ? PROBE_EMPTY : PROBE_BARE;
    quarantine_anew(batch, call, has_record || may_renew);
    if (epoch_of(memory->admit) < epoch_of(call->admit))
        forget(batch);
    return is_fresh ? PROBE_FRESH : PROBE_CREATED;
}

/* The word of a probe; writes what a probe writes. */
static enum call_probe_word probe_at_state(struct simbatch *batch,
                                           const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    struct span configuration = configuration_of(call);
    const struct call *ask = &call->call;
    int epoch = epoch_of(call->admit);
    bool may_quarantine = ask->nonce.len > 0;
    bool may_lower =
        may_quarantine && ask->is_renewing && memory->quarantine[0] != '\0' &&
        !is_taken(batch, call) &&
        span_is_same(call_state_part(span_of(memory->quarantine),
                                     CALL_STATE_FINGERPRINT),
                     call_state_part(ask->admit, CALL_STATE_FINGERPRINT));
    if (epoch_of(memory->admit) > epoch ||
        (epoch_of(memory->quarantine) > epoch && !may_lower))
        return PROBE_SUPERSEDED;
    if (epoch_of(memory->admit) == epoch) {
        if (!begins(memory->admit, configuration))
            return PROBE_OTHER;
        if (!is_named(memory->admit, call) &&
            is_of_life(batch, call, memory->admit))
            return PROBE_MISNAMED;
    }
    if (memory->quarantine[0] != '\0' &&
        epoch_of(memory->quarantine) == epoch && is_taken(batch, call) &&
        !begins(memory->quarantine, configuration) && !ask->is_established)
        return PROBE_OTHER;
    if (memory->durable == '1' && !ask->is_durable)
        memory->durable = '0';
    if (memory->admit[0] != '\0' && has_lost(batch, call))
        forget(batch);
    if (memory->generation.it < ask->high_water && may_quarantine) {
        forget(batch);
        quarantine_anew(batch, call, true);
        memory->generation = simnumber(ask->high_water);
        return PROBE_CREATED;
    }
    if (is_admitted(batch, call) && may_quarantine && ask->is_renewing &&
        is_before(memory->admit, ask->latest))
        forget(batch);
    if (!is_admitted(batch, call))
        return quarantine_if_bare(batch, call);
    if (ask->is_watching)
        return PROBE_ADMITTED;
    batch->generation = memory->generation.it + 1;
    memory->generation = simnumber(batch->generation);
    memory->max_ttl_ms =
        simnumber(at_least(memory->max_ttl_ms.it, ask->max_ttl_ms));
    return PROBE_ADMITTED;
}

/* Later incarnations that an admitted node stores change its admission. */
static void tell_news(struct simbatch *batch, const struct simcall *call)
{
    char incarnation[INCARNATION_LEN + 1];
    read_incarnation(batch->memory->admit, incarnation);
    struct span news =
        call_state_part(span_of(batch->memory->admit), CALL_STATE_NEWS);
    write_admit(batch, call, incarnation, atoll(news.ptr) + 1);
}

static void tell_taken(const struct simbatch *batch, const struct simcall *call,
                       struct simreply *answer)
{
    struct call_probe *seen = &answer->reply.probe;
    const struct simmemory *memory = batch->memory;
    bool is_of_others =
        seen->word == PROBE_SUPERSEDED || seen->word == PROBE_OTHER;
    seen->taken = seen->passed = span_of("");
    if (is_taken(batch, call))
        seen->passed = span_of(memory->passed);
    else if (is_named(memory->admit, call))
        seen->passed = span_of(memory->dead);
    if (seen->word == PROBE_BARE && is_to_be_taken(batch, call))
        seen->taken = span_of(memory->admit);
    else if (is_taken(batch, call) &&
             (is_of_others || has_name(call, memory->taken)))
        seen->taken = span_of(memory->taken);
    if (seen->taken.len > 0) {
        char told[SIM_PASSED_MAX + 1];
        told[span_copy(told, seen->passed)] = '\0';
        join(told, memory->dead, SIM_PASSED_TOLD);
        seen->passed.len = strlen(told);
        if (seen->passed.len <= CALL_STATE_MAX) {
            memcpy(answer->passed, told, seen->passed.len);
            seen->passed.ptr = answer->passed;
        }
    }
    if (seen->passed.len > CALL_STATE_MAX)
        seen->passed.len = CALL_STATE_MAX;
}

static enum vote probe(struct simbatch *batch, const struct simcall *call,
                       struct simreply *answer)
{
    struct simmemory *memory = batch->memory;
    struct call_probe *seen = &answer->reply.probe;
    follow_all(batch, call);
    seen->word = probe_at_state(batch, call);
    /* servers trust what it has heard of others */
    bool counts = seen->word == PROBE_ADMITTED ||
                  (is_named(memory->admit, call) && memory->durable == '1');
    if (hear(memory, call->call.witnesses, counts, answer) &&
        seen->word == PROBE_ADMITTED)
        tell_news(batch, call);
    seen->admit = span_of(memory->admit);
    tell_taken(batch, call, answer);
    seen->quarantine = span_of(memory->quarantine);
    seen->max_ttl_ms = memory->max_ttl_ms.it;
    seen->is_durable = memory->durable == '1';
    seen->generation = memory->generation.it;
    seen->rest_us = at_least(memory->until_us.it - batch->clock_us, 0);
    seen->number = at_least(memory->max_token.it, memory->min_token.it);
    seen->is_full = batch->process->is_full;
    make_trace(batch, answer);
    return VOTE_DONE;
}

/* Nothing of what it would have written stays. */
static enum vote watch(struct simbatch *batch, const struct simcall *call,
                       struct simreply *answer)
{
    const struct simmemory old = *batch->memory;
    enum vote vote = probe(batch, call, answer);
    simreply_keep(answer);
    *batch->memory = old;
    batch->is_known = false;
    if (answer->reply.probe.word == PROBE_EMPTY && simstate_is_there(&old))
        answer->reply.probe.word = PROBE_BARE;
    return vote;
}

/* Whether its quarantine record is still the one that the caller has seen. */
static bool is_quarantined(const struct simbatch *batch,
                           const struct simcall *call)
{
    const char *quarantine = batch->memory->quarantine;
    return quarantine[0] != '\0' &&
           span_is(call->call.quarantine, quarantine) &&
           is_current(batch, call, quarantine);
}

static enum vote give(struct simbatch *batch, const struct simcall *call,
                      struct simreply *answer)
{
    struct simmemory *memory = batch->memory;
    if (!is_quarantined(batch, call))
        return VOTE_CHANGED;
    memory->max_ttl_ms = simnumber(call->call.max_ttl_ms);
    memory->until_us = simnumber(0);
    memory->min_token = simnumber(call->call.number);
    memory->max_token =
        simnumber(at_least(memory->max_token.it, call->call.number));
    write_admission(batch, call, call->call.is_durable, answer);
    return VOTE_DONE;
}

static enum vote readmit(struct simbatch *batch, const struct simcall *call,
                         struct simreply *answer)
{
    const struct simmemory *memory = batch->memory;
    if (!is_quarantined(batch, call) || memory->admit[0] == '\0' ||
        !span_is(call->call.found, memory->admit) ||
        batch->process->evicted != 0)
        return VOTE_CHANGED;
    write_admission(batch, call,
                    call->call.is_durable && memory->durable == '1', answer);
    return VOTE_DONE;
}

static enum vote revoke(struct simbatch *batch, const struct simcall *call)
{
    struct simmemory *memory = batch->memory;
    bool is_found =
        memory->admit[0] != '\0' &&
        (is_admitted(batch, call) || span_is(call->call.found, memory->admit));
    bool has_taken =
        memory->taken[0] != '\0' && is_current(batch, call, memory->quarantine);
    if (!is_found && !has_taken)
        return VOTE_CHANGED;
    forget(batch);
    clear_taken(memory);
    write_quarantine(batch, call);
    return VOTE_DONE;
}

enum vote simstate_execute(struct simbatch *batch, const struct simcall *call,
                           struct simreply *answer)
{
    switch (call->call.kind) {
    case CALL_PROBE:
        return call->call.is_watching ? watch(batch, call, answer)
                                      : probe(batch, call, answer);
    case CALL_ADMIT:
        return give(batch, call, answer);
    case CALL_READMIT:
        return readmit(batch, call, answer);
    case CALL_REVOKE:
        return revoke(batch, call);
    default:
        abort();
    }
}
