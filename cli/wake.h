/* SPDX-License-Identifier: MIT */
/*
 * Waiting that an event can end: a signal, a timer.
 */
#ifndef REDLOCKCTL_WAKE_H
#define REDLOCKCTL_WAKE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

enum { WAKE_FDS = 2 };

/* What else to react to while waiting. */
struct wake {
    int fds[WAKE_FDS]; /* to read from; the first count of them */
    unsigned count;
    bool (*on_ready)(void *ctx); /* one is readable; true: stop waiting */
    void *ctx;
    int caught; /* the last signal that asks the process to end; 0: none */
};

/*
 * Blocks the signals that would end the process, and those of more, which ends
 * with 0; but not those that the process was told to ignore, as under nohup.
 * They are read from fds[0] from now on, by wake_look. before: what was
 * blocked; NULL: not needed. False: errno says why.
 */
bool wake_open(struct wake *wake, const int more[], sigset_t *before);

/* Reads the signals that have come; whether there were any, now or before. */
bool wake_look(struct wake *wake);

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

/* Ends as the signal would have ended a program that does not catch it. */
int wake_die(int caught);

#endif
