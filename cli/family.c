#include "family.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

bool family_has_group(pid_t group)
{
    siginfo_t info;
    assert(group > 1); /* 0 is our own group, and kill(-1) hits everybody */
    return waitid(P_PGID, (id_t)group, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool family_has_children(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void family_signal(pid_t group, int signal)
{
    if (family_has_group(group))
        (void)kill(-group, signal); /* all may just have ended */
}

void family_kill(pid_t group, bool children)
{
    char path[64];
    int pid = 0;
    if (group != 0)
        family_signal(group, SIGKILL);
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

void family_give_terminal(pid_t from, pid_t to)
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
