/* SPDX-License-Identifier: MIT */
#include "connection.h"

#include <assert.h>
#include <linux/tcp.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../../server/base/clock.h"

enum {
    REQUEST_US = 10 * US_PER_S, /* to send a head, a body; to take an answer */
    IDLE_US = 75 * US_PER_S,    /* from the answer to the next head */
    PATIENCE_US = US_PER_S,     /* with a request or an answer, at the limit */
    KERNEL_TICKS_US = 20000,    /* how exactly it knows when data came */
    SWEEP_US = 500000,
    SHAKES_MIN = 4,  /* in a turn: a signature takes up to 2 ms */
    SHAKES_MAX = 64, /* to read a part of a message takes nothing */
    SHAKES_US = 8000,
    CROWD = 100, /* connections whose memory is worth it */
    /* what must be known of a socket */
    TCP_INFO_SIZE = offsetof(struct tcp_info, tcpi_bytes_retrans) + 8,
};

/* ---- deadlines ---------------------------------------------------------- */

static void connection_move_to_end(struct connection *it)
{
    TAILQ_REMOVE(&it->all->list, it, link);
    TAILQ_INSERT_TAIL(&it->all->list, it, link);
}

/* We wait for the client from now on: others have kept us waiting longer. */
static void connection_await_client(struct connection *it, int64_t now_us)
{
    it->since_us = now_us;
    it->at_us = now_us + REQUEST_US;
    connection_move_to_end(it);
}

static void connection_cut(struct connection *it)
{
    it->at_us = 0;
    it->all->metrics->connections_cut++;
    /* The library finds it closed. That it was closed already is fine. */
    (void)shutdown(it->fd, SHUT_RDWR);
}

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

void connections_sweep(struct connections *all, int64_t now_us)
{
    for (struct connection *it = TAILQ_FIRST(&all->list); it != NULL;
         it = TAILQ_NEXT(it, link)) {
        if (it->at_us == 0)
            continue;
        if (now_us >= it->at_us)
            connection_cut(it);
        else if (it->state == CONNECTION_IDLE &&
                 it->at_us > now_us + REQUEST_US && has_begun_head(it, now_us))
            it->at_us = now_us + REQUEST_US;
    }
}

/*
 * Thousands may wait for us, for longer than others are idle: each goes to the
 * end once it was passed, or every newcomer would have to pass them all.
 */
bool connections_make_room(struct connections *all, int64_t now_us)
{
    const struct connection *last = TAILQ_LAST(&all->list, connection_list);
    struct connection *next = TAILQ_FIRST(&all->list);
    for (struct connection *it = NULL; it != last;) {
        it = next;
        next = TAILQ_NEXT(it, link);
        if (it->at_us != 0 && (it->state == CONNECTION_IDLE ||
                               now_us - it->since_us >= PATIENCE_US)) {
            connection_cut(it);
            return true;
        }
        if (it->at_us == 0)
            connection_move_to_end(it);
    }
    return false;
}

/* ---- crowds ------------------------------------------------------------- */

bool crowd_note(struct crowd *crowd, uint64_t count)
{
    uint64_t before = crowd->count;
    crowd->count = count;
    if (count > crowd->most)
        crowd->most = count;
    if (count > crowd->most / 2)
        return false;
    bool is_worth_it = crowd->most >= CROWD;
    if (count == before)
        crowd->most = count;
    return is_worth_it;
}

static void on_sweep(void *arg)
{
    struct connections *all = arg;
    int64_t now_us = clock_now_us();
    connections_sweep(all, now_us);
    if (crowd_note(&all->crowd, all->metrics->connections))
        (void)malloc_trim(0);
    all->is_sweeping = !TAILQ_EMPTY(&all->list) || all->crowd.most > 0;
    if (all->is_sweeping)
        loop_timer_set(all->sweep_timer, now_us + SWEEP_US);
}

/* ---- handshakes --------------------------------------------------------- */

void connections_end_turn(struct connections *all, int64_t took_us)
{
    bool is_crowd = all->shakes_left == 0;
    if (took_us > SHAKES_US && all->shakes > SHAKES_MIN)
        all->shakes /= 2;
    else if (is_crowd && took_us < SHAKES_US / 2 && all->shakes < SHAKES_MAX)
        all->shakes *= 2;
    all->shakes_left = all->shakes;
}

/* The session cannot go on before its client has sent more. */
static bool await_handshake(void *ctx)
{
    struct connection *it = ctx;
    if (it->all->is_ending ||
        !loop_watch_set(it->watch, LOOP_READABLE | LOOP_DISCONNECT))
        return false;
    it->is_shaking = true;
    it->all->events->pause(it);
    return true;
}

/* ---- delays ------------------------------------------------------------- */

