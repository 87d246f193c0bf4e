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

/* Wall clock in µs since 1970: for log lines only, never for a decision. */
int64_t clock_wall_us(void);

#endif
