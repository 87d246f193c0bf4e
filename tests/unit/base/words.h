/* SPDX-License-Identifier: MIT */
/*
 * A configuration that is given as words.
 */
#ifndef REDLOCKD_TEST_WORDS_H
#define REDLOCKD_TEST_WORDS_H

#include "../../../server/config/config.h"

/* config_load with words separated by spaces; argv[0] is added. */
bool words_load(struct config *config, const char *env, const char *args,
                char error[CONFIG_ERROR_MAX]);

#endif
