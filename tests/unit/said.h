/* SPDX-License-Identifier: MIT */
/*
 * What the process says on its standard error, led into a pipe meanwhile.
 */
#ifndef REDLOCKD_TEST_SAID_H
#define REDLOCKD_TEST_SAID_H

void said_begin(void);
void said_end(void);

/* What came since, until the next call; "": nothing. */
const char *said(void);

#endif
