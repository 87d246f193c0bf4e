/*
 * Moments as people and log collectors read them. Pure, but for what it
 * remembers.
 */
#ifndef REDLOCKD_TIMESTAMP_H
#define REDLOCKD_TIMESTAMP_H

#include <stdint.h>

#include "types.h"

enum { TIMESTAMP_SIZE = 40 }; /* with its NUL, and any year */

/*
 * Writes 2026-11-23T07:31:05.042Z (RFC 3339, UTC) for wall_us, which is from
 * clock_wall_us().
 */
void timestamp_write(char text[TIMESTAMP_SIZE], int64_t wall_us);

/*
 * Reads 2026-11-23T07:31:05Z, to the letter: Unix time, from 1970 on. -1: it is
 * another text, or no such moment.
 */
int64_t timestamp_read(struct span text);

#endif
