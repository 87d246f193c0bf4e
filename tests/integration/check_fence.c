/*
 * Fencing tokens and exclusion, as a resource behind the lock sees them:
 * several clients, two servers, nodes that restart one at a time.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

enum { N = 5, WORKERS = 4, RESOURCES = 16, GRANTS = 1500 };

/*
 * What the workers share: the store that the locks protect. It is no mutex,
 * on purpose: only the lock keeps two workers from being inside at once.
 */
struct store {
    atomic_llong last[RESOURCES]; /* highest fencing token seen */
    atomic_int inside[RESOURCES]; /* holders now: never more than one */
    atomic_int grants;
    atomic_int refused; /* 409 */
    atomic_int failed;  /* anything else */
    char failure[256];
};

static void note(struct store *store, const char *what, int resource,
                 long long value)
{
    if (atomic_fetch_add(&store->failed, 1) == 0)
        PRINT_TO(store->failure, "%s: r%d, %lld", what, resource, value);
}

/* The work under the lock: nobody else inside, and the number has risen. */
static void work_inside(struct store *store, int r, const struct lock *lock)
{
    if (atomic_fetch_add(&store->inside[r], 1) != 0)
        note(store, "two holders", r, lock->number);
    long long last = atomic_exchange(&store->last[r], lock->number);
    if (last >= lock->number)
        note(store, "number did not rise", r, last - lock->number);
    atomic_fetch_add(&store->grants, 1);
    atomic_fetch_sub(&store->inside[r], 1);
}

static void work_once(struct store *store, const struct server *server, int r)
{
    struct lock lock;

    int status = lock_acquire(server, textf("r%d", r), 30000, &lock)->status;
    if (status == 409) {
        atomic_fetch_add(&store->refused, 1);
        return;
    }
    if (status != 201) {
        note(store, "acquire failed", r, status);
        return;
    }
    work_inside(store, r, &lock);
    status = lock_release(server, &lock)->status;
    if (status != 200)
        note(store, "release failed", r, status);
}

static int grants_wanted(void)
{
    const char *text = getenv("FENCE_GRANTS");

    return text ? atoi(text) : GRANTS;
}

/* A process of its own; a check that fails in it ends it with a failure. */
static pid_t start_worker(struct store *store, int i)
{
    pid_t pid = harness_fork();

    if (pid > 0)
        return pid;
    unsigned seed = (unsigned)i + 1;
    while (atomic_load(&store->grants) < grants_wanted() &&
           atomic_load(&store->failed) == 0)
        work_once(store, &world.servers[i % 2], rand_r(&seed) % RESOURCES);
    _exit(0);
}

/* Waits until the grants go on, so that each node is hurt at work. */
static void wait_for_grants(struct store *store, int more)
{
    int from = atomic_load(&store->grants);

    WAIT_UNTIL(60000, atomic_load(&store->failed) > 0 ||
                          atomic_load(&store->grants) >= from + more ||
                          atomic_load(&store->grants) >= grants_wanted());
}

static bool is_voting_everywhere(int i)
{
    const struct answer *a =
        HTTP(&world.servers[i], .method = "GET", .path = "/nodes");

    return answer_int(a, "voting") == N;
}

static void restart_each_node(struct store *store)
{
    for (int i = 0; i < N; i++) {
        wait_for_grants(store, grants_wanted() / (4 * N));
        node_kill(&world.nodes[i]);
        wait_for_grants(store, grants_wanted() / (8 * N));
        node_start(&world.nodes[i]);
        AWHILE(is_voting_everywhere(0) && is_voting_everywhere(1));
    }
}

SUITE(fence, .timeout_s = 900);

TEST(story_08_numbers_rise_over_servers_and_restarted_nodes)
{
    struct store *store = harness_share(sizeof(struct store));
    pid_t workers[WORKERS];

    world_start_two(N, "");
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start_worker(store, i);
    restart_each_node(store);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(harness_reap(workers[i], 600000), 0);
    ck_assert_msg(atomic_load(&store->failed) == 0, "%d failures; first: %s",
                  atomic_load(&store->failed), store->failure);
    ck_assert_int_ge(atomic_load(&store->grants), grants_wanted());
    world_stop();
}
