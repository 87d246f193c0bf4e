#include "connection.h"

#include <assert.h>
#include <errno.h>
#include <linux/tcp.h> /* more of tcp_info than <netinet/tcp.h> has */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../server/clock.h"

enum {
    REQUEST_US = 10 * 1000000, /* for the first request, and for each body */
    IDLE_US = 75 * 1000000,
    SWEEP_US = 500000,
    GRANT_US = 100000, /* a grant that was not reset by then was read */
    GRANT_SWEEP_US = 50000,
    STATE_CLOSE = 7,          /* TCP_CLOSE, which <linux/tcp.h> has not */
    DISCARD_MAX = 256 * 1024, /* of a body that is too large */
};

/* ---- grants that may not have been read --------------------------------- */

static void forget_grant(struct connection *it)
{
    struct connections *all = it->all;
    struct connection **from_newer = it->next_grant != NULL
                                         ? &it->next_grant->previous_grant
                                         : &all->newest_grant;
    struct connection **from_older = it->previous_grant != NULL
                                         ? &it->previous_grant->next_grant
                                         : &all->oldest_grant;
    *from_newer = it->previous_grant;
    *from_older = it->next_grant;
    it->grant = 0;
}

/* Bytes that came from the client, read by us or not; also after a reset. */
static uint64_t received(int fd)
{
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return 0;
    return info.tcpi_bytes_received;
}

/* The grant was read, or must be taken for it. */
static void close_grant(struct connection *it)
{
    if (it->grant == 0)
        return;
    engine_close(it->all->engine, it->grant);
    forget_grant(it);
}

static void release_grant(struct connection *it)
{
    if (it->grant == 0)
        return;
    it->all->metrics->undelivered_grants++;
    engine_abandon(it->all->engine, it->grant);
    forget_grant(it);
}

/* The connection was reset. A client that began another request has read the
 * grant, even if the request never came to be. */
static void reset_grant(struct connection *it)
{
    if (it->grant != 0 && received(it->fd) > it->grant_bytes)
        close_grant(it);
    else
        release_grant(it);
}

static void on_grant_timer(void *arg)
{
    struct connections *all = arg;
    int64_t now_us = clock_now_us();
    while (all->oldest_grant != NULL &&
           now_us - all->oldest_grant->grant_us >= GRANT_US)
        close_grant(all->oldest_grant);
    if (all->oldest_grant != NULL)
        loop_timer_set(all->grant_timer, now_us + GRANT_SWEEP_US);
}

static void keep_grant(struct connection *it, engine_op op, int64_t now_us)
{
    struct connections *all = it->all;
    assert(it->grant == 0);
    if (all->oldest_grant == NULL) {
        all->oldest_grant = it;
        loop_timer_set(all->grant_timer, now_us + GRANT_US);
    } else {
        all->newest_grant->next_grant = it;
    }
    it->grant = op;
    it->grant_us = now_us;
    it->grant_bytes = received(it->fd);
    it->previous_grant = all->newest_grant;
    it->next_grant = NULL;
    all->newest_grant = it;
}

/* ---- deadlines ---------------------------------------------------------- */

static void on_sweep(void *arg)
{
    struct connections *all = arg;
    int64_t now_us = clock_now_us();
    for (struct connection *it = all->first; it != NULL; it = it->next) {
        if (it->deadline_us == 0 || now_us < it->deadline_us)
            continue;
        it->deadline_us = 0;
        all->metrics->connections_cut++;
        /* The library finds it closed. That it was closed already is fine. */
        (void)shutdown(it->fd, SHUT_RDWR);
    }
    all->is_sweeping = all->first != NULL;
    if (all->is_sweeping)
        loop_timer_set(all->sweep_timer, now_us + SWEEP_US);
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
    if (it->state != CONNECTION_WAITING || request->call != METRICS_ACQUIRE)
        return;
    engine_abandon(it->all->engine, request->op);
    request->op = 0;
    it->state = CONNECTION_GONE;
    it->all->wake(it->all->ctx, it);
}

