/* SPDX-License-Identifier: MIT */
#include "types.h"

#include <assert.h>

bool texts_keep(struct texts *texts, struct span first, struct span second)
{
    size_t len = first.len + second.len;
    texts->bytes = len <= sizeof texts->small ? texts->small : malloc(len);
    if (texts->bytes == NULL)
        return false;
    texts->first_len = span_copy(texts->bytes, first);
    texts->second_len = span_copy(texts->bytes + first.len, second);
    return true;
}

void texts_drop(struct texts *texts)
{
    if (texts->bytes != texts->small)
        free(texts->bytes);
    texts->bytes = NULL;
}

int64_t order_statistic(int64_t numbers[], int count, int rank)
{
    assert(rank >= 0 && rank < count);
    for (int i = 1; i < count; i++) {
        int64_t number = numbers[i];
        int at = i;
        for (; at > 0 && numbers[at - 1] > number; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
    return numbers[rank];
}
