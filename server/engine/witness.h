/*
 * What the nodes report of each other's memory. Pure.
 *
 * A node's beat rises with its promises, and with looks that find it admitted.
 * The highest beat known of a node is its floor: a memory below it is an older
 * one. With each look, servers store their floors on the other nodes, so that a
 * server that starts later knows them too. The last promises of the other nodes
 * show whether anybody has promised anything since some moment: of N nodes,
 * N - q + 1 others share one with each majority that the node belonged to.
 *
 * In the same way they report when a node was last marked: two machines that
 * answer to one name, each of them marked, would otherwise not be noticed
 * before both had been admitted.
 */
#ifndef REDLOCKD_WITNESS_H
#define REDLOCKD_WITNESS_H

#include "../base/types.h"
#include "fingerprint.h"

struct witness_node {
    char name[FINGERPRINT_LEN + 1]; /* hash of its name */
    int64_t floor;                  /* greatest beat known of it; 0: none */
    int64_t latest_us; /* its latest known mark was made then; 0: none */
    int64_t counts_us; /* its memory counts since then, … */
    int64_t told_us;   /* … last look sent at which it did; 0: it does not */
    bool is_admitted;  /* at that look */
    int64_t voted_us;  /* its last promise, by the median of the clocks */
};

struct witness {
    int count;
    int enough; /* this many others share a node with each of its majorities */
    struct witness_node node[NODES_MAX];
};

void witness_init(struct witness *witness, const char *const names[], int count,
                  int quorum);

/* A reply of the node itself reported its beat. */
void witness_on_beat(struct witness *witness, int node, int64_t beat);

/* The node has a mark that was made then, by the median of the clocks. */
void witness_on_mark(struct witness *witness, int node, int64_t born_us);

/* What a look reports of a node whose memory counts. */
struct witness_words {
    bool is_admitted; /* otherwise: restarted with its memory, and durable */
    int64_t voted_us; /* its last promise */
    struct span text; /* what it knows of others, "name=beat mname=born…" */
    int64_t sent_us;  /* when the look was sent */
};

void witness_on_told(struct witness *witness, int node,
                     const struct witness_words *words);

/* The node's memory no longer counts, or the connection is new. */
void witness_on_lost(struct witness *witness, int node);

/* What is known of all other nodes, as text for a look at the node. */
struct span witness_text(const struct witness *witness, int node, char *text,
                         size_t size);

/* Which nodes witness_have_told counts. */
struct witness_demand {
    int64_t since_us;      /* looked at since then */
    int64_t long_us;       /* whose memory has counted for at least this long */
    bool must_be_admitted; /* and that vote */
};

/* Whether there are enough such nodes. */
bool witness_have_told(const struct witness *witness, int node,
                       const struct witness_demand *demand);

/* The last promise of any other node whose memory counts; 0: none. */
int64_t witness_voted_us(const struct witness *witness, int node);

#endif
