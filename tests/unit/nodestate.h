/*
 * The state hash of a node, and what look, admit, readmit and revoke do with
 * it: server/scripts, in a few lines of C. check_same.c holds both to the
 * same.
 */
#ifndef REDLOCKD_TEST_NODESTATE_H
#define REDLOCKD_TEST_NODESTATE_H

#include "../../server/guard.h"

typedef char nodestate_text[GUARD_STATE_MAX + 1];

struct nodestate {
    bool exists;
    nodestate_text admit, mark; /* "": none */
    int64_t max_ttl_ms;         /* 0: none */
    bool is_durable;
    int64_t beat_us;
};

/* Who asks, and what it sends along; nonce "": mark nothing. */
struct nodestate_call {
    enum guard_action_kind kind;
    nodestate_text admit, found;
    char nonce[SCRIPT_NONCE_LEN + 1];
    int64_t max_ttl_ms, beat_us;
    bool is_durable;
};

struct nodestate_reply {
    int64_t now_us;
    bool is_done;
    struct script_look look; /* its spans lie in the following */
    nodestate_text admit, mark;
};

void nodestate_run(struct nodestate *state, const struct nodestate_call *call,
                   int64_t now_us, struct nodestate_reply *reply);

/* The epoch in front of an admission or a mark; 0: there is none. */
int nodestate_epoch(const char *text);

#endif
