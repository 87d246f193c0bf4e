#include "holdings.h"

#include <assert.h>
#include <search.h>

#include "../../server/lock/lock.h"
#include "../../server/lock/names.h"
#include "digest.h"

struct holding {
    struct digest key; /* of the holder, the names and the reader */
    struct holder *holder;
    bool is_reader;
    int64_t number;                  /* the highest that was granted; 0: none */
    char random[HOLDING_READER_MAX]; /* of the token with that number */
    int64_t until_us;                /* 0: not held */
    size_t place;                    /* in the heap, while it is held */
    int claims;
    uint32_t forced; /* bit per name: it was released by force */
    size_t names_len;
    char names[]; /* what is locked */
};

static_assert(NAMES_MAX <= 32, "a bit each");

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
static void holdings_settle(struct holdings *all, size_t place,
                            struct holding *it)
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

static void holdings_end(struct holdings *all, struct holding *it)
{
    struct holding *last = all->heap[--all->held];
    if (last != it)
        holdings_settle(all, it->place, last);
    it->until_us = 0;
}

/* ---- the tree ----------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct holding *left = a, *right = b;
    return memcmp(&left->key, &right->key, sizeof left->key);
}

/* Fills key, and what lies in it. */
static bool make_key(const struct holder *holder, const struct digest *names,
                     struct span reader, struct holding *wanted)
{
    char text[DIGEST_BYTES + HOLDING_READER_MAX + 1 + sizeof holder->name];
    assert(reader.len <= HOLDING_READER_MAX);
    size_t len = sizeof names->words;
    memcpy(text, names->words, len);
    len += span_copy(text + len, reader);
    text[len++] = '\n'; /* neither has one behind */
    len += span_copy(text + len, span_of(holder->name));
    *wanted = (struct holding){.is_reader = reader.len > 0};
    return digest_make(&wanted->key, (struct span){text, len});
}

static struct holding *look_up(const struct holdings *all,
                               const struct holding *wanted)
{
    struct holding **at = tfind(wanted, &all->tree, by_key);
    return at != NULL ? *at : NULL;
}

/*
 * *found: the lock, NULL if it is unknown; wanted is its key then. A reader
 * may be known by the exclusive lock that it was, as another server shared it.
 * False: no memory.
 */
static bool holdings_find(const struct holdings *all,
                          const struct holder *holder,
                          const struct holding_lock *lock,
                          struct holding *wanted, struct holding **found)
{
    struct digest names;
    struct holding exclusive;
    if (!digest_make(&names, lock->names) ||
        !make_key(holder, &names, lock->reader, wanted))
        return false;
    *found = look_up(all, wanted);
    if (*found != NULL || lock->reader.len == 0 || lock->number == 0)
        return true;
    if (!make_key(holder, &names, (struct span){0}, &exclusive))
        return false;
    *found = look_up(all, &exclusive);
    if (lock->may_be_either)
        *wanted = exclusive;
    else if (*found != NULL && (*found)->number != lock->number)
        *found = NULL;
    return true;
}

static struct holding *holdings_add(struct holdings *all, struct holder *holder,
                                    const struct holding *wanted,
                                    struct span names)
{
    char *heap = (char *)all->heap;
    bool has_place = bytes_reserve(&heap, &all->heap_size,
                                   (all->count + 1) * sizeof(struct holding *));
    all->heap = (struct holding **)(void *)heap;
    struct holding *it = has_place ? calloc(1, sizeof *it + names.len) : NULL;
    if (it == NULL)
        return NULL;
    *it = *wanted;
    it->holder = holder;
    it->names_len = span_copy(it->names, names);
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
        holdings_end(all, it);
        forget_unless_used(all, it);
    }
}

enum holdings_verdict holdings_claim(struct holdings *all,
                                     struct holder *holder,
                                     const struct holding_lock *lock,
                                     int64_t now_us, struct holding **claim)
{
    struct holding wanted, *it;
    holdings_expire(all, now_us);
    if (!holdings_find(all, holder, lock, &wanted, &it))
        return HOLDINGS_NO_MEMORY;
    if (it == NULL && holder->count >= holder->most)
        return HOLDINGS_FULL;
    if (it == NULL)
        it = holdings_add(all, holder, &wanted, lock->names);
    if (it == NULL)
        return HOLDINGS_NO_MEMORY;
    it->claims++;
    *claim = it;
    return HOLDINGS_CLAIMED;
}

