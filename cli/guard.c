/*
 * The states of a guard:
 *
 *   RUNS ──→ ENDS ──→ KILLS ──→ over
 *             └───────────────→ over
 *
 * RUNS: the command runs. ENDS: SIGTERM was sent to the command, or, if it has
 * exited, to what it left running in its process group. KILLS: SIGKILL is sent
 * until nobody is left.
 */
#include "guard.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "family.h"
#include "options.h"
#include "wake.h"

enum { KILL_AGAIN_US = 2000 };

enum state { RUNS, ENDS, KILLS };

struct guard {
    const struct guard_setup *setup;
    struct guard_shared *shared;
    int signal_fd, timer_fd;
    enum state state;
    pid_t command;
    bool has_exited; /* the command itself */
    bool is_orphan;  /* redlockctl is dead */
    int64_t kill_us; /* ENDS: when the grace ends */
    enum guard_end end;
};

static int64_t kill_by_us(const struct guard *guard)
{
    return guard->shared->until_us - guard->setup->margin_us;
}

static bool must_all_end(const struct guard *guard)
{
    return guard->end != GUARD_EXITED;
}

/* ---- the command --------------------------------------------------------- */

/* In the child. SIGKILL comes when the guard ends. */
static _Noreturn void execute(const struct guard_setup *setup, pid_t guard)
{
    char number[DIGITS_MAX + 1];
    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != guard)
        _exit(EXIT_CANNOT_RUN); /* the guard was killed just now */
    family_give_terminal(setup->redlockctl_group, getpid());
    (void)snprintf(number, sizeof number, "%" PRId64,
                   setup->shared->fencing_token);
    if (setenv("REDLOCKD_RESOURCE", setup->shared->resource, 1) == 0 &&
        (setup->shared->slots[0] == '\0'
             ? unsetenv("REDLOCKD_SLOT") == 0 /* of a command around this one */
             : setenv("REDLOCKD_SLOT", setup->shared->slots, 1) == 0) &&
        setenv("REDLOCKD_FENCING_TOKEN", number, 1) == 0 &&
        setenv("REDLOCKD_TOKEN", setup->shared->token, 1) == 0) {
        (void)sigprocmask(SIG_SETMASK, &setup->signals, NULL);
        (void)execvp(setup->command[0], setup->command);
    }
    int error = errno;
    (void)fprintf(stderr, "redlockctl: %s: %s\n", setup->command[0],
                  strerror(error));
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/*
 * Starts the command in a process group of its own, which gets the terminal if
 * redlockctl has it. -1: errno says why it could not be forked; if it cannot be
 * executed, it exits with 126 or 127.
 */
static pid_t start_command(const struct guard_setup *setup)
{
    pid_t guard = getpid();
    pid_t pid = fork();
    if (pid == 0)
        execute(setup, guard);
    if (pid > 0)
        (void)setpgid(pid, pid); /* here too: before any signal for it */
    return pid;
}

/* ---- what has happened -------------------------------------------------- */

/* Takes all children that have ended, also those that others left behind. */
static void reap(struct guard *guard)
{
    siginfo_t info = {.si_pid = 0};
    while (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WNOHANG) == 0 &&
           info.si_pid != 0) {
        bool is_command = info.si_pid == guard->command;
        if (is_command && info.si_code != CLD_STOPPED) {
            guard->has_exited = true;
            guard->shared->code = info.si_code == CLD_EXITED
                                      ? info.si_status
                                      : EXIT_SIGNALLED + info.si_status;
        } else if (is_command && info.si_status == SIGTSTP) {
            /* Ctrl-Z: nobody could resume it */
            family_signal(guard->command, SIGCONT);
        }
        info.si_pid = 0;
    }
}

/* Passes signals on to the command. */
static void read_signals(const struct guard *guard)
{
    struct signalfd_siginfo info;
    while (read(guard->signal_fd, &info, sizeof info) == sizeof info) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCONT) /* redlockctl may have come to the foreground */
            family_give_terminal(guard->setup->redlockctl_group,
                                 guard->command);
        if (signal != SIGCHLD)
            family_signal(guard->command, signal);
    }
}

/* ---- what is to be done -------------------------------------------------- */

