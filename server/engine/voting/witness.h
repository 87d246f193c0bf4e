/* Apart from members.h: what nodes report of each other, not permissions. */
/* SPDX-License-Identifier: MIT */
/*
 * The reports of the nodes on each other's data. Pure.
 *
 * A node's generation rises with its promises, and with probes that find it
 * admitted. The highest generation known of a node is its high-water mark: a
 * data with a lower one is older. A node that may have lost something is
 * quarantined; the incarnation of its latest quarantine record tells its
 * admissions apart, and two machines with one name. With each probe, servers
 * store both on the other nodes. So a server that starts later knows them too,
 * and no node that knows an incarnation can help an earlier admission to a
 * majority: members.h has the rule.
 */
#ifndef REDLOCKD_WITNESS_H
#define REDLOCKD_WITNESS_H

#include "../../lock/lock.h"
#include "../port/call.h"

struct witness_node {
    char name[CALL_NAME_LEN + 1]; /* hash of its name */
    int64_t high_water;           /* greatest generation known of it; 0: none */
    /* its latest known incarnation; zeros: none */
    char latest[INCARNATION_LEN + 1];
    uint16_t carriers; /* these nodes are admitted, and report it */
    uint32_t joins;    /* counts the nodes that became carriers */
    int64_t born_us;   /* when it became known here */
    int64_t rose_us; /* when another node last told a higher high-water mark */
    int64_t counts_us;   /* first probe (sent) since which its data counts */
    int64_t reported_us; /* last probe (sent) at which it did; 0: it does not */
};

struct witness {
    int count;
    struct witness_node node[NODES_MAX];
};

void witness_init(struct witness *witness, const char *const names[],
                  int count);

/* A reply of the node itself reported its generation. */
void witness_on_generation(struct witness *witness, int node,
                           int64_t generation);

/* The node has an admission or a quarantine record with this incarnation. */
void witness_on_incarnation(struct witness *witness, int node,
                            const char *incarnation, int64_t now_us);

/* A probe sent at sent_us found that the node's data counts, and its report on
 * the others. */
void witness_on_report(struct witness *witness, int node,
                       const struct call_probe *probe, int64_t sent_us,
                       int64_t now_us);

/* The generation and incarnation of another node that the teller has stored; 0
 * and "": it does not report it. */
int64_t witness_read(const struct witness *witness, int teller,
                     const struct call_probe *probe, int node,
                     char incarnation[INCARNATION_LEN + 1]);

/* The node's data no longer counts, or the connection is new. */
void witness_on_lost(struct witness *witness, int node);

/* True if the machine that was born last has no generation yet, as it waits to
 * be admitted: once it was, its generation is above the time of its
 * incarnation. */
bool witness_is_waiting(const struct witness *witness, int node);

/* True if an admission or a quarantine record is of this node's name. */
bool witness_is_named(const struct witness *witness, int node,
                      const char *state);

/* True if a later incarnation of the node than this one is known. */
bool witness_knows_later(const struct witness *witness, int node,
                         const char *incarnation);

/* The high-water marks and incarnations of all other nodes, as text for a call
 * to the node. */
struct span witness_text(const struct witness *witness, int node, char *text,
                         size_t size);

#endif
