#include "wake.h"

#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <time.h>

#include "../server/base/clock.h"
#include "../server/base/types.h"

enum { NS_PER_US = 1000, NS_PER_S = 1000000000 };

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
    assert(wake->count <= WAKE_FDS);
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

void wake_set_timer(int timer_fd, int64_t at_us, long again_ns)
{
    assert(again_ns >= 0 && again_ns < NS_PER_S);
    at_us = at_least(at_us, US_PER_S); /* 0 would switch it off */
    const struct itimerspec at = {
        .it_interval = {0, again_ns},
        .it_value = {at_us / US_PER_S, at_us % US_PER_S * NS_PER_US}};
    (void)timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}
