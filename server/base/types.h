/* SPDX-License-Identifier: MIT */
/*
 * Plain types that every module shares: bytes, numbers, units of time.
 */
#ifndef REDLOCKD_TYPES_H
#define REDLOCKD_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { US_PER_MS = 1000, US_PER_S = 1000000, MS_PER_S = 1000 };

/* value is 0 or more. */
static inline int64_t divide_up(int64_t value, int64_t unit)
{
    return value / unit + (value % unit > 0);
}

static inline int64_t at_least(int64_t value, int64_t least)
{
    return value > least ? value : least;
}

static inline int64_t at_most(int64_t value, int64_t most)
{
    return value < most ? value : most;
}

/* Borrowed bytes, not terminated by NUL. */
struct span {
    const char *ptr;
    size_t len;
};

static inline struct span span_of(const char *text)
{
    return (struct span){text, strlen(text)};
}

static inline bool span_is_same(struct span a, struct span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static inline bool span_is(struct span span, const char *text)
{
    return span_is_same(span, span_of(text));
}

static inline bool span_begins(struct span span, const char *with)
{
    size_t len = strlen(with);
    return span.len >= len && memcmp(span.ptr, with, len) == 0;
}

/* Whether both are the same, whatever the case of their ASCII letters. */
static inline bool span_is_like(struct span a, struct span b)
{
    return a.len == b.len &&
           (a.len == 0 || strncasecmp(a.ptr, b.ptr, a.len) == 0);
}

enum { DIGITS_MAX = 20 }; /* of a 64-bit number */

/*
 * The number in decimal, 0 or more, at the end of digits. By hand, because
 * printf would take a tenth of the time of a request.
 */
static inline struct span span_of_number(char digits[DIGITS_MAX],
                                         uint64_t number)
{
    size_t at = DIGITS_MAX;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return (struct span){digits + at, DIGITS_MAX - at};
}

/* The number that the text is; -1: it is not one of 1 to most decimal digits.
 */
static inline int64_t span_number(struct span text, size_t most)
{
    int64_t number = 0;
    if (text.len < 1 || text.len > most)
        return -1;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return -1;
        number = number * 10 + (text.ptr[i] - '0');
    }
    return number;
}

/* Whether it has only letters and digits of ASCII, and these others. */
static inline bool span_has_only(struct span text, const char *others)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_alphanumeric = (c >= '0' && c <= '9') ||
                               (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!is_alphanumeric && (c == '\0' || strchr(others, c) == NULL))
            return false;
    }
    return true;
}

/* What stands behind the first len bytes. */
static inline struct span span_behind(struct span text, size_t len)
{
    return (struct span){text.ptr + len, text.len - len};
}

/* Takes what stands in front of the next mark out of rest, and the mark; all
 * that is left if there is none. */
static inline struct span span_take(struct span *rest, char mark)
{
    const char *at_mark =
        rest->len > 0 ? memchr(rest->ptr, mark, rest->len) : NULL;
    struct span taken = *rest;
    rest->len = 0;
    if (at_mark != NULL) {
        *rest = span_behind(taken, (size_t)(at_mark - taken.ptr) + 1);
        taken.len -= rest->len + 1;
    }
    return taken;
}

/* Copies the bytes to to, which must have room; returns how many. */
static inline size_t span_copy(char *to, struct span from)
{
    if (from.len > 0)
        memcpy(to, from.ptr, from.len);
    return from.len;
}

/*
 * Copies what fits into size bytes with the NUL, as a text for people: what is
 * no printable character of ASCII becomes "?".
 */
static inline void span_print(char *to, size_t size, struct span from)
{
    size_t len = from.len < size - 1 ? from.len : size - 1;
    for (size_t i = 0; i < len; i++)
        to[i] = (char)(from.ptr[i] >= ' ' && from.ptr[i] <= '~' ? from.ptr[i]
                                                                : '?');
    to[len] = '\0';
}

/*
 * Makes room for wanted bytes; at least doubles the size when it grows. Keeps
 * the content. False: no memory, and nothing has changed.
 */
static inline bool bytes_reserve(char **bytes, size_t *size, size_t wanted)
{
    if (wanted <= *size)
        return true;
    size_t grown = *size * 2 > wanted ? *size * 2 : wanted;
    char *moved = realloc(*bytes, grown);
    if (moved == NULL)
        return false;
    *bytes = moved;
    *size = grown;
    return true;
}

enum { TEXTS_SMALL = 160 };

/* Two texts that are kept together: within the struct while they are short,
 * otherwise in memory of their own. Must not be moved meanwhile. */
struct texts {
    size_t first_len;
    size_t second_len;
    char *bytes;
    char small[TEXTS_SMALL];
};

/* Copies both. False: no memory, and nothing is kept. */
bool texts_keep(struct texts *texts, struct span first, struct span second);

/* Frees what texts_keep took. */
void texts_drop(struct texts *texts);

static inline struct span texts_first(const struct texts *texts)
{
    return (struct span){texts->bytes, texts->first_len};
}

static inline struct span texts_second(const struct texts *texts)
{
    return (struct span){texts->bytes + texts->first_len, texts->second_len};
}

/* The smallest of count numbers for rank 0, the largest for count - 1. Sorts
 * them in place. */
int64_t order_statistic(int64_t numbers[], int count, int rank);

#endif
