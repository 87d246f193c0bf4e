/* SPDX-License-Identifier: MIT */
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../api/message/jsonload.h"
#include "../server/base/clock.h"
#include "complain.h"
#include "replicas.h"

enum {
    TRY_US = 10 * US_PER_S, /* how long an extend or a release is tried */
    NUMBER_SIZE = 24,
    NODE_SIZE = 640, /* name=address */
    PAGE = 1000,
    WAIT_MS = 10000,  /* of a watch; some proxies cut requests after 15 s */
    OTHER_CHECKS = 5, /* or it may be a gateway that has no way for a moment */
    LOOK_MS = 1000,   /* after failures, and if a watch ends early */
    READY_MS = 5000,  /* Docker and Kubernetes would wait for 30 s, or 1 s */
};

/* ---- printing ------------------------------------------------------------ */

static bool is_cut;

bool commands_are_cut(void)
{
    return is_cut || ferror(stdout);
}

/* An answer as it is, on a line. */
static void print_json(const json_t *body)
{
    is_cut |=
        json_dumpf(body, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER) != 0 &&
        jsonload_has_failed();
    (void)putchar('\n');
    (void)fflush(stdout);
}

/* "order:42", or "order:42, order:43" if the lock covers several; "exports,
 * slot 3" of a permit, "exports, slots 3 7" of one with two slots. */
static void print_names(const json_t *lock)
{
    const json_t *list = json_object_get(lock, "resources");
    shown_put(fetch_text(lock, "resource"), stdout);
    for (size_t i = 0; i < json_array_size(list); i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        shown_put(json_string_value(json_array_get(list, i)), stdout);
    }
    const json_t *slots = json_object_get(lock, "slots");
    for (size_t i = 0; i < json_array_size(slots); i++) {
        if (i == 0)
            (void)fputs(json_array_size(slots) > 1 ? ", slots" : ", slot",
                        stdout);
        (void)printf(" %" JSON_INTEGER_FORMAT,
                     json_integer_value(json_array_get(slots, i)));
    }
}

/* One line. with_time: for how long it is still held, too. */
static void print_holder(const json_t *lock, bool with_time)
{
    const char *owner = fetch_text(lock, "owner");
    int64_t number = fetch_number(lock, "fencing_token");
    int64_t readers = fetch_number(lock, "readers");
    print_names(lock);
    (void)fputs(": held by ", stdout);
    if (readers > 0)
        (void)printf("%" PRId64 " reader%s", readers, readers == 1 ? "" : "s");
    else
        shown_put(*owner ? owner : "somebody", stdout);
    if (number != 0)
        (void)printf(", fencing token %" PRId64, number);
    if (with_time && json_object_get(lock, "remaining_ms") != NULL)
        (void)printf(", for %.1f s",
                     (double)fetch_number(lock, "remaining_ms") /
                         (double)MS_PER_S);
    if (with_time && fetch_number(lock, "waiters") > 0)
        (void)printf(", %" PRId64 " wait", fetch_number(lock, "waiters"));
    (void)putchar('\n');
}

static bool is_held(const json_t *lock)
{
    return json_is_true(json_object_get(lock, "held"));
}

/* What a look has found: who holds the resource, or that it is free. */
static void print_state(const json_t *answer, const char *resource,
                        bool with_time)
{
    if (is_held(answer)) {
        print_holder(answer, with_time);
        return;
    }
    shown_put(resource, stdout);
    (void)puts(": free");
}

/* In quotes for a shell. */
static void print_quoted(const char *name, const char *text)
{
    (void)printf("export %s='", name);
    for (; *text; text++)
        if (*text == '\'')
            (void)fputs("'\\''", stdout);
        else
            (void)putchar(*text);
    (void)puts("'");
}

static void print_lock(const struct command *command, const struct lock *lock)
{
    char number[NUMBER_SIZE];
    double left_s =
        (double)(lock->until_us - clock_now_us()) / (double)US_PER_S;
    (void)snprintf(number, sizeof number, "%" PRId64, lock->fencing_token);
    const char *given = command->options->slots; /* of extend */
    print_quoted("REDLOCKD_RESOURCE", command->joined);
    /* empty: it is no permit, and the variable may be of another lock */
    print_quoted("REDLOCKD_SLOT", given != NULL ? given : lock->slots);
    print_quoted("REDLOCKD_TOKEN", lock->token);
    print_quoted("REDLOCKD_FENCING_TOKEN", number);
    (void)printf("# yours for %.1f s\n", left_s);
}

/*
 * After a call: prints its answer, as print does or as it is, or complains;
 * returns the exit status. print: NULL: nothing.
 */
