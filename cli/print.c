#include "print.h"

#include <inttypes.h>
#include <stdio.h>

#include "../api/message/jsonload.h"
#include "../server/base/types.h"
#include "shown.h"

static bool is_cut;

bool print_is_cut(void)
{
    return is_cut || ferror(stdout);
}

void print_json(const json_t *body)
{
    is_cut |=
        json_dumpf(body, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER) != 0 &&
        jsonload_has_failed();
    (void)putchar('\n');
    (void)fflush(stdout);
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

void print_holder(const json_t *lock, bool with_time)
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

void print_free(const char *resource)
{
    shown_put(resource, stdout);
    (void)puts(": free");
}
