/* SPDX-License-Identifier: MIT */
/*
 * A holder on a bare majority, and its rivals.
 */
#include "rival.h"

#include <stdio.h>
#include <string.h>

#include "node.h"

#define RESOURCE "contended"

enum {
    HOLD_MS = 15000, /* for the holder to get its majority */
    LOOK_MS = 4000,  /* by then each server has looked and confirmed anew */
    SPARE_MS = 1000, /* that the attack must leave of the validity */
    ASK_MS = 5,      /* whether it is still refused */
    NOBODY = -1,
};

/* ---- worlds -------------------------------------------------------------- */

void rival_start(int nodes, int servers, const char *options)
{
    world_start_nodes(nodes);
    world_serve_all(servers, options);
}

/* Whether the server has come to know the node, and what it holds. */
static bool is_judged(int server, int node)
{
    static const char early[] =
        "unreachable connecting silent loading admitting";
    return strstr(early, rival_told(server, node, "state")) == NULL;
}

void rival_start_fresh(int server, const char *options)
{
    world_start_server(server, options);
    world_await(server, "/livez");
    for (int i = 0; i < world.nodes_count; i++)
        SOON(world.nodes[i].pid == 0 || is_judged(server, i));
}

/* ---- who votes ----------------------------------------------------------- */

const char *rival_told(int server, int node, const char *member)
{
    const struct answer *answer =
        HTTP(&world.servers[server], .method = "GET", .path = "/nodes");
    const json_t *list = json_object_get(answer->json, "nodes");
    const char *text = json_string_value(
        json_object_get(json_array_get(list, (size_t)node), member));

    ck_assert_ptr_nonnull(text);
    return text;
}

bool rival_is_in_state(int server, int node, const char *state)
{
    return strcmp(rival_told(server, node, "state"), state) == 0;
}

bool rival_is_voting(int server, int node)
{
    return rival_is_in_state(server, node, "voting");
}

int rival_count_voting(int server)
{
    return (int)answer_int(
        HTTP(&world.servers[server], .method = "GET", .path = "/nodes"),
        "voting");
}

bool rival_is_voting_anywhere(int node)
{
    for (int i = 0; i < WORLD_SERVERS; i++)
        if (world.servers[i].pid && rival_is_voting(i, node))
            return true;
    return false;
}

bool rival_all_vote_everywhere(void)
{
    for (int i = 0; i < WORLD_SERVERS; i++)
        if (world.servers[i].pid && rival_count_voting(i) < world.nodes_count)
            return false;
    return true;
}

void rival_await_count(int server, int count)
{
    AWHILE(rival_count_voting(server) == count);
}

void rival_await_state(int server, int node, const char *state)
{
    AWHILE(rival_is_in_state(server, node, state));
}

static int count_looks(int server, int node)
{
    return (int)http_metric(
        &world.servers[server],
        textf("redlockd_votes_total{node=\"127.0.0.1:%d\",vote=\"done\"}",
              world.nodes[node].port));
}

void rival_await_look(int server, int node)
{
    int before = count_looks(server, node);
    SOON(count_looks(server, node) > before);
}

void rival_await_looks(int server)
{
    int before[WORLD_NODES] = {0};

    for (int i = 0; i < world.nodes_count; i++)
        before[i] = count_looks(server, i);
    for (int i = 0; i < world.nodes_count; i++)
        SOON(count_looks(server, i) > before[i] + 1);
}

/* ---- the holder ---------------------------------------------------------- */

/* Those beyond the first majority that votes; true: there is one. */
static bool choose_others(int server, bool is_other[WORLD_NODES])
{
    int missing = world.nodes_count / 2 + 1;

    for (int i = 0; i < world.nodes_count; i++) {
        is_other[i] = missing == 0 || !rival_is_voting(server, i);
        missing -= !is_other[i];
    }
    return missing == 0;
}

static bool try_to_hold(int server, int ttl_ms, struct holder *holder)
{
    bool is_other[WORLD_NODES] = {false};

    if (!choose_others(server, is_other))
        return false;
    for (int i = 0; i < world.nodes_count; i++)
        if (is_other[i] && world.nodes[i].pid)
            world_set(i, 1, RESOURCE, "occupied", HOLD_MS);
    int64_t sent_ms = harness_now_ms();
    const struct answer *answer =
        lock_acquire(&world.servers[server], RESOURCE, ttl_ms, &holder->lock);
    bool is_held = answer->status == 201;
    if (is_held)
        holder->ends_ms = sent_ms + answer_int(answer, "elapsed_ms") +
                          holder->lock.validity_ms;
    for (int i = 0; i < world.nodes_count; i++)
        if (is_other[i] && world.nodes[i].pid)
            world_del(i, 1, RESOURCE);
    return is_held;
}

