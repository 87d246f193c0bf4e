/* The random calls of the differential test. */
/* SPDX-License-Identifier: MIT */
#ifndef DIFFER_CALLS_H
#define DIFFER_CALLS_H

#include "hands.h"

enum {
    CALLS_MAX = 8,       /* of a batch */
    CALLS_NAMES_MAX = 3, /* of a call */
    CALLS_WINDOW_US = 1000000,
};

/* Makes the calls of a batch, and copies of them, from which they borrow. */
void calls_make(struct run *run, int count, struct call calls[CALLS_MAX],
                struct simcall copies[CALLS_MAX]);

#endif
