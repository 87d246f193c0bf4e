#include "retry.h"

#include "../../server/base/random.h"

enum {
    HELD_LEAST_MS = 40, /* 16 clients then ask every 1.3 ms */
    EXTEND_PART = 10,   /* of the TTL */
};

int64_t retry_within_ms(int64_t range_ms)
{
    uint32_t random;
    random_fill(&random, sizeof random);
    if (range_ms > RETRY_MAX_MS)
        range_ms = RETRY_MAX_MS;
    return range_ms <= 1 ? 1 : 1 + random % range_ms;
}

int64_t retry_held_ms(int64_t held_ms, int64_t remaining_ms)
{
    int64_t range_ms = RETRY_MAX_MS;
    if (held_ms >= 0 && held_ms < range_ms)
        range_ms = held_ms;
    if (remaining_ms >= 0 && remaining_ms < range_ms)
        range_ms = remaining_ms;
    return retry_within_ms(range_ms < HELD_LEAST_MS ? HELD_LEAST_MS : range_ms);
}

int64_t retry_extend_ms(int64_t ttl_ms)
{
    return retry_within_ms(ttl_ms / EXTEND_PART);
}
