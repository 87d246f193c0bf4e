/* SPDX-License-Identifier: MIT */
#include "spreads.h"

#include <assert.h>

#include "../../lock/names.h"
#include "../port/port.h"
#include "../port/token.h"

enum {
    SPREADS_MAX = 60000,     /* at once */
    TRIED = 16,              /* of those that wait, to find one that gives way
                                when there is no place */
    ACTIVE_MAX = 1024,       /* of them are gone through in each tick */
    SWEPT = 128,             /* of those that wait, in a tick */
    FOLLOW_LEAST_US = 50000, /* the early replication comes at half of it */
    TICKS_US = 25000,        /* the tick, which may be late */
    TRIES_AT_ONCE = 4,       /* then there are pauses between them */
    PAUSE_US = 50000,        /* the first one; then twice as long */
    PAUSE_DOUBLED = 3,       /* so often, so it is 0.4 s: it and the two checks
                                behind it take less than a second */
    CHECKS_APART = 3,        /* node timeouts, at most */
    TOMBSTONE_TIMEOUTS = 4,  /* node timeouts: two checks and a creation */
    HASHED_AT = 1 + TOKEN_NUMBER_LEN, /* the random digits of a token */
};

void spreads_init(struct spreads *spreads, struct nodes *nodes)
{
    struct spread_list *const lists[] = {&spreads->young, &spreads->active,
                                         &spreads->waiting};
    spreads->env = nodes->env;
    spreads->nodes = nodes;
    entries_init(&spreads->entries, sizeof(struct spread), SPREADS_MAX);
    for (int i = 0; i < 3; i++) {
        TAILQ_INIT(&lists[i]->all);
        lists[i]->count = 0;
    }
    for (int i = 0; i < SPREADS_BUCKETS; i++)
        LIST_INIT(&spreads->buckets[i]);
}

static uint16_t all_nodes(const struct spreads *spreads)
{
    return nodeset_all(spreads->env->settings.nodes);
}

/* ---- the lists ---------------------------------------------------------- */

static void take_out(struct spread *it)
{
    TAILQ_REMOVE(&it->in->all, it, link);
    it->in->count--;
}

static void spreads_forget(struct spreads *spreads, struct spread *it)
{
    take_out(it);
    LIST_REMOVE(it, in_bucket);
    texts_drop(&it->texts);
    entries_give(&spreads->entries, it);
}

void spreads_fini(struct spreads *spreads)
{
    for (uint32_t i = 0; i < spreads->entries.count; i++) {
        struct spread *it = entries_at(&spreads->entries, i);
        if (it != NULL)
            spreads_forget(spreads, it);
    }
    entries_fini(&spreads->entries);
}

/* The nodes that may vote for a replication, and are not known to have the
 * lock. */
static uint16_t lacking_voters(const struct spreads *spreads,
                               const struct spread *it)
{
    uint16_t lacking = all_nodes(spreads) & (uint16_t)~it->has;
    for (int i = 0; i < spreads->env->settings.nodes; i++)
        if ((lacking & nodeset_of(i)) != 0 &&
            (nodes_refusal(spreads->nodes, i, CALL_REPLICATE) != STATE_NONE ||
             status_is_full(spreads->nodes, i)))
            lacking &= (uint16_t)~nodeset_of(i);
    return lacking;
}

/* It rests, and is in no list. One that pauses leaves its place to others. */
static void put_in(struct spreads *spreads, struct spread *it)
{
    assert(it->step == SPREAD_RESTING);
    bool is_pausing =
        it->tries > TRIES_AT_ONCE && environment_now(spreads->env) < it->at_us;
    bool is_active = spreads->active.count < ACTIVE_MAX && !is_pausing &&
                     lacking_voters(spreads, it) != 0;
    it->in = is_active ? &spreads->active : &spreads->waiting;
    TAILQ_INSERT_TAIL(&it->in->all, it, link);
    it->in->count++;
}

static void put_anew(struct spreads *spreads, struct spread *it)
{
    take_out(it);
    put_in(spreads, it);
}

