/* SPDX-License-Identifier: MIT */
/*
 * A admission over five nodes whose probes and answers are given by hand.
 */
#ifndef REDLOCKD_TEST_VOTERS_H
#define REDLOCKD_TEST_VOTERS_H

#include "../../../server/engine/voting/members.h"

enum {
    VOTERS_NODES = 5,
    VOTERS_SECOND = 1000000,
    VOTERS_TTL_MS = 60000,
    VOTERS_TIMEOUT_US = 50000,
    VOTERS_QUARANTINE_US = 60600000 + 5000000 + 1000000,
};

/* In an admission @ stands for the hash of the node's own name, # for the
 * incarnation of the quarantine record that it had. */
#define VOTERS_RUN "0123456789012345678901234567890123456789"
#define VOTERS_OTHER_RUN "ffffffffffffffffffffffffffffffffffffffff"
#define VOTERS_MEMORY "abcdabcdabcdabcdabcdabcdabcdabcdabcdabcd"
#define VOTERS_FINGERPRINT "00112233445566ff"
#define VOTERS_ADMIT_OF(incarnation)                                           \
    "1:" VOTERS_FINGERPRINT ":@:" incarnation ":0:" VOTERS_RUN ":" VOTERS_MEMORY
#define VOTERS_ADMIT VOTERS_ADMIT_OF("#")
#define VOTERS_OLD_ADMIT                                                       \
    "1:" VOTERS_FINGERPRINT ":@:#:0:" VOTERS_OTHER_RUN ":" VOTERS_MEMORY
#define VOTERS_LIFE VOTERS_RUN ":" VOTERS_MEMORY

/* A greater digit is a later incarnation; that of an admission without a
 * quarantine record is 1.
 */
#define VOTERS_INCARNATION(digit) "000000000000000" #digit "0123456789"
#define VOTERS_NONE "00000000000000000000000000"
#define VOTERS_QUARANTINE_OF(digit)                                            \
    "1:" VOTERS_FINGERPRINT ":name:" VOTERS_INCARNATION(digit) ":"             \
                                                               ":" VOTERS_LIFE
#define VOTERS_QUARANTINE VOTERS_QUARANTINE_OF(2)
#define VOTERS_OTHER_QUARANTINE VOTERS_QUARANTINE_OF(3)

/* The nodes' clocks minus ours. */
#define VOTERS_EPOCH_US INT64_C(1795221641000000)

/* What a probe of a node tells besides. */
struct voters_memory {
    int64_t generation, rest_us, number;
    int64_t high_water[VOTERS_NODES]; /* what it has heard of the others … */
    char latest[VOTERS_NODES]
               [INCARNATION_LEN + 1]; /* … and of their incarnations */
    bool is_deaf; /* stores no incarnation that a server tells it */
    bool has_never_voted;
    bool is_fleeting; /* says that it does not last, whatever others say */
    const char *taken, *passed; /* since it is quarantined; NULL: nothing */
};

extern struct voters {
    struct members members;
    struct engine_settings settings;
    int64_t now_us;
    int64_t trip_us;    /* so long ago the next probes were sent */
    int64_t max_ttl_ms; /* what the next probes tell; 0: the usual one */
    bool is_durable;    /* the nodes, and what their state says of them */
    bool has_moved;     /* the next one that comes up */
    struct voters_memory memory[VOTERS_NODES];
    int quarantining[VOTERS_NODES]; /* probes of voters_probe_around that may
                                       quarantine */
} voters;

/*
 * As a fixture: no node is connected, there is to be no first start, and the
 * clocks are known, all the same.
 */
void voters_begin(void);

/* By voters.settings, as the test has changed them: another process, which has
 * examined a majority already. */
void voters_begin_again(void);

/* Whether a majority of the clocks is known. */
void voters_know_clocks(bool is_known);

void voters_up(int node);
void voters_down(int node);
void voters_pass(int64_t us);

/* The next thing to do is this · there is nothing. */
void voters_expect(enum member_action_kind kind, int node);
void voters_expect_nothing(void);

/* What a probe that comes back now has found. */
void voters_found(int node, enum call_probe_word word, const char *admit,
                  const char *quarantine);

/* The node comes up, and its first probe, which is due, finds this. */
void voters_come(int node, enum call_probe_word word, const char *admit,
                 const char *quarantine);

/* The action, which is expected now, is begun and answered. */
void voters_do(enum member_action_kind kind, int node);

/* No answer comes to this action, which may be a probe. */
void voters_fail(enum member_action_kind kind, int node);

/* And a probe that comes behind it finds the node admitted. */
void voters_give(enum member_action_kind kind, int node);

/*
 * Each probe that is to be done finds what was last found at its node, until
 * something else is to be done; returns how many there were.
 */
int voters_probe_around(void);

/* The same, and then nothing is to be done. */
void voters_wait(void);

/* So many probes each second, and nothing else. */
void voters_expect_probes_only(int probes);

/* So long, in steps of half a heartbeat: no node is given this. */
void voters_pass_without(enum member_action_kind kind, int64_t us);

/* No node is given this before so long; then a heartbeat comes, and it is the
 * next thing to do. */
void voters_pass_until(enum member_action_kind kind, int64_t us);

/* All five come up and are found so. */
void voters_all(enum call_probe_word word, const char *admit,
                const char *quarantine);

/* Nodes from this one on come up admitted. */
void voters_admit_from(int first);

/* How long the node's quarantine still lasts. */
int64_t voters_remaining_us(int node);

#define VOTERS_ASSERT_PHASE(index, it)                                         \
    ck_assert_int_eq((int)voters.members.node[index].phase, (int)(it))
#define VOTERS_ASSERT_REFUSAL(index, it)                                       \
    ck_assert_int_eq((int)members_refusal(&voters.members, index), (int)(it))

#endif
