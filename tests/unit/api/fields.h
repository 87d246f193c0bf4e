/* SPDX-License-Identifier: MIT */
/*
 * Heads of requests for the tests.
 */
#ifndef REDLOCKD_TEST_FIELDS_H
#define REDLOCKD_TEST_FIELDS_H

#include "../../../api/message/head.h"

/* Takes these fields, as in "Host: x\nAccept: y", which must last. */
static inline void fields_add(struct head *head, const char *text)
{
    for (struct span rest = span_of(text); rest.len > 0;) {
        struct span line = span_take(&rest, '\n');
        const char *mark = memmem(line.ptr, line.len, ": ", 2);
        size_t len = (size_t)(mark - line.ptr);
        head_add(head, (struct span){line.ptr, len},
                 span_behind(line, len + 2));
    }
}

#endif
