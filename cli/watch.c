#include "watch.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "complain.h"
#include "print.h"

enum {
    WAIT_MS = 10000, /* of a watch; some proxies cut requests after 15 s */
    LOOK_MS = 1000,  /* where a watch would not tell all, and after failures */
    AFTER_SIZE = 24,
};

/* ---- one lock ------------------------------------------------------------ */

/* Whether the same client, or as many readers, hold the lock. */
static bool is_same_holder(const json_t *a, const json_t *b)
{
    return a != NULL && http_number(a, "status") == http_number(b, "status") &&
           http_number(a, "fencing_token") == http_number(b, "fencing_token") &&
           http_number(a, "readers") == http_number(b, "readers") &&
           strcmp(http_text(a, "owner"), http_text(b, "owner")) == 0;
}

static void print_change(const struct options *options, const char *resource,
                         const json_t *answer)
{
    char now[sizeof "2026-01-01T00:00:00Z"];
    time_t seconds = clock_wall_us() / US_PER_S;
    struct tm date;
    if (options->is_json) {
        print_json(answer);
        return;
    }
    if (gmtime_r(&seconds, &date) == NULL ||
        strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", &date) == 0)
        now[0] = '\0';
    (void)printf("%s ", now);
    if (http_number(answer, "status") == 0)
        print_holder(answer, false);
    else
        print_free(resource);
    (void)fflush(stdout); /* main looks for errors */
}

/*
 * How to ask for what comes after this answer. A watch does not tell when one
 * holder without a number follows another, or how many readers there are.
 */
static int64_t find_wait(const json_t *last, char after[AFTER_SIZE])
{
    int64_t number = http_number(last, "fencing_token");
    bool is_free = http_number(last, "status") != 0;
    if (is_free)
        (void)snprintf(after, AFTER_SIZE, "free");
    else
        (void)snprintf(after, AFTER_SIZE, "%" PRId64, number);
    return is_free || number != 0 ? WAIT_MS : LOOK_MS;
}

/* Prints each change from last on, which it frees. */
static enum verdict watch_lock(struct command *command, const char *resource,
                               json_t *last)
{
    enum verdict verdict = VERDICT_DONE;
    while (!print_is_cut()) {
        char after[AFTER_SIZE] = "";
        json_t *answer = NULL;
        int64_t began_us = clock_now_us();
        /* a server that does not wait, as it stops, may still tell */
        int64_t wait_ms =
            verdict_is_answer(verdict) ? find_wait(last, after) : 0;
        verdict = command_look(command, resource, after, wait_ms, &answer);
        if (verdict == VERDICT_REFUSED || verdict == VERDICT_DENIED) {
            json_decref(answer);
            break;
        }
        if (verdict_is_answer(verdict) && !is_same_holder(last, answer)) {
            print_change(command->options, resource, answer);
            json_decref(last);
            last = answer;
            continue;
        }
        json_decref(answer);
        (void)wake_wait(command->service.wake,
                        began_us + (int64_t)LOOK_MS * US_PER_MS);
    }
    json_decref(last);
    return verdict;
}

/* ---- all of them --------------------------------------------------------- */

/*
 * Prints who holds each. False: verdict is that of one of which nobody knows,
 * and not one is known.
 */
static bool look_at_all(struct command *command, json_t *last[NAMES_MAX],
                        enum verdict *verdict)
{
    const struct options *options = command->options;
    for (int i = 0; i < options->resources_count; i++) {
        *verdict =
            command_look(command, options->resources[i], "", 0, &last[i]);
        if (*verdict == VERDICT_REFUSED || *verdict == VERDICT_DENIED)
            return false;
        if (verdict_is_answer(*verdict))
            print_change(options, options->resources[i], last[i]);
    }
    return true;
}

/* A process of its own for each, as each waits for its own answer. It ends with
 * its parent. */
static pid_t fork_watch(struct command *command, int n, json_t *last)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child != 0)
        return child;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_OS_ERROR);
    const char *resource = command->options->resources[n];
    enum verdict verdict = watch_lock(command, resource, last);
    int status = complain_status(command->options, verdict);
    _exit(print_is_cut() ? EXIT_OS_ERROR : status);
}

/* When the first of them ends, all do. */
static int await_first(const pid_t children[], int count)
{
    int status = 0;
    pid_t ended = wait(&status);
    for (int i = 0; i < count; i++)
        if (children[i] > 0 && children[i] != ended)
            (void)kill(children[i], SIGTERM);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int watch_all(struct command *command, json_t *last[NAMES_MAX])
{
    int count = command->options->resources_count;
    pid_t children[NAMES_MAX] = {0};
    struct service *service = &command->service;
    const struct wake *wake = service->wake;
    struct credentials *credentials = service->credentials;
    (void)fflush(stdout);
    service_close(service); /* they must not share its connection */
    if (!service_open(service, command->options, wake, credentials)) {
        complain("out of memory");
        return EXIT_OS_ERROR;
    }
    for (int i = 0; i < count; i++) {
        children[i] = fork_watch(command, i, last[i]);
        if (children[i] < 0) {
            perror("redlockctl: fork");
            for (int n = 0; n < i; n++)
                (void)kill(children[n], SIGTERM);
            return EXIT_OS_ERROR;
        }
    }
    return await_first(children, count);
}

int command_watch(struct command *command)
{
    json_t *last[NAMES_MAX] = {NULL};
    enum verdict verdict = VERDICT_DONE;
    int status;
    if (!look_at_all(command, last, &verdict)) {
        status = complain_status(command->options, verdict);
    } else if (command->options->resources_count == 1) {
        verdict = watch_lock(command, command->options->resources[0], last[0]);
        last[0] = NULL;
        status = complain_status(command->options, verdict);
    } else {
        status = watch_all(command, last);
    }
    for (int i = 0; i < NAMES_MAX; i++)
        json_decref(last[i]);
    return status;
}