static void forget_delay(struct connection *it)
{
    TAILQ_REMOVE(&it->all->delayed, it, delayed);
    it->all->delayed_count--;
}

/* It is refused now. */
static void end_delay(struct connection *it)
{
    forget_delay(it);
    it->state = CONNECTION_READING;
    it->all->events->wake(it);
}

static void connection_on_due(void *arg)
{
    struct connections *all = arg;
    int64_t now_us = clock_now_us();
    struct connection *it;
    while ((it = TAILQ_FIRST(&all->delayed)) != NULL && it->due_us <= now_us)
        end_delay(it);
    if (it != NULL)
        loop_timer_set(all->delay_timer, it->due_us);
}

/* ---- clients that leave ------------------------------------------------- */

void connection_leave(struct connection *it)
{
    struct connections *all = it->all;
    it->has_left = true;
    if (it->state == CONNECTION_DELAYED)
        end_delay(it);
    if (it->state != CONNECTION_WAITING || !all->events->leave(it))
        return;
    it->state = CONNECTION_GONE;
    all->events->wake(it);
}

bool connection_is_trusted(struct connection *it, const char *target)
{
    return it->tls == NULL || tls_session_may_ask(it->tls, target);
}

bool connection_has_left(struct connection *it)
{
    return it->has_left || (it->tls != NULL && tls_session_has_ended(it->tls));
}

static void connection_on_watch(void *arg, int events)
{
    struct connection *it = arg;
    struct connections *all = it->all;
    if (it->is_shaking) {
        /*
         * Those that do not go on in this turn are told of again in the next.
         * One whose client has left, or that was cut, ends without a
         * computation: thousands of them must not keep others from theirs.
         */
        if (events != LOOP_READABLE)
            tls_session_abort(it->tls);
        else if (all->shakes_left == 0)
            return;
        else
            all->shakes_left--;
        it->is_shaking = false;
        (void)loop_watch_set(it->watch, LOOP_DISCONNECT);
        tls_session_go_on(it->tls);
        all->events->wake(it);
    } else if (events == LOOP_READABLE && (it->state != CONNECTION_WAITING ||
                                           !tls_session_has_ended(it->tls))) {
        /* It has sent more than the request that waited: that will be read. */
        (void)loop_watch_set(it->watch, LOOP_DISCONNECT);
    } else {
        /* The event is level-triggered: once is enough. */
        (void)loop_watch_set(it->watch, 0);
        connection_leave(it);
    }
}

/* ---- connections -------------------------------------------------------- */

void connections_wake(struct connections *all)
{
    all->is_ending = true;
    for (struct connection *it = TAILQ_FIRST(&all->list); it != NULL;
         it = TAILQ_NEXT(it, link)) {
        if (it->is_shaking)
            tls_session_abort(it->tls);
        if (it->is_shaking || it->state == CONNECTION_WAITING)
            all->events->wake(it);
        else if (it->state == CONNECTION_DELAYED)
            end_delay(it);
        it->is_shaking = false;
    }
}

bool connections_init(struct connections *all, struct loop *loop,
                      struct metrics *metrics)
{
    *all = (struct connections){.loop = loop,
                                .metrics = metrics,
                                .shakes = SHAKES_MIN,
                                .shakes_left = SHAKES_MIN};
    TAILQ_INIT(&all->list);
    all->sweep_timer = loop_timer_new(loop, on_sweep, all);
    TAILQ_INIT(&all->delayed);
    all->delay_timer = loop_timer_new(loop, connection_on_due, all);
    return all->sweep_timer != NULL && all->delay_timer != NULL;
}

void connections_fini(struct connections *all)
{
    assert(TAILQ_EMPTY(&all->list));
    loop_timer_free(all->sweep_timer);
    loop_timer_free(all->delay_timer);
}

struct connection *connection_new(struct connections *all, int fd, void *http,
                                  struct gnutls_session_int *library,
                                  int64_t now_us)
{
    assert(all->events != NULL && all->size >= sizeof(struct connection));
    struct connection *it = calloc(1, all->size);
    if (it == NULL)
        return NULL;
    it->all = all;
    it->fd = fd;
    it->http = http;
    it->watch = loop_watch_new(all->loop, fd, connection_on_watch, it);
    if (it->watch == NULL || !loop_watch_set(it->watch, LOOP_DISCONNECT)) {
        loop_watch_free(it->watch);
        free(it);
        return NULL;
    }
    peer_describe(it->peer, fd);
    it->since_us = now_us;
    it->at_us = now_us + REQUEST_US;
    TAILQ_INSERT_TAIL(&all->list, it, link);
    all->metrics->connections++;
    if (!all->is_sweeping) {
        all->is_sweeping = true;
        loop_timer_set(all->sweep_timer, now_us + SWEEP_US);
    }
    if (all->tls == NULL)
        return it;
    it->tls = tls_session_new(all->tls, library, fd, await_handshake, it);
    if (it->tls != NULL)
        return it;
    connection_free(it);
    return NULL;
}

