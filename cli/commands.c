#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../server/base/clock.h"
#include "complain.h"
#include "shown.h"

enum {
    WATCH_US = US_PER_S,    /* from one look of watch to the next */
    TRY_US = 10 * US_PER_S, /* how long an extend or a release is tried */
    NUMBER_SIZE = 24,
    NODE_SIZE = 640, /* name=address */
    PAGE = 1000,
};

/* ---- printing ------------------------------------------------------------ */

static void print_json(const json_t *body)
{
    (void)json_dumpf(body, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
    (void)putchar('\n');
    (void)fflush(stdout); /* main looks for errors */
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
    bool is_permit = command->options->limit > 0;
    print_quoted("REDLOCKD_RESOURCE",
                 is_permit ? lock->names : command->joined);
    if (is_permit)
        print_quoted("REDLOCKD_SLOT", lock->slots);
    print_quoted("REDLOCKD_TOKEN", lock->token);
    print_quoted("REDLOCKD_FENCING_TOKEN", number);
    (void)printf("# yours for %.1f s\n", left_s);
}

/* "order:42", or "order:42, order:43" if the lock covers several. */
static void print_names(const json_t *lock)
{
    const json_t *list = json_object_get(lock, "resources");
    shown_put(http_text(lock, "resource"), stdout);
    for (size_t i = 0; i < json_array_size(list); i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        shown_put(json_string_value(json_array_get(list, i)), stdout);
    }
}

/* One line. with_time: for how long it is still held, too. */
static void print_holder(const json_t *lock, bool with_time)
{
    const char *owner = http_text(lock, "owner");
    int64_t number = http_number(lock, "fencing_token");
    int64_t readers = http_number(lock, "readers");
    print_names(lock);
    (void)fputs(": held by ", stdout);
    if (readers > 0)
        (void)printf("%" PRId64 " reader%s", readers, readers == 1 ? "" : "s");
    else
        shown_put(*owner ? owner : "somebody", stdout);
    if (number != 0)
        (void)printf(", fencing token %" PRId64, number);
    if (with_time && json_object_get(lock, "remaining_ms") != NULL)
        (void)printf(", for %.1f s", (double)http_number(lock, "remaining_ms") /
                                         (double)MS_PER_S);
    if (with_time && http_number(lock, "waiters") > 0)
        (void)printf(", %" PRId64 " wait", http_number(lock, "waiters"));
    (void)putchar('\n');
}

/* ---- commands of the holder ---------------------------------------------- */

int command_acquire(struct command *command)
{
    const struct options *options = command->options;
    struct lock lock;
    json_t *answer = NULL;
    enum verdict verdict = service_acquire(&command->service, &lock, &answer);
    if (verdict == VERDICT_DONE && options->is_json)
        print_json(answer);
    else if (verdict == VERDICT_DONE)
        print_lock(command, &lock);
    json_decref(answer);
    if (verdict == VERDICT_DONE)
        return EXIT_SUCCESS;
    return complain_of_acquire(options, verdict, command->service.detail);
}

int command_extend(struct command *command)
{
    const struct options *options = command->options;
    struct lock lock = {.until_us = 0};
    json_t *answer = NULL;
    memcpy(lock.id, command->id, sizeof lock.id);
    (void)snprintf(lock.token, sizeof lock.token, "%s", options->token);
    enum verdict verdict = service_extend(&command->service, &lock,
                                          clock_now_us() + TRY_US, &answer);
    if (verdict != VERDICT_DONE)
        complain_of_lock(options, "%s", command->service.detail);
    else if (options->is_json)
        print_json(answer);
    else if (options->is_shared) /* it may have another token */
        print_lock(command, &lock);
    else
        (void)printf("yours for %.1f s\n",
                     (double)(lock.until_us - clock_now_us()) /
                         (double)US_PER_S);
    json_decref(answer);
    return complain_status(options, verdict);
}

int command_release(struct command *command)
{
    const struct options *options = command->options;
    struct service *service = &command->service;
    json_t *answer = NULL;
    bool is_repeated = false;
    char path[ID_MAX + 64];
    char whom[24] = "all";
    if (options->force != OPTIONS_ALL)
        (void)snprintf(whom, sizeof whom, "%" PRId64, options->force);
    (void)snprintf(path, sizeof path, "/locks/%s?force=%s", command->id, whom);
    enum verdict verdict =
        options->force != 0
            ? service_ask(service, "DELETE", path, &answer)
            : service_release(service, command->id, options->token,
                              clock_now_us() + TRY_US, &is_repeated, &answer);
    if (verdict != VERDICT_DONE)
        complain_of_lock(options, "%s", command->service.detail);
    else if (options->is_json)
        print_json(answer);
    json_decref(answer);
    /* an answer was lost, which may have said that the lock is released */
    if (verdict == VERDICT_LOST && is_repeated)
        return EXIT_SUCCESS;
    return complain_status(options, verdict);
}

/* ---- commands of everybody ----------------------------------------------- */

/*
 * Asks about one resource: each of several may have another holder.
 * VERDICT_DONE: it is held; VERDICT_LOST: it is free; else it has complained.
 */
static enum verdict ask_about(struct command *command, const char *resource,
                              json_t **answer)
{
    char path[ID_MAX + 16], id[ID_MAX];
    size_t len = id_encode(id, span_of(resource));
    (void)snprintf(path, sizeof path, "/locks/%.*s", (int)len, id);
    enum verdict verdict = service_ask(&command->service, "GET", path, answer);
    if (verdict != VERDICT_DONE && verdict != VERDICT_LOST)
        complain_of_lock(command->options, "%s", command->service.detail);
    return verdict;
}

static void print_free(const char *resource)
{
    shown_put(resource, stdout);
    (void)puts(": free");
}

/* One line for each slot that is held, and one for the others. */
static void print_pool(const json_t *pool)
{
    const json_t *slots = json_object_get(pool, "slots");
    const char *name = http_text(pool, "resource");
    for (size_t i = 0; i < json_array_size(slots); i++) {
        const json_t *slot = json_array_get(slots, i);
        shown_put(name, stdout);
        (void)printf("#%" PRId64, http_number(slot, "slot"));
        print_holder(slot, true);
    }
    shown_put(name, stdout);
    (void)printf(": %zu of %" PRId64 " free",
                 json_array_size(json_object_get(pool, "free")),
                 http_number(pool, "limit"));
    if (http_number(pool, "waiters") > 0)
        (void)printf(", %" PRId64 " wait", http_number(pool, "waiters"));
    (void)putchar('\n');
}

static int show_pool(struct command *command)
{
    const struct options *options = command->options;
    json_t *answer = NULL;
    char path[ID_MAX + 32];
    (void)snprintf(path, sizeof path, "/locks/%s?limit=%" PRId64, command->id,
                   options->limit);
    enum verdict verdict = service_ask(&command->service, "GET", path, &answer);
    bool is_held = json_array_size(json_object_get(answer, "slots")) > 0;
    if (verdict != VERDICT_DONE)
        complain_of_lock(options, "%s", command->service.detail);
    else if (options->is_json)
        print_json(answer);
    else
        print_pool(answer);
    json_decref(answer);
    return verdict == VERDICT_DONE && !is_held
               ? EXIT_NOT_ACQUIRED
               : complain_status(options, verdict);
}

int command_show(struct command *command)
{
    const struct options *options = command->options;
    int status = EXIT_NOT_ACQUIRED;
    if (options->limit > 0)
        return show_pool(command);
    for (int i = 0; i < options->resources_count; i++) {
        json_t *answer = NULL;
        const char *resource = options->resources[i];
        enum verdict verdict = ask_about(command, resource, &answer);
        bool is_known = verdict == VERDICT_DONE || verdict == VERDICT_LOST;
        if (is_known && options->is_json)
            print_json(answer);
        else if (verdict == VERDICT_DONE)
            print_holder(answer, true);
        else if (verdict == VERDICT_LOST)
            print_free(resource);
        json_decref(answer);
        if (!is_known)
            return complain_status(options, verdict);
        if (verdict == VERDICT_DONE)
            status = EXIT_SUCCESS;
    }
    return status;
}

/* free() it. NULL: no memory. */
static char *format_page(const char *prefix, const char *cursor)
{
    char *escaped_prefix = http_escape(prefix);
    char *escaped_cursor = http_escape(cursor);
    char *path = NULL;
    if (escaped_prefix == NULL || escaped_cursor == NULL ||
        asprintf(&path, "/locks?limit=%d%s%s%s%s", PAGE,
                 *prefix ? "&prefix=" : "", escaped_prefix,
                 *cursor ? "&cursor=" : "", escaped_cursor) < 0)
        path = NULL;
    free(escaped_prefix);
    free(escaped_cursor);
    return path;
}

/* Locks may change hands between two pages: each is printed only once. */
static void print_page(const struct command *command, const json_t *page,
                       json_t *seen)
{
    const json_t *locks = json_object_get(page, "locks");
    for (size_t i = 0; i < json_array_size(locks); i++) {
        json_t *lock = json_array_get(locks, i);
        const char *id = http_text(lock, "id");
        if (json_object_get(seen, id) != NULL ||
            json_object_set_new(seen, id, json_true()) != 0)
            continue;
        if (command->options->is_json)
            print_json(lock);
        else
            print_holder(lock, true);
    }
}

int command_list(struct command *command)
{
    const struct options *options = command->options;
    const char *prefix = options->prefix != NULL ? options->prefix : "";
    json_t *page = NULL, *seen = json_object();
    enum verdict verdict = VERDICT_DONE;
    const char *cursor = "";
    do {
        char *path = format_page(prefix, cursor);
        verdict = path != NULL
                      ? service_ask(&command->service, "GET", path, &page)
                      : VERDICT_STOPPED;
        free(path);
        if (verdict == VERDICT_DONE)
            print_page(command, page, seen);
        cursor = http_text(page, "cursor");
    } while (verdict == VERDICT_DONE && *cursor);
    if (verdict != VERDICT_DONE)
        complain("list: %s", command->service.detail);
    json_decref(page);
    json_decref(seen);
    return complain_status(options, verdict);
}

static void print_nodes(const json_t *answer)
{
    const json_t *nodes = json_object_get(answer, "nodes");
    (void)printf("%" PRId64 " of %" PRId64 " nodes vote; the quorum is %" PRId64
                 "\n",
                 http_number(answer, "voting"), http_number(answer, "total"),
                 http_number(answer, "quorum"));
    (void)printf("%-24s %-14s %9s  %s\n", "NODE", "STATE", "ROUNDTRIP",
                 "DETAIL");
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        const char *name = http_text(node, "node");
        const char *address = http_text(node, "address");
        bool has_name = *address != '\0' && strcmp(name, address) != 0;
        char shown[NODE_SIZE];
        char rtt[NUMBER_SIZE] = "-";
        if (json_object_get(node, "rtt_us") != NULL)
            (void)snprintf(rtt, sizeof rtt, "%.1f ms",
                           (double)http_number(node, "rtt_us") /
                               (double)US_PER_MS);
        (void)snprintf(shown, sizeof shown, "%s%s%s", name, has_name ? "=" : "",
                       has_name ? address : "");
        (void)printf("%-24s %-14s %9s  ", shown, http_text(node, "state"), rtt);
        shown_put(http_text(node, "detail"), stdout);
        (void)putchar('\n');
    }
}

