/* Apart from exchange.h, which alone includes it: it knows no request. */
/* SPDX-License-Identifier: MIT */
/*
 * One connection of a client: where its request stands, and whether the client
 * is still there; neither the HTTP library nor what is asked.
 *
 *        head        whole, and its outcome takes a while    outcome
 *   IDLE ────→ READING ────────────────────→ WAITING ────────────→ SETTLED
 *    ↑            │                             │ client left         │
 *    │            │ answered at once            ▼                     │
 *    │            └────────→ ANSWERED      GONE: closed               │
 *    └──── answer is out ───── │ ↑                                    │
 *                                └────────────────────────────────────┘
 *
 * A refusal that must come late, as there were too many: READING → DELAYED →
 * READING, and answered. Without that, a client that asks again as soon as it
 * is answered would take the time of the others, and no limit would hold it
 * back. A delayed one costs nothing. docs/reference/authentication.md promises
 * it.
 *
 * What becomes of a request when its client leaves, its connection is cut, the
 * configuration that let it in is read anew, or the server stops:
 *
 *   TLS handshake  aborted, and woken, so that the library closes it; a session
 *                  keeps the certificates that it began with until it ends
 *   IDLE, READING  the library closes it: connection_end
 *   DELAYED        the delay ends, and the refusal is written at once
 *   WAITING        the owner abandons what nobody waits for (GONE); anything
 *                  else goes on, and is SETTLED. A server that stops abandons
 *                  all, and says so
 *   SETTLED        not answered, but ended: what was granted is released
 *   ANSWERED       the client counts as told if all was written
 *
 * The HTTP library need not notice that a client left while its connection
 * waits: so the socket is watched here too. An answer that was written whole
 * counts as received. A reset after it proves nothing, for proxies reset
 * connections after they have passed the answer on; nor do unacknowledged
 * bytes, for the process may have read them already.
 *
 * Over TLS a client may also leave by an alert, without a FIN, which nobody
 * reads while a request waits. So what lies in the socket is looked at before a
 * grant is answered, and when something comes while the connection is
 * suspended, unless other data comes first.
 *
 * A connection has a deadline whenever we wait for its client. It has none
 * while the client waits for us.
 */
#ifndef REDLOCKD_CONNECTION_H
#define REDLOCKD_CONNECTION_H

#include <sys/queue.h>

#include "../../server/base/address.h"
#include "../../server/base/loop.h"
#include "../../server/base/types.h"
#include "../../server/lock/metrics.h"
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

enum {
    CONNECTION_DISCARD_MAX = 256 * 1024, /* read of a larger body, to answer */
    CONNECTION_DELAY_US = 1000000,       /* until a late refusal */
};

struct connection;

/* What others do for a connection. */
struct connection_events {
    /* It no longer waits: its state is SETTLED or GONE, or READING after a
     * delay, or its handshake can go on. */
    void (*wake)(struct connection *it);
    /* From within the library: its handshake waits for its client. */
    void (*pause)(struct connection *it);
    /* The client of a request that waits has left. True: then nobody waits for
     * the outcome any more. */
    bool (*leave)(struct connection *it);
    /* The request is over; is_answered: the client has its answer. */
    void (*end)(struct connection *it, bool is_answered);
};

/*
 * When to give memory back to the system. What many connections needed stays
 * in pieces with the allocator unless it is told.
 */
struct crowd {
    uint64_t most;  /* connections, of late */
    uint64_t count; /* connections at the last look */
};

/*
 * To be called at intervals, with the number of connections. True: memory is
 * worth giving back now, as a crowd is leaving, and once more when it has left.
 */
bool crowd_note(struct crowd *crowd, uint64_t count);

TAILQ_HEAD(connection_list, connection);

/* All connections of a listener. */
struct connections {
    const struct connection_events *events;
    void *owner;     /* whoever handles the events finds it here */
    size_t size;     /* of each connection, with what follows it */
    struct tls *tls; /* NULL: plain HTTP */
    struct loop *loop;
    struct metrics *metrics;
    /* those we wait for, the longest awaited first; between them the others */
    struct connection_list list;
    struct connection_list delayed; /* the one that is due first leads */
    struct loop_timer *delay_timer;
    int delayed_count;
    int delayed_most; /* at once; 0: none is delayed */
    struct crowd crowd;
    struct loop_timer *sweep_timer;
    bool is_sweeping; /* sweep_timer is set */
    int in_flight;    /* requests between begin and end */
    int shakes;       /* handshakes that may go on in a turn */
    int shakes_left;  /* those that still may in this one */
    bool is_ending;   /* nothing is waited for any more */
};

