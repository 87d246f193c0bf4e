#include "accounts.h"

#include <assert.h>
#include <inttypes.h>

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
    while (it != NULL && strcmp(it->holder.name, name) != 0)
        it = it->next_gone;
    return it;
}

static struct account *make_account(int64_t now_us,
                                    const struct identity *identity)
{
    struct account *it = calloc(1, sizeof *it);
    if (it == NULL)
        return NULL;
    static_assert(sizeof it->holder.name == sizeof identity->name, "");
    memcpy(it->holder.name, identity->name, sizeof identity->name);
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
        if (find_old(all, list[i]->holder.name) == NULL)
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
        taken += it->places.taken[i];
    return taken > 0 || it->holder.count > 0;
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
        list[i]->holder.most = list[i]->identity->locks;
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

static bool accounts_print_requests(const struct account *account, FILE *out)
{
    static const char *const results[ACCOUNT_RESULTS] = {
        [ACCOUNT_ALLOWED] = "allowed",
        [ACCOUNT_FORBIDDEN] = "forbidden",
        [ACCOUNT_LIMITED] = "limited",
    };
    bool is_whole = true;
    for (int i = 0; i < ACCOUNT_RESULTS; i++)
        is_whole &=
            fprintf(out,
                    "redlockd_identity_requests_total{identity=\"%s\","
                    "result=\"%s\"} %" PRIu64 "\n",
                    account->holder.name, results[i], account->results[i]) >= 0;
    return is_whole;
}

/* Names have only characters that need no escape. */
bool accounts_print(const struct accounts *all, FILE *out)
{
    int count = all->identities->count;
    bool is_whole = print_head(out, "identity_requests_total", "counter",
                               "Requests by identity, and whether it may make "
                               "them.");
    for (int i = 0; i < count; i++)
        is_whole &= accounts_print_requests(all->list[i], out);
    is_whole &= print_head(out, "identity_locks", "gauge",
                           "Locks that an identity with a limit holds "
                           "through this server.");
    for (int i = 0; i < count; i++) {
        const struct holder *it = &all->list[i]->holder;
        if (it->most != 0)
            is_whole &=
                fprintf(out,
                        "redlockd_identity_locks{identity=\"%s\"} %" PRId64
                        "\n",
                        it->name, it->count) >= 0;
    }
    is_whole &= print_head(out, "identity_expiry_timestamp_seconds", "gauge",
                           "When an identity expires, in Unix time.");
    for (int i = 0; i < count; i++) {
        const struct identity *it = all->list[i]->identity;
        if (it->expires_s != 0)
            is_whole &= fprintf(out,
                                "redlockd_identity_expiry_timestamp_seconds{"
                                "identity=\"%s\"} %" PRId64 "\n",
                                it->name, it->expires_s) >= 0;
    }
    return is_whole;
}
