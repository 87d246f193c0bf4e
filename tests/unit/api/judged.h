/* SPDX-License-Identifier: MIT */
/*
 * The requests of ask.h, judged by an auth file.
 */
#ifndef REDLOCKD_TEST_JUDGED_H
#define REDLOCKD_TEST_JUDGED_H

#include "../../../api/access/access.h"

/* By the latest file; NULL: there is none. */
extern struct access *judged_access;

/* What our clock is ahead of the nodes': buckets begin in ours. */
extern int64_t judged_ahead_us;

/* From now on by a file with this text. What was before is the caller's. */
void judged_use(const char *text);

/* The file has this text now, and was read again. */
void judged_change(const char *text);

/* Begins the request anew, which may have the field Authorization, or NULL. */
const struct refusal *judged_admit(const char *method, const char *target,
                                   const char *authorization);

/* Ends the request, and all of ask.h and the file. */
void judged_end(void);

#endif
