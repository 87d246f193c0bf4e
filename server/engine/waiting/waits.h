/* SPDX-License-Identifier: MIT */
/*
 * Acquires that wait while others hold the lock: a queue for each resource,
 * first come, first served. Pure.
 *
 * Only the contender of a queue tries, by an operation of its own: mostly the
 * first, see waitqueue.c. It is woken by one of these, and tries once more when
 * the server stops:
 *
 *   release       a release of the lock passes through this server: the acquire
 *                 follows it to each node in the same batch
 *   announcement  a quorum of nodes announced a release, or 5 ms have passed
 *                 since the first of them did
 *   expiry        the TTL of the present lock has ended
 *   retry         a random delay has passed, a long one while a quorum
 *                 announces releases of the holder
 *
 * Announcements are hints. When a quorum begins to announce, the contender
 * tries once more, as a release may have been missed.
 *
 * A waiter with the key of the present holder repeats an acquire that was
 * granted: it need not wait, as the lock is its own.
 */
#ifndef REDLOCKD_WAITS_H
#define REDLOCKD_WAITS_H

#include <sys/queue.h>

#include "../port/port.h"
#include "../port/token.h"
#include "ticket.h"

/* ---- claims -------------------------------------------------------------- */

/*
 * The claim of a waiting acquire to the lock of an earlier acquire with the
 * same key: it may replace that one's token.
 *
 * Of two acquires at the same time only one gets the lock: so a grant counts as
 * earlier only if it was made before this request. Three things can tell:
 *
 *   memory   this server knew the grant before the request: it is earlier
 *   number   a time by the clocks of the server that granted. Below the time of
 *            this request by our clocks, the grant is earlier; above it by more
 *            than the clocks of servers differ, it is later
 *   nodes    an inspection after the request did not find it: it is later
 *
 * If none decides, the client may have lost its answer just before it asked
 * here, or its request has arrived twice. Then the acquire waits for
 * CLAIM_ANEW_US and asks again, as its client would. Until then a client that
 * has the other answer can withdraw it.
 */
enum { CLAIM_ANEW_US = 500000 };

struct claim {
    int64_t asked_us;  /* a grant with a lower number is earlier */
    int64_t latest_us; /* a grant with this or a higher number is later */
    int64_t number;    /* of the lock that was found; 0: none */
    int64_t try_us;    /* when to try to get that lock; 0: not planned */
};

/* The time of the request by the nodes' clocks is not known yet. */
void claim_init(struct claim *claim);

/* Now it is asked_us; 0: still unknown. Times of servers may differ by
 * apart_us. Only the first date counts. */
void claim_date(struct claim *claim, int64_t asked_us, int64_t apart_us);

/* The lock with this number was known before the request, or set by a lost
 * attempt of its own: from try_us on it may be replaced. */
void claim_know(struct claim *claim, int64_t number, int64_t try_us);

/* A lock with its key was found on the nodes. */
void claim_find(struct claim *claim, int64_t number, int64_t now_us);

/* There is no earlier grant: an inspection found none, or this server has
 * granted another acquire with its key. All grants from now on are later. */
void claim_miss(struct claim *claim);

/* An inspection was inconclusive, or an attempt lost: again in a while. */
void claim_wait(struct claim *claim, int64_t now_us);

static inline bool claim_is_due(const struct claim *claim, int64_t now_us)
{
    return claim->try_us != 0 && now_us >= claim->try_us;
}

/* An attempt begins now: returns its request.asked_us. */
int64_t claim_try(struct claim *claim, int64_t now_us);

/* ---- turns --------------------------------------------------------------- */

/*
 * The turns that servers take with a lock for which clients of several of them
 * wait. Each server counts for itself, and it decides only when a server tries,
 * never what is granted.
 *
 * A turn begins with a grant that no release through this server led to. It
 * ends when all that waited here at that moment have had the lock. Then the
 * server yields: its waiters try a little later than those of others. It goes
 * on as soon as it notices that another server has had the lock.
 *
 * If no other server uses that, as one that is paused, or has no waiters any
 * more, the next yields are ever further apart.
 *
 * With several other servers, the same one might always be the quickest. So
 * each is behind by a moment, which is shorter the more grants it has seen go
 * elsewhere, for each of its waiters. Zeroed at first.
 */
struct turn {
    uint64_t arrivals;       /* until it began: these have their turn */
    int64_t begun_us;        /* the last one */
    int64_t elsewhere;       /* grants of others since the last one here, that
                                attempts found */
    int64_t others;          /* other servers whose clients wait */
    int64_t others_until_us; /* so long they count */
    int64_t yield_until_us;  /* 0: it does not yield */
    int64_t gap_us;          /* from a yield that was no use to the next */
    int64_t rest_until_us;   /* no yield before */
};

