/* SPDX-License-Identifier: MIT */
/*
 * A link to a real redis-server, and calls over it.
 */
#ifndef REDLOCKD_TEST_LIVE_H
#define REDLOCKD_TEST_LIVE_H

#include "../../../server/lock/lock.h"
#include "../../../server/node/link.h"
#include "../../lib/node/real.h"
#include "../ballot.h"
#include "tokens.h"

#define LIVE_NAME "1:fingerprint:0123456789abcdef:"
#define LIVE_ADMIT LIVE_NAME "run"
#define LIVE_NONCE "0011223344:"
#define LIVE_MEDIAN_US INT64_C(1700000000000001)

enum { LIVE_TTL_MS = 60000, LIVE_WINDOW_US = 15000000, LIVE_VOTES_MAX = 64 };

struct live {
    struct real real;
    struct address_node config;
    struct loop *loop;
    struct link *link;

    /* the link's events */
    int ups, confirmed, downs, replies;
    bool is_durable;         /* of the last up or confirmed */
    int64_t clock_offset_us; /* node's clock minus ours */
    enum node_state reason;  /* of the last down */
    char detail[NODE_DETAIL_MAX];
    char evicts[NODE_DETAIL_MAX];
    struct call_reply reply;        /* the last */
    char admit[CALL_STATE_MAX + 1]; /* what the last probe returned */
    char quarantine[CALL_STATE_MAX + 1];
    char trace[CALL_TRACE_MAX + 1];

    char quarantined[CALL_STATE_MAX +
                     1];   /* the last quarantine record that a probe found */
    char of_this_life[64]; /* how admissions end on this node */
    char admission[CALL_STATE_MAX + 1]; /* what calls carry that need a vote */
    int votes[LIVE_VOTES_MAX];          /* by tag, which live_ask_all counts */
};

extern struct live live;

/* As a fixture: server, loop and link are up in between. Prefix: "p:". */
void live_setup(void);
void live_teardown(void);

/* Drops the link and makes another by the present config. */
void live_reconnect(void);

int64_t live_node_now_us(void);

/* Reads the node's replication ID again, after it was a replica. */
void live_learn_memory(void);

/*
 * A call of this kind (probe, admit, acquire, extend, release, inspect, listen)
 * that is granted on a free lock; that probes, quarantine records and is
 * durable; that admits what live.quarantined quarantines.
 */
struct call live_call(enum call_kind kind, const char *resource,
                      const char *token);

/*
 * Sends the calls in one batch; the votes and the last reply are in live. A
 * name stands for a token, with the number of the last acquire that may have
 * set it.
 */
void live_ask_all(const struct call *calls, int count);

/* One; returns the ballot. If it admits the node, live.admission is its
 * admission. */
int live_ask(const struct call *call);

/* Makes a call and sends it. */
int live_run(enum call_kind kind, const char *resource, const char *token);

/* Probes at the node and admits it. */
void live_admit(void);

/* A server listens for so long from now on. */
void live_listen(int64_t us);

#endif
