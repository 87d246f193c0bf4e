#include "child.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

void child_give_terminal(pid_t from, pid_t to)
{
    sigset_t ttou, before;
    if (tcgetpgrp(STDIN_FILENO) != from)
        return; /* in the background, or stdin is no terminal */
    (void)sigemptyset(&ttou);
    (void)sigaddset(&ttou, SIGTTOU); /* for who is in the background itself */
    (void)sigprocmask(SIG_BLOCK, &ttou, &before);
    (void)tcsetpgrp(STDIN_FILENO, to); /* fails if the group has just ended */
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
}

static bool set_environment(const struct guard_setup *setup)
{
    char number[DIGITS_MAX + 1];
    (void)snprintf(number, sizeof number, "%" PRId64,
                   setup->shared->fencing_token);
    return setenv("REDLOCKD_RESOURCE", setup->resource, 1) == 0 &&
           setenv("REDLOCKD_FENCING_TOKEN", number, 1) == 0 &&
           setenv("REDLOCKD_TOKEN", setup->shared->token, 1) == 0;
}

static _Noreturn void execute(const struct guard_setup *setup, pid_t guard)
{
    (void)setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != guard)
        _exit(EXIT_CANNOT_RUN); /* the guard was killed just now */
    child_give_terminal(setup->redlockctl_group, getpid());
    if (set_environment(setup)) {
        (void)sigprocmask(SIG_SETMASK, &setup->signals, NULL);
        (void)execvp(setup->command[0], setup->command);
    }
    int error = errno;
    (void)fprintf(stderr, "redlockctl: %s: %s\n", setup->command[0],
                  strerror(error));
    _exit(error == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

pid_t child_start(const struct guard_setup *setup)
{
    pid_t guard = getpid();
    pid_t pid = fork();
    if (pid == 0)
        execute(setup, guard);
    if (pid > 0)
        (void)setpgid(pid, pid); /* whoever of the two is first */
    return pid;
}
