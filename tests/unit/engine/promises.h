/*
 * What a majority of the nodes has promised, as far as a server has counted it,
 * and which of them have forgotten that: none of these may vote again before it
 * is over. Bits are nodes.
 */
#ifndef REDLOCKD_TEST_PROMISES_H
#define REDLOCKD_TEST_PROMISES_H

#include <stdbool.h>
#include <stdint.h>

enum { PROMISES_MAX = 512, PROMISES_NODES = 9 };

struct promise {
    int64_t over_us;
    int64_t voted_us[PROMISES_NODES];
    unsigned voted;   /* these nodes promised it, then */
    unsigned counted; /* these votes made the majority; 0: none did */
    unsigned forgot;  /* these have lost it */
    unsigned ended;   /* and have let it expire, as their clocks stepped */
    unsigned back;    /* and were admitted before it was over */
};

struct promises {
    int quorum;
    int count; /* asked for */
    int won;
    struct promise promise[PROMISES_MAX];
};

void promises_init(struct promises *promises, int quorum);

/* Votes are asked for; its number. */
int promises_add(struct promises *promises, int64_t over_us);

void promises_on_vote(struct promises *promises, int number, int node,
                      int64_t now_us);

/* The server that asked counts the votes of these nodes. */
void promises_on_count(struct promises *promises, int number, unsigned nodes);

/*
 * The node lost what it has remembered since then · its clock stepped · nobody
 * is left who saw that.
 */
void promises_on_loss(struct promises *promises, int node, int64_t since_us);
void promises_on_step(struct promises *promises, int node);
void promises_on_unseen_step(struct promises *promises, int node);

void promises_on_admission(struct promises *promises, int node, int64_t now_us);

bool promises_has_voted(const struct promises *promises, int node);

/* A promise that was broken: its number; -1: none was. */
int promises_find_broken(const struct promises *promises);

#endif
