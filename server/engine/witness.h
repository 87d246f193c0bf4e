/*
 * What the nodes tell of each other's memory. Pure.
 *
 * A node's beat counts its promises, and who saw it admitted. The greatest
 * beat that is known of a node is its floor: a memory below it is an older
 * one. Servers write their floors on the other nodes with each look, so that
 * one that starts later knows them too. Of the nodes' own last promises they
 * tell whether anything was promised since some moment, by anybody: of N nodes,
 * N - q + 1 others share one with each majority that the node belonged to.
 */
#ifndef REDLOCKD_WITNESS_H
#define REDLOCKD_WITNESS_H

#include "../base/types.h"
#include "fingerprint.h"

struct witness_node {
    char name[FINGERPRINT_LEN + 1]; /* hash of its name */
    int64_t floor;                  /* greatest beat known of it; 0: none */
    int64_t counts_us;              /* its memory counts since then, … */
    int64_t told_us;  /* … when its last look had left; 0: it does not */
    bool is_admitted; /* when it was looked at */
    int64_t voted_us; /* its last promise, by the median of the clocks */
};

struct witness {
    int count;
    int enough; /* others that share a node with each majority of the node's */
    struct witness_node node[NODES_MAX];
};

void witness_init(struct witness *witness, const char *const names[], int count,
                  int quorum);

/* A reply of the node itself told its beat. */
void witness_on_beat(struct witness *witness, int node, int64_t beat);

/* What a look at a node told whose memory counts. */
struct witness_words {
    bool is_admitted; /* else it was restarted whole, and is durable */
    int64_t voted_us; /* its last promise */
    struct span text; /* what it knows of others, "name=beat name=beat…" */
    int64_t sent_us;  /* when the look had left */
};

void witness_on_told(struct witness *witness, int node,
                     const struct witness_words *words);

/* The node's memory does not count any more, or its connection is new. */
void witness_on_lost(struct witness *witness, int node);

/* The floors of all other nodes, as text for a look at the node. */
struct span witness_text(const struct witness *witness, int node, char *text,
                         size_t size);

/* Whom witness_have_told asks for. */
struct witness_demand {
    int64_t since_us;      /* looked at since then */
    int64_t long_us;       /* whose memory has counted for so long */
    bool must_be_admitted; /* and who vote */
};

/* Whether there are enough such other nodes. */
bool witness_have_told(const struct witness *witness, int node,
                       const struct witness_demand *demand);

/* The last promise of any other node that counts, by the median; 0: none. */
int64_t witness_voted_us(const struct witness *witness, int node);

#endif
