/*
 * How long a client may take to send a request and to take its answer, and
 * which connection is closed when there are too many.
 *
 * A connection has a deadline whenever we wait for its client. It has none
 * while the client waits for us.
 */
#ifndef REDLOCKD_DEADLINE_H
#define REDLOCKD_DEADLINE_H

#include <sys/queue.h>

#include "../../server/lock/metrics.h"

/*
 * The deadlines of all connections: those we wait for from the longest awaited
 * to the last, and between them those that wait for us.
 */
struct deadlines {
    TAILQ_HEAD(deadline_list, deadline) list;
    struct metrics *metrics;
};

/* metrics is borrowed. */
void deadlines_init(struct deadlines *all, struct metrics *metrics);

/* The deadline of one connection; part of it. */
struct deadline {
    struct deadlines *all;
    TAILQ_ENTRY(deadline) link;
    int fd;
    bool is_idle;     /* no head has been read since the last answer */
    bool has_served;  /* not the first request any more */
    int64_t since_us; /* we have been waiting for the client since then */
    int64_t at_us;    /* the connection is cut then; 0: never */
    int64_t whole_us; /* when the last request was whole */
};

/* A connection was accepted: its first request must come. fd is borrowed. */
void deadline_init(struct deadline *it, struct deadlines *all, int fd,
                   int64_t now_us);
void deadline_fini(struct deadline *it);

/* A head was read. */
void deadline_begin(struct deadline *it, int64_t now_us);

/* The request is whole: the client waits for us. */
void deadline_stop(struct deadline *it, int64_t now_us);

/* The answer was handed over: the client must take it. */
void deadline_answer(struct deadline *it, int64_t now_us);

/* The client has taken the answer: it may send another request. */
void deadline_end(struct deadline *it);

/* Cuts the connections whose deadline has passed. */
void deadlines_sweep(struct deadlines *all, int64_t now_us);

/*
 * Cuts the connection whose client has kept us waiting longest, to make room
 * for another: an idle one, or one whose request or answer has taken a second.
 * False: there is none.
 */
bool deadlines_make_room(struct deadlines *all, int64_t now_us);

#endif
