/* SPDX-License-Identifier: MIT */
/*
 * A node loses memory, or gets another one: that of another node, of a replica,
 * or an earlier one of its own. Nobody may get a lock that it had granted, and
 * it votes again when that has ended.
 *
 * With a greatest TTL of 8 s a quarantine lasts 14.5 s.
 */
#include <stdio.h>
#include <string.h>

#include "node.h"
#include "rival.h"

#define LIMIT "--max-ttl-ms 8000"

enum { N = 5, LIMIT_MS = 8000, RETURN_MS = 40000 };

static struct node *const victim = &world.nodes[0];
static struct node other; /* with another memory */
static struct holder holder;

static void new_node(struct node *node)
{
    *node = (struct node){.is_durable = true, .port = harness_free_port()};
    harness_make_dir(node->dir);
}

static void start_copy(void)
{
    node_start_copy(&other, victim);
}

static void bring_back_copy(void)
{
    node_bring_back(victim, &other);
}

/* With its old run_id, and the permission to vote of one without the lock. */
static void replicate_another(void)
{
    node_replicate(victim, &world.nodes[3]);
    node_do(victim, "REPLICAOF NO ONE");
}

/* It was cut off before the lock was granted. */
static void cut_replica_off(void)
{
    new_node(&other);
    node_start(&other);
    node_replicate(&other, victim);
    for (int i = 0; i < 2;
         i++) /* it may cost the master its vote for a while */
        rival_await_looks(i);
    AWHILE(rival_all_vote_everywhere());
    node_do(&other, "REPLICAOF NO ONE");
}

/* As others take over an address. */
static void take_masters_port(void)
{
    node_kill(victim);
    node_do(&other, "CONFIG SET port %d", victim->port);
    other.port = victim->port;
    *victim = other;
    other = (struct node){.pid = 0};
}

static void rebuild_from_another(void)
{
    node_kill(victim);
    rival_await_look(0, 3); /* its permission is the younger one */
    node_copy_files(victim, &world.nodes[3]);
    node_start(victim);
}

/* The state has no TTL; and nobody evicts any more when the next look comes. */
static void evict(void)
{
    node_do(victim, "CONFIG SET maxmemory 1 maxmemory-policy volatile-lru");
    SOON(node_integer(victim, "EXISTS contended") == 0);
    node_do(victim, "CONFIG SET maxmemory 0 maxmemory-policy noeviction");
    ck_assert_int_eq(node_integer(victim, "EXISTS redlockd:state"), 1);
    SOON(!rival_is_voting_anywhere(0)); /* for a heartbeat it votes */
}

static bool is_told_not_to_be_durable(void)
{
    return strstr(rival_told(0, 0, "detail"), "not durable") != NULL;
}

static void switch_file_off(void)
{
    node_do(victim, "CONFIG SET appendonly no");
    SOON(is_told_not_to_be_durable());
    rival_await_looks(0); /* it is written down, and the others know */
}

/* Node and server share a machine, which loses its power. */
static void lose_power(void)
{
    world_kill_server(0);
    node_kill(victim);
    node_start(victim);
    rival_start_fresh(0, LIMIT);
}

/* The server that knows how old the memory is looks a moment too late: a fresh
 * one has looked before it. */
static void bring_back_before_a_look(void)
{
    server_pause(here);
    bring_back_copy();
    rival_start_fresh(1, LIMIT);
    server_resume(here);
    rival_await_look(0, 0); /* it has looked as well, and found nothing */
}

static void back_up(void)
{
    new_node(&other);
    node_copy_files(&other, victim);
}

/* Whether the server has come to know the node again, and what it holds. */
static bool has_judged(void)
{
    static const char early[] =
        "unreachable connecting silent loading admitting";
    return strstr(early, rival_told(0, 0, "state")) == NULL;
}

/* The backup is refused, and the server that did so is restarted. */
static void bring_backup_back(void)
{
    rival_await_looks(0); /* the nodes know a later state */
    node_kill(victim);
    SOON(!rival_is_voting(0, 0));
    node_copy_files(victim, &other);
    node_start(victim);
    SOON(has_judged());
    ck_assert(!rival_is_voting(0, 0));
    world_kill_server(0);
    rival_start_fresh(1, LIMIT);
}

