/*
 * Order statistics of a few numbers, one per node.
 */
#ifndef REDLOCKD_ORDER_H
#define REDLOCKD_ORDER_H

#include <stdint.h>

/*
 * The smallest of count numbers for rank 0, the largest for count - 1. Sorts
 * them in place; rank must be in this range.
 */
int64_t order_statistic(int64_t numbers[], int count, int rank);

#endif
