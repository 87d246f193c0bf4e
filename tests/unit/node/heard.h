/* SPDX-License-Identifier: MIT */
/*
 * A subscription, and its events.
 */
#ifndef REDLOCKD_TEST_HEARD_H
#define REDLOCKD_TEST_HEARD_H

#include "../../../server/lock/lock.h"
#include "../../../server/node/script.h"
#include "../../../server/node/subscription.h"
#include "../turns.h"

#define HEARD_CHANNEL "p:" SCRIPT_RELEASED

struct heard {
    struct loop *loop;
    struct subscription *subscription;

    int ups, downs, subscribed, announced, generations;
    int64_t number;              /* announced last */
    char last[RESOURCE_MAX + 1]; /* subscribed or announced */
    int turns;
    int most_in_a_turn; /* announced */

    /* within the event, as often as it comes */
    bool closes_when_up, closes_when_announced, reopens;
    bool is_in_call; /* no event may come now */
};

extern struct heard heard;

/* A closed one; the loop is the caller's, and flushes it. Prefix: "p:". */
void heard_start(struct loop *loop, const struct address_node *config,
                 int64_t silence_us);
void heard_end(void);

/* The loop's last stage; a test may have another one that calls this. */
void heard_flush(void *arg);

/* The functions of the same names; they must cause no event. */
void heard_open(void);
void heard_close(void);
void heard_set(const char *resource, bool is_on);

void heard_until_up(int ups);
void heard_until_down(int downs);

#endif
