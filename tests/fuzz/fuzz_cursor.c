/* SPDX-License-Identifier: MIT */
/*
 * A text as the cursor of a listing; then four numbers as a cursor. There is
 * one text for each cursor: what is accepted is written again as it was, and
 * what is written is accepted.
 */
#include <assert.h>
#include <string.h>

#include "../../api/message/http.h"
#include "input.h"

static void check_text(struct span text)
{
    struct list_cursor cursor;
    char again[CURSOR_MAX];
    if (!cursor_decode(text, &cursor))
        return;
    assert(cursor.nodes != 0 && cursor.scan >= 0);
    assert(cursor.at >= 0 && cursor.at <= NODES_MAX);
    cursor_encode(again, &cursor);
    assert(span_is(text, again));
    for (size_t i = 0; i < text.len; i++) /* it needs no escapes in a URL */
        assert(memchr("0123456789abcdef.", text.ptr[i], 17) != NULL);
}

static void check_cursor(const struct list_cursor *cursor)
{
    struct list_cursor found;
    char text[CURSOR_MAX];
    cursor_encode(text, cursor);
    assert(memchr(text, '\0', sizeof text) != NULL);
    if (!cursor_decode(span_of(text), &found)) {
        assert(cursor->nodes == 0 || cursor->at < 0 || cursor->at > 9 ||
               cursor->scan < 0 || cursor->scan > INT64_C(999999999999999));
        return;
    }
    assert(found.nodes == cursor->nodes && found.at == cursor->at);
    assert(found.scan == cursor->scan && found.runs == cursor->runs);
}

void fuzz(struct input *input)
{
    check_text(input_line(input));
    const struct list_cursor cursor = {
        .nodes = (uint16_t)input_number(input),
        .at = (int)input_number(input),
        .scan = input_number(input),
        .runs = (uint64_t)input_number(input),
    };
    check_cursor(&cursor);
}
