/* SPDX-License-Identifier: MIT */
/*
 * A node in the test's own loop that answers by rules.
 */
#ifndef REDLOCKD_TEST_FAKE_H
#define REDLOCKD_TEST_FAKE_H

#include "../../../server/base/loop.h"

enum { FAKE_RULES_MAX = 8, FAKE_BUFFER = 256 * 1024, FAKE_PEERS_MAX = 4 };

#define FAKE_RUN_ID "0123456789abcdef0123456789abcdef01234567"
#define FAKE_SHA "89abcdef0123456789abcdef0123456789abcdef"

/*
 * The reply to commands that begin so; "": none. EACH and a letter: that letter
 * is the answer to each call (to inspect) of a batch.
 */
#define EACH "&"

/* Stands for the EVALSHA that asks for rights. */
#define FAKE_RIGHTS "rights"

struct fake_rule {
    const char *begin;
    const char *reply;
};

/* A connection. */
struct fake_peer {
    struct fake *fake;
    int fd; /* -1: none */
    struct loop_watch *watch;
    struct loop_timer *timer;
    char in[FAKE_BUFFER];
    size_t in_len;
    char out[FAKE_BUFFER];
    size_t out_len;
};

struct fake {
    struct loop *loop;
    int port;
    int listener;
    struct loop_watch *listener_watch;
    struct fake_peer peers[FAKE_PEERS_MAX]; /* the link's is the first */

    /* what it does */
    const char *greeting;      /* sent at once, then it closes */
    bool is_sliced;            /* one byte at a time */
    bool is_deaf;              /* does not read */
    unsigned stops_process_us; /* sleeps after its answer to an EVALSHA */
    struct fake_rule rules[FAKE_RULES_MAX];

    /* what it saw */
    int accepted;
    int commands;
    int batches;
    int calls; /* in the batches; only inspect is known */
    int loads;
};

/* Listens on a free port of 127.0.0.1. */
void fake_start(struct fake *fake, struct loop *loop);
void fake_stop(struct fake *fake);

/* Sets the reply to commands that begin so; the latest rule counts. "": none,
 * NULL: the usual one again. */
void fake_say(struct fake *fake, const char *begin, const char *reply);

/* Sends text unasked over the first connection; closes all of them. */
void fake_send(struct fake *fake, const char *text);
void fake_close(struct fake *fake);

/* Acts on is_deaf. */
void fake_set_deaf(struct fake *fake, bool is_deaf);

#endif
