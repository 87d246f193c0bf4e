/* SPDX-License-Identifier: MIT */
#include "answer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../server/base/types.h"
#include "complain.h"

#define PROBLEM_TYPE "urn:redlockd:problem:"

enum { CAME_SIZE = 400 };

/* ---- is it ours? --------------------------------------------------------- */

static bool has_text(const json_t *body, const char *name)
{
    return *fetch_text(body, name) != '\0';
}

static bool has_integer(const json_t *body, const char *name, int64_t least)
{
    const json_t *value = json_object_get(body, name);
    return json_is_integer(value) && json_integer_value(value) >= least;
}

static bool has_list(const json_t *body, const char *name)
{
    return json_is_array(json_object_get(body, name));
}

/* In milliseconds, up to 24 days. */
static bool has_duration(const json_t *body, const char *name)
{
    return has_integer(body, name, 0) && fetch_number(body, name) <= INT32_MAX;
}

/* It is sent back in a header, as it came. */
static bool answer_is_token(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (*text < '!' || *text > '~')
            return false;
    return true;
}

static bool is_grant(const json_t *body)
{
    return answer_is_token(fetch_text(body, "token")) &&
           has_integer(body, "fencing_token", 1) &&
           has_integer(body, "validity_ms", 1) &&
           has_duration(body, "validity_ms") &&
           has_duration(body, "elapsed_ms") &&
           has_duration(body, "renew_after_ms");
}

static bool is_page(const json_t *body)
{
    const json_t *locks = json_object_get(body, "locks");
    const json_t *cursor = json_object_get(body, "next_cursor");
    if (!json_is_array(locks) || (cursor != NULL && !json_is_string(cursor)))
        return false;
    for (size_t i = 0; i < json_array_size(locks); i++) {
        const json_t *lock = json_array_get(locks, i);
        if (!has_text(lock, "id") ||
            !json_is_true(json_object_get(lock, "held")))
            return false;
    }
    return true;
}

static bool is_about(const json_t *body, const char *id)
{
    const char *reported = fetch_text(body, "id");
    return id == NULL ? answer_is_token(reported) : strcmp(reported, id) == 0;
}

/* Whether it has what an answer of a redlockd has. */
static bool is_success(const json_t *body, const struct question *question)
{
    switch (question->kind) {
    case QUESTION_GRANT:
        return is_about(body, question->id) && is_grant(body);
    case QUESTION_RELEASE:
        return is_about(body, question->id) &&
               json_is_true(json_object_get(body, "released"));
    case QUESTION_LOCK:
        return is_about(body, question->id) && has_text(body, "version") &&
               json_is_boolean(json_object_get(body, "held"));
    case QUESTION_POOL:
        return is_about(body, question->id) && has_integer(body, "limit", 1) &&
               has_list(body, "slots") && has_list(body, "free");
    case QUESTION_PAGE:
        return is_page(body);
    case QUESTION_NODES:
        break;
    }
    return has_integer(body, "voting", 0) && has_integer(body, "quorum", 1) &&
           has_integer(body, "total", 1) && has_list(body, "nodes");
}

static bool is_problem(const json_t *body)
{
    const char *code = fetch_text(body, "code"),
               *type = fetch_text(body, "type");
    return *code != '\0' &&
           strncmp(type, PROBLEM_TYPE, sizeof PROBLEM_TYPE - 1) == 0 &&
           strcmp(type + sizeof PROBLEM_TYPE - 1, code) == 0;
}

static bool is_good(long status)
{
    return status >= 200 && status < 300;
}

/* ---- what it means ------------------------------------------------------- */

/* Of something else. */
static enum answer verdict_of_other(long status)
{
    bool is_busy = status == HTTP_TOO_MANY || status == 408 || status == 425;
    bool is_broken = status >= 500 && status != 501 && status != 505;
    return is_busy || is_broken ? ANSWER_UNAVAILABLE : ANSWER_NOT_REDLOCKD;
}