/* A node announced a release to this many other servers. */
void turn_on_others(struct turn *turn, int64_t others, int64_t now_us);

/* The lock was released through this server. next: the arrival of the waiter
 * that comes next; 0: nobody waits. trip_us: a slow round trip to the nodes. */
void turn_on_release(struct turn *turn, uint64_t next, int64_t trip_us,
                     int64_t now_us);

/* One of its waiters was granted the lock; follows: by a release through this
 * server. arrivals: of the latest waiter. */
void turn_on_grant(struct turn *turn, bool follows, uint64_t arrivals,
                   int64_t now_us);

/* A yield ends: others have had the lock, or an attempt was made. */
void turn_end_yield(struct turn *turn, bool was_used);

/* How long one of so many waiters holds back after a release elsewhere. */
int64_t turn_behind_us(const struct turn *turn, int waiters, int64_t now_us);

/* ---- queues -------------------------------------------------------------- */

/* When a contender tries, and the last known holder. */
struct waitplan {
    struct engine_result last; /* of the last attempt, or the last grant */
    int64_t last_us;
    char last_owner[OWNER_MAX];
    char last_key_hash[KEY_HASH_LEN];

    int64_t try_us; /* at the latest; 0: not planned */
    enum metrics_handover try_by;
    enum metrics_handover tried_by; /* HANDOVER_NONE: it came first, or is a
                                       repeat */
    bool is_woken;                  /* while it was barred: tries next */
    enum metrics_handover woken_by;

    uint16_t announced;    /* bit per node: a release, since the last attempt */
    int64_t released;      /* the number of that lock, if it was told */
    int64_t hints_from_us; /* announcements wake no one before */
    int64_t hint_gap_us;   /* grows while announcements are wrong */
};

/* A waiter's place in a queue. */
struct place {
    TAILQ_ENTRY(place) link;
    struct waiter *waiter;
    struct waitqueue *queue;
};

struct waiter {
    struct ticket ticket; /* its name: the resources that it waits for */
    struct waits *waits;
    TAILQ_ENTRY(waiter) ready;
    bool is_ready;  /* in the list of those that are ready to try */
    bool is_shared; /* others may hold the lock as well */
    bool has_nonce; /* with a key: its tokens begin with it */
    unsigned char nonce[TOKEN_NONCE_BYTES];
    uint16_t own;        /* bit per node: a try of its own may be left there */
    uint64_t arrival;    /* number in the order of arrival */
    uint64_t begun;      /* the latest arrival when its attempt began */
    struct claim claim;  /* with a key: to a lock that it has already */
    uint64_t inspection; /* the inspection that searches for it; 0: none */
    int count;           /* of places */
    struct place *places;
    struct waitplan *plan; /* of its queue; its own if it has several */
    struct place only;
    struct several *several; /* NULL: it has one place */
};

struct waitqueue {
    struct span resource; /* first: the key of the index */
    TAILQ_ENTRY(waitqueue) link;
    TAILQ_HEAD(, place) places;
    int count;   /* of them */
    int writers; /* of these, those for an exclusive lock */
    int users;   /* waiters that are not closed, and the subscription */
    struct waiter *contender; /* NULL: none contends in all of its queues */
    struct waiter *trying;    /* has an attempt under way; NULL: none */
    struct waiter *due;   /* a repeat that goes before all others; or NULL */
    struct waitplan plan; /* of contenders with no other queue */

    bool is_subscribed;
    TAILQ_ENTRY(waitqueue) listened; /* in the list of those that are */
    bool is_covered;                 /* a quorum announces */
    uint16_t subscribed;             /* bit per node: it confirmed */

    struct turn turn; /* of this server */
    int64_t empty_us; /* when the last waiter left */
    TAILQ_ENTRY(waitqueue) vacant;
    bool is_vacant; /* in the list of queues that need a contender */
    char text[];
};

/*
 * One that leaves may make a long chain of others contend and give way. So
 * between two ticks there are about so many checks of a contender by a waiter:
 * then a vacant queue waits for the next tick, unless its first may
 * contend.
 */
enum { WAITQUEUES_CHECKS = 50000 };

struct waitqueues {
    void *index; /* for tsearch(3) */
    TAILQ_HEAD(, waitqueue) list;
    TAILQ_HEAD(, waitqueue) listened; /* each tick visits these only */
    TAILQ_HEAD(, waitqueue) vacant;   /* empty while checks are left */
    int checks;                       /* left until the next tick */
    uint64_t arrivals;
};

void waitqueues_init(struct waitqueues *queues);
void waitqueues_fini(struct waitqueues *queues);

/* NULL: there is no queue for it. */
struct waitqueue *waitqueues_find(const struct waitqueues *queues,
                                  struct span resource);

