/*
 * Errors: a line on stderr, and an exit status; texts from other clients, as a
 * terminal may show them.
 */
#ifndef REDLOCKCTL_COMPLAIN_H
#define REDLOCKCTL_COMPLAIN_H

#include <stdio.h>

#include "options.h"

/* What an answer means for a call. */
enum verdict {
    VERDICT_DONE,
    VERDICT_HELD,    /* acquire: held by somebody else */
    VERDICT_LOST,    /* 404, or 409 not_owner */
    VERDICT_FINAL,   /* 409 max_hold_reached: the validity stands */
    VERDICT_REFUSED, /* another 4xx: it would not help to try again */
    VERDICT_DENIED,  /* 401 or 403 at each replica, or a wrong certificate */
    VERDICT_UNAVAILABLE, /* no replica answered, or they have no quorum */
    VERDICT_STARVED,     /* no memory: the same, but for the exit status */
    VERDICT_STOPPED,     /* by wake */
};

/* Whether a look was answered: the lock is held, or free. */
static inline bool verdict_is_answer(enum verdict verdict)
{
    return verdict == VERDICT_DONE || verdict == VERDICT_LOST;
}

/* Prints "redlockctl: " and the message to stderr, as one line. Always false.
 */
bool complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, with the resources in front of the message, or the command. */
void complain_of_lock(const struct options *options, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The exit status after a call. */
int complain_status(const struct options *options, enum verdict verdict);

/*
 * Says why an acquire has failed, unless it was stopped; returns the exit
 * status.
 */
int complain_of_acquire(const struct options *options, enum verdict verdict,
                        const char *detail);

enum { SHOWN_URL_SIZE = 240 };

/*
 * Writes a text. Characters that the terminal would obey are escaped, as in
 * \u009B. The caller checks ferror(out) once, at the end.
 */
void shown_put(const char *text, FILE *out);

/* Copies a URL without the user and the password in it; cuts a long one. */
void shown_url(const char *url, char out[SHOWN_URL_SIZE]);

#endif
