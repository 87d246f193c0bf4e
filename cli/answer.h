/*
 * Whether a redlockd has answered, what its answer means for a call, and what
 * people are told of it.
 */
#ifndef REDLOCKCTL_ANSWER_H
#define REDLOCKCTL_ANSWER_H

#include "fetch.h"
#include "verdict.h"

enum { ANSWER_DETAIL_SIZE = 1024 };

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

/* In milliseconds, as a redlockd may answer it: up to 24 days. */
bool answer_is_duration(int64_t ms);

enum answer_verdict answer_judge(const struct fetch_answer *answer,
                                 const struct question *question);

/*
 * Whether what answered instead of a redlockd may be a gateway whose way to it
 * is closed for a moment: 4xx of its own, 501, 505.
 */
bool answer_may_pass(const struct fetch_answer *answer);

/*
 * Whether the call may have been done nevertheless: the answer was lost, or is
 * an error of a redlockd or of a gateway that has asked it. is_strict: what a
 * gateway says does not suffice.
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

#endif