struct holding *holdings_claim_known(struct holdings *all,
                                     const struct holder *holder,
                                     const struct holding_lock *lock)
{
    struct holding wanted, *it;
    if (!holdings_find(all, holder, lock, &wanted, &it) || it == NULL)
        return NULL;
    it->claims++;
    return it;
}

bool holdings_is_full(struct holdings *all, const struct holder *holder,
                      int64_t now_us)
{
    holdings_expire(all, now_us);
    return holder->count >= holder->most;
}

void holdings_grant(struct holdings *all, struct holding *claim, int64_t number,
                    int64_t until_us)
{
    assert(claim->claims > 0);
    if (number > claim->number)
        claim->forced = 0;
    claim->number = at_least(claim->number, number);
    if (until_us <= claim->until_us)
        return; /* nothing shortens the life of a key on the nodes */
    size_t place = claim->until_us != 0 ? claim->place : all->held++;
    claim->until_us = until_us;
    holdings_settle(all, place, claim);
}

void holdings_keep(struct holdings *all, struct holding *claim,
                   int64_t until_us)
{
    if (claim->until_us != 0)
        holdings_grant(all, claim, claim->number, until_us);
}

void holdings_set_token(struct holding *claim, int64_t number,
                        struct span random)
{
    assert(random.len == sizeof claim->random); /* as tokens have */
    if (claim->number == number)
        (void)span_copy(claim->random, random);
}

bool holdings_has_token(const struct holding *claim, int64_t number,
                        struct span random)
{
    return claim->number == number &&
           span_is_same(random,
                        (struct span){claim->random, sizeof claim->random});
}

struct holding *holdings_move(struct holdings *all, struct holding *claim,
                              const struct holding_lock *lock)
{
    struct digest names;
    struct holding wanted, *it = NULL;
    if (digest_make(&names, lock->names) &&
        make_key(claim->holder, &names, lock->reader, &wanted)) {
        it = look_up(all, &wanted);
        if (it == claim)
            return claim;
        if (it == NULL)
            it = holdings_add(all, claim->holder, &wanted, lock->names);
    }
    if (it != NULL)
        it->claims++;
    if (claim->number <= lock->number) {
        /* it was that of a writer, whose time the nodes keep */
        if (it != NULL && claim->until_us != 0)
            holdings_grant(all, it, lock->number, claim->until_us);
        holdings_release(all, claim, lock->number);
    }
    holdings_drop(all, claim);
    return it;
}

void holdings_drop(struct holdings *all, struct holding *claim)
{
    assert(claim->claims > 0); /* access_end: once for each request */
    claim->claims--;
    forget_unless_used(all, claim);
}

void holdings_release(struct holdings *all, struct holding *claim,
                      int64_t number)
{
    assert(claim->claims > 0);
    if (claim->until_us != 0 && claim->number <= number)
        holdings_end(all, claim);
}

static bool has_name(struct span names, struct span name)
{
    while (names.len > 0)
        if (span_is_same(names_next(&names), name))
            return true;
    return false;
}

/* True if that was the last of its names. */
static bool force(struct holding *it, struct span names)
{
    struct span rest = {it->names, it->names_len};
    bool is_gone = true;
    for (uint32_t bit = 1; rest.len > 0; bit <<= 1) {
        if (has_name(names, names_next(&rest)))
            it->forced |= bit;
        is_gone = is_gone && (it->forced & bit) != 0;
    }
    return is_gone;
}

/* All of them are looked at: operators seldom do it. */
void holdings_force(struct holdings *all, struct span names, int64_t number)
{
    size_t before = all->held, kept = 0;
    for (size_t i = 0; i < before; i++) {
        struct holding *it = all->heap[i];
        if ((number != 0 ? it->number == number : it->is_reader) &&
            force(it, names))
            continue;
        all->heap[i] = all->heap[kept];
        all->heap[kept++] = it;
    }
    if (kept == before)
        return;
    for (all->held = 0; all->held < kept; all->held++)
        holdings_settle(all, all->held, all->heap[all->held]);
    for (size_t i = kept; i < before; i++) {
        all->heap[i]->until_us = 0;
        forget_unless_used(all, all->heap[i]);
    }
}
