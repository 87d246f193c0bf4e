#include "connection.h"

#include <assert.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../server/base/clock.h"

enum {
    REQUEST_US = 10 * 1000000, /* to send a head, a body; to take an answer */
    IDLE_US = 75 * 1000000,
    SWEEP_US = 500000,
    PATIENCE_US = 1000000,    /* at the limit, with a request or an answer */
    KERNEL_TICKS_US = 20000,  /* how exactly it knows when data came */
    CROWD = 100,              /* connections whose memory is worth the while */
    DISCARD_MAX = 256 * 1024, /* of a body that is too large */
};

/* ---- the list ----------------------------------------------------------- */

static void put_last(struct connection *it)
{
    struct connections *all = it->all;
    it->next = NULL;
    it->previous = all->last;
    if (all->last != NULL)
        all->last->next = it;
    else
        all->first = it;
    all->last = it;
}

static void take_out(struct connection *it)
{
    struct connections *all = it->all;
    if (it->next != NULL)
        it->next->previous = it->previous;
    else
        all->last = it->previous;
    if (it->previous != NULL)
        it->previous->next = it->next;
    else
        all->first = it->next;
}

/* It is the client's turn: it comes behind those that let us wait longer. */
static void await_client(struct connection *it, int64_t deadline_us)
{
    it->deadline_us = deadline_us;
    take_out(it);
    put_last(it);
}

/* ---- deadlines ---------------------------------------------------------- */

/*
 * Whether anything came since the last request was whole: the library tells of
 * a head only when it is complete.
 */
static bool has_begun_head(const struct connection *it, int64_t now_us)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    if (getsockopt(it->fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return false;
    int64_t came_us = now_us - (int64_t)info.tcpi_last_data_recv * 1000;
    return came_us > it->whole_us + KERNEL_TICKS_US;
}

static void cut(struct connection *it)
{
    it->deadline_us = 0;
    it->all->metrics->connections_cut++;
    /* The library finds it closed. That it was closed already is fine. */
    (void)shutdown(it->fd, SHUT_RDWR);
}

/*
 * What a crowd needed stays in pieces with the allocator, unless it is told:
 * while the crowd leaves, and once more when it has left.
 */
static void give_back_memory(struct connections *all)
{
    int before = all->counted;
    all->counted = all->count;
    if (all->count > all->crowd)
        all->crowd = all->count;
    if (all->count > all->crowd / 2)
        return;
    if (all->crowd >= CROWD)
        (void)malloc_trim(0);
    if (all->count == before)
        all->crowd = all->count;
}

static void on_sweep(void *arg)
{
    struct connections *all = arg;
    int64_t now_us = clock_now_us();
    for (struct connection *it = all->first; it != NULL; it = it->next) {
        if (it->deadline_us == 0)
            continue;
        if (now_us >= it->deadline_us)
            cut(it);
        else if (it->state == CONNECTION_IDLE &&
                 it->deadline_us > now_us + REQUEST_US &&
                 has_begun_head(it, now_us))
            it->deadline_us = now_us + REQUEST_US;
    }
    give_back_memory(all);
    all->is_sweeping = all->first != NULL || all->crowd > 0;
    if (all->is_sweeping)
        loop_timer_set(all->sweep_timer, now_us + SWEEP_US);
}

/* Whether others may have its place. */
static bool may_be_cut(const struct connection *it, int64_t now_us)
{
    int64_t since_us = it->deadline_us - REQUEST_US;
    if (it->deadline_us == 0)
        return false; /* it waits for us */
    return it->state == CONNECTION_IDLE || now_us - since_us >= PATIENCE_US;
}

bool connections_make_room(struct connections *all)
{
    int64_t now_us = clock_now_us();
    for (struct connection *it = all->first; it != NULL; it = it->next)
        if (may_be_cut(it, now_us)) {
            cut(it);
            return true;
        }
    return false;
}

/* ---- clients that leave ------------------------------------------------- */

/*
 * Abandons an acquire that waits: nobody would own what it may still get. The
 * others have their effect, and their answer then goes nowhere.
 */
static void leave(struct connection *it)
{
    struct http_request *request = &it->request;
    it->has_left = true;
    if (it->state != CONNECTION_WAITING || request->call != LOCK_ACQUIRE)
        return;
    engine_abandon(it->all->engine, request->op);
    request->op = 0;
    it->state = CONNECTION_GONE;
    it->all->wake(it->all->ctx, it);
}

static void on_watch(void *arg, int events)
{
    struct connection *it = arg;
    (void)events;
    /* Level-triggered: it would come again and again. */
    (void)loop_watch_set(it->watch, 0);
    leave(it);
}

/* ---- connections -------------------------------------------------------- */

bool connections_init(struct connections *all, struct loop *loop,
                      struct engine *engine, struct metrics *metrics)
{
    *all = (struct connections){
        .loop = loop, .engine = engine, .metrics = metrics};
    all->sweep_timer = loop_timer_new(loop, on_sweep, all);
    return all->sweep_timer != NULL;
}

void connections_fini(struct connections *all)
{
    assert(all->first == NULL);
    loop_timer_free(all->sweep_timer);
}

static void link_up(struct connection *it, int64_t now_us)
{
    struct connections *all = it->all;
    put_last(it);
    all->count++;
    all->metrics->connections++;
    if (!all->is_sweeping) {
        all->is_sweeping = true;
        loop_timer_set(all->sweep_timer, now_us + SWEEP_US);
    }
}

struct connection *connection_new(struct connections *all, int fd, void *http)
{
    int64_t now_us = clock_now_us();
    struct connection *it = calloc(1, sizeof *it);
    if (it == NULL)
        return NULL;
    it->all = all;
    it->fd = fd;
    it->http = http;
    it->deadline_us = now_us + REQUEST_US;
    it->watch = loop_watch_new(all->loop, fd, on_watch, it);
    if (it->watch == NULL || !loop_watch_set(it->watch, LOOP_DISCONNECT)) {
        loop_watch_free(it->watch);
        free(it);
        return NULL;
    }
    link_up(it, now_us);
    return it;
}

void connection_free(struct connection *it)
{
    struct connections *all = it->all;
    /* the library may close without a word, e.g. when epoll fails */
    connection_end(it, false);
    loop_watch_free(it->watch);
    take_out(it);
    all->count--;
    all->metrics->connections--;
    free(it->body);
    free(it);
}

/* ---- requests ----------------------------------------------------------- */

void connection_begin(struct connection *it, int64_t now_us)
{
    assert(it->state == CONNECTION_IDLE);
    it->state = CONNECTION_READING;
    it->request =
        (struct http_request){.head_read_us = now_us, .call = METRICS_OTHER};
    it->body_seen = 0;
    if (it->has_served)
        await_client(it, now_us + REQUEST_US);
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
        return it->body_seen <= DISCARD_MAX;
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
    it->has_served = true;
    it->deadline_us = 0;
    it->whole_us = now_us;
}

void connection_wait(struct connection *it)
{
    assert(it->state == CONNECTION_READING && it->request.op != 0);
    it->state = CONNECTION_WAITING;
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
    it->has_served = true;
    await_client(it, now_us + REQUEST_US);
}

/* Nobody will know of what this operation got: it is released. */
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
        await_client(it, it->deadline_us + IDLE_US - REQUEST_US);
    it->all->in_flight--;
    free(it->body);
    it->body = NULL;
    it->body_size = 0;
}
