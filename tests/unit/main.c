/* SPDX-License-Identifier: MIT */
/* Runs the suites of the folders below this one. */
#include <stdlib.h>

#include "../lib/suite/suite.h"

int main(void)
{
    return suites_run() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
