/* SPDX-License-Identifier: MIT */
/* Runs the suites of this folder. */
#include <stdlib.h>

#include "harness.h"

int main(void)
{
    harness_begin();
    int failed = suites_run() + harness_end();
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