static enum answer verdict_of_problem(long status, const char *code)
{
    if (status == HTTP_TOO_MANY || status >= 500)
        return ANSWER_UNAVAILABLE;
    if (strcmp(code, "lock_held") == 0 || strcmp(code, "too_many_readers") == 0)
        return ANSWER_HELD;
    if (strcmp(code, "max_hold_reached") == 0)
        return ANSWER_FINAL;
    if (strcmp(code, "not_owner") == 0 || strcmp(code, "lock_not_found") == 0)
        return ANSWER_LOST;
    return ANSWER_REFUSED;
}

enum answer answer_judge(const struct fetch_answer *answer,
                         const struct question *question)
{
    if (answer->is_stopped)
        return ANSWER_STOPPED;
    if (answer->is_starved)
        return ANSWER_STARVED;
    if (answer->is_no_http || answer->is_no_tls || answer->is_endless)
        return ANSWER_NOT_REDLOCKD;
    /* a gateway in front may check identities, too */
    if (answer->is_untrusted || answer->status == HTTP_UNAUTHORIZED ||
        answer->status == HTTP_FORBIDDEN)
        return ANSWER_DENIED;
    if (answer->status == 0)
        return ANSWER_UNAVAILABLE;
    if (is_good(answer->status))
        return is_success(answer->body, question) ? ANSWER_DONE
                                                  : ANSWER_NOT_REDLOCKD;
    return is_problem(answer->body)
               ? verdict_of_problem(answer->status,
                                    fetch_text(answer->body, "code"))
               : verdict_of_other(answer->status);
}

bool answer_may_pass(const struct fetch_answer *answer)
{
    return answer->status >= 400;
}

bool answer_may_be_done(const struct fetch_answer *answer, bool is_strict)
{
    if (answer->is_unsent || answer->status == HTTP_TOO_MANY ||
        answer->status == HTTP_UNAUTHORIZED || answer->status == HTTP_FORBIDDEN)
        return false;
    if (answer->status == 0 || is_good(answer->status) ||
        is_problem(answer->body))
        return true;
    /* with a 503 it says that it has asked nobody */
    return !is_strict && answer->status != HTTP_NO_SERVICE;
}

/* ---- what is reported --------------------------------------------------- */

/* What something else answered: status, type, where to, the first line. */
static void report_came(const struct fetch_answer *answer, char came[CAME_SIZE])
{
    char where[SHOWN_URL_SIZE] = "";
    if (*answer->location)
        shown_url(answer->location, where);
    where[strcspn(where, "?#")] = '\0'; /* may hold secrets */
    int len = answer->is_no_http
                  ? snprintf(came, CAME_SIZE, "without HTTP")
                  : snprintf(came, CAME_SIZE, "with status %ld%s%s%s%s%s",
                             answer->status, *where ? " to " : "", where,
                             *answer->type ? ", " : "", answer->type,
                             answer->is_endless ? ", endless" : "");
    if (*answer->line)
        (void)snprintf(came + len, CAME_SIZE - (size_t)len, ": \"%s\"",
                       answer->line);
    else if (!answer->is_no_http && answer->len == 0)
        (void)snprintf(came + len, CAME_SIZE - (size_t)len, ", empty");
}

static void explain_other(const struct fetch_answer *answer,
                          const char *replica, char detail[ANSWER_DETAIL_SIZE])
{
    char came[CAME_SIZE];
    const char *advice = "";
    bool is_other = answer->is_no_http || answer->is_endless ||
                    is_good(answer->status) ||
                    verdict_of_other(answer->status) == ANSWER_NOT_REDLOCKD;
    if (answer->is_no_http && answer->line[0] == 0x15) /* an alert */
        advice = "; the server speaks TLS: write https://";
    else if (is_other)
        advice = "; is it the URL of a redlockd?";
    report_came(answer, came);
    (void)snprintf(detail, ANSWER_DETAIL_SIZE,
                   "%s responded %s, which redlockd never does%s", replica,
                   came, advice);
}

static void explain_denial(const struct fetch_answer *answer,
                           const char *replica, const char *advice,
                           char detail[ANSWER_DETAIL_SIZE])
{
    char came[CAME_SIZE];
    const char *reported = fetch_text(answer->body, "detail");
    bool is_unknown = answer->status == HTTP_UNAUTHORIZED;
    if (!*reported) {
        report_came(answer, came);
        reported = came;
    }
    (void)snprintf(detail, ANSWER_DETAIL_SIZE, "%s: %s (%ld)%s%s%s%s", replica,
                   is_unknown ? "not authenticated" : "not allowed",
                   answer->status, reported == came ? ": responded " : ": ",
                   reported, is_unknown ? "; " : "", is_unknown ? advice : "");
}