/* The queue of the first of these names that has one, which is taken off names
 * with those before it; NULL: none is left. */
struct waitqueue *waitqueues_next(const struct waitqueues *queues,
                                  struct span *names);

/* One user more or less. NULL: no memory. A user without a place counts itself
 * in count, and is woken by announcements only. */
struct waitqueue *waitqueues_use(struct waitqueues *queues,
                                 struct span resource);
void waitqueues_unuse(struct waitqueues *queues, struct waitqueue *queue);

/* Makes the waiter's places and its plan; it does not take them yet. False: no
 * memory, and nothing has changed. */
bool waitqueues_enrol(struct waitqueues *queues, struct waiter *waiter,
                      struct span names);

/* Frees its places: it must have left the queues. */
void waitqueues_dismiss(struct waitqueues *queues, struct waiter *waiter);

/* It takes its places, at the end, or leaves them. Both may change contenders
 * of other queues. */
void waitqueues_join(struct waitqueues *queues, struct waiter *waiter);
void waitqueues_leave(struct waitqueues *queues, struct waiter *waiter);

/* Finds contenders for queues that are vacant still. */
void waitqueues_tick(struct waitqueues *queues);

static inline bool waiter_is_contender(const struct waiter *waiter)
{
    return waiter->places[0].queue->contender == waiter;
}

/* True while another attempt for one of its resources is under way, or goes
 * before. */
bool waiter_is_barred(const struct waiter *waiter);

/* True if a quorum announces releases of all its resources. */
bool waiter_is_covered(const struct waiter *waiter);

/* True if its key hash is this one; false if that is empty. */
bool waiter_has_key(const struct waiter *waiter, struct span key_hash);

/* ---- acquires that wait -------------------------------------------------- */

/*
 * Announcements of releases, on connections that are open while an acquire
 * waits, and a little longer. Each queue is subscribed to on all nodes. A node
 * counts as announcing if it has confirmed the subscription and a heartbeat has
 * arrived lately: each of our listen calls has it publish one.
 */
enum {
    /* from the first announcement of a release until it counts as released */
    ANNOUNCEMENTS_ENOUGH_US = 5000,
    EXPIRY_US = 1000, /* a TTL ends so much later than a node reports */
};

struct waits {
    const struct environment *env;
    struct operations *operations;
    struct tickets *tickets;
    struct waitqueues queues;
    /* Ready to try. Between two events only repeats that wait for another
     * attempt.
     */
    TAILQ_HEAD(, waiter) ready;
    bool is_listening;           /* the connections are wanted */
    int64_t listen_us;           /* when the next listen calls are due */
    int64_t wanted_us;           /* when a queue was last in use */
    int64_t heard_us[NODES_MAX]; /* time of the last heartbeat; 0: none */
};

void waits_init(struct waits *waits, struct nodes *nodes,
                struct tickets *tickets);

/* The queue is in use: subscribes to releases of its resource. */
void waits_want(struct waits *waits, struct waitqueue *queue, int64_t now_us);

/* How long to wait for an event before the next try: a random time, and a long
 * one if a quorum announces. */
int64_t waits_pause_us(const struct waits *waits, bool is_announced);

/* As operation_start, for an acquire that waits for wait_ms at most; it has a
 * ticket. With 0 it is answered at once unless it is its turn: it may not
 * overtake those that wait. */
uint64_t waits_start(struct waits *waits, const struct request *asked,
                     int64_t wait_ms);

/* The client with this key has asked again, and does not wait: what of its
 * requests waits here is answered, and what that tries is released. Its close
 * may never come, as not every proxy passes it on. */
void waits_withdraw(struct waits *waits, struct span resource,
                    struct span key_hash);

/* The number of waiters for the resource; of several, the greatest. */
int waits_count(const struct waits *waits, struct span resource);

/* Whether one of them wants one of the resources for itself; contends: and a
 * reader who comes now would overtake it, as it does not wait for others. */
bool waits_has_writer(const struct waits *waits, struct span resource,
                      bool contends);

/* A release was just sent to the nodes: calls that are sent now come behind. */
void waits_on_release(struct waits *waits, struct span resource);

/* A node announced a release to so many connections, of all servers. */
void waits_on_listeners(struct waits *waits, struct span resource,
                        int64_t listeners);

/* The events of port.h. */
void waits_on_listener_up(struct waits *waits, int node);
void waits_on_listener_down(struct waits *waits, int node);
void waits_on_subscribed(struct waits *waits, int node, struct span resource);
void waits_on_announced(struct waits *waits, int node, struct span resource,
                        int64_t number);

/* Sends listen calls, drops unused queues. */
void waits_tick(struct waits *waits, int64_t now_us);

#endif
