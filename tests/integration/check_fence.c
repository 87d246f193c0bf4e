/* SPDX-License-Identifier: MIT */
/*
 * Fencing tokens and exclusion, as a resource behind the lock sees them:
 * several clients, two servers, nodes that restart one at a time.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "node.h"
#include "rival.h"

enum { N = 5, WORKERS = 4, RESOURCES = 16, GRANTS = 1500 };

/*
 * What the workers share: the store that the locks protect. It is no mutex,
 * on purpose: only the lock keeps two workers from being inside at once.
 */
static struct store {
    atomic_llong last[RESOURCES]; /* highest fencing token seen */
    atomic_int inside[RESOURCES]; /* holders now: never more than one */
    atomic_int grants;
    atomic_int refused; /* 409 */
    atomic_int failed;  /* anything else */
    char failure[256];
} * store;

static void note(const char *what, int resource, long long value)
{
    if (atomic_fetch_add(&store->failed, 1) == 0)
        PRINT_TO(store->failure, "%s: r%d, %lld", what, resource, value);
}

/* The work under the lock: nobody else inside, and the number has risen. */
static void work_inside(int r, const struct lock *lock)
{
    if (atomic_fetch_add(&store->inside[r], 1) != 0)
        note("two holders", r, lock->number);
    long long last = atomic_exchange(&store->last[r], lock->number);
    if (last >= lock->number)
        note("number did not rise", r, last - lock->number);
    atomic_fetch_add(&store->grants, 1);
    atomic_fetch_sub(&store->inside[r], 1);
}

static void work_once(const struct server *server, int r)
{
    struct lock lock;

    int status = lock_acquire(server, textf("r%d", r), 30000, &lock)->status;
    if (status == 409) {
        atomic_fetch_add(&store->refused, 1);
        return;
    }
    if (status != 201) {
        note("acquire failed", r, status);
        return;
    }
    work_inside(r, &lock);
    status = lock_release(server, &lock)->status;
    if (status != 200)
        note("release failed", r, status);
}

static int grants_wanted(void)
{
    const char *text = getenv("FENCE_GRANTS");

    return text ? atoi(text) : GRANTS;
}

/* Until there are enough. */
static void work(int worker)
{
    unsigned seed = (unsigned)worker + 1;
    while (atomic_load(&store->grants) < grants_wanted() &&
           atomic_load(&store->failed) == 0)
        work_once(&world.servers[worker % 2], rand_r(&seed) % RESOURCES);
}

/* Waits until the grants go on, so that each node is hurt at work. */
static void wait_for_grants(int more)
{
    int from = atomic_load(&store->grants);

    WAIT_UNTIL(60000, atomic_load(&store->failed) > 0 ||
                          atomic_load(&store->grants) >= from + more ||
                          atomic_load(&store->grants) >= grants_wanted());
}

static void restart_each_node(void)
{
    for (int i = 0; i < N; i++) {
        wait_for_grants(grants_wanted() / (4 * N));
        node_kill(&world.nodes[i]);
        wait_for_grants(grants_wanted() / (8 * N));
        node_start(&world.nodes[i]);
        AWHILE(rival_all_vote_everywhere());
    }
}

SUITE(fence, .timeout_s = 900);

TEST(story_08_numbers_rise_over_servers_and_restarted_nodes)
{
    store = harness_share(sizeof *store);
    world_start_two(N, "");
    crowd_start(WORKERS, work);
    restart_each_node();
    crowd_end();
    ck_assert_msg(atomic_load(&store->failed) == 0, "%d failures; first: %s",
                  atomic_load(&store->failed), store->failure);
    ck_assert_int_ge(atomic_load(&store->grants), grants_wanted());
    world_stop();
}
