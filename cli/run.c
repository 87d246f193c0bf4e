#include "run.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "complain.h"
#include "keeper.h"
#include "service.h"

enum {
    MARGIN_PARTS = 10, /* SIGKILL comes a tenth of the TTL before its end */
    MARGIN_MIN_US = 25000,
    MARGIN_MAX_US = 1000000,
    RELEASE_US = 3000000, /* how long a release may take */
    AGAIN_NS = 10000000,  /* until the guard is looked at again */
};

struct run {
    const struct options *options;
    const char *resource; /* joined, for the command */
    struct keeper keeper;
    struct service service;
    struct wake wake;
    struct lock lock;
    bool is_running;   /* the command; signals are for it */
    int caught;        /* the signal that ended the wait for the lock */
    enum verdict lost; /* why the command had to end */
};

/* ---- signals and time ---------------------------------------------------- */

/* Signals that would end redlockctl, or concern the command's terminal. */
static const int forwarded[] = {SIGTERM, SIGINT,  SIGHUP,   SIGQUIT,
                                SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};

static void take_signal(struct run *run, int signal)
{
    if (signal == SIGCHLD)
        return;
    if (run->is_running)
        keeper_signal(&run->keeper, signal);
    else if (signal != SIGWINCH && signal != SIGCONT)
        run->caught = signal;
}

/* For struct wake. True: there is nothing left to wait for. */
static bool look_at_events(void *ctx)
{
    struct run *run = ctx;
    struct signalfd_siginfo info;
    uint64_t expired = 0;
    while (read(run->wake.fds[0], &info, sizeof info) == sizeof info)
        take_signal(run, (int)info.ssi_signo);
    while (read(run->wake.fds[1], &expired, sizeof expired) > 0)
        ;
    keeper_look(&run->keeper);
    return run->caught != 0 || run->keeper.has_ended;
}

/* For when the guard must be looked at, and again while it lives. */
static void set_timer(const struct run *run)
{
    wake_set_timer(run->wake.fds[1], keeper_look_us(&run->keeper), AGAIN_NS);
}

/* Blocks the signals, to read them from fds[0]. before: for the command. */
static bool open_wake(struct run *run, sigset_t *before)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        (void)sigaddset(&set, forwarded[i]);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, before);
    run->wake = (struct wake){
        .fds = {signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)},
        .count = 2,
        .on_ready = look_at_events,
        .ctx = run,
    };
    return run->wake.fds[0] >= 0 && run->wake.fds[1] >= 0;
}

/* ---- beginning ----------------------------------------------------------- */

static int64_t margin_us(int64_t ttl_ms)
{
    int64_t us = ttl_ms * US_PER_MS / MARGIN_PARTS;
    us = at_least(us, MARGIN_MIN_US);
    return us < MARGIN_MAX_US ? us : MARGIN_MAX_US;
}

/* Starts the guard before anything is opened that it would inherit. */
static bool start_guard(struct run *run, struct credentials *credentials)
{
    const struct options *options = run->options;
    assert(options->grace_ms >= 0 && options->grace_ms <= options->ttl_ms / 2);
    struct guard_setup setup = {
        .command = options->command,
        .resource = run->resource,
        .grace_us = options->grace_ms * US_PER_MS,
        .margin_us = margin_us(options->ttl_ms),
        .redlockctl_group = getpgrp(),
    };
    /* our parent may have ignored it: then no child could be waited for */
    if (signal(SIGCHLD, SIG_DFL) == SIG_ERR ||
        !open_wake(run, &setup.signals) || !keeper_start(&run->keeper, &setup))
        return false;
    if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return false;
    return service_open(&run->service, options, &run->wake, credentials);
}

/* ---- while the command runs ---------------------------------------------- */

/* Sooner than the service suggests if SIGTERM would come before that. */
static int64_t renew_us(const struct run *run)
{
    int64_t now_us = clock_now_us();
    int64_t end_us = guard_term_us(&run->keeper.setup, run->lock.until_us);
    int64_t half_us = now_us + at_least(end_us - now_us, 0) / 2;
    return run->lock.renew_us < half_us ? run->lock.renew_us : half_us;
}

