#include "keeper.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "family.h"

enum { KILL_AGAIN_NS = 2000000 };

bool keeper_start(struct keeper *keeper, const struct guard_setup *setup)
{
    int life[2];
    void *shared = mmap(NULL, sizeof *setup->shared, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *keeper = (struct keeper){.setup = *setup};
    keeper->setup.shared = shared;
    keeper->had_children = family_has_children();
    if (shared == MAP_FAILED || pipe2(life, O_CLOEXEC | O_NONBLOCK) != 0 ||
        prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return false;
    keeper->setup.life_fd = life[0];
    keeper->life_fd = life[1];
    keeper->guard = fork();
    if (keeper->guard < 0)
        return false;
    if (keeper->guard == 0) {
        (void)close(life[1]); /* or its end would never be read */
        guard_run(&keeper->setup);
        _exit(EXIT_SUCCESS);
    }
    (void)close(life[0]);
    return true;
}

/* If the pipe is full, the guard has bytes to read anyway. */
static void wake_guard(const struct keeper *keeper)
{
    ssize_t written = write(keeper->life_fd, "", 1);
    (void)written;
}

void keeper_run(struct keeper *keeper, const char *token, int64_t fencing_token,
                int64_t until_us)
{
    struct guard_shared *shared = keeper->setup.shared;
    size_t len = strlen(token);
    /* or the guard may read these while they are written */
    assert(shared->until_us == 0 && until_us > 0);
    assert(len > 0 && len < sizeof shared->token);
    memcpy(shared->token, token, len + 1);
    shared->fencing_token = fencing_token;
    shared->until_us = until_us;
    wake_guard(keeper);
}

/* The guard need not be woken: it reads until_us again before it acts on it. */
void keeper_extend(struct keeper *keeper, int64_t until_us)
{
    assert(keeper->setup.shared->until_us != 0); /* the command was started */
    keeper->setup.shared->until_us = until_us;
}

void keeper_lose(struct keeper *keeper)
{
    keeper->setup.shared->is_lost = true;
    wake_guard(keeper);
}

void keeper_signal(const struct keeper *keeper, int signal)
{
    assert(keeper->guard > 1); /* or it would go to groups */
    if (!keeper->has_ended)
        (void)kill(keeper->guard, signal); /* not reaped yet: it is ours */
}

/* By then the guard must have sent SIGKILL. */
int64_t keeper_look_us(const struct keeper *keeper)
{
    return keeper->setup.shared->until_us - keeper->setup.margin_us / 4 * 3;
}

/*
 * After the guard was killed: the kernel has killed its child, the command, and
 * what the command had started is now our child.
 */
static void kill_rest(struct keeper *keeper)
{
    const struct timespec pause = {0, KILL_AGAIN_NS};
    pid_t command = keeper->setup.shared->command;
    bool children = !keeper->had_children;
    while ((command != 0 && family_has_group(command)) ||
           (children && family_has_children())) {
        family_kill(command, children);
        while (waitpid(children ? -1 : -command, NULL, WNOHANG) > 0)
            ;
        (void)nanosleep(&pause, NULL);
    }
}

void keeper_look(struct keeper *keeper)
{
    const struct guard_shared *shared = keeper->setup.shared;
    if (keeper->has_ended)
        return;
    if (shared->until_us != 0 && clock_now_us() >= keeper_look_us(keeper)) {
        (void)kill(keeper->guard, SIGKILL);
        keeper->was_late = true;
    }
    if (waitpid(keeper->guard, NULL, WNOHANG) != keeper->guard)
        return;
    keeper->end = (enum guard_end)shared->end;
    keeper->code = shared->code;
    if (keeper->end == GUARD_RUNS)
        kill_rest(keeper);
    keeper->has_ended = true;
    family_give_terminal(shared->command, getpgrp());
}