/* What is due first is the first one. */
static void put_in_young(struct spreads *spreads, struct spread *it)
{
    it->in = &spreads->young;
    it->in->count++;
    struct spread *before = TAILQ_LAST(&it->in->all, spread_queue);
    while (before != NULL && before->at_us > it->at_us)
        before = TAILQ_PREV(before, spread_queue, link);
    if (before != NULL)
        TAILQ_INSERT_AFTER(&it->in->all, before, it, link);
    else
        TAILQ_INSERT_HEAD(&it->in->all, it, link);
}

/* The tokens are ours, and so have random digits there. */
static struct spread_bucket *bucket_of(struct spreads *spreads,
                                       struct span token)
{
    uint32_t digits;
    assert(token.len >= HASHED_AT + sizeof digits);
    memcpy(&digits, token.ptr + HASHED_AT, sizeof digits);
    return &spreads
                ->buckets[(digits ^ digits >> 16) * UINT32_C(0x9e3779b1) >> 20];
}

/* Of several resources, one is enough: without it, the lock is none. after:
 * where to go on; NULL: begin. */
static struct spread *spreads_find(struct spreads *spreads,
                                   struct span resource, struct span token,
                                   struct spread *after)
{
    struct spread *it = after != NULL ? LIST_NEXT(after, in_bucket)
                                      : LIST_FIRST(bucket_of(spreads, token));
    while (it != NULL && !(token_is_same(texts_second(&it->texts), token) &&
                           names_overlap(texts_first(&it->texts), resource)))
        it = LIST_NEXT(it, in_bucket);
    return it;
}

/* Of just these resources, in this form. */
static struct spread *find_same(struct spreads *spreads,
                                const struct round_lock *lock)
{
    struct spread *it = NULL;
    while ((it = spreads_find(spreads, lock->resource, lock->token, it)) !=
           NULL)
        if (span_is_same(texts_first(&it->texts), lock->resource) &&
            span_is_same(texts_second(&it->texts), lock->token))
            return it;
    return NULL;
}

/* ---- times -------------------------------------------------------------- */

/* All have it, for as long as any client was told. */
static bool is_done(const struct spreads *spreads, const struct spread *it)
{
    return it->has == all_nodes(spreads);
}

/* When the lock ends on the nodes. */
static int64_t end_us(const struct spread *it)
{
    return it->start_us + it->ttl_ms * 1000;
}

/*
 * A wait is a little longer than the node timeout, and a creation has a little
 * less: the clocks of nodes and other servers may differ in speed.
 */
static int64_t drift_us(const struct spreads *spreads)
{
    const struct engine_settings *settings = &spreads->env->settings;
    return (int64_t)((double)settings->node_timeout_us *
                     settings->drift_factor * 2);
}

static int64_t wait_us(const struct spreads *spreads)
{
    return spreads->env->settings.node_timeout_us + drift_us(spreads);
}

/* Shorter than the node timeout by the factor by which a wait is longer. */
static int64_t window_us(const struct spreads *spreads)
{
    int64_t timeout_us = spreads->env->settings.node_timeout_us;
    return timeout_us * timeout_us / wait_us(spreads);
}

/* A part of the time between two checks: the ticks that begin them are late. */
static int64_t apart_us(const struct spreads *spreads)
{
    return at_least(spreads->env->settings.node_timeout_us, TICKS_US);
}

/* When creations behind this check must have run. */
static int64_t window_end_us(const struct spreads *spreads,
                             const struct spread *it)
{
    return at_most(it->check_us + window_us(spreads), it->until_us);
}

static int64_t pause_us(const struct spread *it)
{
    int doubled = it->tries - TRIES_AT_ONCE - 1;
    return doubled < 0 ? 0
                       : (int64_t)PAUSE_US << at_most(doubled, PAUSE_DOUBLED);
}

/* ---- calls -------------------------------------------------------------- */

/* A check, and the creations behind it; the early replication is one behind
 * none. */
static uint64_t tag_of(const struct spread *it, bool is_check)
{
    unsigned round = it->check << 1 | is_check;
    return entries_handle(it, tag_bits(TAG_SPREAD, round));
}

/* The lock ends there when it does on the other nodes. False: it has ended. */
static bool spreads_make_call(const struct spread *it, enum call_kind kind,
                              int64_t now_us, struct call *call)
{
    struct token_parts parts;
    int64_t passed_ms = (now_us - it->start_us) / 1000;
    if (!token_parse(texts_second(&it->texts), &parts) ||
        passed_ms >= it->ttl_ms)
        return false;
    *call = fence_call(kind, texts_first(&it->texts), texts_second(&it->texts));
    call->number = parts.number;
    call->ttl_ms = it->ttl_ms - passed_ms;
    call->readers_max = INT32_MAX; /* a majority has let it in */
    return true;
}

