/* SPDX-License-Identifier: MIT */
/*
 * A connection to a node that comes back: it resolves the node's name,
 * connects, does the handshake, and reads when the node has sent something.
 * When that fails, it begins again after a jittered wait. Its owner makes the
 * commands and understands the replies.
 *
 *          open      at its time    found          connected    secure
 *   closed ──→ idle ─────────→ lookup ─→ connecting ─→ securing ─→ handshake
 *               ↑                │            │            │        │   │ last
 *               │                │            │            │        │   ↓ reply
 *               └────────────────┴────────────┴────────────┴────────┴── up
 *                refused, silent, insecure, unfit, garbage, line_fail
 *
 * What becomes of that which is under way when the line goes down, is closed or
 * ends:
 *
 *   name lookup   its result is kept for the next attempt; at the end it is
 *                 cancelled
 *   connection    the watch is freed, then the socket
 *   commands      the owner answers them in its event down; what that causes to
 *                 be sent here is refused
 *   timer         set anew or stopped
 */
#ifndef REDLOCKD_LINE_H
#define REDLOCKD_LINE_H

#include <sys/socket.h>

#include "../base/loop.h"
#include "handshake.h"
#include "wire.h"

struct line;

/*
 * Called in the loop, never from within line_fail_later or line_flush;
 * line_fail calls down before it returns. They may call any function but
 * line_fini.
 *
 * up       line.wire is connected, and line.handshake done. facts, whose run_id
 *          is the handshake's, lack has_moved
 *
 * received something may have been read: take all replies from line.wire. They
 *          came at line.received_us
 *
 * down     the connection is lost, or an attempt failed; reason and detail, a
 *          sentence without secrets, say why
 *
 * owed_us  since when the node, which is up, owes something; 0: it owes
 *          nothing, and may be silent
 */
struct line_events {
    void (*up)(void *ctx, const struct node_facts *facts);
    void (*received)(void *ctx); /* this one and owed_us: not if up closes it */
    void (*down)(void *ctx, enum node_state reason, const char *detail);
    int64_t (*owed_us)(void *ctx);
    void *ctx;
};

struct engine;

/*
 * What the owner of a node's connections is told: as port.h has it of the
 * engine, which is that owner. Called in the loop, but never from within a
 * function that sends or flushes. What they are given is borrowed.
 *
 * down        each pending call already got its reply, with VOTE_DISCONNECTED
 * confirmed   the recheck, which is closed already, found the same node, still
 *             fit; else the link goes down
 * reply       sent_us and received_us bound the flight of the call
 * listener_…, subscribed, announced  of the connection for announcements; up
 *             comes before down
 */
struct node_events {
    struct engine *engine; /* who is told */
    void (*up)(struct engine *engine, int node, const struct node_facts *facts);
    void (*confirmed)(struct engine *engine, int node,
                      const struct node_facts *facts);
    void (*down)(struct engine *engine, int node, enum node_state reason,
                 const char *detail);
    void (*reply)(struct engine *engine, int node, uint64_t tag,
                  const struct call_reply *reply, int64_t sent_us,
                  int64_t received_us);
    void (*listener_up)(struct engine *engine, int node);
    void (*listener_down)(struct engine *engine, int node);
    void (*subscribed)(struct engine *engine, int node, struct span resource);
    void (*announced)(struct engine *engine, int node, struct span resource,
                      int64_t number);
};

enum line_purpose {
    LINE_LISTENS,  /* for announcements: does not ask for rights */
    LINE_RECHECKS, /* asks for the rights that calls need */
    /* loads the script, too; and if no address is found it connects to the last
     * good one: the name may lead somewhere else by now */
    LINE_CALLS,
};

/* All that it points to is borrowed until line_fini. */
struct line_setup {
    struct loop *loop;
    const struct address_node *config;
    struct trust *trust; /* for a node that speaks TLS */
    int64_t silence_us;  /* fails if the node owes something for so long, and
                            says nothing meanwhile */
    const char *prefix;  /* of the keys, and of the channels of releases */
    enum line_purpose purpose;
    struct line *beside; /* shares its lookups, by turns; NULL: nobody's */
};

/* A node that becomes ready votes after the longest wait at the latest. */
enum { LINE_BACKOFF_FIRST_US = 20000, LINE_BACKOFF_LAST_US = 500000 };

enum line_state {
    LINE_CLOSED,
    LINE_IDLE, /* until the wait ends */
    LINE_RESOLVE,
    LINE_CONNECTING,
    LINE_SECURING, /* by TLS; within the time for connecting */
    LINE_HANDSHAKE,
    LINE_UP,
    LINE_FAILING, /* a write failed: goes down in the next turn */
};

struct line_address {
    socklen_t len; /* 0: no address */
    struct sockaddr_storage storage;
};

/*
 * The lookups of a node's name. There is at most one at a time, however many
 * are asked for and given up: a few threads resolve the names of all nodes, and
 * a name server that hangs must not block them all for one node.
 */
struct line_names {
    struct loop_lookup *lookup; /* NULL: none runs */
    int64_t began_us;           /* when the last one began */
    struct line *asker; /* NULL: nobody any more; what is found comes late */
    struct line_address late; /* for the next asker */
    unsigned turn; /* which address to try; 1 is added after a failure */
    struct line_address good; /* that could be connected to last */
};

/*
 * The timer means: dial (idle), take the failure of a write (failing), else
 * check for silence.
 */
struct line {
    struct line_setup setup;
    struct line_events events;
    struct loop_timer *timer;

    enum line_state state;
    int64_t state_us;    /* when the state began; failing: when it came up */
    int64_t received_us; /* when something was read last; 0: never */
    int64_t backoff_us;  /* the longest next wait; 0: LINE_BACKOFF_FIRST_US */

    struct line_names own_names;
    struct line_names *names;    /* its own, or those of the line beside it */
    struct line_address address; /* of the last attempt */
    int64_t began_us;            /* its lookup; 0: failed, so it is the last
                                    good address */
    struct loop_watch *watch;
    struct wire *wire; /* NULL: not connected */
    struct handshake handshake;
    int step;                         /* whose reply comes next */
    int64_t sent_us[HANDSHAKE_STEPS]; /* 0: the step was left out */
    int64_t time_received_us;
};

/*
 * Closed at first. line is zero. False: no memory; it must be line_fini'd all
 * the same.
 */
bool line_init(struct line *line, const struct line_setup *setup,
               const struct line_events *events);
void line_fini(struct line *line);

/* Begins at this time, or in the next turn. Only if it is closed or idle. */
void line_open(struct line *line, int64_t at_us);

/* Calls no event. */
void line_close(struct line *line);

/* Whether commands may be given to line.wire. */
static inline bool line_is_up(const struct line *line)
{
    return line->state == LINE_UP;
}

/* Goes down, and begins again later. Not if it is closed. */
void line_fail(struct line *line, enum node_state reason, const char *detail);

/* Goes down in the next turn: for callers that must not cause an event. */
void line_fail_later(struct line *line);

/*
 * Writes what is in line.wire, as far as the socket takes it. A line that
 * breaks at this goes down in the next turn.
 */
void line_flush(struct line *line);

/*
 * The wait before the next attempt: between half of *longest_us and all of it,
 * which is doubled each time. The jitter lets the connections of many servers
 * not come back at the same moment.
 */
int64_t line_backoff_us(int64_t *longest_us, uint32_t random);

#endif
