/* SPDX-License-Identifier: MIT */
/*
 * The clients of the simulation, and the invariants that hold for them. What
 * they ask: the file drawn.
 *
 *   exclusion  no two clients believe in a lock on one resource, unless both
 *              locks are shared. Not claimed
 *              in worlds whose clocks violate all assumptions, nor for a lock
 *              that a node evicted, until a look notices that
 *   rising     each grant's number is above that of every earlier grant, and of
 *              every earlier exclusive one if it is shared; no
 *              lock is extended after a grant with a higher number, unless it
 *              is the same client's, with the same key, or owed to an eviction,
 *              as above; even in those worlds, as long as no node forgets
 *              anything there
 *   forced     a lock that a client believes in is deleted by no forced release
 *              that names another one, or was answered before the grant began
 *   watched    a client that watches a lock is told of no writer after one with
 *              a higher number, unless nodes have forgotten meanwhile
 *   spread     a second after it was granted, or extended for longest, or four
 *              node timeouts, a lock is on each node that voted for its server
 *              all the time, unless something else is there, or was there for
 *              some of the second half, or the lock ends within a node timeout
 *   capacity   no more permits of a pool are believed in than the greatest
 *              limit in use; each is of as many slots as were asked for, all
 *              below the limit. Not claimed where exclusion is not
 *   readers    no more clients believe in a shared lock than there are votes,
 *              if each node lets in as many as may; not claimed likewise.
 *              When the faults have ended, just as many as may get in
 *   same       a client that was granted permits, does not know it, and repeats
 *              its acquire, is granted no others, if all nodes have them when
 *              it asks and when it is answered. Where a node lacks them, a
 *              quorum may not tell of them; and a majority may have others
 *              with its key, from when it was so. One that was granted a shared
 *              lock, and repeats, has then nothing left of the former grant: no
 *              majority has that beside the repeat, on none of the resources,
 *              whoever else asks with its key. Of two requests with one key
 *              that are under way at once one has a shared lock
 *   own        a key that a client believes in is deleted only by a release
 *              that this client asks for
 *   kept       the lock a client believes in, or a repeat that was asked for
 *              after it was granted, is whole on a majority of the nodes,
 *              except nodes that lost memory or time since then
 *   answered   every request is answered exactly once
 *   withdrawal when a client has asked for a lock with its key, and does not
 *              wait, none of its earlier requests waits on that server
 *   mortal     no acquire or extend that arrives long after it was sent sets a
 *              key or lengthens its life
 *   foreign    a server of the same epoch but another configuration takes no
 *              admission from a node; once the first configuration has admitted
 *              one, it grants nothing unless nodes have forgotten that
 *   replicated a lock that was extended without any faults is soon on all nodes
 *   served     when holders release and a quorum votes, a client that waits has
 *              the lock within its time
 *   regained   … and so has, soon, a client that was granted it before and asks
 *              again, whoever else waits and however far apart the clocks are
 *   tidy       when the faults have ended and all locks are released, no key is
 *              left on any node; not even by an extend that the client did not
 *              wait for
 *   able       … and when a quarantine has passed since the last fault, every
 *              server can acquire every resource
 *   full       no node withholds its vote on what is held for want of memory
 *   backups    … and when the first replica of each node is attached, or each
 *              frees its backlog, all at once, a lock that is held is extended
 *              and another one acquired, at once
 *   paced      no server sends a node more than 200 calls a second about who
 *              may vote, whatever other servers and configurations do
 *   alive      no request, no reply and no signal ends a server's process
 *
 * Each is checked at every event that could break it: ledger.c; those
 * from "replicated" to "backups" at the end: endings.c.
 */
#ifndef SIM_CLIENTS_H
#define SIM_CLIENTS_H

#include "../../server/lock/lock.h"
#include "ledger.h"
#include "world.h"

enum {
    SIM_CLIENTS = 24,
    SIM_GHOSTS = 48,  /* requests that arrive twice */
    SIM_HELD_MAX = 3, /* resources of one lock */
    SIM_ALL_CLIENTS = SIM_CLIENTS + SIM_GHOSTS,
    SIM_VISITORS = 8, /* who ask for no lock: visitors.h */
    SIM_EVERYBODY = SIM_ALL_CLIENTS + SIM_VISITORS,
};

enum client_state { CLIENT_IDLE, CLIENT_ASKING, CLIENT_HOLDING };
enum client_ask {
    ASK_ACQUIRE,
    ASK_EXTEND,
    ASK_RELEASE,
    ASK_INSPECT,
    /* only visitors: */
    ASK_WATCH,
    ASK_FORCE,
    ASK_LIST,
    ASK_POOL,
    ASKS
};

enum client_event {
    CLIENT_STEP,
    CLIENT_BELIEF_ENDS,
    CLIENT_HALF_SPREAD,
    CLIENT_SPREAD, /* its lock was granted or extended a while ago */
    /* what its server does: */
    CLIENT_ASK,
    CLIENT_READ_ANSWER,
    CLIENT_LEAVE,
    CLIENT_LEAVE_BATCH
};

/* Permits, or a shared lock, whose grant a client does not know. */
struct had {
    uint64_t key;     /* 0: there are none */
    size_t token_len; /* of a shared lock; 0: these are permits */
    char token[TOKEN_MAX];
    int count;
    int resources[SIM_RESOURCES];
    int64_t granted_us;
    bool is_clear; /* when it last asked, each quorum told of just these */
};