static int end_call(const struct command *command, enum answer verdict,
                    void (*print)(const json_t *answer))
{
    const struct options *options = command->options;
    const json_t *answer = command->replicas.body;
    if (verdict != ANSWER_DONE)
        options_complain(options, "%s", command->replicas.detail);
    else if (options->is_json)
        print_json(answer);
    else if (print != NULL)
        print(answer);
    return answer_status(options, verdict);
}

/* About the command's lock or pool, or all. */
static enum answer commands_ask(struct command *command, const char *method,
                                const char *path, enum question_kind kind)
{
    bool has_id = kind != QUESTION_PAGE && kind != QUESTION_NODES;
    struct question question = {.request = {.method = method, .path = path},
                                .kind = kind,
                                .id = has_id ? command->id : NULL};
    return replicas_ask(&command->replicas, &question, 0);
}

/* ---- commands of the holder ---------------------------------------------- */

/* A lock whose token could not be told is of no use to anybody: gives it back.
 * main says what is wrong with the output. */
static int give_back_untold(struct command *command, const struct lock *lock)
{
    int error = errno;
    enum answer verdict =
        replicas_release(&command->replicas, lock->id, lock->token,
                         clock_now_us() + REPLICAS_GIVE_BACK_US);
    if (verdict != ANSWER_DONE && verdict != ANSWER_LOST)
        options_complain(
            command->options,
            "the lock was not released, and stays until it expires: %s",
            command->replicas.detail);
    errno = error; /* of the output */
    return EXIT_OS_ERROR;
}

static int command_acquire(struct command *command)
{
    const struct options *options = command->options;
    struct lock lock = {.until_us = 0};
    (void)signal(SIGPIPE, SIG_IGN); /* or it could not give the lock back */
    enum answer verdict = replicas_acquire(&command->replicas, &lock);
    if (wake_look(&command->wake)) {
        command->replicas.may_be_granted |= verdict == ANSWER_DONE;
        replicas_give_back(&command->replicas);
        return wake_die(command->wake.caught);
    }
    if (verdict != ANSWER_DONE)
        return answer_end_acquire(options, verdict, command->replicas.detail);
    if (options->is_json)
        print_json(command->replicas.body);
    else
        print_lock(command, &lock);
    if (fflush(stdout) != 0 || commands_are_cut())
        return give_back_untold(command, &lock);
    return EXIT_SUCCESS;
}

static int command_extend(struct command *command)
{
    const struct options *options = command->options;
    struct lock lock = {.until_us = 0};
    memcpy(lock.id, command->id, sizeof lock.id);
    (void)snprintf(lock.token, sizeof lock.token, "%s", options->token);
    enum answer verdict =
        replicas_extend(&command->replicas, &lock, clock_now_us() + TRY_US);
    if (verdict != ANSWER_DONE)
        options_complain(options, "%s", command->replicas.detail);
    else if (options->is_json)
        print_json(command->replicas.body);
    else if (options->is_shared) /* it may have another token */
        print_lock(command, &lock);
    else
        (void)printf("yours for %.1f s\n",
                     (double)(lock.until_us - clock_now_us()) /
                         (double)US_PER_S);
    return answer_status(options, verdict);
}

static int command_release(struct command *command)
{
    const struct options *options = command->options;
    struct replicas *replicas = &command->replicas;
    char path[ID_MAX + 64];
    char whom[24] = "all";
    if (options->force != OPTIONS_ALL)
        (void)snprintf(whom, sizeof whom, "%" PRId64, options->force);
    (void)snprintf(path, sizeof path, "/locks/%s?force=%s", command->id, whom);
    enum answer verdict =
        options->force != 0
            ? commands_ask(command, "DELETE", path, QUESTION_RELEASE)
            : replicas_release(replicas, command->id, options->token,
                               clock_now_us() + TRY_US);
    int status = end_call(command, verdict, NULL);
    /* an answer was lost, which may have said that the lock is released */
    return verdict == ANSWER_LOST && replicas->is_repeated ? EXIT_SUCCESS
                                                           : status;
}

/* ---- commands of everybody ----------------------------------------------- */

/*
 * Asks about one resource: each of several may have another holder. after: the
 * version that is known, to wait for another one for wait_ms; "": the answer
 * comes at once. ANSWER_DONE: it is held; ANSWER_LOST: it is free; else it
 * has complained.
 */