static void explain_held(const json_t *holder, bool is_shared,
                         char detail[ANSWER_DETAIL_SIZE])
{
    const char *owner = fetch_text(holder, "owner");
    int64_t readers = fetch_number(holder, "readers");
    if (readers > 0)
        (void)snprintf(detail, ANSWER_DETAIL_SIZE,
                       "%" PRId64 " reader%s the lock%s", readers,
                       readers == 1 ? " holds" : "s hold",
                       is_shared ? ", and others wait for it" : "");
    else
        (void)snprintf(detail, ANSWER_DETAIL_SIZE,
                       "somebody else %s%s%sholds the lock", *owner ? "(" : "",
                       owner, *owner ? ") " : "");
}

void answer_explain(const struct fetch_answer *answer,
                    const struct question *question, const char *advice,
                    bool is_shared, char detail[ANSWER_DETAIL_SIZE])
{
    const char *reported = fetch_text(answer->body, "detail");
    const json_t *holder = json_object_get(answer->body, "held_by");
    char replica[SHOWN_URL_SIZE];
    shown_url(question->request.base, replica);
    if (answer->is_starved)
        (void)snprintf(detail, ANSWER_DETAIL_SIZE, "%s", answer->error);
    else if (answer->is_no_tls)
        (void)snprintf(detail, ANSWER_DETAIL_SIZE,
                       "%s does not speak TLS (%s); is it http://, or another "
                       "port?",
                       replica, answer->error);
    else if (answer->status == 0 && !answer->is_no_http)
        (void)snprintf(detail, ANSWER_DETAIL_SIZE, "%s: %s%s", replica,
                       answer->error,
                       answer->is_closed
                           ? "; is it the right port, and http:// or https://?"
                           : "");
    else if (!answer->is_endless && (answer->status == HTTP_UNAUTHORIZED ||
                                     answer->status == HTTP_FORBIDDEN))
        explain_denial(answer, replica, advice, detail);
    else if (!is_problem(answer->body))
        explain_other(answer, replica, detail);
    else if (holder != NULL)
        explain_held(holder, is_shared, detail);
    else
        (void)snprintf(detail, ANSWER_DETAIL_SIZE, "%s%s%s",
                       *reported ? "" : replica, *reported ? "" : ": ",
                       *reported ? reported : fetch_text(answer->body, "code"));
}

/* ---- the exit status ----------------------------------------------------- */

int answer_status(const struct options *options, enum answer verdict)
{
    switch (verdict) {
    case ANSWER_DONE:
        return 0;
    case ANSWER_HELD:
        return (int)options->conflict_code;
    case ANSWER_FINAL:
        return EXIT_NOT_ACQUIRED;
    case ANSWER_LOST:
        return EXIT_LOCK_LOST;
    case ANSWER_REFUSED:
        return EXIT_USAGE_ERROR;
    case ANSWER_DENIED:
        return EXIT_DENIED;
    case ANSWER_NOT_REDLOCKD:
        return EXIT_NOT_REDLOCKD;
    case ANSWER_UNAVAILABLE:
        return EXIT_NO_QUORUM;
    case ANSWER_STARVED:
    case ANSWER_STOPPED:
        break;
    }
    return EXIT_OS_ERROR;
}

int answer_end_acquire(const struct options *options, enum answer verdict,
                       const char *detail)
{
    bool has_waited = verdict == ANSWER_HELD || verdict == ANSWER_UNAVAILABLE ||
                      verdict == ANSWER_STARVED;
    double waited_s = (double)options->wait_ms / (double)MS_PER_S;
    if (has_waited && options->wait_ms > 0)
        options_complain(options, "%s; gave up after %g s", detail, waited_s);
    else if (verdict != ANSWER_STOPPED)
        options_complain(options, "%s", detail);
    return answer_status(options, verdict);
}
