/*
 * One client connection: where its request stands, and whether the client is
 * still there. No HTTP library here.
 *
 *        head        whole, and the nodes are asked          outcome
 *   IDLE ────→ READING ────────────────────→ WAITING ────────────→ SETTLED
 *    ↑            │                             │ client left         │
 *    │            │ answered at once            ▼                     │
 *    │            └────────→ ANSWERED      GONE: closed               │
 *    └──── answer is out ───── │ ↑                                    │
 *                                └────────────────────────────────────┘
 *
 * The HTTP library need not notice that a client left while its connection
 * waits. So the socket is watched here too, as long as the connection lasts. A
 * grant is released only if its client certainly has no answer:
 *
 *   the client left before the answer was        the acquire is abandoned
 *   written, or the answer was not written
 *   whole
 *   the answer was written whole                 the grant stands, however the
 *                                                connection ends; if nobody
 *                                                read it, it expires
 *
 * A reset after the answer proves nothing: proxies reset connections even after
 * they have passed the answer on. Unacknowledged bytes prove nothing either:
 * the process may have read them before its kernel acknowledges them.
 *
 * Extends, releases and inspections go on without their client: they leave no
 * lock that nobody owns.
 */
#ifndef REDLOCKD_CONNECTION_H
#define REDLOCKD_CONNECTION_H

#include "../server/base/loop.h"
#include "crowd.h"
#include "deadline.h"
#include "http.h"

enum connection_state {
    CONNECTION_IDLE,
    CONNECTION_READING,
    CONNECTION_WAITING,
    CONNECTION_SETTLED,
    CONNECTION_ANSWERED,
    CONNECTION_GONE,
};

struct connection;

/* All connections of a listener. */
struct connections {
    struct loop *loop;
    struct engine *engine;
    struct metrics *metrics;
    struct deadlines deadlines;
    struct crowd crowd;
    struct loop_timer *sweep_timer;
    bool is_sweeping; /* sweep_timer is set */
    int in_flight;    /* requests between begin and end */
    void (*wake)(void *ctx, struct connection *connection);
    void *ctx;
};

struct connection {
    struct deadline deadline; /* first, so that it leads to its connection */
    struct connections *all;
    struct loop_watch *watch;
    void *http; /* the library's connection */
    enum connection_state state;
    bool has_left; /* the client has closed its side, or reset */
    bool is_held;  /* while it waits; the library knows no better. front.c */
    int looks;     /* … and how often there was no outcome */
    struct http_request request;
    uint32_t answered_run;  /* of the library; front.c */
    int64_t written_before; /* the answer of a grant, see written.h */
    char *body;
    size_t body_size; /* of its allocation */
    size_t body_seen; /* bytes that came, kept or not */
};

/*
 * Calls wake for a connection that no longer waits, as its state is SETTLED or
 * GONE. False: no memory.
 */
bool connections_init(struct connections *all, struct loop *loop,
                      struct engine *engine, struct metrics *metrics);

/* All connections must have been freed. */
void connections_fini(struct connections *all);

/* Wakes each connection that waits: the process ends. */
void connections_wake(struct connections *all);

/* A connection that was just accepted; NULL: no memory. fd is borrowed. */
struct connection *connection_new(struct connections *all, int fd, void *http);

/* Before its descriptor is closed. */
void connection_free(struct connection *it);

/* A head was read: a request begins. Clears request. */
void connection_begin(struct connection *it, int64_t now_us);

/*
 * Takes a piece of the body. A body that is too large is dropped, and the
 * request says so. False: no memory, or far too large; close the connection.
 */
bool connection_add_body(struct connection *it, struct span piece);

/* The request is whole: its deadline no longer runs. */
void connection_hold(struct connection *it, int64_t now_us);

/*
 * Its operation runs; wake tells when it need not wait any more. The body is
 * freed: it may wait for long, and many may.
 */
void connection_wait(struct connection *it);

/* Its operation has its outcome. */
void connection_settle(struct connection *it);

/* The answer is on its way. A grant stays in request.op until it is written. */
void connection_answer(struct connection *it, int64_t now_us);

/*
 * Whether something of the answer of a grant was written: the client may have
 * it. True as well if the kernel does not tell.
 */
bool connection_may_have_answer(const struct connection *it);

/*
 * The request is over; is_written: the kernel took the whole answer. If not,
 * what was granted is released.
 */
void connection_end(struct connection *it, bool is_written);

#endif
