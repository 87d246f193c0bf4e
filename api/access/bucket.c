#include "bucket.h"

#include <assert.h>

#include "../../server/base/types.h"

enum { REQUEST = US_PER_S }; /* so that rate millionths come in each µs */

void bucket_init(struct bucket *it, int64_t burst, int64_t now_us)
{
    *it = (struct bucket){.level = burst * REQUEST, .filled_us = now_us};
}

bool bucket_take(struct bucket *it, int64_t rate, int64_t burst, int64_t count,
                 int64_t now_us, int64_t *wait_us)
{
    assert(rate > 0 && rate <= BUCKET_MAX && burst > 0 && burst <= BUCKET_MAX);
    assert(count > 0);
    int64_t wanted = (count < burst ? count : burst) * REQUEST;
    int64_t most = burst * REQUEST;
    int64_t passed_us = at_least(now_us - it->filled_us, 0);
    it->filled_us += passed_us;
    if (passed_us > most / rate) /* or the product may be too large */
        it->level = most;
    else
        it->level += passed_us * rate;
    if (it->level > most)
        it->level = most;
    if (it->level < wanted) {
        *wait_us = divide_up(wanted - it->level, rate);
        return false;
    }
    it->level -= wanted;
    return true;
}
