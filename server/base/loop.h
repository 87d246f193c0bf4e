/* SPDX-License-Identifier: MIT */
/*
 * The event loop: a few nouns of our own over libuv. Only loop.c includes
 * <uv.h>.
 *
 * One turn has a fixed order:
 *
 *     wait ─→ read nodes ─→ client watchers ─→ timers ─→ serve ─→ flush ─┐
 *      ↑        (watches, as epoll tells them)            HTTP    nodes  │
 *      └─────────────────────────────────────────────────────────────────┘
 *
 * Serve and flush are stages: they run once a turn, just before the loop may
 * block, so the commands of all requests handled in a turn leave in one write
 * per node.
 *
 * A timer runs after a reading that began when it was due: its callback has
 * seen everything that had arrived by then, however long the process was held
 * up.
 */
#ifndef REDLOCKD_LOOP_H
#define REDLOCKD_LOOP_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

/* NULL if libuv cannot make a loop (memory, descriptors). */
struct loop *loop_new(void);

/* Closes everything that is still open in it, and frees it. */
void loop_free(struct loop *loop);

/* Runs turns until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

enum loop_stage { LOOP_SERVE, LOOP_FLUSH, LOOP_STAGES };
typedef void loop_stage_fn(void *arg);

/* fn(arg) runs once a turn in this stage. One function per stage. */
void loop_set_stage(struct loop *loop, enum loop_stage stage, loop_stage_fn *fn,
                    void *arg);

/* Events that a watch waits for and reports; may be or'ed. */
enum loop_events {
    LOOP_READABLE = 1,
    LOOP_WRITABLE = 2,
    LOOP_DISCONNECT = 4, /* the peer closed its side (FIN) */
    LOOP_ERROR = 8,      /* only reported: a reset or similar; watch stopped */
};

struct loop_watch;
typedef void loop_watch_fn(void *arg, int events);

/* Reports nothing before loop_watch_set. NULL: no memory, or fd, which stays
 * the caller's, cannot be watched. */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, loop_watch_fn *fn,
                                  void *arg);

/* From now on reports these events (0: none). False: the kernel refused. */
bool loop_watch_set(struct loop_watch *watch, int events);

/* Detaches at once, also in its own callback: no more callbacks, and the
 * descriptor may be closed. NULL is ignored. */
void loop_watch_free(struct loop_watch *watch);

struct loop_timer;
typedef void loop_timer_fn(void *arg);

/* A stopped timer; NULL: no memory. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn,
                                  void *arg);

/*
 * Calls fn(arg) once; replaces an earlier setting. Never before at_us of
 * clock_now_us(), but up to 2 ms later, plus the rest of the current turn and
 * the next reading, plus the time that the machine was suspended. A moment in
 * the past means the next turn.
 */
void loop_timer_set(struct loop_timer *timer, int64_t at_us);
void loop_timer_stop(struct loop_timer *timer);

/* Detaches at once, like loop_watch_free. */
void loop_timer_free(struct loop_timer *timer);

/* Calls fn(arg) in the loop for each arrival of the signal. False: refused. */
bool loop_on_signal(struct loop *loop, int signum, loop_timer_fn *fn,
                    void *arg);

struct loop_lookup;

/*
 * found: the stream addresses in the order of getaddrinfo(3), borrowed. NULL:
 * there are none; error says why (static text).
 */
typedef void loop_lookup_fn(void *arg, const struct addrinfo *found,
                            const char *error);

/*
 * Resolves host and port outside of the loop, and calls fn once, but not before
 * it returns. NULL: no memory, or the name is too long; fn is not called.
 */
struct loop_lookup *loop_lookup_new(struct loop *loop, const char *host,
                                    int port, loop_lookup_fn *fn, void *arg);

/* fn is no longer called; only before it was. NULL is ignored. All lookups must
 * be cancelled or answered before loop_free. */
void loop_lookup_cancel(struct loop_lookup *lookup);

/*
 * True while a thread works on a lookup, cancelled or not: loop_free and the
 * exit of the process would wait for it, as long as the name servers take.
 */
bool loop_is_resolving(const struct loop *loop);

#endif