static enum guard_end reason_to_end(const struct guard *guard)
{
    if (guard->shared->is_lost)
        return GUARD_LOST;
    if (guard->has_exited)
        return GUARD_EXITED;
    if (clock_now_us() >= guard_term_us(guard->setup, guard->shared->until_us))
        return GUARD_TIMED_OUT;
    return guard->is_orphan ? GUARD_ORPHANED : GUARD_RUNS;
}

/* In RUNS: whether it is time. */
static void end_if_needed(struct guard *guard)
{
    enum guard_end end = reason_to_end(guard);
    assert(guard->state == RUNS);
    if (end == GUARD_RUNS)
        return;
    guard->state = ENDS;
    guard->end = end;
    guard->kill_us = clock_now_us() + guard->setup->grace_us;
    family_signal(guard->command, SIGTERM);
    family_signal(guard->command, SIGCONT); /* or stopped ones would wait */
}

/*
 * In ENDS and KILLS. What the command left running may stay until the grace
 * ends, but not if the lock is lost or the validity ends meanwhile.
 */
static void go_on_ending(struct guard *guard)
{
    int64_t now_us = clock_now_us();
    bool is_late = now_us >= kill_by_us(guard);
    if (guard->end == GUARD_EXITED && (is_late || guard->shared->is_lost))
        guard->end = is_late ? GUARD_TIMED_OUT : GUARD_LOST;
    bool has_group = family_has_group(guard->command);
    if (is_late || now_us >= guard->kill_us ||
        (must_all_end(guard) && !has_group))
        guard->state = KILLS;
    if (guard->state == KILLS)
        family_kill(guard->command, must_all_end(guard));
}

static bool guard_is_over(const struct guard *guard)
{
    if (guard->state == RUNS || !guard->has_exited)
        return false;
    return must_all_end(guard) ? !family_has_children()
                               : !family_has_group(guard->command);
}

static int64_t next_us(const struct guard *guard)
{
    switch (guard->state) {
    case RUNS:
        return guard_term_us(guard->setup, guard->shared->until_us);
    case ENDS:
        return at_most(kill_by_us(guard), guard->kill_us);
    case KILLS:
        break;
    }
    return clock_now_us() + KILL_AGAIN_US;
}

/* ---- the loop ------------------------------------------------------------ */

static void wait_for_more(struct guard *guard)
{
    struct pollfd fds[] = {
        {.fd = guard->signal_fd, .events = POLLIN},
        {.fd = guard->timer_fd, .events = POLLIN},
        /* after its end it would always be ready */
        {.fd = guard->is_orphan ? -1 : guard->setup->life_fd, .events = POLLIN},
    };
    wake_set_timer(guard->timer_fd, next_us(guard), 0);
    (void)poll(fds, sizeof fds / sizeof *fds, -1);
    read_signals(guard);
    char bytes[64];
    ssize_t got = 1;
    while (!guard->is_orphan && got > 0)
        got = read(guard->setup->life_fd, bytes, sizeof bytes);
    guard->is_orphan = guard->is_orphan || got == 0;
}

static void watch_command(struct guard *guard)
{
    for (;;) {
        reap(guard);
        if (guard->state == RUNS)
            end_if_needed(guard);
        if (guard->state != RUNS)
            go_on_ending(guard);
        reap(guard);
        if (guard_is_over(guard))
            break;
        wait_for_more(guard);
    }
    assert(guard->end != GUARD_RUNS); /* or it would look as if killed */
    guard->shared->end = (int)guard->end;
}

void guard_run(const struct guard_setup *setup)
{
    struct guard guard = {.setup = setup, .shared = setup->shared};
    struct pollfd life = {.fd = setup->life_fd, .events = POLLIN};
    char byte = 0;
    sigset_t all;
    (void)setpgid(0, 0);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    while (poll(&life, 1, -1) < 0 && errno == EINTR)
        ;
    if (read(life.fd, &byte, 1) != 1)
        return; /* redlockctl has ended without a lock */
    assert(guard.shared->until_us != 0 && *guard.shared->token);
    guard.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    guard.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    guard.command = -1;
    if (guard.signal_fd >= 0 && guard.timer_fd >= 0 &&
        prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        guard.command = start_command(setup);
    if (guard.command < 0) {
        perror("redlockctl: the command cannot be started");
        guard.shared->code = EXIT_OS_ERROR;
        guard.shared->end = GUARD_EXITED;
        return;
    }
    guard.shared->command = guard.command;
    watch_command(&guard);
}
