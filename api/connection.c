#include "connection.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

#include "../server/base/clock.h"
#include "written.h"

enum { SWEEP_US = 500000 };

static void on_sweep(void *arg)
{
    struct connections *all = arg;
    int64_t now_us = clock_now_us();
    deadlines_sweep(&all->deadlines, now_us);
    if (crowd_is_leaving(&all->crowd, all->metrics->connections))
        (void)malloc_trim(0);
    all->is_sweeping = all->deadlines.first != NULL || all->crowd.most > 0;
    if (all->is_sweeping)
        loop_timer_set(all->sweep_timer, now_us + SWEEP_US);
}

/* ---- clients that leave ------------------------------------------------- */

/*
 * Abandons a waiting acquire: nobody would own the lock. Other calls still take
 * effect; only their answer is lost.
 */
static void leave(struct connection *it)
{
    struct http_request *request = &it->request;
    it->has_left = true;
    if (it->state != CONNECTION_WAITING || request->call != LOCK_ACQUIRE)
        return;
    (void)engine_abandon(it->all->engine, request->op);
    request->op = 0;
    it->state = CONNECTION_GONE;
    it->all->wake(it->all->ctx, it);
}

static void on_watch(void *arg, int events)
{
    struct connection *it = arg;
    (void)events;
    /* The event is level-triggered: once is enough. */
    (void)loop_watch_set(it->watch, 0);
    leave(it);
}

/* ---- connections -------------------------------------------------------- */

void connections_wake(struct connections *all)
{
    for (struct deadline *at = all->deadlines.first; at != NULL;
         at = at->next) {
        struct connection *it = (struct connection *)at;
        if (it->state == CONNECTION_WAITING)
            all->wake(all->ctx, it);
    }
}

bool connections_init(struct connections *all, struct loop *loop,
                      struct engine *engine, struct metrics *metrics)
{
    *all = (struct connections){.loop = loop,
                                .engine = engine,
                                .metrics = metrics,
                                .deadlines = {.metrics = metrics}};
    all->sweep_timer = loop_timer_new(loop, on_sweep, all);
    return all->sweep_timer != NULL;
}

void connections_fini(struct connections *all)
{
    assert(all->deadlines.first == NULL);
    loop_timer_free(all->sweep_timer);
}

struct connection *connection_new(struct connections *all, int fd, void *http)
{
    int64_t now_us = clock_now_us();
    struct connection *it = calloc(1, sizeof *it);
    if (it == NULL)
        return NULL;
    it->all = all;
    it->http = http;
    it->watch = loop_watch_new(all->loop, fd, on_watch, it);
    if (it->watch == NULL || !loop_watch_set(it->watch, LOOP_DISCONNECT)) {
        loop_watch_free(it->watch);
        free(it);
        return NULL;
    }
    deadline_init(&it->deadline, &all->deadlines, fd, now_us);
    all->metrics->connections++;
    if (!all->is_sweeping) {
        all->is_sweeping = true;
        loop_timer_set(all->sweep_timer, now_us + SWEEP_US);
    }
    return it;
}

void connection_free(struct connection *it)
{
    /* the library may close in the middle of a request if epoll fails */
    connection_end(it, false);
    loop_watch_free(it->watch);
    deadline_fini(&it->deadline);
    it->all->metrics->connections--;
    free(it->body);
    free(it);
}

/* ---- requests ----------------------------------------------------------- */

void connection_begin(struct connection *it, int64_t now_us)
{
    assert(it->state == CONNECTION_IDLE);
    it->state = CONNECTION_READING;
    it->request = (struct http_request){.head_read_us = now_us,
                                        .counted_as = METRICS_OTHER};
    it->body_seen = 0;
    deadline_begin(&it->deadline, now_us);
    it->all->in_flight++;
    it->all->metrics->requests_accepted++;
}

bool connection_add_body(struct connection *it, struct span piece)
{
    struct http_request *request = &it->request;
    size_t kept = request->body.len;
    it->body_seen += piece.len;
    if (it->body_seen > HTTP_BODY_MAX) {
        request->body_is_too_large = true;
        return it->body_seen <= HTTP_DISCARD_MAX;
    }
    if (!bytes_reserve(&it->body, &it->body_size, kept + piece.len))
        return false;
    request->body.len += span_copy(it->body + kept, piece);
    request->body.ptr = it->body;
    return true;
}

void connection_hold(struct connection *it, int64_t now_us)
{
    assert(it->state == CONNECTION_READING);
    deadline_stop(&it->deadline, now_us);
}

static void free_body(struct connection *it)
{
    free(it->body);
    it->body = NULL;
    it->body_size = 0;
    it->request.body = (struct span){0};
}

void connection_wait(struct connection *it)
{
    assert(it->state == CONNECTION_READING && it->request.op != 0);
    it->state = CONNECTION_WAITING;
    free_body(it); /* the engine has copied what it needs */
    if (it->has_left)
        leave(it);
}

void connection_settle(struct connection *it)
{
    bool was_waiting = it->state == CONNECTION_WAITING;
    assert(was_waiting || it->state == CONNECTION_READING);
    it->state = CONNECTION_SETTLED;
    if (was_waiting)
        it->all->wake(it->all->ctx, it);
}

void connection_answer(struct connection *it, int64_t now_us)
{
    it->state = CONNECTION_ANSWERED;
    deadline_answer(&it->deadline, now_us);
    if (it->request.op != 0)
        it->written_before = written_bytes(it->deadline.fd);
}

bool connection_may_have_answer(const struct connection *it)
{
    if (it->state != CONNECTION_ANSWERED || it->request.op == 0)
        return false;
    int64_t written = written_bytes(it->deadline.fd);
    return it->written_before < 0 || written < 0 ||
           written > it->written_before;
}

/* The client does not know what it was granted: it is released. */
static void abandon(struct connection *it)
{
    struct engine *engine = it->all->engine;
    engine_op op = it->request.op;
    if (engine_abandon(engine, op))
        it->all->metrics->undelivered_grants++;
}

void connection_end(struct connection *it, bool is_written)
{
    struct metrics *metrics = it->all->metrics;
    if (it->state == CONNECTION_IDLE)
        return; /* the head was never read */
    bool is_answered = is_written && it->state == CONNECTION_ANSWERED;
    if (is_answered)
        metrics->requests_answered++;
    else
        metrics->requests_abandoned++;
    if (it->request.op != 0 && is_answered)
        engine_close(it->all->engine, it->request.op);
    else if (it->request.op != 0)
        abandon(it);
    it->request.op = 0;
    it->state = CONNECTION_IDLE;
    if (is_answered)
        deadline_end(&it->deadline);
    it->all->in_flight--;
    free_body(it);
}