static enum answer look_at(struct command *command, const char *resource,
                           const char *after, int64_t wait_ms)
{
    char path[ID_MAX + 128], id[ID_MAX + 1];
    size_t len = id_encode(id, span_of(resource));
    if (*after == '\0')
        (void)snprintf(path, sizeof path, "/locks/%.*s", (int)len, id);
    else
        (void)snprintf(path, sizeof path,
                       "/locks/%.*s?after=%.64s&wait_ms=%" PRId64, (int)len, id,
                       after, wait_ms);
    id[len] = '\0';
    struct question question = {.request = {.method = "GET", .path = path},
                                .kind = QUESTION_LOCK,
                                .id = id};
    enum answer verdict = replicas_ask(&command->replicas, &question, wait_ms);
    if (!answer_is_look(verdict))
        options_complain(command->options, "%s", command->replicas.detail);
    bool is_free = verdict == ANSWER_DONE && !is_held(command->replicas.body);
    return is_free ? ANSWER_LOST : verdict;
}

/* One line for each slot that is held, and one for the others. */
static void print_pool(const json_t *pool)
{
    const json_t *slots = json_object_get(pool, "slots");
    const char *name = fetch_text(pool, "resource");
    for (size_t i = 0; i < json_array_size(slots); i++) {
        const json_t *slot = json_array_get(slots, i);
        shown_put(name, stdout);
        (void)printf(", slot %" PRId64, fetch_number(slot, "slot"));
        print_holder(slot, true);
    }
    shown_put(name, stdout);
    (void)printf(": %zu of %" PRId64 " free",
                 json_array_size(json_object_get(pool, "free")),
                 fetch_number(pool, "limit"));
    if (fetch_number(pool, "waiters") > 0)
        (void)printf(", %" PRId64 " wait", fetch_number(pool, "waiters"));
    (void)putchar('\n');
}

static int show_pool(struct command *command)
{
    const struct options *options = command->options;
    char path[ID_MAX + 32];
    (void)snprintf(path, sizeof path, "/pools/%s?limit=%" PRId64, command->id,
                   options->limit);
    enum answer verdict = commands_ask(command, "GET", path, QUESTION_POOL);
    bool has_slots =
        json_array_size(json_object_get(command->replicas.body, "slots")) > 0;
    int status = end_call(command, verdict, print_pool);
    return verdict == ANSWER_DONE && !has_slots ? EXIT_NOT_ACQUIRED : status;
}

static int command_show(struct command *command)
{
    const struct options *options = command->options;
    int status = EXIT_NOT_ACQUIRED;
    if (options->limit > 0)
        return show_pool(command);
    for (int i = 0; i < options->resources_count; i++) {
        const char *resource = options->resources[i];
        enum answer verdict = look_at(command, resource, "", 0);
        if (!answer_is_look(verdict))
            return answer_status(options, verdict);
        if (options->is_json)
            print_json(command->replicas.body);
        else
            print_state(command->replicas.body, resource, true);
        if (verdict == ANSWER_DONE)
            status = EXIT_SUCCESS;
    }
    return status;
}

/*
 * Asks for the first page, or for the one behind that of the last answer. A
 * cache that leaves out the query would repeat one page for ever.
 */
static enum answer ask_page(struct command *command, const char *prefix)
{
    struct replicas *replicas = &command->replicas;
    json_t *before = json_incref(replicas->body);
    const char *cursor = fetch_text(before, "next_cursor");
    char *escaped_prefix = fetch_escape(prefix), *path = NULL;
    char *escaped_cursor = fetch_escape(cursor);
    enum answer verdict = ANSWER_STARVED;
    if (escaped_prefix != NULL && escaped_cursor != NULL &&
        asprintf(&path, "/locks?page_size=%d%s%s%s%s", PAGE,
                 *prefix ? "&prefix=" : "", escaped_prefix,
                 *cursor ? "&cursor=" : "", escaped_cursor) >= 0) {
        verdict = commands_ask(command, "GET", path, QUESTION_PAGE);
        free(path);
    }
    if (verdict == ANSWER_DONE && *cursor != '\0' &&
        strcmp(fetch_text(replicas->body, "next_cursor"), cursor) == 0) {
        (void)snprintf(replicas->detail, sizeof replicas->detail,
                       "redlockd sent the same page of the list twice; is "
                       "there a cache in front of it?");
        verdict = ANSWER_NOT_REDLOCKD;
    }
    free(escaped_prefix);
    free(escaped_cursor);
    json_decref(before);
    return verdict;
}

/* Locks may change hands between two pages: each is printed only once. False:
 * no memory. */
