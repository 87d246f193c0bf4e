/*
 * An attempt to reach a node: its name is looked up, it is connected to, and
 * the handshake is done. One attempt at a time.
 *
 * To look whether a node is still the same, the attempt is as fresh as can be:
 * it never takes the last good address for one that was resolved. And it
 * leaves no trace on the node: it does not load the script.
 *
 *              found            connected           last reply
 *   at rest → lookup ──→ connecting ──→ handshake ──→ done ─→ at rest
 *                └────────────┴────────────┴──→ failed ─────────↑
 *                        refused, silent, unfit, garbage
 */
#ifndef REDLOCKD_DIAL_H
#define REDLOCKD_DIAL_H

#include "handshake.h"
#include "resolver.h"
#include "wire.h"

struct dial;

/* What an attempt ended in. The handshake is borrowed in the callback. */
struct dial_result {
    struct wire *wire; /* the callee's from now on, and watched by nobody */
    const struct handshake *handshake;
    int64_t time_sent_us;     /* of the handshake's TIME, … */
    int64_t time_received_us; /* … both clock_now_us() */
    int64_t heard_us;         /* when the wire was read last */
    /* When the attempt, and with it the resolving, began; 0: the name was not
       resolved, and this is the last good address. */
    int64_t began_us;
};

/*
 * One of them ends each attempt, and comes in the loop. They may start the
 * next one, and must not free the dial. reason and detail: as of a link that
 * goes down.
 */
struct dial_events {
    void (*done)(void *ctx, const struct dial_result *result);
    void (*failed)(void *ctx, enum node_state reason, const char *detail);
    void *ctx;
};

/* config and resolver are borrowed until dial_free. */
struct dial_setup {
    struct loop *loop;
    const struct config_node *config;
    struct resolver
        *resolver;      /* of this node; may have several dials, in turns */
    int64_t silence_us; /* who says nothing for so long has failed */
    bool is_look;       /* only to see whether the node is still the same */
    struct dial_events events;
};

/* At rest. NULL: no memory. */
struct dial *dial_new(const struct dial_setup *setup);

/* Begins, at rest only. May call failed back before it returns. */
void dial_start(struct dial *dial);

/* Gives the attempt up, if there is one: nobody is called back. */
void dial_stop(struct dial *dial);

void dial_free(struct dial *dial);

#endif
