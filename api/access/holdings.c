#include "holdings.h"

#include <assert.h>
#include <search.h>

#include "../../server/lock/lock.h"
#include "digest.h"

struct holding {
    struct digest key; /* of the holder and what is locked */
    struct holder *holder;
    int64_t until_us; /* 0: not held */
    size_t place;     /* in the heap, while it is held */
    int claims;
};

/*
 * A tree by key, which the C library keeps balanced, and a heap whose first
 * ends first. The heap has room for all, so that a grant needs no memory.
 */
struct holdings {
    void *tree;
    size_t count;
    struct holding **heap;
    size_t heap_size; /* of its allocation, in bytes */
    size_t held;
};

struct holdings *holdings_new(void)
{
    return calloc(1, sizeof(struct holdings));
}

void holdings_free(struct holdings *all)
{
    if (all == NULL)
        return;
    tdestroy(all->tree, free);
    free(all->heap);
    free(all);
}

/* ---- the heap ----------------------------------------------------------- */

static void put(struct holdings *all, size_t place, struct holding *it)
{
    all->heap[place] = it;
    it->place = place;
}

/* Moves it from a free place towards the first, and away from it. */
static void settle(struct holdings *all, size_t place, struct holding *it)
{
    struct holding *other;
    while (place > 0 &&
           (other = all->heap[(place - 1) / 2])->until_us > it->until_us) {
        put(all, place, other);
        place = (place - 1) / 2;
    }
    for (;;) {
        size_t child = place * 2 + 1;
        if (child + 1 < all->held &&
            all->heap[child + 1]->until_us < all->heap[child]->until_us)
            child++;
        if (child >= all->held || all->heap[child]->until_us >= it->until_us)
            break;
        put(all, place, all->heap[child]);
        place = child;
    }
    put(all, place, it);
}

static void end(struct holdings *all, struct holding *it)
{
    struct holding *last = all->heap[--all->held];
    if (last != it)
        settle(all, it->place, last);
    it->until_us = 0;
}

/* ---- the tree ----------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct holding *left = a, *right = b;
    return memcmp(&left->key, &right->key, sizeof left->key);
}

static bool make_key(const struct holder *holder, struct span names,
                     struct digest *key)
{
    char text[sizeof holder->name + 1 + NAMES_LEN_MAX];
    size_t len = span_copy(text, span_of(holder->name));
    text[len++] = '\n';
    len += span_copy(text + len, names);
    return digest_make(key, (struct span){text, len});
}

static struct holding *find(const struct holdings *all,
                            const struct digest *key)
{
    const struct holding wanted = {.key = *key};
    struct holding **at = tfind(&wanted, &all->tree, by_key);
    return at != NULL ? *at : NULL;
}

static struct holding *add(struct holdings *all, struct holder *holder,
                           const struct digest *key)
{
    char *heap = (char *)all->heap;
    bool has_place = bytes_reserve(&heap, &all->heap_size,
                                   (all->count + 1) * sizeof(struct holding *));
    all->heap = (struct holding **)(void *)heap;
    struct holding *it = has_place ? calloc(1, sizeof *it) : NULL;
    if (it == NULL)
        return NULL;
    it->key = *key;
    it->holder = holder;
    if (tsearch(it, &all->tree, by_key) == NULL) {
        free(it);
        return NULL;
    }
    holder->count++;
    all->count++;
    return it;
}

/* Frees it, unless it is claimed or held. */
static void forget_unless_used(struct holdings *all, struct holding *it)
{
    if (it->claims > 0 || it->until_us != 0)
        return;
    (void)tdelete(it, &all->tree, by_key); /* it is there */
    it->holder->count--;
    all->count--;
    free(it);
}

/* ---- the calls ---------------------------------------------------------- */

void holdings_expire(struct holdings *all, int64_t now_us)
{
    while (all->held > 0 && all->heap[0]->until_us <= now_us) {
        struct holding *it = all->heap[0];
        end(all, it);
        forget_unless_used(all, it);
    }
}

enum holdings_verdict holdings_claim(struct holdings *all,
                                     struct holder *holder, struct span names,
                                     int64_t now_us, struct holding **claim)
{
    struct digest key;
    holdings_expire(all, now_us);
    if (!make_key(holder, names, &key))
        return HOLDINGS_NO_MEMORY;
    struct holding *it = find(all, &key);
    if (it == NULL && holder->count >= holder->most)
        return HOLDINGS_FULL;
    if (it == NULL)
        it = add(all, holder, &key);
    if (it == NULL)
        return HOLDINGS_NO_MEMORY;
    it->claims++;
    *claim = it;
    return HOLDINGS_CLAIMED;
}

bool holdings_is_full(struct holdings *all, const struct holder *holder,
                      int64_t now_us)
{
    holdings_expire(all, now_us);
    return holder->count >= holder->most;
}

void holdings_grant(struct holdings *all, struct holding *claim,
                    int64_t until_us)
{
    assert(claim->claims > 0);
    if (until_us <= claim->until_us)
        return; /* nothing shortens the life of a key on the nodes */
    size_t place = claim->until_us != 0 ? claim->place : all->held++;
    claim->until_us = until_us;
    settle(all, place, claim);
}

void holdings_drop(struct holdings *all, struct holding *claim, bool is_undone)
{
    assert(claim->claims > 0); /* access_end: once for each request */
    claim->claims--;
    if (is_undone && claim->until_us != 0)
        end(all, claim);
    forget_unless_used(all, claim);
}

void holdings_release(struct holdings *all, const struct holder *holder,
                      struct span names)
{
    struct digest key;
    struct holding *it = make_key(holder, names, &key) ? find(all, &key) : NULL;
    if (it == NULL || it->until_us == 0)
        return;
    end(all, it);
    forget_unless_used(all, it);
}