static bool print_page(const struct command *command, json_t *seen)
{
    const json_t *locks = json_object_get(command->replicas.body, "locks");
    for (size_t i = 0; i < json_array_size(locks); i++) {
        json_t *lock = json_array_get(locks, i);
        const char *id = fetch_text(lock, "id");
        if (json_object_get(seen, id) != NULL)
            continue;
        if (json_object_set_new(seen, id, json_true()) != 0)
            return false;
        if (command->options->is_json)
            print_json(lock);
        else
            print_holder(lock, true);
    }
    return true;
}

static int command_list(struct command *command)
{
    const struct options *options = command->options;
    const char *prefix = options->prefix != NULL ? options->prefix : "";
    const struct replicas *replicas = &command->replicas;
    json_t *seen = json_object();
    enum answer verdict;
    do {
        verdict = ask_page(command, prefix);
        if (verdict == ANSWER_DONE && !print_page(command, seen))
            verdict = ANSWER_STARVED;
    } while (verdict == ANSWER_DONE &&
             *fetch_text(replicas->body, "next_cursor") != '\0');
    if (verdict != ANSWER_DONE)
        options_complain(options, "%s",
                         verdict == ANSWER_STARVED ? "out of memory"
                                                   : replicas->detail);
    json_decref(seen);
    return answer_status(options, verdict);
}

static void commands_print_nodes(const json_t *answer)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    (void)printf("%" PRId64 " of %" PRId64 " nodes vote; the quorum is %" PRId64
                 "\n",
                 fetch_number(answer, "voting"), fetch_number(answer, "total"),
                 fetch_number(answer, "quorum"));
    (void)printf("%-24s %-14s %9s  %s\n", "NODE", "STATE", "ROUNDTRIP",
                 "DETAIL");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        const char *name = fetch_text(node, "node");
        const char *address = fetch_text(node, "address");
        bool has_name = *address != '\0' && strcmp(name, address) != 0;
        char shown[NODE_SIZE];
        char rtt[NUMBER_SIZE] = "-";
        if (json_object_get(node, "rtt_us") != NULL)
            (void)snprintf(rtt, sizeof rtt, "%.1f ms",
                           (double)fetch_number(node, "rtt_us") /
                               (double)US_PER_MS);
        (void)snprintf(shown, sizeof shown, "%s%s%s", name, has_name ? "=" : "",
                       has_name ? address : "");
        (void)printf("%-24s %-14s %9s  ", shown, fetch_text(node, "state"),
                     rtt);
        shown_put(fetch_text(node, "detail"), stdout);
        (void)putchar('\n');
    }
}

static int command_nodes(struct command *command)
{
    enum answer verdict =
        commands_ask(command, "GET", "/nodes", QUESTION_NODES);
    const json_t *answer = command->replicas.body;
    bool has_quorum =
        fetch_number(answer, "voting") >= fetch_number(answer, "quorum");
    int status = end_call(command, verdict, commands_print_nodes);
    return verdict == ANSWER_DONE && !has_quorum ? EXIT_NO_QUORUM : status;
}

/*
 * A probe needs no more than the status, and sends neither token nor
 * certificate: so it asks the one server itself, not the service of all.
 */
static int command_ready(struct command *command)
{
    struct fetch_request request = {.method = "GET",
                                    .base = command->options->urls[0],
                                    .path = "/readyz",
                                    .bearer = "",
                                    .timeout_ms = READY_MS,
                                    .is_probe = true};
    struct fetch_answer answer;
    char server[SHOWN_URL_SIZE];
    fetch_call(command->replicas.fetch, &request, &answer);
    fetch_answer_free(&answer);
    shown_url(request.base, server);
    if (answer.is_starved)
        return complain("%s", answer.error) ? 0 : EXIT_OS_ERROR;
    if (answer.status == HTTP_OK && !answer.is_endless)
        return EXIT_SUCCESS;
    if (answer.status != 0)
        complain("%s is not ready: status %ld", server, answer.status);
    else
        complain("%s: %s", server,
                 answer.is_no_http
                     ? "the server at this address does not speak HTTP"
                     : answer.error);
    return EXIT_NOT_ACQUIRED;
}

/* ---- watching one lock --------------------------------------------------- */

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
    print_state(answer, resource, false);
    (void)fflush(stdout); /* main looks for errors */
}

