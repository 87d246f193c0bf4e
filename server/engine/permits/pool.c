/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>

#include "../../base/types.h"
#include "../../lock/names.h"

enum {
    POOLS_MAX = 100000,
    IDLE_MAX = 1000, /* kept for their hints alone */
    TRUST_MAX = 16,
    TRUST_LEAST = TRUST_MAX / 2,
    SLOT_US = 10,    /* for each slot that is asked about, in the long run */
    BURST_US = 20000 /* so much of it at once */
};

/* ---- sets of slots ------------------------------------------------------- */

void slotset_join(struct slotset *set, const struct slotset *other)
{
    for (int i = 0; i < SLOTSET_WORDS; i++)
        set->words[i] |= other->words[i];
}

void slotset_keep(struct slotset *set, const struct slotset *other)
{
    for (int i = 0; i < SLOTSET_WORDS; i++)
        set->words[i] &= other->words[i];
}

void slotset_remove(struct slotset *set, const struct slotset *other)
{
    for (int i = 0; i < SLOTSET_WORDS; i++)
        set->words[i] &= ~other->words[i];
}

struct slotset slotset_below(int limit)
{
    struct slotset set = {{0}};
    assert(limit >= 0 && limit <= POOL_SLOTS_MAX);
    for (int i = 0; i < limit / 64; i++)
        set.words[i] = UINT64_MAX;
    if (limit % 64 > 0)
        set.words[limit / 64] = (UINT64_C(1) << limit % 64) - 1;
    return set;
}

int slotset_count(const struct slotset *set)
{
    int count = 0;
    for (int i = 0; i < SLOTSET_WORDS; i++)
        count += __builtin_popcountll(set->words[i]);
    return count;
}

int slotset_next(const struct slotset *set, int from)
{
    for (int i = from / 64; i < SLOTSET_WORDS; i++) {
        uint64_t word = set->words[i];
        if (i == from / 64)
            word &= UINT64_MAX << from % 64;
        if (word != 0)
            return i * 64 + __builtin_ctzll(word);
    }
    return -1;
}

int slotset_nth(const struct slotset *set, int n)
{
    int word = 0, count;
    while ((count = __builtin_popcountll(set->words[word])) <= n) {
        n -= count;
        word++;
        assert(word < SLOTSET_WORDS); /* it has more than n */
    }
    uint64_t bits = set->words[word];
    while (n-- > 0)
        bits &= bits - 1; /* without the lowest */
    return word * 64 + __builtin_ctzll(bits);
}

/* ---- queries ------------------------------------------------------------- */

void query_init(struct query *query, int total, int count, int wanted)
{
    assert(total <= NODES_MAX && count > 0 && count <= POOL_SLOTS_MAX);
    *query = (struct query){.total = total, .count = count, .wanted = wanted};
    for (int i = 0; i < total; i++)
        query->votes[i].vote = VOTE_PENDING;
}

void query_judge(struct query *query, int limit, int wanted, bool must_prove)
{
    assert(limit <= query->count && wanted > 0);
    query->own_limit = limit;
    query->own_wanted = wanted;
    query->must_prove = must_prove;
}

void query_note_ballot(struct query *query, int node, struct ballot ballot)
{
    if (query->votes[node].vote == VOTE_PENDING)
        query->votes[node] = ballot;
}

void query_note_reply(struct query *query, int node,
                      const struct call_reply *reply)
{
    struct ballot ballot = call_ballot(reply);
    if (query->votes[node].vote != VOTE_PENDING)
        return;
    if (ballot.vote == VOTE_DONE && reply->slots.len != (size_t)query->count)
        ballot = (struct ballot){.vote = VOTE_UNREADABLE};
    query->votes[node] = ballot;
    if (ballot.vote != VOTE_DONE)
        return;
    query->rest_ms[query->answers++] = reply->pttl_ms;
    for (int i = 0; i < query->count; i++) {
        if (reply->slots.ptr[i] != CALL_SLOT_FREE)
            query->taken[i]++;
        if (reply->slots.ptr[i] == CALL_SLOT_OWN)
            query->own[i]++;
    }
}

void query_note_rest(struct query *query)
{
    for (int i = 0; i < query->total; i++)
        query_note_ballot(query, i, (struct ballot){.vote = VOTE_UNANSWERED});
}

static int count_votes(const struct query *query, enum vote vote)
{
    int count = 0;
    for (int i = 0; i < query->total; i++)
        count += query->votes[i].vote == vote;
    return count;
}

/* So many nodes are known to have no key there. */
static int free_on(const struct query *query, int slot)
{
    return query->answers - query->taken[slot];
}

/* Whether no answer that is still to come changes which slots are its own. */
static bool is_own_clear(const struct query *query, int pending)
{
    int quorum = quorum_of(query->total), seen = 0, proven = 0, open = 0;
    for (int i = 0; i < query->own_limit; i++) {
        int own = query->own[i];
        seen += own > 0;
        proven += own >= quorum;
        open += own > 0 && own < quorum && own + pending >= quorum;
    }
    return open == 0 || proven >= query->own_wanted ||
           seen < query->own_wanted ||
           (seen == query->own_wanted && !query->must_prove);
}