void rival_hold(int server, int ttl_ms, struct holder *holder)
{
    AWHILE(try_to_hold(server, ttl_ms, holder));
}

void rival_extend(int server, int ttl_ms, struct holder *holder)
{
    int64_t sent_ms = harness_now_ms();
    const struct answer *answer =
        lock_extend(&world.servers[server], &holder->lock, ttl_ms);

    ck_assert_int_eq(answer->status, 200);
    holder->ends_ms = sent_ms + answer_int(answer, "elapsed_ms") +
                      answer_int(answer, "validity_ms");
}

/* ---- the rivals ---------------------------------------------------------- */

/* A letter a node: H has the holder's key, R a rival's, - none. */
static const char *draw_keys(const struct holder *holder)
{
    static char letters[WORLD_NODES + 1];

    for (int i = 0; i < world.nodes_count; i++) {
        const char *value = world.nodes[i].pid
                                ? node_text(&world.nodes[i], "GET " RESOURCE)
                                : NULL;
        letters[i] = '-';
        if (value)
            letters[i] = strcmp(value, holder->lock.token) == 0 ? 'H' : 'R';
    }
    letters[world.nodes_count] = '\0';
    return letters;
}

static void expect_no_grant(const struct holder *holder, int server)
{
    struct lock lock;
    const struct answer *answer =
        lock_acquire(&world.servers[server], RESOURCE, 2000, &lock);
    int64_t left_ms = holder->ends_ms - harness_now_ms();

    if (answer->status == 201 && left_ms > 0)
        ck_abort_msg("two holders: server %d granted %lld while %lld was valid "
                     "for another %lld ms; the nodes have %s",
                     server, (long long)lock.number,
                     (long long)holder->lock.number, (long long)left_ms,
                     draw_keys(holder));
    if (answer->status == 201) /* just behind the end; if it fails: the TTL */
        (void)lock_release(&world.servers[server], &lock);
}

static bool is_granted_next(const struct holder *holder)
{
    struct lock lock;

    for (int i = 0; i < WORLD_SERVERS; i++) {
        if (world.servers[i].pid == 0 ||
            lock_acquire(&world.servers[i], RESOURCE, 2000, &lock)->status !=
                201)
            continue;
        ck_assert_int_gt(lock.number, holder->lock.number);
        (void)lock_release(&world.servers[i], &lock); /* or its TTL ends it */
        return true;
    }
    return false;
}

static void watch(const struct holder *holder, int node)
{
    int64_t began_ms = harness_now_ms();

    ck_assert_msg(began_ms + SPARE_MS < holder->ends_ms,
                  "too slow: the validity has ended before anybody asked");
    while (harness_now_ms() < holder->ends_ms) {
        for (int i = 0; i < WORLD_SERVERS; i++)
            if (world.servers[i].pid)
                expect_no_grant(holder, i);
        bool must_be_away =
            node != NOBODY && harness_now_ms() > began_ms + LOOK_MS;
        bool is_voting = must_be_away && rival_is_voting_anywhere(node);
        ck_assert_msg(!is_voting || harness_now_ms() > holder->ends_ms,
                      "node %d has forgotten a lock, and votes", node);
        pause_ms(ASK_MS);
    }
    AWHILE(is_granted_next(holder));
}

void rival_expect_refused(const struct holder *holder)
{
    watch(holder, NOBODY);
}

void rival_expect_refused_without(const struct holder *holder, int node,
                                  int return_ms)
{
    watch(holder, node);
    WAIT_UNTIL(return_ms, rival_all_vote_everywhere());
}

/* ---- locks that the node has no part in ---------------------------------- */

void rival_cycle(const struct server *server, const char *resource)
{
    struct lock lock;

    lock_take(server, resource, 900, &lock);
    lock_drop(server, &lock);
}

int64_t rival_lock_without(int node, int server, int ms)
{
    int64_t began_ms = harness_now_ms();
    const struct server *at = &world.servers[server];

    while (!rival_is_voting(server, node)) {
        struct lock lock;
        lock_take(at, "without", 900, &lock);
        bool was_away = !rival_is_voting(server, node);
        if (was_away)
            ck_assert_int_eq(node_integer(&world.nodes[node], "EXISTS without"),
                             0);
        lock_drop(at, &lock);
        ck_assert_int_lt(harness_now_ms() - began_ms, ms);
        pause_ms(100);
    }
    return harness_now_ms() - began_ms;
}
