/* SPDX-License-Identifier: MIT */
#include "accounts.h"

#include <assert.h>
#include <inttypes.h>
#include <search.h>

#include "../../server/lock/names.h"

/* ---- token buckets ------------------------------------------------------ */

enum { REQUEST = US_PER_S }; /* so that rate millionths come in each µs */

void bucket_init(struct bucket *it, int64_t burst, int64_t now_us)
{
    *it = (struct bucket){.level = burst * REQUEST, .filled_us = now_us};
}

bool bucket_take(struct bucket *it, int64_t rate, int64_t burst, int64_t count,
                 int64_t now_us, int64_t *wait_us)
{
    assert(rate > 0 && rate <= IDENTITY_RATE_MAX && burst > 0 &&
           burst <= IDENTITY_RATE_MAX);
    assert(count > 0);
    int64_t wanted = (count < burst ? count : burst) * REQUEST;
    int64_t most = burst * REQUEST;
    int64_t passed_us = at_least(now_us - it->filled_us, 0);
    it->filled_us += passed_us;
    if (passed_us > most / rate) /* or the product may be too large */
        it->level = most;
    else
        it->level += passed_us * rate;
    if (it->level > most)
        it->level = most;
    if (it->level < wanted) {
        *wait_us = divide_up(wanted - it->level, rate);
        return false;
    }
    it->level -= wanted;
    return true;
}

/* ---- locks held --------------------------------------------------------- */

