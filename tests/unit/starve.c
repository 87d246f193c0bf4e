/* SPDX-License-Identifier: MIT */
#include "starve.h"

#include <search.h>
#include <stdio.h>
#include <unistd.h>

/* These are the names that `ld --wrap` makes. */
#define REAL(name) __asm__("__real_" #name)
#define WRAP(name) __asm__("__wrap_" #name)

void *real_malloc(size_t size) REAL(malloc);
void *real_calloc(size_t count, size_t size) REAL(calloc);
void *real_realloc(void *old, size_t size) REAL(realloc);
void *real_reallocarray(void *old, size_t count, size_t size)
    REAL(reallocarray);
char *real_strdup(const char *text) REAL(strdup);
FILE *real_open_memstream(char **bytes, size_t *len) REAL(open_memstream);
void *real_tsearch(const void *key, void **root, comparison_fn_t fn)
    REAL(tsearch);
void *wrap_malloc(size_t size) WRAP(malloc);
void *wrap_calloc(size_t count, size_t size) WRAP(calloc);
void *wrap_realloc(void *old, size_t size) WRAP(realloc);
void *wrap_reallocarray(void *old, size_t count, size_t size)
    WRAP(reallocarray);
char *wrap_strdup(const char *text) WRAP(strdup);
FILE *wrap_open_memstream(char **bytes, size_t *len) WRAP(open_memstream);
void *wrap_tsearch(const void *key, void **root, comparison_fn_t fn)
    WRAP(tsearch);

struct starve starve;

static bool fails(void)
{
    if (starve.is_on && starve.takes_us > 0)
        usleep((useconds_t)starve.takes_us);
    return starve.is_on && starve.left > 0 && --starve.left == 0;
}

void *wrap_malloc(size_t size)
{
    return fails() ? NULL : real_malloc(size);
}

void *wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : real_calloc(count, size);
}

void *wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : real_realloc(old, size);
}

void *wrap_reallocarray(void *old, size_t count, size_t size)
{
    return fails() ? NULL : real_reallocarray(old, count, size);
}

char *wrap_strdup(const char *text)
{
    return fails() ? NULL : real_strdup(text);
}

FILE *wrap_open_memstream(char **bytes, size_t *len)
{
    return fails() ? NULL : real_open_memstream(bytes, len);
}

void *wrap_tsearch(const void *key, void **root, comparison_fn_t fn)
{
    return fails() ? NULL : real_tsearch(key, root, fn);
}
