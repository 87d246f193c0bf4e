#include "delays.h"

#include <assert.h>
#include <stddef.h>

#include "../../server/base/clock.h"

static void on_timer(void *arg)
{
    struct delays *all = arg;
    int64_t now_us = clock_now_us();
    while (all->first != NULL && all->first->due_us <= now_us) {
        struct delay *it = all->first;
        delay_end(all, it);
        all->on_due(it);
    }
    if (all->first != NULL)
        loop_timer_set(all->timer, all->first->due_us);
}

bool delays_init(struct delays *all, struct loop *loop, delays_fn *on_due)
{
    *all = (struct delays){.on_due = on_due};
    all->timer = loop_timer_new(loop, on_timer, all);
    return all->timer != NULL;
}

void delays_fini(struct delays *all)
{
    assert(all->first == NULL);
    loop_timer_free(all->timer);
}

void delay_begin(struct delays *all, struct delay *it, int64_t now_us)
{
    assert(it->due_us == 0);
    *it = (struct delay){.previous = all->last, .due_us = now_us + DELAYS_US};
    if (all->last != NULL)
        all->last->next = it;
    else
        all->first = it;
    all->last = it;
    all->count++;
    if (all->first == it)
        loop_timer_set(all->timer, it->due_us);
}

void delay_end(struct delays *all, struct delay *it)
{
    if (it->due_us == 0)
        return;
    if (it->next != NULL)
        it->next->previous = it->previous;
    else
        all->last = it->previous;
    if (it->previous != NULL)
        it->previous->next = it->next;
    else
        all->first = it->next;
    it->due_us = 0;
    all->count--;
}
