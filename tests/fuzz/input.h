/* SPDX-License-Identifier: MIT */
/*
 * What the fuzzer gives, taken line by line, so that a seed is a text that
 * people can write. Behind the end everything is empty or 0.
 *
 * Each piece is copied into memory of exactly its size: AddressSanitizer then
 * sees whoever reads beyond it.
 */
#ifndef REDLOCKD_FUZZ_INPUT_H
#define REDLOCKD_FUZZ_INPUT_H

#include "../../server/base/types.h"

enum { INPUT_PIECES_MAX = 512 };

struct input {
    struct span rest;
    int count;
    char *pieces[INPUT_PIECES_MAX];
};

/* Whether there is more to take. */
bool input_has_more(const struct input *input);

/* The next line without its end: as bytes, or with a NUL behind. */
struct span input_line(struct input *input);
char *input_text(struct input *input);

/* The next line as a number; what is too large wraps. */
int64_t input_number(struct input *input);

/* All that is left. */
struct span input_rest(struct input *input);

/* What each fuzzer does with one input. */
void fuzz(struct input *input);

#endif
