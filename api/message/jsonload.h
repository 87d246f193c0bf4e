/* SPDX-License-Identifier: MIT */
/*
 * jansson's parser, which is left as soon as there is no memory.
 *
 * jansson ignores it if a byte of a string or a number finds no room, and goes
 * on without that byte. If it is the quote at the end of a string, it reads on
 * behind its buffer; in other places it aborts. So the parser never sees that
 * an allocation has failed: the allocation does not return (longjmp), and what
 * the parser has allocated is freed.
 */
#ifndef REDLOCKD_JSONLOAD_H
#define REDLOCKD_JSONLOAD_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;
struct json_error_t;

/* To be called before any other use of jansson, once or more often. */
void jsonload_init(void);

/* malloc; a failure is told by jsonload_has_failed, too. */
void *jsonload_allocate(size_t size);

/* Whether an allocation, of jansson or this, has failed since the last look. */
bool jsonload_has_failed(void);

/*
 * json_loadb. NULL: error has the reason; or, if jsonload_has_failed says so,
 * there is no memory.
 */
struct json_t *jsonload(const char *text, size_t len, size_t flags,
                        struct json_error_t *error);

#endif
