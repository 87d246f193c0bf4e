/* SPDX-License-Identifier: MIT */
/*
 * Whether a redlockd has answered, what its answer means for a call, and what
 * is reported of it.
 */
#ifndef REDLOCKCTL_ANSWER_H
#define REDLOCKCTL_ANSWER_H

#include "fetch.h"
#include "options.h"

enum { ANSWER_DETAIL_SIZE = 1024 };

/* What an answer means for a call. */
enum answer {
    ANSWER_DONE,
    ANSWER_HELD,    /* acquire: held by somebody else */
    ANSWER_LOST,    /* 404, or 409 not_owner */
    ANSWER_FINAL,   /* 409 max_hold_reached: the validity stands */
    ANSWER_REFUSED, /* another 4xx: it would not help to try again */
    ANSWER_DENIED,  /* 401 or 403 at each replica, or a wrong certificate */
    ANSWER_NOT_REDLOCKD, /* what answers is no redlockd */
    ANSWER_UNAVAILABLE,  /* no replica answered, or they have no quorum */
    ANSWER_STARVED,      /* no memory: the same, but for the exit status */
    ANSWER_STOPPED,      /* by wake */
};

/* What a call is answered with if it succeeds, as in openapi.yaml. */
enum question_kind {
    QUESTION_GRANT,
    QUESTION_RELEASE,
    QUESTION_LOCK,
    QUESTION_POOL,
    QUESTION_PAGE,
    QUESTION_NODES,
};

/* A request, and what tells its answer from that of another service. */
struct question {
    struct fetch_request request;
    enum question_kind kind;
    const char *id; /* of the lock or the pool; NULL: not known before */
};

/* Whether this replica could do nothing: another one, or a later try, may. */
static inline bool answer_may_others_help(enum answer verdict)
{
    return verdict == ANSWER_UNAVAILABLE || verdict == ANSWER_DENIED ||
           verdict == ANSWER_STARVED || verdict == ANSWER_NOT_REDLOCKD;
}

/* Whether a look was answered: the lock is held, or free. */
static inline bool answer_is_look(enum answer verdict)
{
    return verdict == ANSWER_DONE || verdict == ANSWER_LOST;
}

enum answer answer_judge(const struct fetch_answer *answer,
                         const struct question *question);

/*
 * Whether what answered instead of a redlockd may be a gateway whose way to it
 * is closed for a moment: 4xx of its own, 501, 505.
 */
bool answer_may_pass(const struct fetch_answer *answer);

/*
 * Whether the call may have been done, although no answer says so: the answer
 * was lost, nobody waited for it, or it is an error of a redlockd or of a
 * gateway that has asked it. is_strict: what a gateway says does not suffice.
 */
bool answer_may_be_done(const struct fetch_answer *answer, bool is_strict);

/*
 * Says in one line what is wrong: the answer to this question is no success.
 * advice: for those who are not known. is_shared: to a reader, whom other
 * readers do not keep out.
 */
void answer_explain(const struct fetch_answer *answer,
                    const struct question *question, const char *advice,
                    bool is_shared, char detail[ANSWER_DETAIL_SIZE]);

/* The exit status after a call. */
int answer_status(const struct options *options, enum answer verdict);

/*
 * Says why an acquire has failed, unless it was stopped; returns the exit
 * status.
 */
int answer_end_acquire(const struct options *options, enum answer verdict,
                       const char *detail);

#endif