enum query_outcome query_outcome(const struct query *query)
{
    int quorum = quorum_of(query->total), free = 0, open = 0;
    int pending = count_votes(query, VOTE_PENDING);
    int refused = count_votes(query, VOTE_KEY_REFUSED);
    if (query->answers < quorum) {
        bool may_change =
            pending > 0 && (query->answers + pending >= quorum ||
                            (refused < quorum && refused + pending >= quorum));
        return may_change          ? QUERY_OPEN
               : refused >= quorum ? QUERY_REFUSED
                                   : QUERY_NO_QUORUM;
    }
    for (int i = 0; i < query->count; i++) {
        bool is_free = free_on(query, i) >= quorum;
        free += is_free;
        open += !is_free && free_on(query, i) + pending >= quorum;
    }
    bool is_clear =
        (free >= query->wanted || open == 0) && is_own_clear(query, pending);
    return is_clear || pending == 0 ? QUERY_REPORTED : QUERY_OPEN;
}

struct slotset query_own(const struct query *query)
{
    struct slotset set = {{0}};
    int least = query->must_prove ? quorum_of(query->total) : 1, count = 0;
    for (int nodes = query->answers; nodes >= least; nodes--)
        for (int i = 0; i < query->own_limit && count < query->own_wanted;
             i++) {
            if (query->own[i] != nodes)
                continue;
            slotset_add(&set, i);
            count++;
        }
    return count == query->own_wanted ? set : (struct slotset){{0}};
}

struct slotset query_free(const struct query *query)
{
    struct slotset set = {{0}};
    for (int i = 0; i < query->count; i++)
        if (free_on(query, i) >= quorum_of(query->total))
            slotset_add(&set, i);
    return set;
}

int64_t query_rest_ms(const struct query *query)
{
    int64_t rests[NODES_MAX];
    int count = 0;
    for (int i = 0; i < query->answers; i++)
        if (query->rest_ms[i] >= 0)
            rests[count++] = query->rest_ms[i];
    int quorum = quorum_of(query->total);
    if (count < quorum)
        return -1;
    return order_statistic(rests, count, quorum - 1);
}

/* ---- all pools ---------------------------------------------------------- */

void pools_init(struct pools *pools)
{
    *pools = (struct pools){.index = NULL};
    entries_init(&pools->entries, sizeof(struct pool), POOLS_MAX);
    TAILQ_INIT(&pools->idle);
    TAILQ_INIT(&pools->waited_for);
    for (int i = 0; i < ASKERS_MAX; i++)
        TAILQ_INIT(&pools->lines[i].pools);
}

static void pool_give(struct pools *pools, struct pool *pool)
{
    (void)tdelete(&pool->name, &pools->index, names_compare);
    free(pool->news);
    entries_give(&pools->entries, pool);
}

void pools_fini(struct pools *pools)
{
    for (uint32_t i = 0; i < pools->entries.count; i++) {
        struct pool *pool = entries_at(&pools->entries, i);
        if (pool != NULL)
            pool_give(pools, pool);
    }
    entries_fini(&pools->entries);
}

struct pool *pools_find(const struct pools *pools, struct span name)
{
    char *const *found = tfind(&name, &pools->index, names_compare);
    return found != NULL ? (void *)(*found - offsetof(struct pool, name))
                         : NULL;
}

static struct pool *pool_make(struct pools *pools, struct span name)
{
    struct pool *pool = entries_take(&pools->entries);
    if (pool == NULL)
        return NULL;
    memset((char *)pool + sizeof pool->head, 0,
           sizeof *pool - sizeof pool->head);
    pool->name = (struct span){pool->text, span_copy(pool->text, name)};
    pool->prefix =
        (struct span){pool->text, name.len + span_copy(pool->text + name.len,
                                                       span_of(NAMES_SLOT))};
    pool->trust = TRUST_MAX;
    TAILQ_INIT(&pool->queue);
    if (tsearch(&pool->name, &pools->index, names_compare) == NULL) {
        entries_give(&pools->entries, pool);
        return NULL;
    }
    return pool;
}

struct pool *pools_use(struct pools *pools, struct span name)
{
    struct pool *pool = pools_find(pools, name);
    assert(name.len < RESOURCE_MAX); /* body.c: the slots' names fit */
    if (pool == NULL)
        pool = pool_make(pools, name);
    else if (pool->users == 0) {
        TAILQ_REMOVE(&pools->idle, pool, link);
        pools->idle_count--;
    }
    if (pool != NULL)
        pool->users++;
    return pool;
}

void pools_unuse(struct pools *pools, struct pool *pool)
{
    assert(pool->users > 0);
    if (--pool->users > 0)
        return;
    TAILQ_INSERT_TAIL(&pools->idle, pool, link);
    if (++pools->idle_count <= IDLE_MAX)
        return;
    struct pool *oldest = TAILQ_FIRST(&pools->idle);
    while (oldest != NULL && oldest->is_queried)
        oldest = TAILQ_NEXT(oldest, link);
    if (oldest == NULL)
        return;
    TAILQ_REMOVE(&pools->idle, oldest, link);
    pools->idle_count--;
    pool_give(pools, oldest);
}

