#include "delays.h"

#include <assert.h>
#include <stddef.h>

#include "../../server/base/clock.h"

static void on_timer(void *arg)
{
    struct delays *all = arg;
    int64_t now_us = clock_now_us();
    struct delay *it;
    while ((it = TAILQ_FIRST(&all->list)) != NULL && it->due_us <= now_us) {
        delay_end(all, it);
        all->on_due(it);
    }
    if (it != NULL)
        loop_timer_set(all->timer, it->due_us);
}

bool delays_init(struct delays *all, struct loop *loop, delays_fn *on_due)
{
    *all = (struct delays){.on_due = on_due};
    TAILQ_INIT(&all->list);
    all->timer = loop_timer_new(loop, on_timer, all);
    return all->timer != NULL;
}

void delays_fini(struct delays *all)
{
    assert(TAILQ_EMPTY(&all->list));
    loop_timer_free(all->timer);
}

void delay_begin(struct delays *all, struct delay *it, int64_t now_us)
{
    assert(it->due_us == 0);
    it->due_us = now_us + DELAYS_US;
    TAILQ_INSERT_TAIL(&all->list, it, link);
    all->count++;
    if (TAILQ_FIRST(&all->list) == it)
        loop_timer_set(all->timer, it->due_us);
}

void delay_end(struct delays *all, struct delay *it)
{
    if (it->due_us == 0)
        return;
    TAILQ_REMOVE(&all->list, it, link);
    it->due_us = 0;
    all->count--;
}
