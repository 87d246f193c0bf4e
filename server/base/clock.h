/* SPDX-License-Identifier: MIT */
/*
 * The only file that reads clocks; and moments as people and log collectors
 * read them.
 */
#ifndef REDLOCKD_CLOCK_H
#define REDLOCKD_CLOCK_H

#include <stdint.h>

#include "types.h"

/*
 * CLOCK_BOOTTIME in µs, read now. Like the TTLs on the nodes it continues
 * during a suspend, and steps of the wall clock do not change it.
 */
int64_t clock_now_us(void);

/* Wall clock in µs since 1970: for people to read, never for a decision. */
int64_t clock_wall_us(void);

/* CLOCK_MONOTONIC in µs: for the service manager, which asks for this one. */
int64_t clock_monotonic_us(void);

/* ---- moments as text ----------------------------------------------------- */

enum { TIMESTAMP_SIZE = 40 }; /* with its NUL, and any year */

/* Writes 2026-11-23T07:31:05.042Z (RFC 3339, UTC), from clock_wall_us(). */
void timestamp_write(char text[TIMESTAMP_SIZE], int64_t wall_us);

/* Reads 2026-11-23T07:31:05Z, to the letter: Unix time, from 1970 on. -1: it is
 * another text, or no such moment. */
int64_t timestamp_read(struct span text);

#endif
