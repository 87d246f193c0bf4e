/*
 * redlockctl's side of the guard: see guard.h.
 */
#ifndef REDLOCKCTL_KEEPER_H
#define REDLOCKCTL_KEEPER_H

#include "guard.h"

struct keeper {
    struct guard_setup setup;
    pid_t guard;
    int life_fd;        /* the guard reads the other end */
    bool was_late;      /* the guard did not act in time: we killed it */
    bool has_ended;     /* the guard, and with it the command */
    bool had_children;  /* before: not of the command, never killed */
    enum guard_end end; /* GUARD_RUNS: the guard was killed */
    int code;           /* GUARD_EXITED: of the command */
};

/*
 * Forks the guard, which waits for the lock. The setup needs no shared and no
 * life_fd. Call it before any library starts threads or opens connections: the
 * guard would keep these open. False: errno says why.
 */
bool keeper_start(struct keeper *keeper, const struct guard_setup *setup);

/* Starts the command under this lock. */
void keeper_run(struct keeper *keeper, const char *token, int64_t fencing_token,
                int64_t until_us);

/* The lock was extended. */
void keeper_extend(struct keeper *keeper, int64_t until_us);

/* The lock is lost: the command must end. */
void keeper_lose(struct keeper *keeper);

/* Passes a signal on to the command. */
void keeper_signal(const struct keeper *keeper, int signal);

/* When keeper_look must be called even if nothing happens. */
int64_t keeper_look_us(const struct keeper *keeper);

/*
 * Call it after a SIGCHLD. Sets has_ended, end and code if the guard has ended.
 * Kills a guard that does not act in time, and what a killed one has left.
 */
void keeper_look(struct keeper *keeper);

#endif