/* What a visitor knows. */
struct visit {
    bool follows;         /* a watch after the other */
    struct version known; /* that a watch waits for another than */
    int64_t newest;       /* the greatest number of a writer that it was told */
    bool has_cursor;      /* a list goes on */
    struct list_cursor cursor;
};

struct client {
    int server; /* any, for each operation */
    enum client_state state;
    enum client_ask ask;
    bool is_asked; /* the server has accepted the request */
    bool is_answered;
    uint64_t serial; /* of its operation */
    int batch;       /* that it is in, with others; 0: it is alone */
    bool has_left;   /* the client of the batch: it goes on without */
    engine_op op;
    int count; /* of the resources of its lock */
    int resources[SIM_RESOURCES];
    bool is_shared;      /* others may hold its lock as well; or it has asked
                            for that */
    bool is_downgrading; /* with the request under way, the only one so far */
    int limit;           /* of the pool; 0: its lock is no permit */
    int permits;         /* with a limit: how many it wants */
    bool is_denied;      /* of another pool, whose keys no node lets servers
                            use */
    uint64_t key;        /* its idempotency key; 0: it has none */
    uint64_t ghost_key;  /* the last one that a ghost was given, too */
    int64_t repeated_us; /* when another request with it last began */
    int64_t begun_us;    /* when its own began */
    struct had had;      /* granted with a key */
    bool only_repeats;   /* it may get no permit that it has not already */
    bool is_unheard;     /* it does not know what came of its acquire */
    int64_t ttl_ms;
    int64_t wait_ms;
    int64_t number;      /* of its lock; what a forced release names */
    struct visit visit;  /* of a visitor */
    bool is_revived;     /* set on a node after a forced release of it */
    int64_t granted_us;  /* when the belief began */
    int64_t extended_us; /* when it was granted or extended for longest … */
    int extended_by;     /* … by this server */
    bool was_shared;     /* … in this form */
    int64_t taken_us[SIM_NODES]; /* at half the time until it must be on all:
                                    how long it was kept away, or was there */
    int64_t believes_until_us;   /* 0: in nothing */
    enum configuration believes_in;
    int64_t ppm; /* how much faster its clock runs */
    size_t token_len;
    char token[TOKEN_MAX];
};

struct clients {
    struct client client[SIM_EVERYBODY];
    struct ledger ledger;
    int active;      /* so many want locks */
    int leaving;     /* percent of the requests whose clients leave */
    bool is_resting; /* no new acquires */
    bool is_led;     /* only ask what client_ask says */
    bool has_ghosts;
    bool has_repeats; /* some acquires have a key, and are repeated */
    uint64_t keys;    /* so far */
    int batches;      /* likewise */
    bool is_brief;    /* most TTLs are short: a quiet spell outlasts them */
    bool is_hasty;    /* go on while an extend is under way */
    int64_t quiet_until_us; /* nobody asks for a lock until then … */
    bool is_silent;         /* … nor extends one */
    uint64_t outcomes[OUTCOME_KINDS];
    uint64_t votes[BALLOT_KINDS]; /* of the deciding rounds */
    uint64_t asked[ASKS];
    uint64_t listed; /* locks, on all pages */
    uint64_t left;
    uint64_t lost; /* the server died before it answered */
    uint64_t doubled;
    uint64_t repeated; /* grants in place of earlier ones */
};

/* The client does not know that it was granted what it asked for with its key.
   token: of that. */
void client_note_had(const struct world *world, struct client *client,
                     struct span token);

void clients_start(struct world *world);
void clients_on_answer(struct world *world, struct client *client);
void clients_on_event(struct world *world, const struct event *event);
void clients_on_server_death(struct world *world, int server);

/* Whether any waits for an answer of this server. */
bool clients_are_served(const struct world *world, int server);

/* The server that handles the event; -1: none. */
int clients_server_of(const struct world *world, const struct event *event);

/* Whether it is that pool, or in it. */
bool clients_is_denied(struct span resource);

/* Any that runs, or does not; seldom one of another configuration. */
int clients_any_server(struct world *world);

/* Has the client do so after a while, unless it goes on before. */
void client_tell(struct world *world, const struct client *client,
                 int64_t delay_us, enum client_event what);

/* Traces who asks or holds. */
void clients_trace(const struct world *world);

/* True if no client asks or holds. */
bool clients_are_idle(const struct clients *clients);

/* Its next lock is on this resource alone, without a key. */
void client_choose(struct client *client, int resource);

/* Its next lock are so many permits of the pool, without a key. */
void client_choose_permits(struct client *client, int limit, int permits);

/* … others may hold it as well. */
void client_choose_mode(struct client *client, bool is_shared);

/* … and on this one. */
void client_choose_also(struct client *client, int resource);

bool client_has_resource(const struct client *client, int resource);
bool client_shares_resource(const struct client *a, const struct client *b);

/* What the hash of its key is taken to be; empty: it has none. */
struct span client_key_hash(const struct client *client,
                            char hash[KEY_HASH_LEN + 1]);

/* Of its lock. */
static inline struct span client_token(const struct client *client)
{
    return (struct span){client->token, client->token_len};
}

bool client_believes(const struct world *world, const struct client *client);
int client_number(const struct world *world, const struct client *client);

/* The client sends this to that server, once, and reads the answer. */
void client_ask(struct world *world, struct client *client,
                enum client_ask what, int server);

/* Whatever it waits for: it leaves. No-op if the server knows nothing of it. */
void client_leave(struct world *world, struct client *client);

#endif
