#include "turns.h"

#include <assert.h>

#include "pool.h"

enum {
    SLOT_US = 10,    /* for each slot that is asked about, in the long run */
    BURST_US = 20000 /* so much of it at once */
};

void turns_init(struct turns *turns)
{
    for (int i = 0; i < ASKERS_MAX; i++) {
        TAILQ_INIT(&turns->lines[i].pools);
        turns->lines[i].until_us = 0;
        turns->lines[i].open = 0;
    }
}

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

void turns_begin(struct turns *turns, struct line *line, int slots,
                 int64_t now_us)
{
    int sharers = 1;
    for (int i = 0; i < ASKERS_MAX; i++)
        sharers +=
            &turns->lines[i] != line && turns->lines[i].until_us > now_us;
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
