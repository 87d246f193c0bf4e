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

/* Closes whatever is still open in it and frees it. */
void loop_free(struct loop *loop);

/* Runs turns until loop_stop. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

enum loop_stage { LOOP_SERVE, LOOP_FLUSH, LOOP_STAGES };
typedef void loop_stage_fn(void *arg);

/* fn(arg) runs once a turn in this stage. One function a stage. */
void loop_set_stage(struct loop *loop, enum loop_stage stage, loop_stage_fn *fn,
                    void *arg);

/* What a watch waits for and reports; may be or'ed. */
enum loop_events {
    LOOP_READABLE = 1,
    LOOP_WRITABLE = 2,
    LOOP_DISCONNECT = 4, /* the peer closed its side (FIN) */
    LOOP_ERROR = 8,      /* reported only: reset or the like; watch stopped */
};

struct loop_watch;
typedef void loop_watch_fn(void *arg, int events);

/*
 * Watches fd; nothing is reported before loop_watch_set. NULL: no memory, or
 * fd cannot be watched. The descriptor stays the caller's.
 */
struct loop_watch *loop_watch_new(struct loop *loop, int fd, loop_watch_fn *fn,
                                  void *arg);

/* From now on reports these events (0: none). False: the kernel refused. */
bool loop_watch_set(struct loop_watch *watch, int events);

/*
 * Detaches at once: no callback comes after it, and the descriptor may be
 * closed. NULL is ignored. May be called from its own callback.
 */
void loop_watch_free(struct loop_watch *watch);

struct loop_timer;
typedef void loop_timer_fn(void *arg);

/* A timer at rest; NULL: no memory. */
struct loop_timer *loop_timer_new(struct loop *loop, loop_timer_fn *fn,
                                  void *arg);

/*
 * fn(arg) once, replaces what was set. Never before at_us of clock_now_us();
 * later by up to 2 ms, by the turn that is running and the next reading, and
 * by the time the machine was suspended since. A moment in the past means the
 * next turn.
 */
void loop_timer_set(struct loop_timer *timer, int64_t at_us);
void loop_timer_stop(struct loop_timer *timer);

/* Detaches at once, like loop_watch_free. */
void loop_timer_free(struct loop_timer *timer);

/* fn(arg) for each arrival of the signal, in the loop. False: refused. */
bool loop_on_signal(struct loop *loop, int signum, loop_timer_fn *fn,
                    void *arg);

struct loop_lookup;

/*
 * found: the stream addresses as getaddrinfo(3) orders them, borrowed. NULL:
 * there is none; error says why (static text).
 */
typedef void loop_lookup_fn(void *arg, const struct addrinfo *found,
                            const char *error);

/*
 * Resolves host and port off the loop, and calls fn once, never before it
 * returns. NULL: no memory, or the name is too long; fn is not called.
 */
struct loop_lookup *loop_lookup_new(struct loop *loop, const char *host,
                                    int port, loop_lookup_fn *fn, void *arg);

/*
 * Gives it up: fn is not called any more. Only before fn was called. NULL is
 * ignored. All lookups must be given up or answered before loop_free.
 */
void loop_lookup_cancel(struct loop_lookup *lookup);

/*
 * True while a thread works on a lookup, given up or not: loop_free, and the
 * process's exit, would wait for it, as long as the name servers take.
 */
bool loop_is_resolving(const struct loop *loop);

#endif
