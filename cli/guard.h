/* Apart from run.c, which alone includes it: another process. */
/* SPDX-License-Identifier: MIT */
/*
 * The process that runs the command and kills it in time.
 *
 *   redlockctl ─fork─→ guard ─fork─→ command    in a process group of its own
 *     asks the            only looks at
 *     service             the clock
 *
 * The two watch each other, so that either may be stopped or killed:
 *
 *   redlockctl stops     the guard ends the command before the validity ends
 *   redlockctl is killed the guard reads the end of the pipe, ends the command
 *   the guard stops      redlockctl kills it before the validity ends
 *   the guard is killed  the kernel kills the command (PR_SET_PDEATHSIG), and
 *                        redlockctl whatever else there was
 *
 * The guard has its own process group: stopping the job in a shell does not
 * stop it.
 */
#ifndef REDLOCKCTL_GUARD_H
#define REDLOCKCTL_GUARD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "replicas.h"

/* Why the command has ended. */
enum guard_end {
    GUARD_RUNS,
    GUARD_EXITED,    /* by itself */
    GUARD_LOST,      /* redlockctl said that the lock is lost */
    GUARD_TIMED_OUT, /* the validity would have ended */
    GUARD_ORPHANED,  /* redlockctl was killed */
};

/* In memory that both processes see. */
struct guard_shared {
    /* redlockctl writes */
    _Atomic int64_t until_us; /* of clock_now_us(): the lock is ours */
    atomic_bool is_lost;
    struct lock lock;                 /* as it was when the command started, */
    char resource[NAMES_LEN_MAX + 1]; /* and its names */
    /* the guard writes */
    _Atomic pid_t command; /* and its process group; 0: none yet */
    atomic_int end;        /* enum guard_end; GUARD_RUNS at its end: killed */
    atomic_int code;       /* exit status, or EXIT_SIGNALLED + signal */
};

struct keeper {
    struct guard_shared *shared;
    char *const *command;
    int64_t grace_us;  /* from SIGTERM to SIGKILL */
    int64_t margin_us; /* from SIGKILL to the end of the validity */
    sigset_t signals;  /* of the command */
    pid_t group;       /* of redlockctl */
    int life[2];       /* a byte: look; end of file: redlockctl died */
    pid_t guard;
    bool was_late;     /* the guard did not act in time: we killed it */
    bool has_ended;    /* the guard, and with it the command */
    bool had_children; /* before: not of the command, never killed */
};

/* When SIGTERM must be sent, for a lock that is ours until until_us. */
static inline int64_t guard_term_us(const struct keeper *keeper,
                                    int64_t until_us)
{
    return until_us - keeper->margin_us - keeper->grace_us;
}

/*
 * Forks the guard, which waits for the lock. That comes before any library
 * starts threads or opens connections: the guard would keep these open.
 * signals: those of the command. False: errno says why.
 */
bool guard_start(struct keeper *keeper, const struct options *options,
                 const sigset_t *signals);

/* Lets it read what is shared. The first time it starts the command. */
void guard_wake(const struct keeper *keeper);

/*
 * Call it after a SIGCHLD. Sets has_ended if the guard has ended.
 * Kills a guard that does not act in time, and what a killed one has left.
 */
void guard_look(struct keeper *keeper);

/* When guard_look must be called even if nothing happens: by then the guard
 * must have sent SIGKILL. */
int64_t guard_look_us(const struct keeper *keeper);

#endif
