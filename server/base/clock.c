#include "clock.h"

#include <assert.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);
    assert(rc == 0); /* these clocks exist since Linux 2.6.39 */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

int64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}
