/*
 * One client connection: where its request stands, until when it may take its
 * time, and whether the client is still there. No HTTP library here.
 *
 *        head        whole, and the nodes are asked          outcome
 *   IDLE ────→ READING ────────────────────→ WAITING ────────────→ SETTLED
 *    ↑            │                             │ client left         │
 *    │            │ answered at once            ▼                     │
 *    │            └────────→ ANSWERED      GONE: closed               │
 *    └──── answer is out ───── │ ↑                                    │
 *                                └────────────────────────────────────┘
 *
 * The HTTP library does not notice that a client left while its connection
 * waits. So the socket is watched here too, for its whole life. A grant is
 * released only if its client certainly has no answer:
 *
 *   it left before the answer was written, or    the acquire is abandoned
 *   the answer could not be written whole
 *   the answer was written whole                 the grant stands, however the
 *                                                connection ends: if nobody
 *                                                read it, its TTL ends it
 *
 * A reset behind the answer tells nothing: proxies end connections so, though
 * they have passed the answer on. Nor do bytes that the other kernel has not
 * acknowledged: it may be late with that, while its process has read them.
 *
 * Extends, releases and inspections go on without their client: they leave
 * nothing behind that nobody owns.
 */
#ifndef REDLOCKD_CONNECTION_H
#define REDLOCKD_CONNECTION_H

#include "../server/base/loop.h"
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
    struct connection *first, *last; /* by when their clients' turn began */
    int count;
    int crowd;   /* the most of late … */
    int counted; /* … when it was counted last */
    struct loop_timer *sweep_timer;
    bool is_sweeping; /* sweep_timer is set */
    int in_flight;    /* requests between begin and end */
    void (*wake)(void *ctx, struct connection *connection);
    void *ctx;
};

struct connection {
    struct connections *all;
    struct connection *next;
    struct connection *previous;
    struct loop_watch *watch;
    void *http; /* the library's connection */
    int fd;
    enum connection_state state;
    bool has_left;       /* the client has closed its side, or reset */
    bool has_served;     /* a whole request came already */
    int64_t deadline_us; /* cut then; 0: never */
    int64_t whole_us;    /* the last request had come whole */
    struct http_request request;
    char *body;
    size_t body_size; /* of its allocation */
    size_t body_seen; /* bytes that came, kept or not */
};

/*
 * wake is called for a connection that waits no longer: its state is SETTLED
 * or GONE. False: no memory.
 */
bool connections_init(struct connections *all, struct loop *loop,
                      struct engine *engine, struct metrics *metrics);

/* When the last connection was freed. */
void connections_fini(struct connections *all);

/*
 * Closes the connection that has let us wait for longest, so that another finds
 * room: an idle one, or one that has not sent its request or taken its answer
 * for a second. False: there is none.
 */
bool connections_make_room(struct connections *all);

/* A connection that was just accepted; NULL: no memory. fd is borrowed. */
struct connection *connection_new(struct connections *all, int fd, void *http);

/* Before its descriptor is closed. */
void connection_free(struct connection *it);

/* A head was read: a request begins. Clears request. */
void connection_begin(struct connection *it, int64_t now_us);

/*
 * Takes a piece of the body. Too much is left out, and remembered in the
 * request. False: no memory, or far too much; close the connection.
 */
bool connection_add_body(struct connection *it, struct span piece);

/* The request is whole: its time no longer runs. */
void connection_hold(struct connection *it, int64_t now_us);

/* Its operation runs: from now on wake follows. */
void connection_wait(struct connection *it);

/* Its operation has its outcome. */
void connection_settle(struct connection *it);

/* The answer is on its way. A grant stays in request.op until it is written. */
void connection_answer(struct connection *it, int64_t now_us);

/*
 * The request is over; is_written: the kernel took the whole answer. If not,
 * what was granted is released.
 */
void connection_end(struct connection *it, bool is_written);

#endif