static void on_watch(void *arg, int events)
{
    struct connection *it = arg;
    if (events & LOOP_ERROR)
        reset_grant(it);
    else
        /* Level-triggered: it would come again and again. */
        (void)loop_watch_set(it->watch, 0);
    leave(it);
}

/*
 * True if the connection was reset, not just closed. Whether the library saw
 * it first and took the socket's error is of no matter.
 */
static bool was_reset(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
           info.tcpi_state == STATE_CLOSE;
}

bool connection_peer_left(const struct connection *it)
{
    char byte;
    if (it->has_left)
        return true;
    ssize_t got = recv(it->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK &&
                        errno != EINTR);
}

/* ---- connections -------------------------------------------------------- */

bool connections_init(struct connections *all, struct loop *loop,
                      struct engine *engine, struct metrics *metrics)
{
    *all = (struct connections){
        .loop = loop, .engine = engine, .metrics = metrics};
    all->sweep_timer = loop_timer_new(loop, on_sweep, all);
    all->grant_timer = loop_timer_new(loop, on_grant_timer, all);
    return all->sweep_timer != NULL && all->grant_timer != NULL;
}

void connections_fini(struct connections *all)
{
    assert(all->first == NULL && all->oldest_grant == NULL);
    loop_timer_free(all->sweep_timer);
    loop_timer_free(all->grant_timer);
}

static void link_up(struct connection *it, int64_t now_us)
{
    struct connections *all = it->all;
    it->next = all->first;
    if (all->first != NULL)
        all->first->previous = it;
    all->first = it;
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
    if (it->grant != 0 && was_reset(it->fd))
        reset_grant(it);
    else
        close_grant(it);
    if (it->next != NULL)
        it->next->previous = it->previous;
    if (it->previous != NULL)
        it->previous->next = it->next;
    else
        all->first = it->next;
    all->metrics->connections--;
    free(it->body);
    free(it);
}

/* ---- requests ----------------------------------------------------------- */

void connection_begin(struct connection *it, int64_t now_us)
{
    assert(it->state == CONNECTION_IDLE);
    close_grant(it); /* who goes on has read its answer */
    it->state = CONNECTION_READING;
    it->request =
        (struct http_request){.head_read_us = now_us, .call = METRICS_OTHER};
    it->body_seen = 0;
    if (it->has_served)
        it->deadline_us = now_us + REQUEST_US;
    it->all->in_flight++;
    it->all->metrics->requests_accepted++;
}

static bool grow_body(struct connection *it, size_t wanted)
{
    if (wanted <= it->body_size)
        return true;
    size_t size = it->body_size * 2 > wanted ? it->body_size * 2 : wanted;
    char *body = realloc(it->body, size);
    if (body == NULL)
        return false;
    it->body = body;
    it->body_size = size;
    return true;
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
    if (!grow_body(it, kept + piece.len))
        return false;
    request->body.len += span_copy(it->body + kept, piece);
    request->body.ptr = it->body;
    return true;
}

void connection_hold(struct connection *it)
{
    assert(it->state == CONNECTION_READING);
    it->has_served = true;
    it->deadline_us = 0;
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
    engine_op grant = it->request.op;
    it->state = CONNECTION_ANSWERED;
    it->has_served = true;
    it->deadline_us = now_us + IDLE_US;
    it->request.op = 0;
    if (grant != 0)
        keep_grant(it, grant, now_us);
}

void connection_end(struct connection *it, bool is_sent)
{
    struct metrics *metrics = it->all->metrics;
    if (it->state == CONNECTION_IDLE)
        return; /* the head was never read */
    if (it->request.op != 0) {
        engine_abandon(it->all->engine, it->request.op);
        it->request.op = 0;
    }
    if (is_sent && it->state == CONNECTION_ANSWERED) {
        metrics->requests_answered++;
    } else {
        metrics->requests_abandoned++;
        release_grant(it);
    }
    it->state = CONNECTION_IDLE;
    it->all->in_flight--;
    free(it->body);
    it->body = NULL;
    it->body_size = 0;
}
