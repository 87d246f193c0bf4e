/* SPDX-License-Identifier: MIT */
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
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "wake.h"

enum {
    KILL_AGAIN_US = 2000,
    MARGIN_PARTS = 10, /* SIGKILL comes a tenth of the TTL before its end */
    MARGIN_MIN_US = 25000,
    MARGIN_MAX_US = 1000000,
};

enum state { RUNS, ENDS, KILLS };

struct guard {
    const struct keeper *keeper;
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
    return guard->shared->until_us - guard->keeper->margin_us;
}

static bool must_all_end(const struct guard *guard)
{
    return guard->end != GUARD_EXITED;
}

/* ---- the command and what it has started --------------------------------- */

/*
 * Both processes are child subreapers (prctl): what the command leaves behind
 * becomes their child, even in another session or group. So they kill only
 * children of their own, whose ids nobody else can get before they are waited
 * for.
 */

/* Whether a child of ours is in this process group, or has ended in it. */
static bool has_group(pid_t group)
{
    siginfo_t info;
    assert(group > 1); /* 0 is our own group, and kill(-1) hits everybody */
    return waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static bool has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Sends the signal to the group, if it has a child of ours. */
static void signal_group(pid_t group, int signal)
{
    if (has_group(group))
        (void)kill(-group, signal); /* all may just have ended */
}

/*
 * SIGKILL to the group (0: to none), and to every child if children is true.
 * When these end, what they have started becomes ours: call it again until
 * nobody is left.
 */
static void kill_family(pid_t group, bool children)
{
    char path[64];
    int pid = 0;
    if (group != 0)
        signal_group(group, SIGKILL);
    if (!children)
        return;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children",
                   (int)getpid());
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return; /* no such kernel: what left the group is out of reach */
    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers */
    while (fscanf(file, "%d", &pid) == 1)
        (void)kill(pid, SIGKILL); /* it may have ended: still ours */
    (void)fclose(file);           /* only read: nothing can be lost */
}

/* Moves the terminal from one process group, if that has it, to another. */
static void give_terminal(pid_t from, pid_t to)
{
    sigset_t ttou, before;
    if (tcgetpgrp(STDIN_FILENO) != from)
        return; /* in the background, or stdin is no terminal */
    (void)sigemptyset(&ttou);
    (void)sigaddset(&ttou, SIGTTOU); /* sent to a caller in the background */
    (void)sigprocmask(SIG_BLOCK, &ttou, &before);
    (void)tcsetpgrp(STDIN_FILENO, to); /* fails if the group has just ended */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

/* ---- the command --------------------------------------------------------- */

/* In the child. SIGKILL comes when the guard ends. */
static _Noreturn void execute(const struct keeper *keeper, pid_t guard)
{
    char number[DIGITS_MAX + 1];
    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != guard)
        _exit(EXIT_CANNOT_RUN); /* the guard was killed just now */
    give_terminal(keeper->group, getpid());
    (void)snprintf(number, sizeof number, "%" PRId64,
                   keeper->shared->lock.fencing_token);
    if (setenv("REDLOCKD_RESOURCE", keeper->shared->resource, 1) == 0 &&
        (keeper->shared->lock.slots[0] == '\0'
             ? unsetenv("REDLOCKD_SLOT") == 0 /* of a command around this one */
             : setenv("REDLOCKD_SLOT", keeper->shared->lock.slots, 1) == 0) &&
        setenv("REDLOCKD_FENCING_TOKEN", number, 1) == 0 &&
        setenv("REDLOCKD_TOKEN", keeper->shared->lock.token, 1) == 0) {
        (void)sigprocmask(SIG_SETMASK, &keeper->signals, NULL);
        (void)execvp(keeper->command[0], keeper->command);
    }
    int error = errno;
    (void)fprintf(stderr, "redlockctl: %s: %s\n", keeper->command[0],
                  strerror(error));
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/*
 * Starts the command in a process group of its own, which gets the terminal if
 * redlockctl has it. -1: errno says why it could not be forked; if it cannot be
 * executed, it exits with 126 or 127.
 */
static pid_t start_command(const struct keeper *keeper)
{
    pid_t guard = getpid();
    pid_t pid = fork();
    if (pid == 0)
        execute(keeper, guard);
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
            signal_group(guard->command, SIGCONT);
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
            give_terminal(guard->keeper->group, guard->command);
        if (signal != SIGCHLD)
            signal_group(guard->command, signal);
    }
}

/* ---- what is to be done -------------------------------------------------- */

static enum guard_end reason_to_end(const struct guard *guard)
{
    if (guard->shared->is_lost)
        return GUARD_LOST;
    if (guard->has_exited)
        return GUARD_EXITED;
    if (clock_now_us() >= guard_term_us(guard->keeper, guard->shared->until_us))
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
    guard->kill_us = clock_now_us() + guard->keeper->grace_us;
    signal_group(guard->command, SIGTERM);
    signal_group(guard->command, SIGCONT); /* or stopped ones would wait */
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
    if (is_late || now_us >= guard->kill_us ||
        (must_all_end(guard) && !has_group(guard->command)))
        guard->state = KILLS;
    if (guard->state == KILLS)
        kill_family(guard->command, must_all_end(guard));
}

