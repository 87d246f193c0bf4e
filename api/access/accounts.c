#include "accounts.h"

#include <assert.h>
#include <inttypes.h>

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

/* Fills list; false: no memory, and what was made is freed. */
static bool fill(const struct accounts *all,
                 const struct identities *identities, int64_t now_us,
                 struct account **list)
{
    int count = identities_count(identities);
    int i = 0;
    for (; i < count; i++) {
        const struct identity *identity = identities_at(identities, i);
        list[i] = find_old(all, identity->name);
        if (list[i] == NULL)
            list[i] = make_account(now_us, identity);
        if (list[i] == NULL)
            break;
    }
    if (i == count)
        return true;
    while (--i >= 0)
        if (find_old(all, list[i]->holder.name) == NULL)
            free(list[i]);
    return false;
}

/* Those that the new file does not name go, as soon as no lock is counted. */
static void sort_out(struct accounts *all, struct account *candidates)
{
    struct account *next;
    all->gone = NULL;
    for (struct account *it = candidates; it != NULL; it = next) {
        next = it->next_gone;
        it->next_gone = NULL;
        if (it->identity != NULL)
            continue;
        if (it->holder.count == 0) {
            free(it);
            continue;
        }
        it->next_gone = all->gone;
        all->gone = it;
    }
}

/* Who was known by another credential before is somebody else. */
static void date(const struct accounts *all, struct account *it,
                 const struct identity *identity)
{
    assert(it != NULL);
    if (it->identity == NULL ||
        !identity_has_same_credential(it->identity, identity))
        it->since = all->reads;
}

bool accounts_set(struct accounts *all, struct identities *identities,
                  int64_t now_us)
{
    size_t count = (size_t)identities_count(identities);
    struct account **list = calloc(count, sizeof(struct account *));
    struct account *candidates = all->gone;
    if (list == NULL || !fill(all, identities, now_us, list)) {
        free(list);
        return false;
    }
    all->reads++;
    for (size_t i = 0; i < count; i++)
        date(all, list[i], identities_at(identities, (int)i));
    int old_count =
        all->identities != NULL ? identities_count(all->identities) : 0;
    for (int i = 0; i < old_count; i++) {
        struct account *it = all->list[i];
        it->identity = NULL;
        it->next_gone = candidates;
        candidates = it;
    }
    for (size_t i = 0; i < count; i++) {
        assert(list[i] != NULL);
        list[i]->identity = identities_at(identities, (int)i);
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
    for (int i = 0;
         all->identities != NULL && i < identities_count(all->identities); i++)
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

static bool print_requests(const struct account *account, FILE *out)
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

static bool print_locks(const struct account *account, FILE *out)
{
    return account->holder.most == 0 ||
           fprintf(out,
                   "redlockd_identity_locks{identity=\"%s\"} %" PRId64 "\n",
                   account->holder.name, account->holder.count) >= 0;
}

static bool print_end(const struct account *account, FILE *out)
{
    return account->identity->expires_s == 0 ||
           fprintf(out,
                   "redlockd_identity_expiry_timestamp_seconds{identity="
                   "\"%s\"} %" PRId64 "\n",
                   account->holder.name, account->identity->expires_s) >= 0;
}

/* Names have only characters that need no escape. */
bool accounts_print(const struct accounts *all, FILE *out)
{
    int count = identities_count(all->identities);
    bool is_whole = print_head(out, "identity_requests_total", "counter",
                               "Requests by identity, and whether it may make "
                               "them.");
    for (int i = 0; i < count; i++)
        is_whole &= print_requests(all->list[i], out);
    is_whole &= print_head(out, "identity_locks", "gauge",
                           "Locks that an identity with a limit holds "
                           "through this server.");
    for (int i = 0; i < count; i++)
        is_whole &= print_locks(all->list[i], out);
    is_whole &= print_head(out, "identity_expiry_timestamp_seconds", "gauge",
                           "When an identity expires, in Unix time.");
    for (int i = 0; i < count; i++)
        is_whole &= print_end(all->list[i], out);
    return is_whole;
}
