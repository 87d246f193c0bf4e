#include "wake.h"

#include <limits.h>
#include <poll.h>

#include "../server/base/clock.h"
#include "../server/base/types.h"

/* For poll: rounded up, so that it does not return just before the time. */
static int left_ms(int64_t until_us)
{
    int64_t left_us = until_us - clock_now_us();
    if (left_us <= 0)
        return 0;
    int64_t ms = divide_up(left_us, US_PER_MS);
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

bool wake_wait(const struct wake *wake, int64_t until_us)
{
    do {
        struct pollfd fds[WAKE_FDS];
        for (unsigned i = 0; i < wake->count; i++)
            fds[i] = (struct pollfd){.fd = wake->fds[i], .events = POLLIN};
        if (poll(fds, wake->count, left_ms(until_us)) > 0 &&
            wake->on_ready(wake->ctx))
            return false;
    } while (clock_now_us() < until_us);
    return true;
}
