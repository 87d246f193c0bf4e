/* SPDX-License-Identifier: MIT */
#include "growth.h"

#include <check.h>
#include <malloc.h>

enum { WINDOWS = 20, ROUNDS = 40 };

size_t growth_bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/*
 * Buffers that are kept may grow in some of the windows, a leak grows in each
 * of them.
 */
void growth_expect_none(growth_fn *round)
{
    size_t grown = 0;
    for (int window = 0; window < WINDOWS; window++) {
        size_t before = growth_bytes_in_use();
        for (int i = 0; i < ROUNDS; i++)
            round();
        grown = growth_bytes_in_use() - before;
        if ((intmax_t)grown <= 0)
            return;
    }
    ck_abort_msg("%zu bytes in %d rounds", grown, ROUNDS);
}
