/*
 * Which slots of a pool are free, as the nodes tell when each is asked once. An
 * acquire decides who gets a slot: this only tells which are worth a try. Pure.
 *
 * A slot is free if a majority of the configured nodes has no key there. It is
 * taken if no answer that is still to come could make it free.
 *
 * A survey may ask for the slots that a client has already, by its key hash. A
 * lock that is held shows in the answers of any quorum, be it on one node. So
 * does what a lost try left behind on a node that is away. If more slots show
 * than the client wants, those that most nodes have are its own, and answers
 * that are still to come are waited for.
 */
#ifndef REDLOCKD_SURVEY_H
#define REDLOCKD_SURVEY_H

#include "../port/call.h"
#include "slotset.h"

enum survey_outcome {
    SURVEY_OPEN, /* an answer that is still to come may matter */
    SURVEY_TOLD,
    SURVEY_REFUSED,   /* a majority's ACL denies the keys */
    SURVEY_NO_QUORUM, /* too few nodes answered */
};

struct survey {
    int total;  /* configured nodes */
    int count;  /* slots */
    int wanted; /* so many free ones are enough */
    int answers;
    struct ballot votes[NODES_MAX];
    int64_t rest_ms[NODES_MAX]; /* of an answer: until a slot there is free, as
                                   its TTL ends; -1: none does */
    int own_limit;   /* the key hash is that of a permit below this … */
    int own_wanted;  /* … of so many slots; 0: it asks for no key hash */
    bool must_prove; /* only those that a majority has are its own */
    uint8_t taken[POOL_SLOTS_MAX]; /* on so many nodes */
    uint8_t own[POOL_SLOTS_MAX];   /* with the key hash, on so many nodes */
};

/* Starts with all votes pending. */
void survey_init(struct survey *survey, int total, int count, int wanted);

/* It asks for a key hash: what this is for stands at the members. */
void survey_look(struct survey *survey, int limit, int wanted, bool must_prove);

/* The node's pending vote is this one, or its answer; others are ignored. */
void survey_note_ballot(struct survey *survey, int node, struct ballot ballot);
void survey_note_reply(struct survey *survey, int node,
                       const struct call_reply *reply);

/* No more answers come. */
void survey_note_rest(struct survey *survey);

enum survey_outcome survey_outcome(const struct survey *survey);

/* Of one that is told: the slots that are free. */
struct slotset survey_free(const struct survey *survey);

/* The slots that the key hash has already: as many as are wanted, or none. */
struct slotset survey_own(const struct survey *survey);

/* How long until a slot may be free on a majority because TTLs end, ms; -1:
 * unknown. */
int64_t survey_rest_ms(const struct survey *survey);

#endif
