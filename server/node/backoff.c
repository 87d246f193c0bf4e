#include "backoff.h"

int64_t backoff_next_us(struct backoff *backoff, uint32_t random)
{
    int64_t longest_us = backoff->longest_us;
    if (longest_us == 0)
        longest_us = BACKOFF_FIRST_US;
    int64_t doubled_us = 2 * longest_us;
    backoff->longest_us =
        doubled_us < BACKOFF_LAST_US ? doubled_us : BACKOFF_LAST_US;
    int64_t half_us = longest_us / 2;
    return half_us + random % (half_us + 1);
}

void backoff_reset(struct backoff *backoff)
{
    backoff->longest_us = 0;
}
