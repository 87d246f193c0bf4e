/* SPDX-License-Identifier: MIT */
/*
 * Transcripts as files: their tests, tables and definitions, and how they
 * become suites of Check. player.c plays them.
 */
#ifndef REDLOCKD_TEST_TRANSCRIPTS_H
#define REDLOCKD_TEST_TRANSCRIPTS_H

#include "../../lib/suite/suite.h"
#include "stage.h"

struct transcript {
    const char *path;
    char **lines;
    int count;
    struct suite suite;
    struct group group;
};

/* A test, with a row of its table, on a stage. */
struct take {
    const struct transcript *file;
    const char *name;
    int line;    /* the next one of the test */
    int columns; /* the line that names them; 0: it has no table */
    int row;
    bool is_admitted;
    const struct stage *stage;
    const TTest *test; /* of the first: keeps it */
};

const struct take *transcripts_take(int number);

/* Whether a line begins with this word, behind spaces. */
bool transcripts_begins(const char *line, const char *word);

/* Whether it is nothing to play: empty, a remark, a table, a definition. */
bool transcripts_is_skipped(const char *line);

/* The next word, which ends at a space or in quotes; NULL: there is none. */
char *transcripts_word(const char **rest);

/* The line with the values of all $names; they may have some themselves. */
const char *transcripts_fill_in(const struct take *take, const char *line);

/* Plays one of the takes: player.c. */
void transcripts_play(int number);

#endif
