/* SPDX-License-Identifier: MIT */
/*
 * A service with an audit log in a file, and said_begin for its log.
 */
#ifndef REDLOCKD_TEST_AUDITED_H
#define REDLOCKD_TEST_AUDITED_H

#include "../../../api/access/audit.h"
#include "ask.h"

extern struct audited {
    struct loop *loop;
    struct audit *audit; /* NULL: the test has freed it */
    struct audit_setup setup;
    char path[64];  /* of its file */
    char moved[64]; /* where a test may move that */
} audited;

/* ask_begin for a client that is known; each test is a process of its own. */
void audited_begin(void);
void audited_end(void);

/* Another log, in the same file; the first must have been freed. */
void audited_open(struct access *access);

/*
 * The file begins with one long line · behind which it cannot grow, or can
 * again. Check writes files, too, but no such ones.
 */
enum { AUDITED_FILLED = 1 << 20 };
void audited_fill(void);
void audited_block(void); /* both: it takes no line */
void audited_limit(bool is_limited);

/* All of a file; good until the next call. */
char *audited_all(const char *name);

int audited_count(const char *name);

/* The n-th line, from 0, without its end; NULL: there are no more. */
const char *audited_line(const char *name, int n);

/* The line without its moment, which must be one. */
const char *audited_body(const char *line);

#endif
