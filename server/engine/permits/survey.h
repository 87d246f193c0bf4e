/*
 * Which slots of a pool are free, as the nodes tell when each is asked once. An
 * acquire decides who gets a slot: this only tells which are worth a try. Pure.
 *
 * A slot is free if a majority of the configured nodes has no key there. It is
 * taken if no answer that is still to come could make it free.
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
    struct slotset own;         /* with the key hash, on some node */
    uint8_t taken[POOL_SLOTS_MAX]; /* on so many nodes */
};

/* Starts with all votes pending. */
void survey_init(struct survey *survey, int total, int count, int wanted);

/* The node's pending vote is this one, or its answer; others are ignored. */
void survey_note_ballot(struct survey *survey, int node, struct ballot ballot);
void survey_note_reply(struct survey *survey, int node,
                       const struct call_reply *reply);

/* No more answers come. */
void survey_note_rest(struct survey *survey);

enum survey_outcome survey_outcome(const struct survey *survey);

/* Of one that is told: the slots that are free. */
struct slotset survey_free(const struct survey *survey);

/* How long until a slot may be free on a majority because TTLs end, ms; -1:
 * unknown. */
int64_t survey_rest_ms(const struct survey *survey);

#endif
