/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <uv.h>

#include "address.h"
#include "clock.h"
#include "log.h"
#include "types.h"

/*
 * Each object is one allocation that holds its uv handle; the handle's data
 * points to what its close callback frees. libuv does not allow freeing it
 * earlier.
 */
struct stage {
    loop_stage_fn *fn;
    void *arg;
};

#define NEVER INT64_MAX

/* cppcheck-suppress unusedStructMember; it does not know the macros' members */
TAILQ_HEAD(timers, loop_timer);

struct loop {
    uv_loop_t uv;
    uv_prepare_t prepare;
    struct stage stages[LOOP_STAGES];
    struct timers due; /* they run after the next reading */
    uv_idle_t hurry;   /* lets the next reading not block */
    uv_check_t after_reading;
    int resolving; /* lookups on libuv's threads */
};

struct loop_watch {
    uv_poll_t poll;
    loop_watch_fn *fn;
    void *arg;
    int events; /* currently waited for */
};

/*
 * Most timers are stopped or put off long before their time: then that of libuv
 * stays as it is, and is set anew only when its own time has come.
 */
struct loop_timer {
    uv_timer_t timer;
    struct loop *loop;
    int64_t at_us;  /* NEVER: stopped */
    int64_t set_us; /* of libuv's timer, not later; NEVER: it does not run */
    bool is_due;
    TAILQ_ENTRY(loop_timer) link; /* while it is due */
    loop_timer_fn *fn;
    void *arg;
};

struct loop_signal {
    uv_signal_t signal;
    loop_timer_fn *fn;
    void *arg;
};

/* A timer delivers what is known; otherwise one of libuv's threads looks up. */
struct loop_lookup {
    loop_lookup_fn *fn; /* NULL: cancelled */
    void *arg;
    struct loop_timer *timer; /* NULL: a thread of libuv looks it up */
    struct addrinfo *known;
    uv_getaddrinfo_t request;
};

/* ---- the loop ----------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void run_stages(uv_prepare_t *prepare)
{
    struct loop *loop = (struct loop *)prepare->loop->data;
    for (int i = 0; i < LOOP_STAGES; i++)
        if (loop->stages[i].fn != NULL)
            loop->stages[i].fn(loop->stages[i].arg);
}

/*
 * libuv's threads resolve names; by default there are four. A lookup that hangs
 * blocks its thread; the lookups of other nodes must find a free one. So: twice
 * as many as there may be nodes.
 */
static const char lookups_max[] = "18";

/* libuv aborts when one of its tables cannot grow: log the reason. */
static void *grow(void *old, size_t size)
{
    void *grown = realloc(old, size);
    if (grown == NULL)
        log_detail(LOG_ERROR, "no_memory", "the event loop cannot continue");
    return grown;
}

static void run_due(uv_check_t *check);

struct loop *loop_new(void)
{
    /* if there is no memory, there are four */
    (void)setenv("UV_THREADPOOL_SIZE", lookups_max, 0);
    (void)uv_replace_allocator(malloc, grow, calloc, free); /* none is NULL */
    struct loop *loop = calloc(1, sizeof *loop);
    if (loop == NULL || uv_loop_init(&loop->uv) != 0) {
        free(loop);
        return NULL;
    }
    loop->uv.data = loop;
    TAILQ_INIT(&loop->due);
    /* None can fail. They also keep a loop without watches alive. */
    (void)uv_prepare_init(&loop->uv, &loop->prepare);
    (void)uv_prepare_start(&loop->prepare, run_stages);
    (void)uv_idle_init(&loop->uv, &loop->hurry);
    (void)uv_check_init(&loop->uv, &loop->after_reading);
    (void)uv_check_start(&loop->after_reading, run_due);
    return loop;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle))
        uv_close(handle, on_closed);
}

void loop_free(struct loop *loop)
{
    if (loop == NULL)
        return;
    uv_walk(&loop->uv, close_handle, NULL);
    /* Runs the close callbacks, and waits for lookups on libuv's threads. */
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&loop->uv);
    assert(rc == 0);
    free(loop);
}

void loop_run(struct loop *loop)
{
    /* The result says whether handles remain, and they always do. */
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *loop)
{
    uv_stop(&loop->uv);
}

