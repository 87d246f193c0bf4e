/*
 * A link to a real redis-server, and calls over it.
 */
#ifndef REDLOCKD_TEST_LIVE_H
#define REDLOCKD_TEST_LIVE_H

#include "../../server/link.h"
#include "master.h"

#define LIVE_ADMIT "1:fingerprint:run"
#define LIVE_NONCE "00112233445566ff"
#define LIVE_MARK "1:run:" LIVE_NONCE

enum { LIVE_TTL_MS = 60000, LIVE_WINDOW_US = 15000000, LIVE_VOTES_MAX = 64 };

struct live {
    struct master master;
    struct config_node config;
    struct loop *loop;
    struct link *link;

    /* what the link told */
    int ups, confirmed, downs, replies;
    bool is_durable;       /* of the last up or confirmed */
    int64_t clock_lead_us; /* node's clock minus ours */
    enum vote reason;      /* of the last down */
    char detail[200];
    struct script_reply reply; /* the last */
    char value[VALUE_MAX + 1];
    char admit[SCRIPT_STATE_MAX + 1]; /* what the last look told */
    char mark[SCRIPT_STATE_MAX + 1];
    enum vote votes[LIVE_VOTES_MAX]; /* by tag, which live_ask_all counts */
};

extern struct live live;

/* As a fixture: server, loop and link are up in between. Prefix: "p:". */
void live_setup(void);
void live_teardown(void);

/* Drops the link and begins anew, by the present config. */
void live_reconnect(void);

int64_t live_node_now_us(void);

/*
 * A call of this kind that is granted on a free lock; that looks, marks and is
 * durable; that admits what LIVE_MARK marks.
 */
struct script_call live_call(enum script_kind kind, const char *resource,
                             const char *token);

/* Sends the call and returns the vote; the reply is in live. */
enum vote live_ask(const struct script_call *call);

/* Sends the calls in one batch; the votes are in live. */
void live_ask_all(const struct script_call *calls, int count);

/* Makes a call and sends it. */
enum vote live_run(enum script_kind kind, const char *resource,
                   const char *token);

/* Admits the node by LIVE_ADMIT. */
void live_admit(void);

#endif
