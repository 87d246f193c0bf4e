/*
 * What the audit log of a server tells, counted.
 */
#ifndef REDLOCKD_TEST_TALLY_H
#define REDLOCKD_TEST_TALLY_H

#include "http.h"

struct tally {
    int lines;
    int grants;
    int releases;
    int undelivered;
    int lost; /* sum of what the lines "lines_lost" tell */
};

/*
 * Adds what the text tells, which it writes over. Each line must be JSON, and
 * the last one whole.
 */
void tally_text(struct tally *tally, char *text);
struct tally tally_file(const char *name);

/* A member of a line; "": it has none that is a text. */
const char *tally_member(const json_t *line, const char *name);

#endif
