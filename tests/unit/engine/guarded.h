/*
 * A guard over five nodes whose looks and answers are given by hand.
 */
#ifndef REDLOCKD_TEST_GUARDED_H
#define REDLOCKD_TEST_GUARDED_H

#include "../../../server/engine/guard.h"

enum {
    GUARDED_NEVER = -1,
    GUARDED_NODES = 5,
    GUARDED_SECOND = 1000000,
    GUARDED_TTL_MS = 60000,
    GUARDED_TIMEOUT_US = 50000,
    GUARDED_QUARANTINE_US = 60600000 + 5000000 + 50000 + 1000000,
};

/* In an admission @ stands for the hash of the node's own name. */
#define GUARDED_RUN "0123456789012345678901234567890123456789"
#define GUARDED_OTHER_RUN "ffffffffffffffffffffffffffffffffffffffff"
#define GUARDED_MEMORY "abcdabcdabcdabcdabcdabcdabcdabcdabcdabcd"
#define GUARDED_FINGERPRINT "00112233445566ff"
#define GUARDED_ADMIT                                                          \
    "1:" GUARDED_FINGERPRINT ":@:" GUARDED_RUN ":" GUARDED_MEMORY
#define GUARDED_OLD_ADMIT                                                      \
    "1:" GUARDED_FINGERPRINT ":@:" GUARDED_OTHER_RUN ":" GUARDED_MEMORY
#define GUARDED_LIFE GUARDED_RUN ":" GUARDED_MEMORY
#define GUARDED_MARK "1:" GUARDED_LIFE ":0:aaaaaaaaaaaaaaaa"
#define GUARDED_OTHER_MARK "1:" GUARDED_LIFE ":0:bbbbbbbbbbbbbbbb"

/* The nodes' clocks minus ours. */
#define GUARDED_EPOCH_US INT64_C(1795221641000000)

/* What a look at a node tells besides; times in our clock. */
struct guarded_memory {
    int64_t beat, seen_us;
    int64_t voted_us; /* 0: now, as somebody promises all the time; NEVER */
    int64_t floor[GUARDED_NODES]; /* what it has heard of the others */
};

extern struct guarded {
    struct guard guard;
    struct guard_settings settings;
    int64_t now_us;
    int64_t max_ttl_ms; /* what the next looks tell; 0: the usual one */
    bool is_durable;    /* the nodes, and what their state says of them */
    struct guarded_memory memory[GUARDED_NODES];
} guarded;

/*
 * As a fixture: no node is connected, there is to be no first start, and the
 * clocks are known, all the same.
 */
void guarded_begin(void);

/* By guarded.settings, as the test has changed them: another process. */
void guarded_begin_again(void);

/* They are so far apart. */
void guarded_spread_clocks(int64_t spread_us);

void guarded_up(int node);
void guarded_down(int node);
void guarded_pass(int64_t us);

/* The next thing to do is this · there is nothing. */
void guarded_expect(enum guard_action_kind kind, int node);
void guarded_expect_nothing(void);

/* What a look that leaves and comes back now has found. */
void guarded_found(int node, enum call_look_word word, const char *admit,
                   const char *mark);

/* The node comes up, and its first look, which is due, finds this. */
void guarded_come(int node, enum call_look_word word, const char *admit,
                  const char *mark);

/* The action, which is expected now, is begun and answered. */
void guarded_do(enum guard_action_kind kind, int node);

/* And a look that comes behind it finds the node admitted. */
void guarded_give(enum guard_action_kind kind, int node);

/*
 * Each look that is to be done finds what was last found at its node, until
 * something else is to be done; returns how many there were.
 */
int guarded_look_around(void);

/* The same, and then nothing is to be done. */
void guarded_wait(void);

/* So long, in steps of half a heartbeat: the node is given nothing. */
void guarded_pass_without(enum guard_action_kind kind, int64_t us);

/* All five come up and are found so. */
void guarded_all(enum call_look_word word, const char *admit, const char *mark);

/* Nodes from this one on come up admitted; they promised last at voted_us. */
void guarded_admit_from(int first, int64_t voted_us);

/* A mark that was made at this moment of ours; in one of five buffers. */
const char *guarded_mark_of(int64_t born_us);

#define GUARDED_ASSERT_PHASE(index, it)                                        \
    ck_assert_int_eq((int)guarded.guard.node[index].phase, (int)(it))
#define GUARDED_ASSERT_REFUSAL(index, it)                                      \
    ck_assert_int_eq((int)guard_refusal(&guarded.guard, index), (int)(it))

#endif
