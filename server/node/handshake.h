/* Apart from line.h: fuzzers and units play it without a socket. */
/* SPDX-License-Identifier: MIT */
/*
 * The first commands on each new connection to a node. They read its run_id,
 * whether it is fit for locks, its clock, and whether our user may do all that
 * is needed later; the last one loads our script. Pure.
 *
 * What a node refuses to our user, or does not know, is gathered: so a node is
 * refused for all of it at once, and before its first vote.
 */
#ifndef REDLOCKD_HANDSHAKE_H
#define REDLOCKD_HANDSHAKE_H

#include "../base/address.h"
#include "../lock/lock.h"
#include "script.h"

/*
 * The commands in their order; they leave in one write. The first reply is
 * not to one of the three whose errors are ignored, PERSISTENCE to NAME: a
 * server that accepts no more clients answers only the first command.
 */
enum handshake_step {
    HANDSHAKE_AUTH,   /* left out without a password */
    HANDSHAKE_SELECT, /* left out for database 0 */
    HANDSHAKE_SERVER,
    HANDSHAKE_REPLICATION,
    HANDSHAKE_MEMORY,
    HANDSHAKE_PERSISTENCE,
    HANDSHAKE_LOADER, /* the user that the append-only file is loaded as */
    HANDSHAKE_NAME,
    HANDSHAKE_TIME,
    HANDSHAKE_LOAD_RIGHTS, /* these two are left out without a prefix */
    HANDSHAKE_RIGHTS, /* of our user; refuses the node, if any is missing */
    HANDSHAKE_LOAD,
    HANDSHAKE_STEPS
};

enum {
    HANDSHAKE_ARGS_MAX = 5,
    RUN_ID_LEN = 40,
};

/* A command; borrows from the node's configuration and from itself. */
struct handshake_command {
    int count; /* of arguments; 0: the step is left out */
    struct span args[HANDSHAKE_ARGS_MAX];
    char digits[16];
    char state_key[PREFIX_MAX + SCRIPT_INFIX_MAX];
};

/* The results so far. */
struct handshake {
    char run_id[RUN_ID_LEN + 1];
    bool is_durable;                   /* forgets nothing when it restarts */
    char not_durable[NODE_DETAIL_MAX]; /* why not, in words; "": it is */
    /* What our user lacks, or the node does not know: words of rights.lua. */
    char needs[SCRIPT_WORDS_MAX];
    char lacks[SCRIPT_WORDS_MAX]; /* what we can do without */
    char evicts[NODE_DETAIL_MAX]; /* why it may evict locks; "": it does not */
    int64_t node_now_us;
    char sha[SCRIPT_SHA_LEN + 1]; /* of our script */
    char detail[NODE_DETAIL_MAX]; /* why the node is refused */
};

/* prefix: of the keys that rights are needed on. */
void handshake_command(struct handshake_command *command,
                       enum handshake_step step,
                       const struct address_node *node, const char *prefix);

/*
 * Takes the reply to a step, an array before its elements. STATE_NONE: go on;
 * else the node is refused for this reason, and detail says it in words,
 * without a secret.
 */
enum node_state handshake_take(struct handshake *handshake,
                               enum handshake_step step,
                               const struct script_field *fields, int count);

/*
 * Tells people what words (needs or lacks) ask for, in at most size bytes with
 * the NUL; "": nothing.
 */
void handshake_explain(const char *words, char *to, size_t size);

#endif