static void send_early(struct spreads *spreads, const struct spread *it,
                       uint64_t tag)
{
    struct call call;
    if (!spreads_make_call(it, CALL_ACQUIRE, environment_now(spreads->env),
                           &call))
        return;
    call.is_early = true;
    spreads->env->metrics->early_replications++;
    for (int i = 0; i < spreads->env->settings.nodes; i++)
        if ((it->asked & nodeset_of(i)) == 0)
            (void)nodes_send(spreads->nodes, i, &call, it->deadline_us, tag);
}

static void spreads_replicate(struct spreads *spreads, struct spread *it)
{
    send_early(spreads, it, tag_of(it, false));
    take_out(it);
    it->step = SPREAD_RESTING;
    it->sent_end_us = end_us(it);
    it->at_us = it->gate_us;
    put_in(spreads, it);
}

/*
 * What this check finds to be missing may be created behind the next one. If
 * that comes too late, it counts as a first one.
 */
static void spreads_check(struct spreads *spreads, struct spread *it,
                          int64_t now_us)
{
    int64_t timeout_us = spreads->env->settings.node_timeout_us;
    bool is_second = it->answered_us != 0 &&
                     now_us > it->answered_us + wait_us(spreads) &&
                     now_us <= it->check_us + CHECKS_APART * apart_us(spreads);
    struct call call;
    if (!spreads_make_call(it, CALL_EXTEND, now_us, &call))
        return;
    if (it->lacks != 0 && !is_second)
        it->tries++;
    it->before = is_second ? it->lacks : 0;
    memcpy(it->missing_before, it->missing, sizeof it->missing);
    it->sent = it->answered = it->found = it->lacks = 0;
    it->created = it->again = 0;
    it->step = SPREAD_CHECKING;
    it->check++;
    it->before_us = it->check_us;
    it->check_us = it->answered_us = now_us;
    it->sent_end_us = end_us(it);
    int64_t deadline_us = at_most(now_us + timeout_us, it->until_us);
    for (int i = 0; i < spreads->env->settings.nodes; i++)
        if (nodes_send(spreads->nodes, i, &call, deadline_us, tag_of(it, true))
                .vote == VOTE_PENDING)
            it->sent |= nodeset_of(i);
}

int64_t spreads_tombstone_ms(const struct spreads *spreads, int more)
{
    int64_t timeout_us = apart_us(spreads) + drift_us(spreads);
    return (TOMBSTONE_TIMEOUTS + more) * timeout_us / 1000 + 1;
}

static void create(struct spreads *spreads, struct spread *it, uint16_t on,
                   int64_t now_us)
{
    int64_t until_us = window_end_us(spreads, it);
    /* Another server may have extended the lock for longer, and lengthens what
       is created here with its next check. If it has ended by then, the
       tombstone would only keep the creations of that server out. */
    bool ends_before = end_us(it) <= now_us + 2 * wait_us(spreads);
    struct call call;
    if (now_us >= until_us || ends_before ||
        !spreads_make_call(it, CALL_REPLICATE, now_us, &call))
        return;
    call.tombstone_ms = spreads_tombstone_ms(spreads, 0);
    for (int i = 0; i < spreads->env->settings.nodes; i++) {
        call.seen = it->missing_before[i];
        if (on & nodeset_of(i))
            (void)nodes_send(spreads->nodes, i, &call, until_us,
                             tag_of(it, false));
    }
}

/* ---- begin -------------------------------------------------------------- */

/* Nodes may be away for so long that there are too many: of some that wait, the
 * lock that ends first. */
static void give_way(struct spreads *spreads)
{
    struct spread *first = NULL;
    struct spread *it = TAILQ_FIRST(&spreads->waiting.all);
    for (int i = 0; i < TRIED && it != NULL; i++) {
        if (first == NULL || end_us(it) < end_us(first))
            first = it;
        it = TAILQ_NEXT(it, link);
    }
    if (first == NULL)
        return;
    spreads->env->metrics->locks_thin++;
    spreads_forget(spreads, first);
}

