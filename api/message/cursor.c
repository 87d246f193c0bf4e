#include "cursor.h"

#include <inttypes.h>
#include <stdio.h>

/* nodes in hex, the one it is at, its cursor, the hash of the servers in hex */
static const char form[] = "%" PRIx16 ".%d.%" PRId64 ".%016" PRIx64;

static const int64_t scan_max = INT64_C(999999999999999);

void cursor_encode(char text[CURSOR_MAX], const struct list_cursor *cursor)
{
    (void)snprintf(text, CURSOR_MAX, form, cursor->nodes, cursor->at,
                   cursor->scan, cursor->runs);
}

/*
 * There is one form: what is written again must be the same. So anything else
 * may be read as some other cursor.
 */
bool cursor_decode(struct span text, struct list_cursor *cursor)
{
    char copy[CURSOR_MAX], again[CURSOR_MAX];
    char *at = copy;
    if (text.len >= sizeof copy)
        return false;
    copy[span_copy(copy, text)] = '\0';
    cursor->nodes = (uint16_t)strtoul(at, &at, 16);
    at += *at == '.';
    cursor->at = (int)strtol(at, &at, 10);
    at += *at == '.';
    cursor->scan = strtoll(at, &at, 10);
    at += *at == '.';
    cursor->runs = strtoull(at, NULL, 16);
    cursor_encode(again, cursor);
    return cursor->nodes != 0 && cursor->at >= 0 && cursor->at <= 9 &&
           cursor->scan >= 0 && cursor->scan <= scan_max &&
           span_is(text, again);
}
