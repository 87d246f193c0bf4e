/*
 * Places that a server has a limited number of: acquires that wait, lists that
 * are under way. Nobody takes more of them than are left, so there is always
 * one for somebody else. Pure.
 */
#ifndef REDLOCKD_PLACES_H
#define REDLOCKD_PLACES_H

#include <stdbool.h>

enum place { PLACE_WAIT, PLACE_LIST, PLACES };

/* Those that one identity has, or all together. */
struct places {
    int taken[PLACES];
};

/* Whether mine may be one more. most: how many there are in all. */
bool places_are_left(const struct places *all, const struct places *mine,
                     enum place place, int most);

void places_take(struct places *all, struct places *mine, enum place place);

/* mine NULL: its identity is gone. */
void places_leave(struct places *all, struct places *mine, enum place place);

/* What is told whom none is left to. Static. */
const char *places_refusal(enum place place);

#endif
