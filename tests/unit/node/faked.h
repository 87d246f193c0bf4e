/* SPDX-License-Identifier: MIT */
/*
 * A link to a fake node, and its events.
 */
#ifndef REDLOCKD_TEST_FAKED_H
#define REDLOCKD_TEST_FAKED_H

#include "../../../server/node/link.h"
#include "../ballot.h"
#include "../turns.h"
#include "fake.h"

enum { FAKED_SILENCE_US = 300000, FAKED_REPLIES_MAX = 20000 };

struct faked {
    struct loop *loop;
    struct fake node;
    struct address_node config;
    struct trust *trust;
    int64_t silence_us; /* FAKED_SILENCE_US, unless a test sets more */
    struct link *link;

    int ups, confirmed, downs, replies;
    /* of the last up or confirmed; its run_id is gone */
    struct node_facts facts;
    char run_id[64];
    char lacks[NODE_DETAIL_MAX];
    enum node_state reason; /* of the last down */
    char detail[NODE_DETAIL_MAX];
    int replies_at_down;
    int votes[FAKED_REPLIES_MAX];
    uint64_t tags[FAKED_REPLIES_MAX];
    int64_t sent_us, received_us; /* of the last reply */

    bool sends_in_reply;     /* sends a call within each reply event … */
    enum vote sent_in_reply; /* … and this is what link_send said */
};

extern struct faked faked;

/* As a fixture: the node listens in between. */
void faked_setup(void);
void faked_teardown(void);

void faked_start_link(void);

/* The same, until it is up. */
void faked_bring_up(void);

/* Sends a call · so many, with the tags 0, 1, 2, …; none may be refused. */
enum vote faked_inspect(uint64_t tag);
void faked_inspect_all(int count);

/* The first so many replies were this one, in the order of those tags. */
void faked_expect_replies(int count, int ballot);

/* Until there were so many of them. */
void faked_until_up(int ups);
void faked_until_down(int downs);

/* Until the next one, which must have this reason and part of its detail. */
void faked_expect_down(enum node_state reason, const char *detail);

#endif
