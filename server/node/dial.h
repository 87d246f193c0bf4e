/*
 * Attempts to reach a node: looks its name up, connects and does the handshake.
 * One attempt at a time.
 *
 * A probe only finds out whether the node is still the same. It never falls
 * back on the last good address, and it leaves no trace on the node: it does
 * not load the script.
 *
 *                     found        connected     secure       last reply
 *   at rest ─→ lookup ─→ connecting ─→ securing ─→ handshake ─→ done
 *                │           │             │            │
 *                └───────────┴─────────────┴────────────┴─────→ failed
 *                 refused, silent, insecure, unfit, garbage
 *
 * Either way the dial is at rest again before its owner hears of the end.
 */
#ifndef REDLOCKD_DIAL_H
#define REDLOCKD_DIAL_H

#include "handshake.h"
#include "resolver.h"
#include "wire.h"

struct dial;

/* A successful attempt. The handshake is borrowed in the callback. */
struct dial_result {
    struct wire *wire; /* the callback must free it; has no watch */
    const struct handshake *handshake;
    const struct resolver_address *address; /* borrowed, as the handshake */
    struct node_facts facts; /* but whether it has moved; of the handshake */
    int64_t heard_us;        /* the wire was read last, by clock_now_us() */
};

/*
 * Each attempt ends with one of them, called in the loop. They may start the
 * next attempt, but must not free the dial. reason and detail: as of a link
 * that goes down.
 */
struct dial_events {
    void (*done)(void *ctx, const struct dial_result *result);
    void (*failed)(void *ctx, enum node_state reason, const char *detail);
    void *ctx;
};

/* config and resolver are borrowed until dial_free. */
struct dial_setup {
    struct loop *loop;
    const struct address_node *config;
    struct trust *trust;       /* for a node that speaks TLS; borrowed */
    struct resolver *resolver; /* of this node; one dial at a time may use it */
    int64_t silence_us;        /* fails if the node says nothing for so long */
    bool is_probe;             /* only finds out whether the node is the same */
    struct dial_events events;
};

/* At rest. NULL: no memory. */
struct dial *dial_new(const struct dial_setup *setup);

/* Begins; only at rest. May call failed before it returns. */
void dial_start(struct dial *dial);

/* Gives the attempt up, if there is one; calls no event. */
void dial_stop(struct dial *dial);

void dial_free(struct dial *dial);

/* ---- silence ------------------------------------------------------------- */

enum { DIAL_TEXT_MAX = 64 };

/*
 * The timeout of a node that owes something.
 *
 * Read what is in the socket before judging: if the process was stopped, the
 * reply may be there. A loop_timer always runs after such a reading.
 */
struct silence {
    int64_t timeout_us;
    int64_t heard_us; /* when something was read last; 0: never */
};

/*
 * When the node times out: timeout_us after it began to owe something, at
 * owed_us, and after it was heard last. owed_us 0: it owes nothing, and times
 * out timeout_us after now_us at the earliest.
 */
int64_t dial_deadline_us(const struct silence *silence, int64_t owed_us,
                         int64_t now_us);

/* Writes "no reply for 1000 ms", when a "reply" is missing. */
void dial_explain_silence(const struct silence *silence, const char *missing,
                          char text[DIAL_TEXT_MAX]);

#endif
