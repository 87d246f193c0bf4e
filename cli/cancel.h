/*
 * Signals that end redlockctl: while a lock is asked for, they are waited for
 * together with the answer, so that the lock can be given back.
 */
#ifndef REDLOCKCTL_CANCEL_H
#define REDLOCKCTL_CANCEL_H

#include <signal.h>

#include "replicas.h"

struct cancel {
    struct wake wake; /* ends the waiting when a signal has come */
    int caught;       /* the last one; 0: none */
};

/*
 * Blocks the signals that would end the process, but not those that it was told
 * to ignore, and catches them from now on. False: errno says why.
 */
bool cancel_open(struct cancel *cancel);

/* Adds the signal to the set, unless the process was told to ignore it, as
 * under nohup: a signalfd would deliver it nevertheless. */
void cancel_add_obeyed(sigset_t *set, int number);

/* Whether one has come. */
bool cancel_look(struct cancel *cancel);

/*
 * After ANSWER_STOPPED of an acquire, because of the signal *caught: gives
 * back what it may have got, within CANCEL_US. *caught is where the wake of the
 * service notes signals: another one ends this at once.
 */
enum { CANCEL_US = 2000000 };
void cancel_give_back(struct replicas *replicas, int *caught);

/* Ends as the signal would have ended a program that does not catch it. */
int cancel_die(int caught);

#endif
