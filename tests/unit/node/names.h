/* SPDX-License-Identifier: MIT */
/*
 * Names that end in ".test" resolve to what a test says: this replaces
 * getaddrinfo(3) in the whole program, also for libuv's threads.
 */
#ifndef REDLOCKD_TEST_NAMES_H
#define REDLOCKD_TEST_NAMES_H

#include <stdbool.h>

/* From now on they all resolve to it; "": to nothing. A lookup takes after_us.
 */
void names_resolve_to(const char *to, unsigned after_us);

/* Whether lookups, those under way too, wait until they are let go. */
void names_hold(bool hold);

/* How many were probed up since the program began. */
int names_asked(void);

#endif
