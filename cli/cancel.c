#include "cancel.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "verdict.h"

static const int ending[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                             SIGUSR1, SIGUSR2, SIGALRM};

bool cancel_look(struct cancel *cancel)
{
    struct signalfd_siginfo info;
    while (read(cancel->wake.fds[0], &info, sizeof info) == sizeof info)
        cancel->caught = (int)info.ssi_signo;
    return cancel->caught != 0;
}

static bool on_ready(void *ctx)
{
    return cancel_look(ctx);
}

void cancel_add_obeyed(sigset_t *set, int number)
{
    struct sigaction before;
    (void)sigaction(number, NULL, &before);
    if (before.sa_handler != SIG_IGN)
        (void)sigaddset(set, number);
}

bool cancel_open(struct cancel *cancel)
{
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof ending / sizeof *ending; i++)
        cancel_add_obeyed(&set, ending[i]);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    *cancel = (struct cancel){
        .wake = {.fds = {signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)},
                 .count = 1,
                 .on_ready = on_ready,
                 .ctx = cancel},
    };
    return cancel->wake.fds[0] >= 0;
}

void cancel_give_back(struct replicas *replicas, int *caught)
{
    int first = *caught;
    *caught = 0;
    bool is_done = replicas_give_back(replicas, clock_now_us() + CANCEL_US);
    if (!is_done)
        verdict_complain(replicas->options,
                         "cancelled, and not released: it may be held until "
                         "its TTL ends");
    if (*caught == 0)
        *caught = first;
}

int cancel_die(int caught)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, caught);
    (void)signal(caught, SIG_DFL);
    (void)kill(getpid(), caught);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    return EXIT_SIGNALLED + caught;
}
