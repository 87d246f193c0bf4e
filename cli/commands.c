#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../server/base/clock.h"
#include "complain.h"
#include "print.h"
#include "shown.h"

enum {
    TRY_US = 10 * US_PER_S, /* how long an extend or a release is tried */
    NUMBER_SIZE = 24,
    NODE_SIZE = 640, /* name=address */
    PAGE = 1000,
};

/* ---- printing ------------------------------------------------------------ */

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
            ? service_ask(service, "DELETE", path, 0, &answer)
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

enum verdict command_look(struct command *command, const char *resource,
                          const char *after, int64_t wait_ms, json_t **answer)
{
    char path[ID_MAX + 64], id[ID_MAX];
    size_t len = id_encode(id, span_of(resource));
    if (*after == '\0')
        (void)snprintf(path, sizeof path, "/locks/%.*s", (int)len, id);
    else
        (void)snprintf(path, sizeof path,
                       "/locks/%.*s?after=%s&wait_ms=%" PRId64, (int)len, id,
                       after, wait_ms);
    enum verdict verdict =
        service_ask(&command->service, "GET", path, wait_ms, answer);
    if (!verdict_is_answer(verdict))
        complain_of_lock(command->options, "%s", command->service.detail);
    return verdict;
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
    enum verdict verdict =
        service_ask(&command->service, "GET", path, 0, &answer);
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
        enum verdict verdict = command_look(command, resource, "", 0, &answer);
        bool is_known = verdict_is_answer(verdict);
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

/* Locks may change hands between two pages: each is printed only once. False:
 * no memory. */
static bool print_page(const struct command *command, const json_t *page,
                       json_t *seen)
{
    const json_t *locks = json_object_get(page, "locks");
    for (size_t i = 0; i < json_array_size(locks); i++) {
        json_t *lock = json_array_get(locks, i);
        const char *id = http_text(lock, "id");
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
                      ? service_ask(&command->service, "GET", path, 0, &page)
                      : VERDICT_STARVED;
        free(path);
        if (verdict == VERDICT_DONE && !print_page(command, page, seen))
            verdict = VERDICT_STARVED;
        cursor = http_text(page, "cursor");
    } while (verdict == VERDICT_DONE && *cursor);
    if (verdict == VERDICT_STARVED)
        complain("list: out of memory");
    else if (verdict != VERDICT_DONE)
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
        service_ask(&command->service, "GET", "/nodes", 0, &answer);
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
