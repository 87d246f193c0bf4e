/*
 * Steady load while nodes die, stand still and come back: with two of five
 * hurt not one request fails; with three nothing is granted; afterwards all is
 * as before, and no key is left.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

/* It must not look like a silent node. */
#define SLOW_MACHINE "--node-timeout-ms 2000"

enum { N = 5, WORKERS = 4, SOME_CYCLES = 150, TTL_MS = 5000 };

/* What the workers share with the test. */
struct load {
    atomic_int cycles;
    atomic_int failed;
    atomic_bool is_over;
    char failure[512]; /* the first one */
};

static struct load *load;
static pid_t workers[WORKERS];

static void note_failure(const char *call, const struct answer *answer)
{
    if (atomic_fetch_add(&load->failed, 1) == 0)
        snprintf(load->failure, sizeof load->failure, "%s: %d %.400s", call,
                 answer->status, answer->body);
}

/* Acquires, extends and releases a lock that nobody else wants, and looks at
 * one that nobody has. */
static void work_once(int worker, int turn)
{
    struct lock lock;
    const struct answer *answer;

    const char *resource = textf("load:%d:%d", worker, turn);
    answer = lock_acquire(here, resource, TTL_MS, &lock);
    if (answer->status != 201) {
        note_failure("acquire", answer);
        return;
    }
    answer = lock_extend(here, &lock, TTL_MS);
    if (answer->status != 200)
        note_failure("extend", answer);
    answer = lock_inspect(here, "load:nobody");
    if (answer->status != 200)
        note_failure("inspect", answer);
    answer = lock_release(here, &lock);
    if (answer->status != 200)
        note_failure("release", answer);
    atomic_fetch_add(&load->cycles, 1);
}

/* Transport errors fail a check in the worker, which then ends with 1. */
static pid_t start_worker(int worker)
{
    pid_t pid = harness_fork();

    if (pid > 0)
        return pid;
    for (int turn = 0; !atomic_load(&load->is_over); turn++)
        work_once(worker, turn);
    _exit(0);
}

static void start_load(const char *options)
{
    world_start(N, options);
    load = harness_share(sizeof *load);
    for (int i = 0; i < WORKERS; i++)
        workers[i] = start_worker(i);
}

static void let_work(int cycles)
{
    int from = atomic_load(&load->cycles);

    WAIT_UNTIL(60000, atomic_load(&load->cycles) >= from + cycles ||
                          atomic_load(&load->failed) > 0);
}

static void end_load(void)
{
    atomic_store(&load->is_over, true);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(harness_reap(workers[i], 30000), 0);
    ck_assert_msg(atomic_load(&load->failed) == 0, "%d failed; first: %s",
                  atomic_load(&load->failed), load->failure);
}

SUITE(load, .timeout_s = 300);

/* What the nodes said meanwhile lies in its sockets. */
TEST(a_server_that_is_held_up_fails_no_request)
{
    start_load("--node-timeout-ms 200");
    for (int i = 0; i < 6; i++) {
        let_work(SOME_CYCLES / 5);
        kill(here->pid, SIGSTOP);
        pause_ms(300);
        kill(here->pid, SIGCONT);
    }
    end_load();
    world_stop();
}

static bool are_voting(int count)
{
    const struct answer *answer = HTTP(here, .method = "GET", .path = "/nodes");

    return answer_int(answer, "voting") == count;
}

/* Besides the state hash. */
static long long keys_left(void)
{
    long long keys = 0;

    for (int i = 0; i < N; i++)
        keys += node_integer(&world.nodes[i], "DBSIZE") -
                node_integer(&world.nodes[i], "EXISTS redlockd:state");
    return keys;
}

/* Every client has released: nothing may be left, long before the TTL. */
static void expect_no_keys(void)
{
    WAIT_UNTIL(TTL_MS / 2, keys_left() == 0);
}

static void kill_and_restart(int first, int count)
{
    for (int i = first; i < first + count; i++)
        node_kill(&world.nodes[i]);
    let_work(SOME_CYCLES);
    AWHILE(are_voting(N - count));
    let_work(SOME_CYCLES);
    for (int i = first; i < first + count; i++)
        node_start(&world.nodes[i]);
    AWHILE(are_voting(N));
    let_work(SOME_CYCLES);
}

/* Until the server has given the connections up, and back. */
static void pause_and_resume(int first, int count)
{
    for (int i = first; i < first + count; i++)
        node_pause(&world.nodes[i]);
    let_work(SOME_CYCLES);
    AWHILE(are_voting(N - count));
    let_work(SOME_CYCLES);
    for (int i = first; i < first + count; i++)
        node_resume(&world.nodes[i]);
    AWHILE(are_voting(N));
    let_work(SOME_CYCLES);
}

TEST(one_and_two_dead_nodes_fail_no_request)
{
    start_load(SLOW_MACHINE);
    let_work(SOME_CYCLES);
    kill_and_restart(0, 1);
    kill_and_restart(3, 2);
    end_load();
    WAIT_UNTIL(2 * TTL_MS, keys_left() == 0);
    world_stop();
}

TEST(one_and_two_paused_nodes_fail_no_request)
{
    start_load(SLOW_MACHINE);
    let_work(SOME_CYCLES);
    pause_and_resume(4, 1);
    pause_and_resume(1, 2);
    end_load();
    expect_no_keys();
    world_stop();
}

static void expect_no_quorum(void)
{
    struct lock lock;

    answer_expect(lock_acquire(here, "order:42", TTL_MS, &lock), 503,
                  "no_quorum");
}

static void expect_recovery(void)
{
    struct lock lock;

    AWHILE(are_voting(N));
    expect_no_keys(); /* of the acquires that were lost meanwhile */
    lock_take(here, "order:42", TTL_MS, &lock);
    lock_drop(here, &lock);
    expect_no_keys();
}

/* The acquires lie in the paused nodes' sockets, and must not come to life. */
TEST(three_paused_nodes_are_no_quorum_until_one_is_back)
{
    world_start(N, "");
    world_pause_nodes(0, 3);
    for (int i = 0; i < 5; i++)
        expect_no_quorum();
    AWHILE(are_voting(2));
    expect_no_quorum();
    world_resume_nodes(0, 3);
    expect_recovery();
    world_stop();
}
