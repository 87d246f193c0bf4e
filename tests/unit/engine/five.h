/*
 * Five nodes' clocks, as one server hears of them.
 */
#ifndef REDLOCKD_TEST_FIVE_H
#define REDLOCKD_TEST_FIVE_H

#include "../../../server/engine/voting/clocks.h"

enum {
    FIVE_NODES = 5,
    FIVE_QUORUM = 3,
    FIVE_MS = 1000,
    FIVE_SECOND = 1000000,
    FIVE_TTL_MS = 60000,
    FIVE_WINDOW_US = 15 * FIVE_SECOND,
    FIVE_PATIENCE_US = 100 * FIVE_MS,
    FIVE_TRIP_US = 200,
};

/* The nodes' clocks minus ours, but for offset_us. */
#define FIVE_EPOCH_US INT64_C(1795221641000000)

extern struct five {
    struct clocks clocks;
    struct clocks_judgement judgement;
    int64_t now_us;
    int64_t offset_us[FIVE_NODES]; /* of each node's clock */
} five;

/* As a fixture: nothing is known. */
void five_begin(void);

/* A reply after a round trip of so long; as clocks_observe. */
bool five_reply_after(int node, int64_t trip_us);
bool five_reply(int node);
void five_all_reply(void);

/* It connects, and replies. */
void five_up(int node);
void five_all_up(void);

/* So long, with a reply of each connected node every second. */
void five_watch(int64_t us);

#define FIVE_ASSERT_STATE(node, it)                                            \
    ck_assert_int_eq((int)clocks_refusal(&five.clocks, node), (int)(it))

#endif
