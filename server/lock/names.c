/* SPDX-License-Identifier: MIT */
#include "names.h"

#include <assert.h>

enum { SEPARATOR = '\n' };

struct span names_next(struct span *rest)
{
    return span_take(rest, SEPARATOR);
}

int names_count(struct span names)
{
    int count = 1;
    for (; names.len > 0 && names_are_several(names); count++)
        (void)names_next(&names);
    return count;
}

bool names_are_several(struct span names)
{
    return memchr(names.ptr, SEPARATOR, names.len) != NULL;
}

int names_compare(const void *left, const void *right)
{
    const struct span *a = left, *b = right;
    int order = memcmp(a->ptr, b->ptr, a->len < b->len ? a->len : b->len);
    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

size_t names_join(char *to, struct span *list, int count)
{
    size_t len = 0;
    qsort(list, (size_t)count, sizeof *list, names_compare);
    for (int i = 0; i < count; i++) {
        if (i > 0)
            to[len++] = SEPARATOR;
        len += span_copy(to + len, list[i]);
    }
    return len;
}

bool names_are_sorted(struct span names)
{
    struct span rest = names;
    struct span last = names_next(&rest);
    /* counted: an empty name at the end leaves no rest */
    for (int left = names_count(names); left > 1; left--) {
        struct span next = names_next(&rest);
        if (names_compare(&last, &next) >= 0)
            return false;
        last = next;
    }
    return true;
}

bool names_overlap(struct span left, struct span right)
{
    struct span one = names_next(&left), other = names_next(&right);
    int order;
    while ((order = names_compare(&one, &other)) != 0) {
        struct span *rest = order < 0 ? &left : &right;
        if (rest->len == 0)
            return false;
        *(order < 0 ? &one : &other) = names_next(rest);
    }
    return true;
}

size_t names_put_slot(char *to, struct span pool, int slot)
{
    char digits[DIGITS_MAX];
    size_t len = span_copy(to, pool);
    assert(slot >= 0 && slot < POOL_SLOTS_MAX);
    len += span_copy(to + len, span_of(NAMES_SLOT));
    return len + span_copy(to + len, span_of_number(digits, (uint64_t)slot));
}

int names_slot(struct span name, struct span *pool)
{
    enum { DIGITS = 3 };
    size_t len = name.len;
    while (len > 0 && name.ptr[len - 1] >= '0' && name.ptr[len - 1] <= '9')
        len--;
    struct span digits = span_behind(name, len);
    if (len == 0 || name.ptr[len - 1] != NAMES_SLOT[0] ||
        (digits.len > 1 && digits.ptr[0] == '0'))
        return -1;
    *pool = (struct span){name.ptr, len - 1};
    return (int)span_number(digits, DIGITS);
}

int names_slots(struct span names, struct span *pool, int slots[NAMES_MAX])
{
    int count = 0;
    while (names.len > 0) {
        struct span one = {NULL, 0};
        int slot = names_slot(names_next(&names), &one), at = count;
        if (slot < 0 || count == NAMES_MAX ||
            (count > 0 && names_compare(&one, pool) != 0))
            return 0;
        for (; at > 0 && slots[at - 1] > slot; at--)
            slots[at] = slots[at - 1];
        slots[at] = slot;
        *pool = one;
        count++;
    }
    return count;
}
