#include "cursor.h"

#include <inttypes.h>
#include <stdio.h>

/* nodes in hex, the one it is at, its cursor, the hash of the servers in hex */
static const char form[] = "%" PRIx16 ".%d.%" PRId64 ".%016" PRIx64;

void cursor_encode(char text[CURSOR_MAX], const struct list_cursor *cursor)
{
    (void)snprintf(text, CURSOR_MAX, form, cursor->nodes, cursor->at,
                   cursor->scan, cursor->runs);
}

/* Takes what stands in front of the next '.' off rest. */
static struct span next_part(struct span *rest)
{
    const char *dot = rest->len > 0 ? memchr(rest->ptr, '.', rest->len) : NULL;
    size_t len = dot != NULL ? (size_t)(dot - rest->ptr) : rest->len;
    size_t taken = dot != NULL ? len + 1 : len;
    struct span part = {rest->ptr, len};
    *rest = (struct span){rest->ptr + taken, rest->len - taken};
    return part;
}

/* Of at most 16 digits; anything else becomes some other number. */
static uint64_t read_hex(struct span text)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t number = 0;
    for (size_t i = 0; i < text.len && i < 16; i++) {
        const char *at = memchr(digits, text.ptr[i], sizeof digits - 1);
        number = number << 4 | (uint64_t)(at != NULL ? at - digits : 0);
    }
    return number;
}

/* There is one form: what is written again must be the same. */
bool cursor_decode(struct span text, struct list_cursor *cursor)
{
    char again[CURSOR_MAX];
    struct span rest = text;
    cursor->nodes = (uint16_t)read_hex(next_part(&rest));
    cursor->at = (int)span_number(next_part(&rest), 1);
    cursor->scan = span_number(next_part(&rest), 15);
    cursor->runs = read_hex(next_part(&rest));
    cursor_encode(again, cursor);
    return cursor->nodes != 0 && cursor->at >= 0 && cursor->scan >= 0 &&
           span_is(text, again);
}