/* A record that is in no list but its bucket; NULL: there is no place. */
static struct spread *spreads_make(struct spreads *spreads, struct spread *from,
                                   const struct round_lock *lock)
{
    if (spreads->entries.used == spreads->entries.limit)
        give_way(spreads);
    struct spread *it = entries_take(&spreads->entries);
    if (it != NULL) {
        from->head = it->head;
        *it = *from;
        it->sent_end_us = end_us(it);
    }
    if (it == NULL || !texts_keep(&it->texts, lock->resource, lock->token)) {
        if (it != NULL)
            entries_give(&spreads->entries, it);
        spreads->env->metrics->locks_thin++;
        return NULL;
    }
    LIST_INSERT_HEAD(bucket_of(spreads, lock->token), it, in_bucket);
    return it;
}

/* What a round tells. */
static struct spread record_of(const struct spreads *spreads,
                               const struct round *round,
                               const struct round_lock *lock, enum vote has_it)
{
    int64_t gate_us = round->start_us + wait_us(spreads) + lock->uncertainty_us;
    int64_t validity_ms =
        round_validity_ms(round, lock->ttl_ms, round->start_us,
                          spreads->env->settings.drift_factor);
    return (struct spread){
        .step = SPREAD_RESTING,
        .at_us = gate_us,
        .start_us = round->start_us,
        .deadline_us = round->deadline_us,
        .ttl_ms = lock->ttl_ms,
        .until_us = round->start_us + validity_ms * 1000,
        .gate_us = gate_us,
        .asked = all_nodes(spreads),
        .has = round_with(round, has_it),
    };
}

bool spreads_may_follow(const struct round *round)
{
    return round->deadline_us - round->start_us >= FOLLOW_LEAST_US;
}

/* Calls to the other nodes may take as long as the round did. */
static int64_t spreads_due_us(const struct round *round, int64_t now_us)
{
    int64_t half_us = (round->deadline_us - round->start_us) / 2;
    int64_t flight_us = round->won_us - round->start_us;
    int64_t last_us = round->deadline_us - flight_us - TICKS_US;
    return at_most(now_us + at_most(half_us, SPREADS_EARLY_US), last_us);
}

/* A young lock without a place for its record gets its early replication at
 * once, and no more. */
static void spreads_begin(struct spreads *spreads, struct spread *record,
                          const struct round_lock *lock)
{
    bool is_young = record->step == SPREAD_YOUNG;
    struct spread *it = spreads_make(spreads, record, lock);
    if (it != NULL && is_young) {
        put_in_young(spreads, it);
        if (it->at_us <= environment_now(spreads->env))
            spreads_replicate(spreads, it);
    } else if (it != NULL) {
        put_in(spreads, it);
    } else if (is_young &&
               texts_keep(&record->texts, lock->resource, lock->token)) {
        send_early(spreads, record, tag_plain(TAG_RELEASE));
        texts_drop(&record->texts);
    }
}

void spreads_on_granted(struct spreads *spreads, const struct round *round,
                        const struct round_lock *lock)
{
    struct spread record = record_of(spreads, round, lock, VOTE_GRANTED);
    if (is_done(spreads, &record))
        return;
    if (round->unasked != 0) {
        record.step = SPREAD_YOUNG;
        record.at_us = spreads_due_us(round, environment_now(spreads->env));
        record.asked = round->sent;
    }
    spreads_begin(spreads, &record, lock);
}

void spreads_on_stragglers(struct spreads *spreads, const struct round *round,
                           const struct round_lock *lock)
{
    struct spread *it = find_same(spreads, lock);
    if (it == NULL || it->start_us != round->start_us) /* released, extended */
        return;
    it->has |= round_with(round, VOTE_GRANTED);
    if (is_done(spreads, it))
        spreads_forget(spreads, it);
}

/* ---- extends ------------------------------------------------------------ */

/*
 * A check under way goes on: else a client that extends often would keep its
 * lock from all nodes. Of two times the later one counts, as on the nodes.
 */
