#include "order.h"

#include <assert.h>

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