/* Prints each change from last on, which it frees. */
static enum answer watch_lock(struct command *command, const char *resource,
                              json_t *last)
{
    enum answer verdict = ANSWER_DONE;
    int others = 0; /* responses of something else, in turn */
    while (!commands_are_cut()) {
        int64_t began_us = clock_now_us();
        const char *version = fetch_text(last, "version");
        /* a server that does not wait, as it stops, may still tell */
        const char *after = answer_is_look(verdict) ? version : "";
        verdict = look_at(command, resource, after, *after ? WAIT_MS : 0);
        json_t *answer = command->replicas.body;
        others = verdict == ANSWER_NOT_REDLOCKD ? others + 1 : 0;
        if (verdict == ANSWER_REFUSED || verdict == ANSWER_DENIED ||
            others >= OTHER_CHECKS)
            break;
        if (answer_is_look(verdict) &&
            strcmp(fetch_text(answer, "version"), version) != 0) {
            print_change(command->options, resource, answer);
            json_decref(last);
            last = json_incref(answer);
        } else {
            (void)wake_wait(command->replicas.wake,
                            began_us + (int64_t)LOOK_MS * US_PER_MS);
        }
    }
    json_decref(last);
    return verdict;
}

/* ---- watching all of them ------------------------------------------------ */

/*
 * Prints who holds each. False: verdict is that of one of which nobody knows,
 * and not one is known.
 */
static bool look_at_all(struct command *command, json_t *last[NAMES_MAX],
                        enum answer *verdict)
{
    const struct options *options = command->options;
    for (int i = 0; i < options->resources_count; i++) {
        *verdict = look_at(command, options->resources[i], "", 0);
        if (*verdict == ANSWER_REFUSED || *verdict == ANSWER_DENIED ||
            *verdict == ANSWER_NOT_REDLOCKD)
            return false;
        last[i] = json_incref(command->replicas.body);
        if (answer_is_look(*verdict))
            print_change(options, options->resources[i], last[i]);
    }
    return true;
}

/* False: errno says why. */
static bool fork_watch(struct command *command, const char *resource,
                       json_t *last)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child != 0)
        return child > 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(EXIT_OS_ERROR);
    enum answer verdict = watch_lock(command, resource, last);
    int status = answer_status(command->options, verdict);
    _exit(commands_are_cut() ? EXIT_OS_ERROR : status);
}

/*
 * A process of its own for each, as each waits for its own answer: to wait for
 * all of them in one, every call and its retries would need a second form that
 * does not block. When the first of them ends, all do, as they end with us.
 */
static int watch_all(struct command *command, json_t *last[NAMES_MAX])
{
    const struct options *options = command->options;
    struct replicas *replicas = &command->replicas;
    int ended = 0;
    (void)fflush(stdout);
    replicas_close(replicas); /* they must not share its connection */
    if (!replicas_open(replicas, options, &command->wake,
                       &command->credentials)) {
        complain("out of memory");
        return EXIT_OS_ERROR;
    }
    for (int i = 0; i < options->resources_count; i++)
        if (!fork_watch(command, options->resources[i], last[i])) {
            perror("redlockctl: fork");
            return EXIT_OS_ERROR;
        }
    (void)wait(&ended);
    return WIFEXITED(ended) ? WEXITSTATUS(ended)
                            : EXIT_SIGNALLED + WTERMSIG(ended);
}

static int command_watch(struct command *command)
{
    json_t *last[NAMES_MAX] = {NULL};
    enum answer verdict = ANSWER_DONE;
    int status;
    if (!look_at_all(command, last, &verdict)) {
        status = answer_status(command->options, verdict);
    } else if (command->options->resources_count == 1) {
        verdict = watch_lock(command, command->options->resources[0], last[0]);
        last[0] = NULL;
        status = answer_status(command->options, verdict);
    } else {
        status = watch_all(command, last);
    }
    for (int i = 0; i < NAMES_MAX; i++)
        json_decref(last[i]);
    return status;
}

/* ---- all of them --------------------------------------------------------- */

int commands_perform(struct command *command)
{
    static int (*const functions[COMMANDS])(struct command * command) = {
        [COMMAND_ACQUIRE] = command_acquire, [COMMAND_EXTEND] = command_extend,
        [COMMAND_RELEASE] = command_release, [COMMAND_SHOW] = command_show,
        [COMMAND_LIST] = command_list,       [COMMAND_NODES] = command_nodes,
        [COMMAND_WATCH] = command_watch,     [COMMAND_READY] = command_ready,
    };
    const struct options *options = command->options;
    struct replicas *replicas = &command->replicas;
    if (options->command_id == COMMAND_RUN)
        return command_run(command);
    if (options->command_id == COMMAND_ACQUIRE &&
        !wake_open(&command->wake, (const int[]){0}, NULL)) {
        complain("%s", strerror(errno));
        return EXIT_OS_ERROR;
    }
    if (!replicas_open(replicas, options, &command->wake,
                       &command->credentials)) {
        complain("out of memory");
        return EXIT_OS_ERROR;
    }
    int status = functions[options->command_id](command);
    int error = errno; /* of the output */
    replicas_close(replicas);
    errno = error;
    return status;
}
