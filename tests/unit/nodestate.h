/*
 * The state hash of a node, and what look, admit, readmit, revoke and a promise
 * do with it: server/node/scripts, in a few lines of C. check_same.c holds both
 * to the same.
 */
#ifndef REDLOCKD_TEST_NODESTATE_H
#define REDLOCKD_TEST_NODESTATE_H

#include "../../server/engine/admission.h"

typedef char nodestate_text[ADMISSION_STATE_MAX + 1];
typedef char nodestate_words[CALL_WITNESSES_MAX + 1];

struct nodestate {
    bool exists;
    nodestate_text admit, mark; /* "": none */
    int64_t max_ttl_ms;         /* 0: none */
    bool is_durable;
    int64_t beat, seen_us, voted_us;
    int heard_count; /* witnesses: the greatest beat of other nodes */
    struct {
        char name[FINGERPRINT_LEN + 1];
        int64_t beat;
    } heard[NODES_MAX];
};

/* Who asks, and what it sends along; nonce "": mark nothing. */
struct nodestate_call {
    enum admission_action_kind kind;
    nodestate_text admit, found, mark;
    char nonce[CALL_NONCE_MAX + 1];
    nodestate_words told;
    int64_t max_ttl_ms, floor, median_us, deadline_us;
    bool is_durable, is_objecting;
};

struct nodestate_reply {
    bool is_done;
    int64_t beat;
    struct call_look look; /* its spans lie in the following */
    nodestate_text admit, mark;
    nodestate_words witnesses;
};

/* memory: the replication ID of the node that has the state. */
void nodestate_run(struct nodestate *state, const char *memory,
                   const struct nodestate_call *call, int64_t now_us,
                   struct nodestate_reply *reply);

/*
 * A batch that grants a lock, if the caller's whole admission is there, and of
 * this memory; returns the beat, 0: it is quarantined.
 */
int64_t nodestate_promise(struct nodestate *state, const char *memory,
                          const char *admission, int64_t median_us);

/* The epoch in front of an admission or a mark; 0: there is none. */
int nodestate_epoch(const char *text);

#endif
