#include "timers.h"

#include <stdlib.h>

#include "loop.h"

enum { GROWTH = 64 };

/*
 * Most timers are stopped or put off long before their time: then the loop's
 * timer stays as it is, and is set anew only when its own time has come.
 */
struct timer {
    struct timers *timers;
    uint32_t slot;
    int64_t at_us;  /* 0: stopped */
    int64_t set_us; /* of the loop's timer, not later; 0: stopped */
    struct loop_timer *timer;
};

struct timers {
    struct loop *loop;
    timers_fn *fn;
    void *arg;
    struct timer **slots;
    uint32_t count;
};

struct timers *timers_new(struct loop *loop, timers_fn *fn, void *arg)
{
    struct timers *timers = malloc(sizeof *timers);
    if (timers != NULL)
        *timers = (struct timers){.loop = loop, .fn = fn, .arg = arg};
    return timers;
}

static void timers_start(struct timer *timer)
{
    timer->set_us = timer->at_us;
    loop_timer_set(timer->timer, timer->at_us);
}

/* One that was put off starts again, even if its time has come by now. */
static void run_timer(void *arg)
{
    struct timer *timer = arg;
    bool is_due = timer->at_us == timer->set_us;
    timer->set_us = 0;
    if (!is_due && timer->at_us != 0)
        timers_start(timer);
    if (!is_due)
        return;
    timer->at_us = 0;
    timer->timers->fn(timer->timers->arg, timer->slot);
}

static bool make_room(struct timers *timers, uint32_t slot)
{
    uint32_t count = (slot / GROWTH + 1) * GROWTH;
    struct timer **slots =
        realloc(timers->slots, count * sizeof(struct timer *));
    if (slots == NULL)
        return false;
    for (; timers->count < count; timers->count++)
        slots[timers->count] = NULL;
    timers->slots = slots;
    return true;
}

/* NULL: no memory. */
static struct timer *timers_make(struct timers *timers, uint32_t slot)
{
    struct timer *timer = malloc(sizeof *timer);
    if (timer == NULL)
        return NULL;
    *timer = (struct timer){.timers = timers, .slot = slot};
    timer->timer = loop_timer_new(timers->loop, run_timer, timer);
    if (timer->timer != NULL)
        return timer;
    free(timer);
    return NULL;
}

bool timers_set(struct timers *timers, uint32_t slot, int64_t at_us)
{
    if (slot >= timers->count && !make_room(timers, slot))
        return false;
    struct timer *timer = timers->slots[slot];
    if (timer == NULL)
        timer = timers->slots[slot] = timers_make(timers, slot);
    if (timer == NULL)
        return false;
    timer->at_us = at_us;
    if (at_us != 0 && (timer->set_us == 0 || at_us < timer->set_us))
        timers_start(timer);
    return true;
}

void timers_free(struct timers *timers)
{
    if (timers == NULL)
        return;
    for (uint32_t i = 0; i < timers->count; i++) {
        if (timers->slots[i] != NULL)
            loop_timer_free(timers->slots[i]->timer);
        free(timers->slots[i]);
    }
    free(timers->slots);
    free(timers);
}
