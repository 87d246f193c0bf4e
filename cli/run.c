/* SPDX-License-Identifier: MIT */
/*
 * redlockctl run: a command under a lock.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "../server/base/process.h"
#include "commands.h"
#include "complain.h"
#include "guard.h"

enum {
    RELEASE_US = 3000000, /* how long a release may take */
    LIMIT_SIZE = 32,
    AGAIN_NS = 10000000,      /* until the guard is looked at again */
    SHORT_US = 10 * US_PER_S, /* a run in which the command lived for less */
    DELAY_MIN_MS = 1000,
    DELAY_MAX_MS = 30000,
};

/* From one run to the next: how long it waits, in ms. */
static const char delay_variable[] = "REDLOCKCTL_AGAIN_MS";

struct run {
    const struct options *options;
    const char *resource; /* joined, for the command */
    struct keeper keeper;
    struct replicas *replicas;
    struct wake *wake; /* by signals, a timer */
    struct lock lock;
    sigset_t before;      /* signals that were blocked */
    bool is_running;      /* the command; signals are for it */
    bool is_to_end;       /* one of them asks it to end */
    int64_t began_us;     /* when it was started; 0: it was not */
    void (*on_pipe)(int); /* what SIGPIPE did before */
    enum answer lost;     /* why the command had to end */
    int64_t delay_ms;     /* --again: waited up to so long before it */
    bool is_limited;      /* the service limits how long a lock is held */
    bool is_token_open;   /* a repeat that failed may have changed it */
};

/* ---- signals and time ---------------------------------------------------- */

/* For struct wake. True: there is nothing left to wait for. */
static bool look_at_events(void *ctx)
{
    struct run *run = ctx;
    struct keeper *keeper = &run->keeper;
    struct signalfd_siginfo info;
    uint64_t expired = 0;
    while (read(run->wake->fds[0], &info, sizeof info) == sizeof info) {
        int signal = (int)info.ssi_signo;
        if (run->is_running && signal != SIGCHLD) {
            assert(keeper->guard > 1); /* or it would go to groups */
            if (!keeper->has_ended)    /* not reaped yet: it is ours */
                (void)kill(keeper->guard, signal);
            run->is_to_end |=
                signal == SIGTERM || signal == SIGINT || signal == SIGQUIT;
        } else if (signal != SIGCHLD && signal != SIGWINCH &&
                   signal != SIGCONT) {
            run->wake->caught = signal;
        }
    }
    while (read(run->wake->fds[1], &expired, sizeof expired) > 0)
        ;
    guard_look(keeper);
    return run->wake->caught != 0 || keeper->has_ended;
}

/* For when the guard must be looked at, and again while it lives. */
static void run_set_timer(const struct run *run)
{
    wake_set_timer(run->wake->fds[1], guard_look_us(&run->keeper), AGAIN_NS);
}

/* ---- beginning ----------------------------------------------------------- */

/* False: errno says why. */
static bool run_start(struct run *run, struct command *command)
{
    /* for the command, besides those that end it: about its terminal */
    static const int more[] = {SIGWINCH, SIGCONT, SIGCHLD, 0};
    struct wake *wake = run->wake;
    /* our parent may have ignored it: then no child could be waited for */
    if (signal(SIGCHLD, SIG_DFL) == SIG_ERR ||
        !wake_open(wake, more, &run->before))
        return false;
    wake->fds[1] = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    wake->count = 2;
    wake->on_ready = look_at_events;
    wake->ctx = run;
    if (wake->fds[1] < 0 ||
        !guard_start(&run->keeper, run->options, &run->before))
        return false;
    run->on_pipe = signal(SIGPIPE, SIG_IGN);
    return run->on_pipe != SIG_ERR &&
           replicas_open(run->replicas, run->options, wake,
                         &command->credentials);
}

/* ---- while the command runs ---------------------------------------------- */

/* ", 8 s", if the limit is known. */
static void run_put_limit(const struct run *run, char text[LIMIT_SIZE])
{
    int64_t ms = run->lock.max_hold_ms;
    text[0] = '\0';
    if (ms > 0)
        (void)snprintf(text, LIMIT_SIZE, ", %g s",
                       (double)ms / (double)MS_PER_S);
}

/*
 * The service extends the lock no more: begins the hold anew, which leaves no
 * gap, and says so once.
 */