void connection_free(struct connection *it)
{
    /* the library may close in the middle of a request if epoll fails */
    connection_end(it, false);
    loop_watch_free(it->watch);
    tls_session_free(it->tls);
    TAILQ_REMOVE(&it->all->list, it, link);
    it->all->metrics->connections--;
    free(it->body);
    explicit_bzero(it, it->all->size);
    free(it);
}

/* ---- requests ----------------------------------------------------------- */

void connection_begin(struct connection *it, int64_t now_us)
{
    assert(it->state == CONNECTION_IDLE);
    it->state = CONNECTION_READING;
    it->body_seen = 0;
    it->body_is_unwanted = it->body_is_too_large = false;
    if (it->whole_us != 0)
        connection_await_client(it, now_us);
    it->all->in_flight++;
    it->all->metrics->requests_accepted++;
}

bool connection_add_body(struct connection *it, struct span piece)
{
    it->body_seen += piece.len;
    if (it->body_seen > it->body_max)
        it->body_is_too_large = true;
    if (it->body_is_unwanted || it->body_is_too_large)
        return it->body_seen <= CONNECTION_DISCARD_MAX;
    if (!bytes_reserve(&it->body, &it->body_size, it->body_len + piece.len))
        return false;
    it->body_len += span_copy(it->body + it->body_len, piece);
    return true;
}

void connection_hold(struct connection *it, int64_t now_us)
{
    assert(it->state == CONNECTION_READING);
    it->at_us = 0;
    it->whole_us = now_us;
}

static void free_body(struct connection *it)
{
    free(it->body);
    it->body = NULL;
    it->body_len = it->body_size = 0;
}

void connection_wait(struct connection *it)
{
    assert(it->state == CONNECTION_READING);
    it->state = CONNECTION_WAITING;
    free_body(it);
    if (it->has_left)
        connection_leave(it);
}

void connection_suspend(struct connection *it)
{
    if (it->tls != NULL && !it->has_left)
        (void)loop_watch_set(it->watch, LOOP_READABLE | LOOP_DISCONNECT);
}

bool connection_delay(struct connection *it, int64_t now_us)
{
    struct connections *all = it->all;
    assert(it->state == CONNECTION_READING);
    if (it->has_left || all->delayed_count >= all->delayed_most)
        return false;
    it->state = CONNECTION_DELAYED;
    it->due_us = now_us + CONNECTION_DELAY_US;
    TAILQ_INSERT_TAIL(&all->delayed, it, delayed);
    all->delayed_count++;
    if (TAILQ_FIRST(&all->delayed) == it)
        loop_timer_set(all->delay_timer, it->due_us);
    return true;
}

void connection_settle(struct connection *it)
{
    bool was_waiting = it->state == CONNECTION_WAITING;
    /* one that is gone or answered has no operation any more */
    assert(was_waiting || it->state == CONNECTION_READING);
    /* To set the watch now would lose a FIN that was read in this turn. */
    it->state = CONNECTION_SETTLED;
    if (was_waiting)
        it->all->events->wake(it);
}

/*
 * How many bytes were written to the socket since it was connected, whatever
 * became of them since; also after a reset. -1: the kernel does not report it:
 * it has counted no request either.
 */
static int64_t connection_written_bytes(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
        len < (socklen_t)TCP_INFO_SIZE || info.tcpi_bytes_received == 0)
        return -1;
    uint64_t sent = info.tcpi_bytes_sent - info.tcpi_bytes_retrans;
    return (int64_t)(sent + info.tcpi_notsent_bytes);
}

void connection_answer(struct connection *it, size_t proof_len, int64_t now_us)
{
    it->state = CONNECTION_ANSWERED;
    it->proof_len = proof_len;
    connection_await_client(it, now_us);
    if (proof_len > 0)
        it->written_before = connection_written_bytes(it->fd);
}

bool connection_may_have_answer(const struct connection *it)
{
    if (it->state != CONNECTION_ANSWERED || it->proof_len == 0)
        return false;
    int64_t written = connection_written_bytes(it->fd);
    return it->written_before < 0 || written < 0 ||
           written - it->written_before > (int64_t)it->proof_len;
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
    it->all->events->end(it, is_answered);
    if (it->state == CONNECTION_DELAYED)
        forget_delay(it);
    it->state = CONNECTION_IDLE;
    if (is_answered) { /* it may send another */
        it->at_us = it->since_us + IDLE_US;
        connection_move_to_end(it);
    }
    it->all->in_flight--;
    free_body(it);
}