static bool guard_is_over(const struct guard *guard)
{
    if (guard->state == RUNS || !guard->has_exited)
        return false;
    return must_all_end(guard) ? !has_children() : !has_group(guard->command);
}

static int64_t next_us(const struct guard *guard)
{
    switch (guard->state) {
    case RUNS:
        return guard_term_us(guard->keeper, guard->shared->until_us);
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
        {.fd = guard->is_orphan ? -1 : guard->keeper->life[0],
         .events = POLLIN},
    };
    wake_set_timer(guard->timer_fd, next_us(guard), 0);
    (void)poll(fds, sizeof fds / sizeof *fds, -1);
    read_signals(guard);
    char bytes[64];
    ssize_t got = 1;
    while (!guard->is_orphan && got > 0)
        got = read(guard->keeper->life[0], bytes, sizeof bytes);
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

/* The whole life of the guard: waits for the first byte, starts the command,
 * returns when everything that must end has ended. */
static void guard_run(const struct keeper *keeper)
{
    struct guard guard = {.keeper = keeper, .shared = keeper->shared};
    struct pollfd life = {.fd = keeper->life[0], .events = POLLIN};
    char byte = 0;
    sigset_t all;
    (void)setpgid(0, 0);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    while (poll(&life, 1, -1) < 0 && errno == EINTR)
        ;
    if (read(life.fd, &byte, 1) != 1)
        return; /* redlockctl has ended without a lock */
    assert(guard.shared->until_us != 0 && *guard.shared->lock.token);
    guard.signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    guard.timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    guard.command = -1;
    if (guard.signal_fd >= 0 && guard.timer_fd >= 0 &&
        prctl(PR_SET_CHILD_SUBREAPER, 1) == 0)
        guard.command = start_command(keeper);
    if (guard.command < 0) {
        perror("redlockctl: the command cannot be started");
        guard.shared->code = EXIT_OS_ERROR;
        guard.shared->end = GUARD_EXITED;
        return;
    }
    guard.shared->command = guard.command;
    watch_command(&guard);
}

/* ---- our side ------------------------------------------------------------ */

bool guard_start(struct keeper *keeper, const struct options *options,
                 const sigset_t *signals)
{
    int64_t margin_us = options->ttl_ms * US_PER_MS / MARGIN_PARTS;
    assert(options->grace_ms >= 0 && options->grace_ms <= options->ttl_ms / 2);
    keeper->signals = *signals;
    keeper->command = options->command;
    keeper->grace_us = options->grace_ms * US_PER_MS;
    keeper->margin_us =
        at_most(at_least(margin_us, MARGIN_MIN_US), MARGIN_MAX_US);
    keeper->group = getpgrp();
    keeper->shared = mmap(NULL, sizeof *keeper->shared, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    keeper->had_children = has_children();
    if (keeper->shared == MAP_FAILED ||
        pipe2(keeper->life, O_CLOEXEC | O_NONBLOCK) != 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return false;
    keeper->guard = fork();
    if (keeper->guard == 0) {
        (void)close(keeper->life[1]); /* or its end would never be read */
        guard_run(keeper);
        _exit(EXIT_SUCCESS);
    }
    (void)close(keeper->life[0]);
    return keeper->guard > 0;
}

void guard_wake(const struct keeper *keeper)
{
    ssize_t written = write(keeper->life[1], "", 1);
    (void)written; /* if the pipe is full, it has bytes to read anyway */
}

int64_t guard_look_us(const struct keeper *keeper)
{
    return keeper->shared->until_us - keeper->margin_us / 4 * 3;
}

/*
 * After the guard was killed: the kernel has killed its child, the command, and
 * what the command had started is now our child.
 */
static void kill_rest(struct keeper *keeper)
{
    const struct timespec pause = {0, KILL_AGAIN_US * 1000L};
    pid_t command = keeper->shared->command;
    bool children = !keeper->had_children;
    while ((command != 0 && has_group(command)) ||
           (children && has_children())) {
        kill_family(command, children);
        while (waitpid(children ? -1 : -command, NULL, WNOHANG) > 0)
            ;
        (void)nanosleep(&pause, NULL);
    }
}

void guard_look(struct keeper *keeper)
{
    const struct guard_shared *shared = keeper->shared;
    if (keeper->has_ended)
        return;
    if (shared->until_us != 0 && clock_now_us() >= guard_look_us(keeper)) {
        (void)kill(keeper->guard, SIGKILL);
        keeper->was_late = true;
    }
    if (waitpid(keeper->guard, NULL, WNOHANG) != keeper->guard)
        return;
    if (shared->end == GUARD_RUNS)
        kill_rest(keeper);
    keeper->has_ended = true;
    give_terminal(shared->command, getpgrp());
}
