/*
 * What an answer means for a call, and for the exit status of the command.
 */
#ifndef REDLOCKCTL_VERDICT_H
#define REDLOCKCTL_VERDICT_H

#include <stdbool.h>

#include "options.h"

/* What an answer means for a call. */
enum answer_verdict {
    ANSWER_DONE,
    ANSWER_HELD,        /* acquire: held by somebody else */
    ANSWER_LOST,        /* 404, or 409 not_owner */
    ANSWER_FINAL,       /* 409 max_hold_reached: the validity stands */
    ANSWER_REFUSED,     /* another 4xx: it would not help to try again */
    ANSWER_DENIED,      /* 401 or 403 at each replica, or a wrong certificate */
    ANSWER_FOREIGN,     /* what answers is no redlockd */
    ANSWER_UNAVAILABLE, /* no replica answered, or they have no quorum */
    ANSWER_STARVED,     /* no memory: the same, but for the exit status */
    ANSWER_STOPPED,     /* by wake */
};

/* Whether this replica could do nothing: another one, or a later try, may. */
static inline bool verdict_may_others_help(enum answer_verdict verdict)
{
    return verdict == ANSWER_UNAVAILABLE || verdict == ANSWER_DENIED ||
           verdict == ANSWER_STARVED || verdict == ANSWER_FOREIGN;
}

/* Whether a look was answered: the lock is held, or free. */
static inline bool verdict_is_answer(enum answer_verdict verdict)
{
    return verdict == ANSWER_DONE || verdict == ANSWER_LOST;
}

/* Prints a message as complain does, with the resources in front of it, or the
 * command. */
void verdict_complain(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit status after a call. */
int verdict_status(const struct options *options, enum answer_verdict verdict);

/*
 * Says why an acquire has failed, unless it was stopped; returns the exit
 * status.
 */
int verdict_end_acquire(const struct options *options,
                        enum answer_verdict verdict, const char *detail);

#endif