static void renew(struct spreads *spreads, struct spread *it,
                  const struct spread *from)
{
    bool is_longer = end_us(from) >= end_us(it);
    it->until_us = at_least(it->until_us, from->until_us);
    it->tries = 0;
    it->has = is_longer ? from->has : 0;
    if (is_longer) {
        it->start_us = from->start_us;
        it->ttl_ms = from->ttl_ms;
    }
    if (is_done(spreads, it))
        spreads_forget(spreads, it);
}

void spreads_on_extended(struct spreads *spreads, const struct round *round,
                         const struct round_lock *lock)
{
    struct spread record = record_of(spreads, round, lock, VOTE_EXTENDED);
    struct spread *it = find_same(spreads, lock);
    if (it != NULL)
        renew(spreads, it, &record);
    else if (!is_done(spreads, &record))
        spreads_begin(spreads, &record, lock);
}

void spreads_hurry(struct spreads *spreads, struct span resource,
                   struct span token)
{
    struct spread *it = NULL;
    while ((it = spreads_find(spreads, resource, token, it)) != NULL)
        if (it->step == SPREAD_YOUNG)
            spreads_replicate(spreads, it);
}

/* ---- releases ----------------------------------------------------------- */

void spreads_scope(struct spreads *spreads, struct span resource,
                   struct span token, struct release_scope *scope)
{
    struct spread *it = NULL;
    /* A server that was stopped for so long that the early replication would
       come too late asks all nodes at once: others may have checked. */
    while ((it = spreads_find(spreads, resource, token, it)) != NULL)
        if (it->step == SPREAD_YOUNG &&
            environment_now(spreads->env) < it->deadline_us)
            *scope = (struct release_scope){it->asked, it->deadline_us};
}

void spreads_cancel(struct spreads *spreads, struct span resource,
                    struct span token)
{
    struct spread *it;
    while ((it = spreads_find(spreads, resource, token, NULL)) != NULL)
        spreads_forget(spreads, it);
}

/* ---- answers ------------------------------------------------------------ */

/*
 * Which of the lock's names are missing on a node that has not the lock, or
 * have something else there. Where others hold a shared lock, this one may be
 * among them in the other form: none that counts.
 */
static uint16_t missing_of(const struct spread *it,
                           const struct call_reply *reply)
{
    struct span token = texts_second(&it->texts);
    if (reply->vote == VOTE_FREE || names_count(texts_first(&it->texts)) > 1)
        return reply->highest > 0 ? (uint16_t)reply->highest : 0;
    return reply->value.len > 0 && !token_is_same(reply->value, token);
}

/* The node has the lock; but if it was extended meanwhile, not for as long. */
static void note_has(struct spread *it, int node)
{
    if (it->sent_end_us == end_us(it))
        it->has |= nodeset_of(node);
}

/* Ends the record if there is nothing more to do. */
static void spreads_judge(struct spreads *spreads, struct spread *it)
{
    int nodes = spreads->env->settings.nodes;
    int quorum = quorum_of(nodes);
    if (is_done(spreads, it) ||
        nodeset_count(it->lacks) >= nodes - quorum + 1) {
        spreads_forget(spreads, it);
        return;
    }
    uint16_t due = it->before & (uint16_t) ~(it->found | it->created);
    if (it->step != SPREAD_CHECKING || nodeset_count(it->found) < quorum ||
        due == 0)
        return;
    it->created |= due;
    create(spreads, it, due, environment_now(spreads->env));
}

static void spreads_on_checked(struct spreads *spreads, struct spread *it,
                               int node, const struct call_reply *reply)
{
    if (it->step != SPREAD_CHECKING || (it->answered & nodeset_of(node)) != 0)
        return;
    it->answered |= nodeset_of(node);
    it->answered_us = environment_now(spreads->env);
    if (reply->vote == VOTE_EXTENDED) {
        it->found |= nodeset_of(node);
        note_has(it, node);
    } else if (reply->vote == VOTE_FREE || reply->vote == VOTE_HELD) {
        it->lacks |= nodeset_of(node);
        it->has &= (uint16_t)~nodeset_of(node);
        it->missing[node] = missing_of(it, reply);
    }
    spreads_judge(spreads, it);
}

/*
 * Another server may have created it before, for less: the next check lengthens
 * it, and only then it has it. If something else came or went between the
 * checks, what held the lock up may be gone: there are no pauses for a while.
 */