static enum answer renew_hold(struct run *run, int64_t end_us)
{
    char limit[LIMIT_SIZE];
    run_put_limit(run, limit);
    enum answer verdict =
        replicas_renew_hold(run->replicas, &run->lock, end_us);
    run->is_token_open = verdict != ANSWER_DONE;
    if (verdict == ANSWER_DONE && !run->is_limited)
        options_complain(
            run->options,
            "the service limits how long a lock is held (--max-hold-ms%s): the "
            "lock was acquired anew without a gap, with fencing token %" PRId64
            "; the command goes on, as it will each time the limit is reached; "
            "without this option, redlockd sets no limit",
            limit, run->lock.fencing_token);
    run->is_limited = true;
    return verdict;
}

static void run_extend(struct run *run)
{
    struct guard_shared *shared = run->keeper.shared;
    int64_t end_us = guard_term_us(&run->keeper, run->lock.until_us);
    enum answer verdict =
        run->is_token_open ? ANSWER_FINAL
                           : replicas_extend(run->replicas, &run->lock, end_us);
    if (verdict == ANSWER_FINAL)
        verdict = renew_hold(run, end_us);
    if (verdict == ANSWER_STOPPED)
        return;
    if (verdict == ANSWER_DONE) {
        /* The guard reads it again before it acts on it: no need to wake it. */
        assert(shared->until_us != 0); /* the command was started */
        shared->until_us = run->lock.until_us;
        run_set_timer(run);
        return;
    }
    run->lost = verdict;
    if (verdict == ANSWER_LOST) {
        shared->is_lost = true;
        guard_wake(&run->keeper);
    }
    /* otherwise the command may run until the guard ends it */
}

/* ---- the end ------------------------------------------------------------- */

static const char *reason_of(const struct run *run, bool was_held)
{
    enum guard_end end = (enum guard_end)run->keeper.shared->end;
    if (end == GUARD_RUNS && run->keeper.was_late)
        return "the process that guards the command was suspended for too "
               "long; both were killed";
    if (end == GUARD_RUNS)
        return "the process that guards the command was killed";
    if (end == GUARD_EXITED)
        return was_held ? NULL : "the lock was lost while the command ran";
    if (run->lost == ANSWER_LOST)
        return "the lock is lost; the command was terminated";
    if (run->lost == ANSWER_DONE && !run->is_token_open)
        return "redlockctl was suspended for too long; the command was "
               "terminated";
    return "the lock could not be extended; the command was terminated";
}

/* A repeat without an answer may have given the lock another token: then it is
 * acquired once more. */
static enum answer run_release(struct run *run)
{
    int64_t give_up_us = clock_now_us() + RELEASE_US;
    run->replicas->is_repeated = false;
    if (run->is_token_open && run->lost != ANSWER_LOST) {
        enum answer verdict =
            replicas_renew_hold(run->replicas, &run->lock, give_up_us);
        if (verdict == ANSWER_LOST) /* somebody may have had it meanwhile */
            (void)replicas_release(run->replicas, run->lock.id, run->lock.token,
                                   give_up_us);
        if (verdict != ANSWER_DONE)
            return verdict;
    }
    return replicas_release(run->replicas, run->lock.id, run->lock.token,
                            give_up_us);
}

static void report_loss(const struct run *run, const char *reason,
                        const char *why)
{
    char limit[LIMIT_SIZE];
    run_put_limit(run, limit);
    if (run->is_token_open)
        options_complain(
            run->options,
            "%s: the service limits how long a lock is held (--max-hold-ms%s), "
            "and the lock could not be acquired anew: %s; start redlockd with "
            "a greater --max-hold-ms, or without it",
            reason, limit, why);
    else if (run->lost == ANSWER_DONE)
        options_complain(run->options, "%s", reason);
    else
        options_complain(run->options, "%s: %s", reason, why);
}

/* Returns the exit status. */
static int release_and_report(struct run *run)
{
    char why[ANSWER_DETAIL_SIZE]; /* of the loss, not of the release */
    memcpy(why, run->replicas->detail, sizeof why);
    /* only the release is left: further signals are ignored */
    run->is_running = false;
    run->wake->caught = 0;
    run->wake->count = 0;
    enum answer verdict = run_release(run);
    if (answer_may_others_help(verdict))
        options_complain(
            run->options,
            "the lock was not released, and stays until it expires: %s",
            run->replicas->detail);
    /* or the lock had ended before the command did */
    bool was_held = verdict != ANSWER_LOST || run->replicas->is_repeated;
    const char *reason = reason_of(run, was_held);
    if (reason == NULL)
        return run->keeper.shared->code;
    report_loss(run, reason, why);
    return EXIT_LOCK_LOST;
}