int command_nodes(struct command *command)
{
    const struct options *options = command->options;
    json_t *answer = NULL;
    enum verdict verdict =
        service_ask(&command->service, "GET", "/nodes", &answer);
    bool has_quorum =
        http_number(answer, "voting") >= http_number(answer, "quorum");
    if (verdict != VERDICT_DONE)
        complain("nodes: %s", command->service.detail);
    else if (options->is_json)
        print_json(answer);
    else
        print_nodes(answer);
    json_decref(answer);
    return verdict == VERDICT_DONE && !has_quorum
               ? EXIT_NO_QUORUM
               : complain_status(options, verdict);
}

/* ---- watch --------------------------------------------------------------- */

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

/* Prints what has changed. Stops at the first resource that nobody knows of. */
static enum verdict ask_about_all(struct command *command,
                                  json_t *last[NAMES_MAX])
{
    const struct options *options = command->options;
    for (int i = 0; i < options->resources_count; i++) {
        json_t *answer = NULL;
        const char *resource = options->resources[i];
        enum verdict verdict = ask_about(command, resource, &answer);
        if (verdict != VERDICT_DONE && verdict != VERDICT_LOST) {
            json_decref(answer);
            return verdict;
        }
        if (!is_same_holder(last[i], answer))
            print_change(options, resource, answer);
        json_decref(last[i]);
        last[i] = answer;
    }
    return VERDICT_DONE;
}

int command_watch(struct command *command)
{
    json_t *last[NAMES_MAX] = {NULL};
    enum verdict verdict = VERDICT_DONE;
    while (!ferror(stdout)) {
        verdict = ask_about_all(command, last);
        if (verdict == VERDICT_REFUSED || verdict == VERDICT_DENIED)
            break;
        (void)wake_wait(command->service.wake, clock_now_us() + WATCH_US);
    }
    for (int i = 0; i < NAMES_MAX; i++)
        json_decref(last[i]);
    return complain_status(command->options, verdict);
}
