/*
 * The only file that reads clocks.
 */
#ifndef REDLOCKD_CLOCK_H
#define REDLOCKD_CLOCK_H

#include <stdint.h>

/*
 * CLOCK_BOOTTIME in µs, read now. Like the TTLs on the nodes it continues
 * during a suspend, and steps of the wall clock do not change it.
 */
int64_t clock_now_us(void);

/* Wall clock in µs since 1970: for people to read, never for a decision. */
int64_t clock_wall_us(void);

/*
 * CLOCK_MONOTONIC in µs, which stands during a suspend: for the service
 * manager, which asks for this one.
 */
int64_t clock_monotonic_us(void);

#endif