struct connection {
    TAILQ_ENTRY(connection) link;    /* of list */
    TAILQ_ENTRY(connection) delayed; /* while it is CONNECTION_DELAYED */
    int64_t due_us;                  /* then: when it is refused */
    struct connections *all;
    int fd;
    int64_t since_us; /* we have been waiting for the client since then */
    int64_t at_us;    /* the connection is cut then; 0: never */
    int64_t whole_us; /* when the last request was whole; 0: none was */
    struct loop_watch *watch;
    void *http;              /* the library's connection */
    struct tls_session *tls; /* NULL: plain */
    bool is_shaking;         /* its handshake waits for the client */
    enum connection_state state;
    bool has_left; /* the client has closed its side, or reset */
    bool is_held;  /* while it waits; the library knows no better. front.c */
    int asked;     /* how often the library asked in vain since then */
    uint32_t answered_run;  /* of the library; front.c */
    size_t proof_len;       /* of an answer of which it must be known whether it
                               came: its body; 0: of none */
    int64_t written_before; /* bytes on the socket before it */
    char peer[PEER_MAX];    /* its address */
    char *body;
    size_t body_len;
    size_t body_size;       /* of its allocation */
    size_t body_seen;       /* bytes that came, kept or not */
    size_t body_max;        /* bytes; the owner sets it before the body */
    bool body_is_unwanted;  /* it is not kept */
    bool body_is_too_large; /* likewise */
};

/* ---- all of them -------------------------------------------------------- */

/* Leaves events, owner, size and tls to the caller. False: no memory. */
bool connections_init(struct connections *all, struct loop *loop,
                      struct metrics *metrics);

/* All connections must have been freed. */
void connections_fini(struct connections *all);

/*
 * A turn of the HTTP side ends, which took so long. When a crowd of handshakes
 * waits, as many go on in the next as fit into a few milliseconds: the nodes
 * must be read meanwhile.
 */
void connections_end_turn(struct connections *all, int64_t took_us);

/* Cuts those whose deadline has passed; a timer does it twice a second. */
void connections_sweep(struct connections *all, int64_t now_us);

/*
 * Cuts the connection whose client has kept us waiting longest, to make room
 * for another: an idle one, or one whose request or answer has taken a second.
 * False: there is none.
 */
bool connections_make_room(struct connections *all, int64_t now_us);

/* Wakes each connection that waits, is delayed or paused: the process ends. */
void connections_wake(struct connections *all);

/* ---- one of them -------------------------------------------------------- */

/*
 * A connection that was just accepted; NULL: no memory. fd is borrowed. What
 * follows it, of all->size bytes, is zero. library: the session of TLS that the
 * library made for it; NULL if all->tls is.
 */
struct connection *connection_new(struct connections *all, int fd, void *http,
                                  struct gnutls_session_int *library,
                                  int64_t now_us);

/* Before its descriptor is closed. Clears what follows it: it may be secret. */
void connection_free(struct connection *it);

/* A head was read: a request begins. The first has its time from when the
 * connection was accepted. */
void connection_begin(struct connection *it, int64_t now_us);

/*
 * Takes a piece of the body, unless it is unwanted or too large. False: no
 * memory, or far too large; close the connection.
 */
bool connection_add_body(struct connection *it, struct span piece);

/* The request is whole: its deadline no longer runs. */
void connection_hold(struct connection *it, int64_t now_us);

/*
 * Its outcome takes a while; wake tells when it need not wait any more. The
 * body is freed: it may wait for long, and many may.
 */
void connection_wait(struct connection *it);

/* It may wait for long: the library has suspended it. */
void connection_suspend(struct connection *it);

/* Whether the certificate of its client is still good enough for the target. */
bool connection_is_trusted(struct connection *it, const char *target);

/* As if its client had left. */
void connection_leave(struct connection *it);

/* Whether its client certainly has left. */
bool connection_has_left(struct connection *it);

/*
 * It is refused, and its answer comes later; wake tells when, or that the
 * client has left. False: too many are delayed, or it has left before; answer
 * it now.
 */
bool connection_delay(struct connection *it, int64_t now_us);

/* It has its outcome. */
void connection_settle(struct connection *it);

/*
 * The answer is on its way. proof_len: the bytes of its body, if
 * connection_may_have_answer is going to be asked; otherwise 0.
 */
void connection_answer(struct connection *it, size_t proof_len, int64_t now_us);

/*
 * Whether such an answer was written whole, or all but a part of its head: the
 * client may have it. True as well if the kernel does not report it.
 */
bool connection_may_have_answer(const struct connection *it);

/* The request is over; is_written: the kernel took the whole answer. */
void connection_end(struct connection *it, bool is_written);

#endif
