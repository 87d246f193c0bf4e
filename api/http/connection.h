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
 * A refusal that must come late: READING → DELAYED → READING, and answered.
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
 *
 * Over TLS a client may also leave by an alert, without a FIN. While a request
 * waits, nobody reads; so a look at what lies in the socket tells. It is taken
 * before a grant is answered, and each time that something comes while the
 * connection is suspended, unless other data comes first.
 */
#ifndef REDLOCKD_CONNECTION_H
#define REDLOCKD_CONNECTION_H

#include "../../server/base/loop.h"
#include "../../server/base/peer.h"
#include "../message/http.h"
#include "crowd.h"
#include "deadline.h"
#include "delays.h"
#include "tls.h"

enum connection_state {
    CONNECTION_IDLE,
    CONNECTION_READING,
    CONNECTION_DELAYED,
    CONNECTION_WAITING,
    CONNECTION_SETTLED,
    CONNECTION_ANSWERED,
    CONNECTION_GONE,
};

struct access;
struct connection;
struct audit;

/* All connections of a listener. */
struct connections {
    struct loop *loop;
    struct engine *engine;
    struct metrics *metrics;
    struct access *access; /* NULL: nobody is asked who they are */
    struct deadlines deadlines;
    struct delays delays;
    struct crowd crowd;
    struct audit *audit; /* NULL: there is no audit log */
    struct loop_timer *sweep_timer;
    bool is_sweeping; /* sweep_timer is set */
    int in_flight;    /* requests between begin and end */
    int shakes;       /* handshakes that may go on in a turn … */
    int shakes_left;  /* … and in this one */
    bool is_ending;   /* nothing is waited for any more */
    void (*wake)(void *ctx, struct connection *connection);
    void (*pause)(void *ctx, struct connection *connection);
    void *ctx;
};

struct connection {
    struct deadline deadline; /* first, so that it leads to its connection */
    struct delay delay;
    struct connections *all;
    struct loop_watch *watch;
    void *http;              /* the library's connection */
    struct tls_session *tls; /* NULL: plain */
    bool is_shaking;         /* its handshake waits for the client */
    enum connection_state state;
    bool has_left; /* the client has closed its side, or reset */
    bool is_held;  /* while it waits; the library knows no better. front.c */
    int looks;     /* … and how often there was no outcome */
    struct http_login login;
    struct http_request request;
    uint32_t answered_run;  /* of the library; front.c */
    int64_t written_before; /* the answer of a grant, see written.h */
    char client[PEER_MAX];  /* its address, for the audit log */
    char *body;
    size_t body_size; /* of its allocation */
    size_t body_seen; /* bytes that came, kept or not */
};

/*
 * Calls wake for a connection that no longer waits, as its state is SETTLED or
 * GONE, or READING after a delay, or its handshake can go on; and pause, from
 * within the library, for one whose handshake waits for its client. False: no
 * memory.
 */
bool connections_init(struct connections *all, struct loop *loop,
                      struct engine *engine, struct metrics *metrics);

/*
 * A turn of the HTTP side ends, which took so long. When a crowd of handshakes
 * waits, as many go on in the next as fit into a few milliseconds: the nodes
 * must be read meanwhile.
 */
void connections_end_turn(struct connections *all, int64_t took_us);

/* All connections must have been freed. */
void connections_fini(struct connections *all);

/* Wakes each connection that waits, is delayed or paused: the process ends. */
void connections_wake(struct connections *all);

/* A connection that was just accepted; NULL: no memory. fd is borrowed. */
struct connection *connection_new(struct connections *all, int fd, void *http);

/* It speaks TLS, by this session of the library. False: no memory. */
bool connection_secure(struct connection *it, struct tls *tls,
                       struct gnutls_session_int *library);

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

/* … and it may wait for long: the library has suspended it. */
void connection_suspend(struct connection *it);

/* Whether it is held, and has nothing to answer yet. */
bool connection_is_to_wait(const struct connection *it);

/*
 * Who may ask what has changed, or whom we trust: each acquire that waits, and
 * may not any more, goes on to its refusal.
 */
void connections_review(struct connections *all);

/* Whether the certificate of its client is still good enough. */
bool connection_is_trusted(struct connection *it);

/* Whether its client certainly has left. */
bool connection_has_left(struct connection *it);

/*
 * It is refused, and its answer comes later; wake tells when, or that the
 * client has left. all->delays must have room.
 */
void connection_delay(struct connection *it, int64_t now_us);

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