static void extend(struct run *run)
{
    int64_t end_us = guard_term_us(&run->keeper.setup, run->lock.until_us);
    enum verdict verdict =
        service_extend(&run->service, &run->lock, end_us, NULL);
    if (verdict == VERDICT_STOPPED)
        return;
    if (verdict == VERDICT_DONE) {
        keeper_extend(&run->keeper, run->lock.until_us);
        set_timer(run);
        return;
    }
    run->lost = verdict;
    if (verdict == VERDICT_LOST)
        keeper_lose(&run->keeper);
    /* otherwise the command may run until the guard ends it */
}

/* Returns when the command has ended. */
static void extend_until_end(struct run *run)
{
    while (!run->keeper.has_ended) {
        int64_t until_us =
            run->lost == VERDICT_DONE ? renew_us(run) : INT64_MAX;
        if (wake_wait(&run->wake, until_us) && run->lost == VERDICT_DONE)
            extend(run);
    }
}

/* ---- the end ------------------------------------------------------------- */

/* False: the lock had ended before the command did. */
static bool release(struct run *run)
{
    bool is_repeated = false;
    enum verdict verdict =
        service_release(&run->service, run->lock.id, run->lock.token,
                        clock_now_us() + RELEASE_US, &is_repeated, NULL);
    if (verdict == VERDICT_UNAVAILABLE || verdict == VERDICT_DENIED)
        complain_of_lock(run->options, "not released, it ends with its TTL: %s",
                         run->service.detail);
    return verdict != VERDICT_LOST || is_repeated;
}

static const char *reason_of(const struct run *run, bool was_held)
{
    if (run->keeper.end == GUARD_RUNS && run->keeper.was_late)
        return "the process that guards the command stood still; both were "
               "killed";
    if (run->keeper.end == GUARD_RUNS)
        return "the process that guards the command was killed";
    if (run->keeper.end == GUARD_EXITED)
        return was_held ? NULL : "the lock was lost while the command ran";
    if (run->lost == VERDICT_LOST)
        return "the lock is lost; the command was ended";
    if (run->lost == VERDICT_DONE)
        return "redlockctl stood still for too long; the command was ended";
    return "the lock could not be extended; the command was ended";
}

/* Returns the exit status. */
static int release_and_report(struct run *run)
{
    /* only the release is left: further signals are ignored */
    run->is_running = false;
    run->caught = 0;
    run->wake.count = 0;
    bool was_held = release(run);
    const char *reason = reason_of(run, was_held);
    if (reason == NULL)
        return run->keeper.code;
    complain_of_lock(run->options, "%s%s%s", reason,
                     run->lost != VERDICT_DONE ? ": " : "",
                     run->lost != VERDICT_DONE ? run->service.detail : "");
    return EXIT_LOCK_LOST;
}

/* Ends as the signal would have ended a program that does not catch it. */
static int die_of_signal(int caught)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, caught);
    (void)signal(caught, SIG_DFL);
    (void)kill(getpid(), caught);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return EXIT_SIGNALLED + caught;
}

static int run_locked(struct run *run)
{
    keeper_run(&run->keeper, run->lock.token, run->lock.fencing_token,
               run->lock.until_us);
    run->is_running = true;
    /* a token or a certificate may be about to be replaced */
    run->service.outlasts_denials = true;
    set_timer(run);
    extend_until_end(run);
    return release_and_report(run);
}

static int acquire_and_run(struct run *run)
{
    const struct options *options = run->options;
    enum verdict verdict = service_acquire(&run->service, &run->lock, NULL);
    if (verdict == VERDICT_DONE)
        return run_locked(run);
    if (verdict != VERDICT_STOPPED)
        complain_of_acquire(options, verdict, run->service.detail);
    return complain_status(options, verdict);
}

int run_command(const struct options *options, const char *joined,
                struct credentials *credentials)
{
    struct run run = {.options = options, .resource = joined};
    if (!start_guard(&run, credentials)) {
        complain("%s", strerror(errno));
        return EXIT_OS_ERROR;
    }
    int status = acquire_and_run(&run);
    service_close(&run.service);
    return run.caught ? die_of_signal(run.caught) : status;
}