static void on_created(struct spreads *spreads, struct spread *it, int node,
                       const struct call_reply *reply)
{
    if (reply->vote == VOTE_HELD && (it->created & nodeset_of(node)) != 0)
        it->again |= nodeset_of(node);
    if (reply->vote == VOTE_CHANGED)
        it->tries = 0;
    if (reply->vote != VOTE_GRANTED)
        return;
    it->lacks &= (uint16_t)~nodeset_of(node);
    if (it->check == 0) /* of the early replication */
        note_has(it, node);
    spreads_judge(spreads, it);
}

void spreads_on_reply(struct spreads *spreads, int node, uint64_t tag,
                      const struct call_reply *reply, int64_t sent_us)
{
    struct spread *it = entries_find(&spreads->entries, tag);
    if (it == NULL)
        return;
    bool is_check = (tag_round_of(tag) & 1) != 0;
    /* One that was long on its way may have the tag of this check, but belongs
       to a much earlier one. The time is that of its batch, which may have
       begun before this check, but not before the last one. */
    if (tag != tag_of(it, is_check) || sent_us < it->before_us)
        return;
    if (is_check)
        spreads_on_checked(spreads, it, node, reply);
    else
        on_created(spreads, it, node, reply);
}

/* ---- time --------------------------------------------------------------- */

/* Ends a record with the validity of its lock. */
static void spreads_expire(struct spreads *spreads, struct spread *it)
{
    spreads->env->metrics->locks_thin += lacking_voters(spreads, it) != 0;
    spreads_forget(spreads, it);
}

/* A check that found nothing to be missing, or created something, may be
 * followed by a pause; another one is a first check, behind which the second
 * one has to come soon. */
static void end_check(struct spreads *spreads, struct spread *it,
                      int64_t now_us)
{
    int64_t next_us = at_least(now_us, it->answered_us + wait_us(spreads) + 1);
    bool is_first = it->lacks != 0 && it->before == 0;
    it->step = SPREAD_RESTING;
    if (!is_first)
        it->tries++;
    it->at_us = next_us + (is_first ? 0 : pause_us(it));
    if (!is_first && it->tries > TRIES_AT_ONCE)
        put_anew(spreads, it);
}

/* What is created now has all answers that may come. */
static bool is_check_over(const struct spreads *spreads,
                          const struct spread *it, int64_t now_us)
{
    return now_us >= window_end_us(spreads, it) ||
           (it->answered == it->sent && it->before == 0);
}

static void spreads_go_on(struct spreads *spreads, struct spread *it,
                          int64_t now_us)
{
    if (now_us >= it->until_us) {
        spreads_expire(spreads, it);
        return;
    }
    if (it->step == SPREAD_CHECKING) {
        uint16_t again = it->again;
        it->again = 0;
        if (again != 0)
            create(spreads, it, again, now_us);
        if (is_check_over(spreads, it, now_us))
            end_check(spreads, it, now_us);
        return;
    }
    if (lacking_voters(spreads, it) == 0)
        put_anew(spreads, it);
    else if (now_us >= it->at_us)
        spreads_check(spreads, it, now_us);
}

/* Those that rest because no lacking node votes, because they pause, or because
 * too many others are active: a few at a time. */
static void sweep(struct spreads *spreads, int64_t now_us)
{
    int count = spreads->waiting.count;
    for (int left = count < SWEPT ? count : SWEPT; left > 0; left--) {
        struct spread *it = TAILQ_FIRST(&spreads->waiting.all);
        if (now_us >= it->until_us)
            spreads_expire(spreads, it);
        else
            put_anew(spreads, it);
    }
}

void spreads_tick(struct spreads *spreads, int64_t now_us)
{
    struct spread *it, *next;
    while ((it = TAILQ_FIRST(&spreads->young.all)) != NULL &&
           now_us >= it->at_us)
        spreads_replicate(spreads, it);
    sweep(spreads, now_us);
    for (it = TAILQ_FIRST(&spreads->active.all); it != NULL; it = next) {
        next = TAILQ_NEXT(it, link);
        spreads_go_on(spreads, it, now_us);
    }
}

void spreads_flush(struct spreads *spreads)
{
    while (!TAILQ_EMPTY(&spreads->young.all))
        spreads_replicate(spreads, TAILQ_FIRST(&spreads->young.all));
}
