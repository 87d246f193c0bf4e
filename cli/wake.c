/* SPDX-License-Identifier: MIT */
#include "wake.h"

#include <assert.h>
#include <limits.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "../server/base/types.h"
#include "options.h"

enum { NS_PER_US = 1000, NS_PER_S = 1000000000 };

/* ---- signals ------------------------------------------------------------- */

static const int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                             SIGUSR1, SIGUSR2, SIGALRM, 0};

bool wake_look(struct wake *wake)
{
    struct signalfd_siginfo info;
    while (read(wake->fds[0], &info, sizeof info) == sizeof info)
        wake->caught = (int)info.ssi_signo;
    return wake->caught != 0;
}

static bool wake_on_ready(void *ctx)
{
    return wake_look(ctx);
}

/* A signalfd would deliver ignored signals, too. */
static void add_obeyed(sigset_t *set, const int numbers[])
{
    for (; *numbers != 0; numbers++) {
        struct sigaction action;
        (void)sigaction(*numbers, NULL, &action);
        if (action.sa_handler != SIG_IGN)
            (void)sigaddset(set, *numbers);
    }
}

bool wake_open(struct wake *wake, const int more[], sigset_t *before)
{
    sigset_t set;
    (void)sigemptyset(&set);
    add_obeyed(&set, ending);
    add_obeyed(&set, more);
    (void)sigprocmask(SIG_BLOCK, &set, before);
    *wake = (struct wake){
        .fds = {signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)},
        .count = 1,
        .on_ready = wake_on_ready,
        .ctx = wake,
    };
    return wake->fds[0] >= 0;
}

int wake_die(int caught)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, caught);
    (void)signal(caught, SIG_DFL);
    (void)kill(getpid(), caught);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return EXIT_SIGNALLED + caught;
}

/* ---- time ---------------------------------------------------------------- */

/* For poll: rounded up, so that it does not return just before the time. */
static int left_ms(int64_t until_us)
{
    int64_t left_us = at_least(until_us - clock_now_us(), 0);
    return (int)at_most(divide_up(left_us, US_PER_MS), INT_MAX);
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
