/*
 * Timers by number: small and dense slots, each made when it is first set.
 */
#ifndef REDLOCKD_TIMERS_H
#define REDLOCKD_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

struct loop;
struct timers;

typedef void timers_fn(void *arg, uint32_t slot);

/* Calls fn(arg, slot) in the loop, which is borrowed. NULL: no memory. */
struct timers *timers_new(struct loop *loop, timers_fn *fn, void *arg);

/*
 * As loop_timer_set, 0: as loop_timer_stop. False: no memory; only the first
 * call for a slot may fail.
 */
bool timers_set(struct timers *timers, uint32_t slot, int64_t at_us);

/* Before loop_free; NULL is ignored. */
void timers_free(struct timers *timers);

#endif