/* Starts the command under the lock; returns the exit status at its end. */
static int run_locked(struct run *run)
{
    struct guard_shared *shared = run->keeper.shared;
    const struct lock *lock = &run->lock;
    /* or the guard may read these while they are written */
    assert(shared->until_us == 0 && lock->until_us > 0);
    shared->lock = *lock;
    (void)snprintf(shared->resource, sizeof shared->resource, "%s",
                   run->resource);
    shared->until_us = lock->until_us;
    guard_wake(&run->keeper);
    run->is_running = true;
    run->began_us = clock_now_us();
    /* a token or a certificate may be about to be replaced */
    run->replicas->outlasts_denials = true;
    run_set_timer(run);
    while (!run->keeper.has_ended) {
        int64_t now_us = clock_now_us(), until_us = INT64_MAX;
        int64_t end_us = guard_term_us(&run->keeper, lock->until_us);
        /* sooner than the service suggests if SIGTERM would come before that */
        if (run->lost == ANSWER_DONE)
            until_us = at_most(lock->renew_us,
                               now_us + at_least(end_us - now_us, 0) / 2);
        if (wake_wait(run->wake, until_us) && run->lost == ANSWER_DONE)
            run_extend(run);
    }
    return release_and_report(run);
}

/* ---- once more ----------------------------------------------------------- */

/*
 * Before a run: waits if the one before was short: a second at most, after the
 * next short one twice as long, up to half a minute; not exactly as long, as
 * many may have lost their locks at the same moment. A signal ends the process.
 */
static void wait_to_begin(struct run *run)
{
    const char *text = getenv(delay_variable);
    int64_t reported_ms = text != NULL ? span_number(span_of(text), 5) : 0;
    uint32_t chance;
    (void)unsetenv(delay_variable); /* the command is to have none of it */
    if (reported_ms <= 0 || reported_ms > DELAY_MAX_MS)
        return;
    run->delay_ms = reported_ms;
    random_bytes(&chance, sizeof chance);
    int64_t wait_ms =
        reported_ms / 2 + chance % (uint32_t)(reported_ms / 2 + 1);
    struct timespec left = {wait_ms / MS_PER_S,
                            wait_ms % MS_PER_S * 1000 * US_PER_MS};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ; /* it was stopped, and went on */
}

/*
 * Whether --again starts the command anew, after this exit status: not if it
 * was told to end, is done or cannot be run. A terminal asks the command
 * itself.
 */
static bool is_next_due(const struct run *run, int status)
{
    if (!run->options->is_again || run->began_us == 0 || run->is_to_end)
        return false;
    return status != EXIT_SUCCESS && status != EXIT_CANNOT_RUN &&
           status != EXIT_NOT_FOUND && status != EXIT_SIGNALLED + SIGINT &&
           status != EXIT_SIGNALLED + SIGQUIT &&
           status != EXIT_SIGNALLED + SIGHUP; /* or it was told to reload */
}

/*
 * Replaces this process by exec: it keeps its number, and nothing of what was
 * is left. Returns the exit status if that fails.
 */
static int start_next(const struct run *run,
                      const struct credentials *credentials)
{
    bool was_short = clock_now_us() - run->began_us < SHORT_US;
    int64_t next_ms =
        at_most(at_least(2 * run->delay_ms, DELAY_MIN_MS), DELAY_MAX_MS);
    (void)signal(SIGPIPE, run->on_pipe);
    /* one that came meanwhile ends redlockctl here */
    (void)sigprocmask(SIG_SETMASK, &run->before, NULL);
    if (credentials_put_back(credentials)) {
        char text[24];
        options_complain(run->options, "starting again%s",
                         was_short ? " in a moment" : "");
        (void)snprintf(text, sizeof text, "%lld",
                       was_short ? (long long)next_ms : 0);
        if (setenv(delay_variable, text, 1) == 0) {
            char *const *argv = run->options->argv;
            (void)execv("/proc/self/exe", argv);
            (void)execvp(argv[0], argv);
        }
    }
    complain("%s", strerror(errno));
    return EXIT_OS_ERROR;
}

int command_run(struct command *command)
{
    const struct options *options = command->options;
    struct run run = {.options = options,
                      .resource = command->joined,
                      .replicas = &command->replicas,
                      .wake = &command->wake};
    if (options->is_again)
        wait_to_begin(&run);
    if (!run_start(&run, command)) {
        complain("%s", strerror(errno));
        return EXIT_OS_ERROR;
    }
    int status = 0;
    enum answer verdict = replicas_acquire(run.replicas, &run.lock);
    if (verdict == ANSWER_DONE)
        status = run_locked(&run);
    else
        status = answer_end_acquire(options, verdict, run.replicas->detail);
    if (verdict == ANSWER_STOPPED)
        replicas_give_back(run.replicas);
    replicas_close(run.replicas);
    if (is_next_due(&run, status))
        return start_next(&run, &command->credentials);
    return run.wake->caught ? wake_die(run.wake->caught) : status;
}