struct holding {
    struct digest key; /* of the account, the names and the reader */
    struct account *account;
    bool is_reader;
    int64_t number;                  /* the highest that was granted; 0: none */
    char random[HOLDING_READER_MAX]; /* of the token with that number */
    int64_t until_us;                /* 0: not held */
    size_t place;                    /* in the heap, while it is held */
    int reservations;
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
static bool make_key(const struct account *account, const struct digest *names,
                     struct span reader, struct holding *wanted)
{
    char text[DIGEST_BYTES + HOLDING_READER_MAX + 1 + sizeof account->name];
    assert(reader.len <= HOLDING_READER_MAX);
    size_t len = sizeof names->words;
    memcpy(text, names->words, len);
    len += span_copy(text + len, reader);
    text[len++] = '\n'; /* neither has one behind */
    len += span_copy(text + len, span_of(account->name));
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
                          const struct account *account,
                          const struct holding_lock *lock,
                          struct holding *wanted, struct holding **found)
{
    struct digest names;
    struct holding exclusive;
    if (!digest_make(&names, lock->names) ||
        !make_key(account, &names, lock->reader, wanted))
        return false;
    *found = look_up(all, wanted);
    if (*found != NULL || lock->reader.len == 0 || lock->number == 0)
        return true;
    if (!make_key(account, &names, (struct span){0}, &exclusive))
        return false;
    *found = look_up(all, &exclusive);
    if (lock->may_be_either)
        *wanted = exclusive;
    else if (*found != NULL && (*found)->number != lock->number)
        *found = NULL;
    return true;
}

static struct holding *holdings_add(struct holdings *all,
                                    struct account *account,
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
    it->account = account;
    it->names_len = span_copy(it->names, names);
    if (tsearch(it, &all->tree, by_key) == NULL) {
        free(it);
        return NULL;
    }
    account->locks++;
    all->count++;
    return it;
}

/* Frees it, unless it is reserved or held. */
static void forget_unless_used(struct holdings *all, struct holding *it)
{
    if (it->reservations > 0 || it->until_us != 0)
        return;
    (void)tdelete(it, &all->tree, by_key); /* it is there */
    it->account->locks--;
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

enum holdings_verdict holdings_reserve(struct holdings *all,
                                       struct account *account,
                                       const struct holding_lock *lock,
                                       int64_t now_us,
                                       struct holding **reservation)
{
    struct holding wanted, *it;
    holdings_expire(all, now_us);
    if (!holdings_find(all, account, lock, &wanted, &it))
        return HOLDINGS_NO_MEMORY;
    if (it == NULL && account->locks >= account->locks_most)
        return HOLDINGS_FULL;
    if (it == NULL)
        it = holdings_add(all, account, &wanted, lock->names);
    if (it == NULL)
        return HOLDINGS_NO_MEMORY;
    it->reservations++;
    *reservation = it;
    return HOLDINGS_RESERVED;
}

struct holding *holdings_reserve_known(struct holdings *all,
                                       const struct account *account,
                                       const struct holding_lock *lock)
{
    struct holding wanted, *it;
    if (!holdings_find(all, account, lock, &wanted, &it) || it == NULL)
        return NULL;
    it->reservations++;
    return it;
}

bool holdings_is_full(struct holdings *all, const struct account *account,
                      int64_t now_us)
{
    holdings_expire(all, now_us);
    return account->locks >= account->locks_most;
}

void holdings_grant(struct holdings *all, struct holding *reservation,
                    int64_t number, int64_t until_us)
{
    assert(reservation->reservations > 0);
    if (number > reservation->number)
        reservation->forced = 0;
    reservation->number = at_least(reservation->number, number);
    if (until_us <= reservation->until_us)
        return; /* nothing shortens the life of a key on the nodes */
    size_t place =
        reservation->until_us != 0 ? reservation->place : all->held++;
    reservation->until_us = until_us;
    holdings_settle(all, place, reservation);
}

void holdings_keep(struct holdings *all, struct holding *reservation,
                   int64_t until_us)
{
    if (reservation->until_us != 0)
        holdings_grant(all, reservation, reservation->number, until_us);
}

void holdings_set_token(struct holding *reservation, int64_t number,
                        struct span random)
{
    assert(random.len == sizeof reservation->random); /* as tokens have */
    if (reservation->number == number)
        (void)span_copy(reservation->random, random);
}

bool holdings_has_token(const struct holding *reservation, int64_t number,
                        struct span random)
{
    return reservation->number == number &&
           span_is_same(random, (struct span){reservation->random,
                                              sizeof reservation->random});
}

struct holding *holdings_move(struct holdings *all, struct holding *reservation,
                              const struct holding_lock *lock)
{
    struct digest names;
    struct holding wanted, *it = NULL;
    if (digest_make(&names, lock->names) &&
        make_key(reservation->account, &names, lock->reader, &wanted)) {
        it = look_up(all, &wanted);
        if (it == reservation)
            return reservation;
        if (it == NULL)
            it = holdings_add(all, reservation->account, &wanted, lock->names);
    }
    if (it != NULL)
        it->reservations++;
    if (reservation->number <= lock->number) {
        /* it was that of a writer, whose time the nodes keep */
        if (it != NULL && reservation->until_us != 0)
            holdings_grant(all, it, lock->number, reservation->until_us);
        holdings_release(all, reservation, lock->number);
    }
    holdings_drop(all, reservation);
    return it;
}

void holdings_drop(struct holdings *all, struct holding *reservation)
{
    assert(reservation->reservations >
           0); /* access_end: once for each request */
    reservation->reservations--;
    forget_unless_used(all, reservation);
}

void holdings_release(struct holdings *all, struct holding *reservation,
                      int64_t number)
{
    assert(reservation->reservations > 0);
    if (reservation->until_us != 0 && reservation->number <= number)
        holdings_end(all, reservation);
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

/* ---- accounts ----------------------------------------------------------- */

/* NULL: this identity had none. */
static struct account *find_old(const struct accounts *all, const char *name)
{
    int i = all->identities != NULL
                ? identities_find_name(all->identities, name)
                : -1;
    if (i >= 0)
        return all->list[i];
    struct account *it = all->gone;
    while (it != NULL && strcmp(it->name, name) != 0)
        it = it->next_gone;
    return it;
}

static struct account *make_account(int64_t now_us,
                                    const struct identity *identity)
{
    struct account *it = calloc(1, sizeof *it);
    if (it == NULL)
        return NULL;
    static_assert(sizeof it->name == sizeof identity->name, "");
    memcpy(it->name, identity->name, sizeof identity->name);
    bucket_init(&it->requests, identity->burst, now_us);
    bucket_init(&it->refusals, identity->burst, now_us);
    return it;
}

/* Fills list; false: no memory, and what was made is freed. */
static bool accounts_fill(const struct accounts *all,
                          const struct identities *identities, int64_t now_us,
                          struct account **list)
{
    int i = 0;
    for (; i < identities->count; i++) {
        const struct identity *identity = &identities->list[i];
        list[i] = find_old(all, identity->name);
        if (list[i] == NULL)
            list[i] = make_account(now_us, identity);
        if (list[i] == NULL)
            break;
    }
    if (i == identities->count)
        return true;
    while (--i >= 0)
        if (find_old(all, list[i]->name) == NULL)
            free(list[i]);
    return false;
}

/*
 * Whoever was in the file keeps its number. Others get one that has been free
 * for as long as possible: what was asked under it may still be under way.
 */
static void give_numbers(struct accounts *all, struct account **list, int count)
{
    bool is_taken[IDENTITIES_MAX + 1] = {false};
    for (int i = 0; i < count; i++)
        is_taken[list[i]->number] |= list[i]->identity != NULL;
    for (int i = 0; i < count; i++) {
        if (list[i]->identity != NULL)
            continue;
        do
            all->last_number = all->last_number % IDENTITIES_MAX + 1;
        while (is_taken[all->last_number]);
        list[i]->number = all->last_number;
        is_taken[all->last_number] = true;
    }
}

static bool is_used(const struct account *it)
{
    int taken = 0;
    for (int i = 0; i < PLACES; i++)
        taken += it->places[i];
    return taken > 0 || it->locks > 0;
}

/* Those that the new file does not name go, as soon as no lock is counted, and
 * no request has a place of theirs. */
static void sort_out(struct accounts *all, struct account *candidates)
{
    struct account *next;
    all->gone = NULL;
    for (struct account *it = candidates; it != NULL; it = next) {
        next = it->next_gone;
        it->next_gone = NULL;
        if (it->identity != NULL)
            continue;
        if (!is_used(it)) {
            free(it);
            continue;
        }
        it->next_gone = all->gone;
        all->gone = it;
    }
}

bool accounts_set(struct accounts *all, struct identities *identities,
                  int64_t now_us)
{
    int count = identities->count;
    struct account **list = calloc((size_t)count, sizeof(struct account *));
    struct account *candidates = all->gone;
    if (list == NULL || !accounts_fill(all, identities, now_us, list)) {
        free(list);
        return false;
    }
    all->reads++;
    give_numbers(all, list, count);
    for (int i = 0; i < count; i++) {
        struct account *it = list[i];
        assert(it != NULL);
        /* who was known by another credential before is somebody else */
        if (it->identity == NULL ||
            !identity_has_same_credential(it->identity, &identities->list[i]))
            it->since = all->reads;
    }
    for (int i = 0; all->identities != NULL && i < all->identities->count;
         i++) {
        struct account *it = all->list[i];
        it->identity = NULL;
        it->next_gone = candidates;
        candidates = it;
    }
    for (int i = 0; i < count; i++) {
        assert(list[i] != NULL);
        list[i]->identity = &identities->list[i];
        list[i]->locks_most = list[i]->identity->locks;
    }
    sort_out(all, candidates);
    identities_free(all->identities);
    free(all->list);
    all->identities = identities;
    all->list = list;
    return true;
}

void accounts_fini(struct accounts *all)
{
    struct account *next;
    for (int i = 0; all->identities != NULL && i < all->identities->count; i++)
        free(all->list[i]);
    for (struct account *it = all->gone; it != NULL; it = next) {
        next = it->next_gone;
        free(it);
    }
    identities_free(all->identities);
    free(all->list);
}

/* ---- metrics ------------------------------------------------------------ */

static bool print_head(FILE *out, const char *name, const char *type,
                       const char *help)
{
    return fprintf(out, "# HELP redlockd_%s %s\n# TYPE redlockd_%s %s\n", name,
                   help, name, type) >= 0;
}

/* more: labels behind that of the identity. Names have only characters that
 * need no escape. */
static bool accounts_print_value(FILE *out, const char *name,
                                 const struct account *account,
                                 const char *more, int64_t value)
{
    return fprintf(out, "redlockd_%s{identity=\"%s\"%s} %" PRId64 "\n", name,
                   account->name, more, value) >= 0;
}

bool accounts_print(const struct accounts *all, FILE *out)
{
    static const char *const results[ACCOUNT_RESULTS] = {
        [ACCOUNT_ALLOWED] = ",result=\"allowed\"",
        [ACCOUNT_FORBIDDEN] = ",result=\"forbidden\"",
        [ACCOUNT_LIMITED] = ",result=\"limited\"",
    };
    int count = all->identities->count;
    bool is_whole =
        print_head(out, "identity_requests_total", "counter",
                   "Requests by identity, and whether they were allowed.");
    for (int i = 0; i < count; i++)
        for (int j = 0; j < ACCOUNT_RESULTS; j++)
            is_whole &= accounts_print_value(out, "identity_requests_total",
                                             all->list[i], results[j],
                                             (int64_t)all->list[i]->results[j]);
    is_whole &= print_head(out, "identity_locks", "gauge",
                           "Locks that an identity with a quota (locks=) holds "
                           "through this server.");
    for (int i = 0; i < count; i++)
        if (all->list[i]->locks_most != 0)
            is_whole &= accounts_print_value(
                out, "identity_locks", all->list[i], "", all->list[i]->locks);
    is_whole &= print_head(out, "identity_expiry_timestamp_seconds", "gauge",
                           "When an identity expires, in Unix time.");
    for (int i = 0; i < count; i++)
        if (all->list[i]->identity->expires_s != 0)
            is_whole &= accounts_print_value(
                out, "identity_expiry_timestamp_seconds", all->list[i], "",
                all->list[i]->identity->expires_s);
    return is_whole;
}
