/* SPDX-License-Identifier: MIT */
#include "workers.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

#define KEPT "kept:%d" /* what a worker keeps, by its index */

enum {
    PACE_MS = 200,
    CYCLE_TTL_MS = 2000,
    IN_TIME_MS = 1000, /* is enough for any request, with what is refused */
    FAILURE_SIZE = 600,
};

/* What the workers share with the test. */
struct board {
    atomic_bool is_over;
    atomic_int cycles[WORKERS], extended[WORKERS], late;
    atomic_llong ends_ms; /* of the lock for which all contend; 0: released */
    atomic_llong number;  /* its greatest */
    atomic_bool has_failed;
    char failure[FAILURE_SIZE]; /* the first */
};

struct worker {
    int index;
    int turn;         /* whose is the next request */
    bool was_refused; /* an attempt of the last acquire */
    int kept_ttl_ms;
    bool has_kept;
    struct lock kept;
    int64_t kept_ends_ms;
};

static struct board *board;
static int servers_count;
static pid_t pids[WORKERS];

/* ---- one worker ---------------------------------------------------------- */

__attribute__((format(printf, 1, 2), noreturn)) static void
give_up(const char *format, ...)
{
    if (!atomic_exchange(&board->has_failed, true)) {
        va_list list;
        va_start(list, format);
        (void)vsnprintf(board->failure, sizeof board->failure, format, list);
        va_end(list);
    }
    _exit(EXIT_FAILURE);
}

static const struct server *next_server(struct worker *worker)
{
    return &world.servers[worker->turn++ % servers_count];
}

static bool is_refused(const struct answer *answer)
{
    return answer->status == 0 || answer->status == 503;
}

/* Status 201 or 409. */
static int acquire(struct worker *worker, const char *resource, int ttl_ms,
                   struct lock *lock)
{
    const struct answer *answer;
    int64_t until_ms = harness_now_ms() + IN_TIME_MS;
    int attempts = 0;
    do {
        worker->was_refused = attempts++ > 0;
        answer = lock_acquire(next_server(worker), resource, ttl_ms, lock);
    } while (is_refused(answer) &&
             (attempts < 2 || harness_now_ms() < until_ms));
    if (answer->status != 201 && answer->status != 409)
        give_up("acquire %s: %d %s", resource, answer->status, answer->body);
    return answer->status;
}

static void cycle(struct worker *worker)
{
    struct lock lock;
    int count = atomic_fetch_add(&board->cycles[worker->index], 1);
    const char *resource = textf("cycle:%d:%d", worker->index, count);
    bool is_granted = acquire(worker, resource, CYCLE_TTL_MS, &lock) == 201;
    /* what its first attempt set may not be undone yet */
    if (!is_granted && !worker->was_refused)
        give_up("%s is held", resource);
    if (is_granted)
        (void)lock_release(next_server(worker), &lock);
}

static void raise_number(long long number)
{
    long long known = atomic_load(&board->number);
    while (known < number &&
           !atomic_compare_exchange_weak(&board->number, &known, number))
        ;
}

/* Nothing is told of a worker that was asleep while its lock ended. */
static void contend(struct worker *worker)
{
    struct lock lock;
    int64_t sent_ms = harness_now_ms();
    if (acquire(worker, "contended", CYCLE_TTL_MS, &lock) != 201)
        return;
    int64_t ends_ms = sent_ms + lock.validity_ms;
    long long other_ends_ms = atomic_exchange(&board->ends_ms, ends_ms);
    long long number = atomic_load(&board->number);
    int64_t now_ms = harness_now_ms();
    if (now_ms < ends_ms && other_ends_ms > now_ms)
        give_up("two hold a lock: %lld ms are left of the other one",
                other_ends_ms - now_ms);
    if (now_ms < ends_ms && number >= lock.number)
        give_up("number %lld after %lld", (long long)lock.number, number);
    raise_number(lock.number);
    pause_ms(5);
    atomic_store(&board->ends_ms, 0);
    (void)lock_release(next_server(worker), &lock);
}

static void begin_to_keep(struct worker *worker)
{
    int64_t sent_ms = harness_now_ms();
    worker->has_kept = acquire(worker, textf(KEPT, worker->index),
                               worker->kept_ttl_ms, &worker->kept) == 201;
    worker->kept_ends_ms = sent_ms + worker->kept.validity_ms;
}

static void keep(struct worker *worker)
{
    if (!worker->has_kept) {
        begin_to_keep(worker);
        return;
    }
    const struct answer *answer;
    int64_t sent_ms, left_ms = worker->kept_ends_ms - harness_now_ms();
    do {
        sent_ms = harness_now_ms();
        answer = lock_extend(next_server(worker), &worker->kept,
                             worker->kept_ttl_ms);
    } while (is_refused(answer) && harness_now_ms() < worker->kept_ends_ms);
    if (answer->status == 200) {
        worker->kept_ends_ms = sent_ms + answer_int(answer, "validity_ms");
        atomic_fetch_add(&board->extended[worker->index], 1);
        return;
    }
    if (left_ms > IN_TIME_MS)
        give_up("extend %s, %lld ms before its end: %d %s",
                worker->kept.resource, (long long)left_ms, answer->status,
                answer->body);
    atomic_fetch_add(&board->late, 1);
    worker->has_kept = false;
}

static void work(int index, int kept_ttl_ms)
{
    struct worker worker = {
        .index = index, .turn = index, .kept_ttl_ms = kept_ttl_ms};
    http_allow_silence();
    while (!atomic_load(&board->is_over) && !atomic_load(&board->has_failed)) {
        keep(&worker);
        cycle(&worker);
        contend(&worker);
        pause_ms(PACE_MS);
    }
}

/* ---- all ----------------------------------------------------------------- */

void workers_start(int servers, const int ttl_ms[2])
{
    servers_count = servers;
    board = harness_share(sizeof *board);
    http_disconnect(); /* no connection is shared */
    for (int i = 0; i < WORKERS; i++) {
        pids[i] = harness_fork();
        if (pids[i] == 0) {
            work(i, ttl_ms[i % 2]);
            _exit(EXIT_SUCCESS);
        }
    }
}

bool workers_are_kept_at(struct node *node)
{
    for (int i = 0; i < WORKERS; i++)
        if (!node_integer(node, "EXISTS " KEPT, i))
            return false;
    return true;
}

static bool have_extended(const int before[WORKERS])
{
    for (int i = 0; i < WORKERS; i++)
        if (atomic_load(&board->extended[i]) == before[i])
            return atomic_load(&board->has_failed);
    return true;
}

void workers_let_work(void)
{
    int before[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        before[i] = atomic_load(&board->extended[i]);
    AWHILE(have_extended(before));
}

void workers_stop(void)
{
    int cycles = 0, extended = 0;
    atomic_store(&board->is_over, true);
    for (int i = 0; i < WORKERS; i++) {
        int status;
        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(status == 0, "a client failed: %s", board->failure);
        ck_assert_int_gt(board->cycles[i], 0);
        ck_assert_int_gt(board->extended[i], 0);
        cycles += board->cycles[i];
        extended += board->extended[i];
    }
    printf("workers: %d cycles, %d extended, %d late\n", cycles, extended,
           board->late);
    munmap(board, sizeof *board);
}
