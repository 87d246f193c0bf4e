/* Apart from main.c: a program of its own, which the units run. */
/* SPDX-License-Identifier: MIT */
/*
 * --plan: what a start with this configuration would do with the nodes, before
 * it is done. It only looks at them.
 */
#ifndef REDLOCKD_PLAN_H
#define REDLOCKD_PLAN_H

#include <stdio.h>

#include "config/config.h"
#include "engine/voting/outlook.h"

/* The exit status. */
enum plan_status {
    PLAN_GOES_ON = 0, /* a majority votes: nothing is interrupted */
    PLAN_FAILED = 1,  /* it could not be made */
    PLAN_PAUSE = 3,   /* no majority would vote, for a while or at all */
    PLAN_UNKNOWN = 4, /* no majority of the nodes was reached */
    PLAN_REFUSED = 5, /* these names cannot replace the old ones */
};

/* Connects to the nodes, waits for two looks at each, but a few seconds at
 * most, and writes the plan to stdout. */
enum plan_status plan_run(const struct config *config);

/* The text, with the names and addresses of config; returns what it comes to.
 */
enum plan_status plan_print(const struct outlook *outlook,
                            const struct config *config, FILE *out);

#endif
