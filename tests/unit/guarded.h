/*
 * A guard over five nodes whose looks and answers are given by hand.
 */
#ifndef REDLOCKD_TEST_GUARDED_H
#define REDLOCKD_TEST_GUARDED_H

#include "../../server/guard.h"

enum { GUARDED_NODES = 5, GUARDED_SECOND = 1000000, GUARDED_TTL_MS = 60000 };

#define GUARDED_RUN "0123456789012345678901234567890123456789"
#define GUARDED_OTHER_RUN "ffffffffffffffffffffffffffffffffffffffff"
#define GUARDED_FINGERPRINT "00112233445566ff"
#define GUARDED_ADMIT "1:" GUARDED_FINGERPRINT ":" GUARDED_RUN
#define GUARDED_OLD_ADMIT "1:" GUARDED_FINGERPRINT ":" GUARDED_OTHER_RUN
#define GUARDED_MARK "1:" GUARDED_RUN ":aaaaaaaaaaaaaaaa"
#define GUARDED_OTHER_MARK "1:" GUARDED_RUN ":bbbbbbbbbbbbbbbb"

/* The nodes' clocks minus ours. */
#define GUARDED_EPOCH_US INT64_C(1795221641000000)

extern struct guarded {
    struct guard guard;
    struct guard_settings settings;
    int64_t now_us;
    int64_t beat_us;    /* what the next looks tell; 0: now */
    int64_t max_ttl_ms; /* likewise */
    bool is_durable;    /* the nodes, and what their state says of them */
} guarded;

/* As a fixture: no node is connected, and there is to be no first start. */
void guarded_begin(void);

/* By guarded.settings, as the test has changed them. */
void guarded_begin_again(void);

void guarded_up(int node);
void guarded_pass(int64_t us);

/* The next thing to do is this · there is nothing. */
void guarded_expect(enum guard_action_kind kind, int node);
void guarded_expect_nothing(void);

/* What a look that leaves and comes back now has found. */
void guarded_found(int node, enum script_look_word word, const char *admit,
                   const char *mark);

/* The action, which is expected now, is begun and answered. */
void guarded_do(enum guard_action_kind kind, int node, bool is_done);

/*
 * Each look that is to be done finds what was last found at its node, until
 * something else is to be done; returns how many there were.
 */
int guarded_look_around(void);

/* All five come up and are found so. */
void guarded_all(enum script_look_word word, const char *admit,
                 const char *mark);

#define GUARDED_ASSERT_PHASE(index, it)                                        \
    ck_assert_int_eq((int)guarded.guard.node[index].phase, (int)(it))
#define GUARDED_ASSERT_REFUSAL(index, it)                                      \
    ck_assert_int_eq((int)guard_refusal(&guarded.guard, index), (int)(it))

#endif
