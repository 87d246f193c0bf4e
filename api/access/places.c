#include "places.h"

#include <assert.h>
#include <stddef.h>

bool places_are_left(const struct places *all, const struct places *mine,
                     enum place place, int most)
{
    return mine->taken[place] < most - all->taken[place];
}

void places_take(struct places *all, struct places *mine, enum place place)
{
    all->taken[place]++;
    mine->taken[place]++;
}

void places_leave(struct places *all, struct places *mine, enum place place)
{
    assert(all->taken[place] > 0);
    all->taken[place]--;
    if (mine != NULL && mine->taken[place] > 0) /* it may be a new one */
        mine->taken[place]--;
}

const char *places_refusal(enum place place)
{
    static const char *const details[PLACES] = {
        [PLACE_WAIT] = "this identity waits for as many locks on this server "
                       "as it may, so that others find a place; wait "
                       "retry_after_ms, or ask another server",
        [PLACE_LIST] = "this identity has as many lists under way on this "
                       "server as it may, so that others find a place; wait "
                       "retry_after_ms",
    };
    return details[place];
}