/* ---- hints -------------------------------------------------------------- */

bool pool_is_trusted(const struct pool *pool)
{
    return pool->trust >= TRUST_LEAST;
}

/*
 * A first try costs a round, and two more if it is lost: a query and another
 * try. To begin with the query costs two. So to try first is better if more
 * than half of the tries win.
 */
void pool_note_first_try(struct pool *pool, bool is_won)
{
    if (is_won && pool->trust < TRUST_MAX)
        pool->trust++;
    if (!is_won && pool->trust > 0)
        pool->trust--;
}

void pool_try(struct pool *pool, const struct slotset *slots)
{
    slotset_join(&pool->taken, slots);
    slotset_join(&pool->trying, slots);
    slotset_join(&pool->touched, slots);
    slotset_remove(&pool->later, slots);
}

void pool_note_tried(struct pool *pool, const struct slotset *slots,
                     bool is_taken)
{
    slotset_remove(&pool->trying, slots);
    if (!is_taken)
        slotset_remove(&pool->taken, slots);
    slotset_join(&pool->touched, slots);
}

void pool_note_free(struct pool *pool, int slot)
{
    if (slotset_has(&pool->trying, slot))
        return;
    slotset_drop(&pool->taken, slot);
    slotset_drop(&pool->later, slot);
    slotset_add(&pool->touched, slot);
}

/* Whether what was believed free is free, without a try. */
static void judge_hints(struct pool *pool, const struct slotset *reported,
                        const struct slotset *free)
{
    struct slotset believed = *reported, right;
    slotset_remove(&believed, &pool->taken);
    right = believed;
    slotset_keep(&right, free);
    int count = slotset_count(&believed);
    if (count > 0)
        pool_note_first_try(pool, 2 * slotset_count(&right) > count);
}

void pool_note_query(struct pool *pool, int64_t now_us)
{
    const struct query *query = &pool->query;
    struct slotset reported = slotset_below(query->count);
    struct slotset taken = reported, free = query_free(query);
    int64_t rest_ms = query_rest_ms(query);
    slotset_remove(&taken, &free);
    slotset_remove(&pool->later, &taken);
    slotset_remove(&reported, &pool->touched);
    judge_hints(pool, &reported, &free);
    slotset_remove(&pool->taken, &reported);
    slotset_keep(&taken, &reported);
    slotset_join(&pool->taken, &taken);
    pool->free_from_us = rest_ms >= 0 ? now_us + rest_ms * US_PER_MS : 0;
    pool->informed = pool->queried;
}

/* ---- news --------------------------------------------------------------- */

void pool_want_news(struct pool *pool, int count)
{
    if (count <= pool->news_count)
        return;
    struct slotnews *news =
        reallocarray(pool->news, (size_t)count, sizeof *news);
    if (news == NULL)
        return;
    memset(news + pool->news_count, 0,
           (size_t)(count - pool->news_count) * sizeof *news);
    pool->news = news;
    pool->news_count = count;
}

void pool_drop_news(struct pool *pool)
{
    free(pool->news);
    pool->news = NULL;
    pool->news_count = 0;
}

void pool_free_later(struct pool *pool, int slot, int64_t at_us)
{
    if (slotset_has(&pool->trying, slot))
        return; /* the try tells */
    if (slotset_next(&pool->later, 0) < 0 || at_us < pool->later_us)
        pool->later_us = at_us;
    slotset_add(&pool->later, slot);
}

/* ---- whose query is next ----------------------------------------------- */

void turns_join(struct line *line, struct pool *pool)
{
    TAILQ_INSERT_TAIL(&line->pools, pool, turn);
    pool->line = line;
}

struct pool *turns_leave(struct pool *pool)
{
    struct line *line = pool->line;
    if (line == NULL)
        return NULL;
    bool was_first = TAILQ_FIRST(&line->pools) == pool;
    TAILQ_REMOVE(&line->pools, pool, turn);
    pool->line = NULL;
    return was_first ? TAILQ_FIRST(&line->pools) : NULL;
}

int64_t turns_from_us(const struct pool *pool)
{
    const struct line *line = pool->line;
    return line != NULL && TAILQ_FIRST(&line->pools) == pool &&
                   line->open < POOL_SLOTS_MAX
               ? at_least(line->until_us - BURST_US, 1)
               : 0;
}

void turns_begin(struct pools *pools, struct line *line, int slots,
                 int64_t now_us)
{
    int sharers = 1;
    for (int i = 0; i < ASKERS_MAX; i++)
        sharers +=
            &pools->lines[i] != line && pools->lines[i].until_us > now_us;
    line->until_us =
        at_least(line->until_us, now_us) + (int64_t)SLOT_US * slots * sharers;
    line->open += slots;
}

struct pool *turns_end(struct line *line, int slots)
{
    assert(line->open >= slots); /* permits.c: once for each that began */
    line->open -= slots;
    return TAILQ_FIRST(&line->pools);
}