void loop_set_stage(struct loop *loop, enum loop_stage stage, loop_stage_fn *fn,
                    void *arg)
{
    assert(stage < LOOP_STAGES);
    loop->stages[stage] = (struct stage){fn, arg};
}

/* ---- watches ------------------------------------------------------------ */

static_assert((int)LOOP_READABLE == (int)UV_READABLE &&
                  (int)LOOP_WRITABLE == (int)UV_WRITABLE &&
                  (int)LOOP_DISCONNECT == (int)UV_DISCONNECT,
              "the events are passed on as they are");

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct loop_watch *watch = poll->data;
    if (status != 0) {
        /* libuv has stopped the handle; all it reports is UV_EBADF. */
        watch->events = 0;
        events = LOOP_ERROR;
    }
    watch->fn(watch->arg, events);
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, loop_watch_fn *fn,
                                  void *arg)
{
    struct loop_watch *watch = calloc(1, sizeof *watch);
    if (watch == NULL || uv_poll_init(&loop->uv, &watch->poll, fd) != 0) {
        free(watch);
        return NULL;
    }
    watch->poll.data = watch;
    watch->fn = fn;
    watch->arg = arg;
    return watch;
}

bool loop_watch_set(struct loop_watch *watch, int events)
{
    assert((events & LOOP_ERROR) == 0);
    if (events == watch->events)
        return true; /* libuv would remove and re-add the descriptor */
    if (uv_poll_start(&watch->poll, events, on_poll) != 0)
        return false;
    watch->events = events;
    return true;
}

void loop_watch_free(struct loop_watch *watch)
{
    if (watch != NULL)
        uv_close((uv_handle_t *)&watch->poll, on_closed);
}

/* ---- timers ------------------------------------------------------------- */

/*
 * After a process was held up, its timers are due, and what they wait for may
 * already be in its sockets. libuv may run timers before it reads (when a
 * signal ends its sleep, or the reading took long). So a timer that is due
 * waits until the sockets have been read once more, which happens at once.
 */
static void do_nothing(uv_idle_t *hurry)
{
    (void)hurry;
}

static void loop_start_timer(struct loop_timer *timer);

/* One that was put off starts again, even if its time has come by now. */
static void loop_on_due(uv_timer_t *uv)
{
    struct loop_timer *timer = uv->data;
    bool is_put_off = timer->at_us != timer->set_us;
    timer->set_us = NEVER;
    if (is_put_off) {
        if (timer->at_us != NEVER)
            loop_start_timer(timer);
        return;
    }
    timer->at_us = NEVER;
    timer->is_due = true;
    TAILQ_INSERT_TAIL(&timer->loop->due, timer, link);
    /* Cannot fail. While it runs, libuv does not sleep. */
    (void)uv_idle_start(&timer->loop->hurry, do_nothing);
}

/* It will run at another time, or never. */
static void take_from_due(struct loop_timer *timer)
{
    if (timer->is_due)
        TAILQ_REMOVE(&timer->loop->due, timer, link);
    timer->is_due = false;
}

static void run_due(uv_check_t *check)
{
    struct loop *loop = check->loop->data;
    struct loop_timer *timer;
    (void)uv_idle_stop(&loop->hurry); /* always 0 */
    while ((timer = TAILQ_FIRST(&loop->due)) != NULL) {
        take_from_due(timer);
        timer->fn(timer->arg); /* may free it, and others */
    }
}

struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn,
                                  void *arg)
{
    struct loop_timer *timer = calloc(1, sizeof *timer);
    if (timer == NULL)
        return NULL;
    (void)uv_timer_init(&loop->uv, &timer->timer); /* cannot fail */
    timer->timer.data = timer;
    timer->loop = loop;
    timer->at_us = timer->set_us = NEVER;
    timer->fn = fn;
    timer->arg = arg;
    return timer;
}

/*
 * libuv counts from the start of the turn, in whole ms of its own clock: a
 * delay from now would end too early, by the age of the turn. So at_us itself
 * is converted to that clock, and rounded up; unless it has come.
 */
static void loop_start_timer(struct loop_timer *timer)
{
    int64_t left_us = timer->at_us - clock_now_us();
    int64_t uv_at_us = (int64_t)(uv_hrtime() / 1000) + left_us;
    int64_t uv_now_ms = (int64_t)uv_now(&timer->loop->uv);
    int64_t delay_ms = at_least(divide_up(uv_at_us, US_PER_MS) - uv_now_ms, 0);
    if (left_us <= 0)
        delay_ms = 0;
    timer->set_us = timer->at_us;
    /* Fails only on a handle that is closing, or without a callback. */
    int rc = uv_timer_start(&timer->timer, loop_on_due, (uint64_t)delay_ms, 0);
    assert(rc == 0);
}