static const struct {
    /* cppcheck-suppress unusedStructMember; it tells the reader */
    int story, servers;
    void (*before)(void); /* the lock is granted */
    void (*after)(void);
} stories[] = {
    {37, 2, NULL, replicate_another},
    {38, 2, NULL, rebuild_from_another},
    {39, 2, cut_replica_off, take_masters_port},
    {40, 2, NULL, evict},
    {41, 2, start_copy, bring_back_copy},
    {42, 1, start_copy, bring_back_before_a_look},
    {43, 1, back_up, bring_backup_back},
    {44, 1, switch_file_off, lose_power},
};

SUITE(memory, .timeout_s = 120, .tags = "slow");

TEST_EACH(stories_of_lost_memory, stories)
{
    rival_start(N, stories[_i].servers, LIMIT);
    if (stories[_i].before != NULL)
        stories[_i].before();
    rival_hold(0, LIMIT_MS, &holder);
    stories[_i].after();
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    node_kill(&other);
    world_stop();
}

/*
 * The first server is one that has watched the nodes, and sees it with its next
 * heartbeat. The fresh one must not have called it a first start by then.
 */
TEST(story_46_all_nodes_are_flushed_beside_a_fresh_server)
{
    static const char options[] = LIMIT " --node-timeout-ms 50";
    rival_start(N, 1, options);
    rival_hold(0, LIMIT_MS, &holder);
    for (int i = 0; i < N; i++)
        rival_await_look(0, i);
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], "FLUSHALL");
    world_start_server(1, options);
    world_await(1, "/livez");
    /* nobody asks the first one, which would look: until its heartbeat */
    pause_ms(700);
    rival_expect_refused(&holder);
    AWHILE(rival_all_vote_everywhere());
    world_stop();
}

/* redlockd is another user than the one that the file is loaded as. */
static const char *as_full(void)
{
    static char text[512];
    int len = PRINT_TO(text, LIMIT " --nodes ");
    for (int i = 0; i < N; i++)
        len += snprintf(text + len, sizeof text - (size_t)len,
                        "%sredis://full:any@127.0.0.1:%d", i > 0 ? "," : "",
                        world.nodes[i].port);
    return text;
}

/*
 * Redis loads its append-only file as the user default, and silently drops what
 * a script wrote if that user may not do it: here each extension. Its lock ends
 * when the TTL of before the extension does.
 */
TEST(story_52_append_only_file_is_loaded_without_the_rights_to_it)
{
    world_start_nodes(N);
    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], "ACL SETUSER full on nopass ~* &* +@all");
    world_serve(0, as_full());
    rival_hold(0, 3000, &holder);
    rival_extend(0, LIMIT_MS, &holder);
    node_kill(victim);
    victim->lacks = "-pexpireat";
    node_start(victim);
    rival_expect_refused_without(&holder, 0, RETURN_MS);
    world_stop();
}

/*
 * A node lives for a while without its append-only file, and is admitted; then
 * the old file comes back, with the old permission and without what was
 * granted meanwhile. The generation in it is too old.
 */
TEST(story_29_a_life_without_the_file_costs_the_vote)
{
    struct lock lock;
    rival_start(3, 1, LIMIT);
    node_kill(victim);
    victim->is_durable = false;
    node_start(victim);
    SOON(node_integer(victim, "HEXISTS redlockd:state admit") == 1);
    rival_await_state(0, 0, "voting");
    int64_t promised_ms = harness_now_ms();
    lock_take(here, "meanwhile", LIMIT_MS, &lock);
    node_kill(victim);
    victim->is_durable = true;
    node_start(victim);
    rival_await_state(0, 0, "quarantined");
    rival_await_state(0, 0, "voting");
    ck_assert_int_ge(harness_now_ms() - promised_ms, LIMIT_MS);
    world_stop();
}
