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

static void start(struct timer *timer)
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
        start(timer);
    if (!is_due)
        return;
    timer->at_us = 0;
    timer->timers->fn(timer->timers->arg, timer->slot);
}

static bool add(struct timers *timers)
{
    if (timers->count % GROWTH == 0) {
        struct timer **slots =
            realloc(timers->slots,
                    (timers->count + (size_t)GROWTH) * sizeof(struct timer *));
        if (slots == NULL)
            return false;
        timers->slots = slots;
    }
    struct timer *timer = malloc(sizeof *timer);
    if (timer == NULL)
        return false;
    *timer = (struct timer){.timers = timers, .slot = timers->count};
    timer->timer = loop_timer_new(timers->loop, run_timer, timer);
    if (timer->timer == NULL) {
        free(timer);
        return false;
    }
    timers->slots[timers->count++] = timer;
    return true;
}

bool timers_set(struct timers *timers, uint32_t slot, int64_t at_us)
{
    while (timers->count <= slot)
        if (!add(timers))
            return false;
    struct timer *timer = timers->slots[slot];
    timer->at_us = at_us;
    if (at_us != 0 && (timer->set_us == 0 || at_us < timer->set_us))
        start(timer);
    return true;
}

void timers_free(struct timers *timers)
{
    if (timers == NULL)
        return;
    for (uint32_t i = 0; i < timers->count; i++) {
        loop_timer_free(timers->slots[i]->timer);
        free(timers->slots[i]);
    }
    free(timers->slots);
    free(timers);
}
