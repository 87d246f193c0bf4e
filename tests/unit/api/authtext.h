/* SPDX-License-Identifier: MIT */
/*
 * Auth files for the tests.
 */
#ifndef REDLOCKD_TEST_AUTHTEXT_H
#define REDLOCKD_TEST_AUTHTEXT_H

#include "../../../api/access/access.h"

/* SHA-256 of "secret", of "other", and of what no test sends. */
#define AUTHTEXT_SECRET                                                        \
    "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
#define AUTHTEXT_OTHER                                                         \
    "sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa"

#define AUTHTEXT_THIRD                                                         \
    "sha256:0123456789012345678901234567890123456789012345678901234567890123"

/* A file of its own, with this text from now on. */
const char *authtext_write(const char *text);
void authtext_remove(void);

/* Who may ask what, by a file with this text. */
struct access *authtext_access(const char *text);

/* Their metrics have this line. */
void authtext_expect_metric(struct access *access, int64_t now_us,
                            const char *line);

#endif
