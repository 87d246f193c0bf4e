/*
 * What is looked at in the end, when nothing goes wrong any more.
 */
#ifndef SIM_ENDINGS_H
#define SIM_ENDINGS_H

#include "world.h"

/* To be called when all is calm; in this order, and it takes a minute. */
void endings_check(struct world *world);

#endif
