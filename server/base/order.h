/*
 * Order statistics of a few numbers: one a node.
 */
#ifndef REDLOCKD_ORDER_H
#define REDLOCKD_ORDER_H

#include <stdint.h>

/*
 * The smallest of count numbers for rank 0, the largest for count - 1. Sorts
 * them in place; rank is within.
 */
int64_t order_statistic(int64_t numbers[], int count, int rank);

#endif
