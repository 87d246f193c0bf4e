/* JSON that is easy to read in C. */
/* SPDX-License-Identifier: MIT */
#ifndef REDLOCKD_TEST_QUOTED_H
#define REDLOCKD_TEST_QUOTED_H

#include <string.h>

#include "../../lib/suite/suite.h"

/* The text with " for each '; it lasts as that of textf does. */
static inline const char *quoted(const char *text)
{
    char *it = (char *)textf("%s", text);
    for (char *at = it; (at = strchr(at, '\'')) != NULL;)
        *at = '"';
    return it;
}

#endif
