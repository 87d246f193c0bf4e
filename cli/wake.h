/*
 * Waiting that an event can end: a signal, a timer.
 */
#ifndef REDLOCKCTL_WAKE_H
#define REDLOCKCTL_WAKE_H

#include <stdbool.h>
#include <stdint.h>

enum { WAKE_FDS = 2 };

/* What else to react to while waiting. */
struct wake {
    int fds[WAKE_FDS]; /* to read from; the first count of them */
    unsigned count;
    bool (*on_ready)(void *ctx); /* one is readable; true: stop waiting */
    void *ctx;
};

/*
 * Waits until clock_now_us() is until_us, and calls on_ready meanwhile. False:
 * on_ready said to stop.
 */
bool wake_wait(const struct wake *wake, int64_t until_us);

/*
 * Sets a timerfd of CLOCK_BOOTTIME, which wakes at once after the machine has
 * slept: readable when clock_now_us() is at_us, and again every again_ns, less
 * than a second; 0: only once.
 */
void wake_set_timer(int timer_fd, int64_t at_us, long again_ns);

#endif