void loop_timer_set(struct loop_timer *timer, int64_t at_us)
{
    take_from_due(timer);
    timer->at_us = at_us;
    if (at_us < timer->set_us)
        loop_start_timer(timer);
}

void loop_timer_stop(struct loop_timer *timer)
{
    take_from_due(timer);
    timer->at_us = NEVER;
}

void loop_timer_free(struct loop_timer *timer)
{
    if (timer == NULL)
        return;
    take_from_due(timer);
    uv_close((uv_handle_t *)&timer->timer, on_closed);
}

/* ---- signals ------------------------------------------------------------ */

static void on_signal(uv_signal_t *uv, int signum)
{
    struct loop_signal *signal = uv->data;
    (void)signum;
    signal->fn(signal->arg);
}

bool loop_on_signal(struct loop *loop, int signum, loop_timer_fn *fn, void *arg)
{
    struct loop_signal *signal = calloc(1, sizeof *signal);
    if (signal == NULL)
        return false;
    (void)uv_signal_init(&loop->uv, &signal->signal); /* uv_loop_init had one */
    signal->signal.data = signal;
    signal->fn = fn;
    signal->arg = arg;
    /* If this fails, the handle stays until loop_free closes it. */
    return uv_signal_start(&signal->signal, on_signal, signum) == 0;
}

/* ---- lookups ------------------------------------------------------------ */

static void free_lookup(struct loop_lookup *lookup)
{
    loop_timer_free(lookup->timer);
    if (lookup->known != NULL)
        freeaddrinfo(lookup->known);
    free(lookup);
}

static void answer_known(void *arg)
{
    struct loop_lookup *lookup = arg;
    lookup->fn(lookup->arg, lookup->known, NULL);
    free_lookup(lookup);
}

static void on_resolved(uv_getaddrinfo_t *request, int status,
                        struct addrinfo *found)
{
    struct loop_lookup *lookup = request->data;
    ((struct loop *)request->loop->data)->resolving--;
    if (lookup->fn != NULL)
        lookup->fn(lookup->arg, status == 0 ? found : NULL,
                   status == 0 ? NULL : uv_strerror(status));
    uv_freeaddrinfo(found);
    free_lookup(lookup);
}

static bool start_lookup(struct loop_lookup *lookup, struct loop *loop,
                         const char *host, int port)
{
    struct address_query query = address_query(port, AI_NUMERICHOST);
    /* An address needs no thread, and no system file is read for it. */
    int error = getaddrinfo(host, query.port, &query.hints, &lookup->known);
    if (error == 0) {
        lookup->timer = loop_timer_new(loop, answer_known, lookup);
        if (lookup->timer != NULL)
            loop_timer_set(lookup->timer, clock_now_us());
        return lookup->timer != NULL;
    }
    lookup->known = NULL;
    if (error == EAI_MEMORY)
        return false; /* libuv would abort if it had none for its threads */
    lookup->request.data = lookup;
    query = address_query(port, 0);
    if (uv_getaddrinfo(&loop->uv, &lookup->request, on_resolved, host,
                       query.port, &query.hints) != 0)
        return false;
    loop->resolving++;
    return true;
}

struct loop_lookup *loop_lookup_new(struct loop *loop, const char *host,
                                    int port, loop_lookup_fn *fn, void *arg)
{
    struct loop_lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup == NULL)
        return NULL;
    lookup->fn = fn;
    lookup->arg = arg;
    if (!start_lookup(lookup, loop, host, port)) {
        free_lookup(lookup);
        return NULL;
    }
    return lookup;
}

void loop_lookup_cancel(struct loop_lookup *lookup)
{
    if (lookup == NULL)
        return;
    if (lookup->timer != NULL) {
        free_lookup(lookup);
        return;
    }
    lookup->fn = NULL;
    /* If a thread already works on it, it ends later without effect. */
    (void)uv_cancel((uv_req_t *)&lookup->request);
}

bool loop_is_resolving(const struct loop *loop)
{
    return loop->resolving > 0;
}
