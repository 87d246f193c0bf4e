#include "slotset.h"

#include <assert.h>

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
