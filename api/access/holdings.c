#include "holdings.h"

#include <assert.h>

#include "../../server/base/random.h"
#include "../../server/lock/lock.h"
#include "digest.h"

enum { SECRET_BYTES = 16, CHAINS_FIRST = 64 };

struct holding {
    struct digest key; /* of the holder and what is locked */
    struct holder *holder;
    struct holding *next; /* in its chain */
    int64_t until_us;     /* 0: not held */
    size_t place;         /* in the heap, while it is held */
    int claims;
};

/*
 * Chains by key, and a heap whose first ends first. The heap has room for all,
 * so that a grant needs no memory.
 */
struct holdings {
    unsigned char secret[SECRET_BYTES]; /* or chains could be made long */
    struct holding **chains;
    size_t chains_count; /* a power of 2 */
    size_t count;
    struct holding **heap;
    size_t heap_size; /* of its allocation, in bytes */
    size_t held;
};

struct holdings *holdings_new(void)
{
    struct holdings *all = calloc(1, sizeof *all);
    if (all == NULL)
        return NULL;
    all->chains_count = CHAINS_FIRST;
    all->chains = calloc(CHAINS_FIRST, sizeof(struct holding *));
    if (all->chains == NULL) {
        free(all);
        return NULL;
    }
    random_fill(all->secret, sizeof all->secret);
    return all;
}

void holdings_free(struct holdings *all)
{
    if (all == NULL)
        return;
    for (size_t i = 0; i < all->chains_count; i++) {
        struct holding *next;
        for (struct holding *it = all->chains[i]; it != NULL; it = next) {
            next = it->next;
            free(it);
        }
    }
    free(all->chains);
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

/* ---- the chains --------------------------------------------------------- */

static bool make_key(const struct holdings *all, const struct holder *holder,
                     struct span names, struct digest *key)
{
    char text[SECRET_BYTES + sizeof holder->name + 1 + NAMES_LEN_MAX];
    memcpy(text, all->secret, SECRET_BYTES);
    size_t len = SECRET_BYTES;
    len += span_copy(text + len, span_of(holder->name));
    text[len++] = '\n';
    len += span_copy(text + len, names);
    return digest_make(key, (struct span){text, len});
}

static struct holding **chain_of(const struct holdings *all,
                                 const struct digest *key)
{
    return &all->chains[key->words[0] & (all->chains_count - 1)];
}

static struct holding *find(const struct holdings *all,
                            const struct digest *key)
{
    struct holding *it = *chain_of(all, key);
    while (it != NULL && digest_same(&it->key, key) == 0)
        it = it->next;
    return it;
}

static void link_in(struct holdings *all, struct holding *it)
{
    struct holding **chain = chain_of(all, &it->key);
    it->next = *chain;
    *chain = it;
}

/* Without memory the chains only get longer. */
static void widen(struct holdings *all)
{
    size_t old_count = all->chains_count;
    struct holding **old = all->chains;
    struct holding **wider = calloc(old_count * 2, sizeof(struct holding *));
    if (wider == NULL)
        return;
    all->chains = wider;
    all->chains_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        struct holding *next;
        for (struct holding *it = old[i]; it != NULL; it = next) {
            next = it->next;
            link_in(all, it);
        }
    }
    free(old);
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
    holder->count++;
    all->count++;
    if (all->count > all->chains_count)
        widen(all);
    link_in(all, it);
    return it;
}

/* Frees it, unless it is claimed or held. */
static void forget_unless_used(struct holdings *all, struct holding *it)
{
    struct holding **at = chain_of(all, &it->key);
    if (it->claims > 0 || it->until_us != 0)
        return;
    while (*at != it)
        at = &(*at)->next;
    *at = it->next;
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
    if (!make_key(all, holder, names, &key))
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
    assert(claim->claims > 0);
    claim->claims--;
    if (is_undone && claim->until_us != 0)
        end(all, claim);
    forget_unless_used(all, claim);
}

void holdings_release(struct holdings *all, const struct holder *holder,
                      struct span names)
{
    struct digest key;
    struct holding *it =
        make_key(all, holder, names, &key) ? find(all, &key) : NULL;
    if (it == NULL || it->until_us == 0)
        return;
    end(all, it);
    forget_unless_used(all, it);
}
