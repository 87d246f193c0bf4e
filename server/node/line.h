/*
 * A connection to a node that comes back: it dials, reads when the node has
 * sent something, and dials again with jittered backoff. Its owner makes the
 * commands and understands the replies.
 *
 *            open       wait ends             done
 *   closed ───→ idle ───────────────→ dialing ─────→ up
 *                 ↑                      │            │
 *                 └──────────────────────┴────────────┘
 *                 failed, reset, silent for too long, line_fail
 *
 * What becomes of that which is under way when the line goes down, is closed or
 * ends:
 *
 *   name lookup             its result is kept for the next dial; at the end it
 *                           is cancelled
 *   connecting, handshakes  dial_stop: the watch is freed, then the socket
 *   probe of confirm.h      the same: only a line that is up is confirmed
 *   commands                the owner answers them in its event down; what that
 *                           causes to be sent here is refused
 *   timer                   set anew or stopped
 */
#ifndef REDLOCKD_LINE_H
#define REDLOCKD_LINE_H

#include "dial.h"

/*
 * Called in the loop, never from within line_fail_later or line_flush;
 * line_fail calls down before it returns. They may call any function but
 * line_fini.
 *
 * up       line.wire is connected; result is borrowed, its wire is the line's
 *
 * heard    something may have been read: take all replies from line.wire. They
 *          came at line.silence.heard_us
 *
 * down     the connection is lost, or an attempt failed; reason and detail, a
 *          sentence without secrets, say why
 *
 * owed_us  since when the node owes something; 0: it owes nothing, and may be
 *          silent
 */
struct line_events {
    void (*up)(void *ctx, const struct dial_result *result);
    void (*heard)(void *ctx);
    void (*down)(void *ctx, enum node_state reason, const char *detail);
    int64_t (*owed_us)(void *ctx);
    void *ctx;
};

/* A node that becomes ready votes after the longest wait at the latest. */
enum { LINE_BACKOFF_FIRST_US = 20000, LINE_BACKOFF_LAST_US = 500000 };

enum line_state {
    LINE_CLOSED,
    LINE_IDLE, /* until the wait ends */
    LINE_DIALING,
    LINE_UP,
};

/*
 * The timer means: dial again (idle), take the failure of a write (is_failing),
 * else check for silence. It is not set while the dial is at work.
 */
struct line {
    struct loop *loop;
    struct loop_timer *timer;
    struct line_events events;

    enum line_state state;
    bool is_failing; /* a write failed; the line goes down in the next turn */
    int64_t up_us;   /* up since */
    struct silence silence;
    int64_t backoff_us; /* the longest next wait; 0: LINE_BACKOFF_FIRST_US */
    struct resolver resolver; /* while the line is up, others may use it */
    struct dial *dial;
    struct loop_watch *watch;
    struct wire *wire; /* NULL: not up */
};

/*
 * Closed at first. line is zero; takes all of dialing but resolver and events.
 * False: no memory; it must be line_fini'd all the same.
 */
bool line_init(struct line *line, const struct dial_setup *dialing,
               const struct line_events *events);
void line_fini(struct line *line);

/* Dials in the next turn. No-op if it is not closed. */
void line_open(struct line *line);

/* Calls no event. */
void line_close(struct line *line);

/* Whether commands may be given to line.wire. */
static inline bool line_is_up(const struct line *line)
{
    return line->state == LINE_UP && !line->is_failing;
}

/* Goes down, and dials again later. Not if it is closed. */
void line_fail(struct line *line, enum node_state reason, const char *detail);

/* Goes down in the next turn: for callers that must not cause an event. */
void line_fail_later(struct line *line);

/* While idle: the next attempt begins after wait_us. */
void line_put_off(struct line *line, int64_t wait_us);

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
