/* Folders of tests, and files in them. */
/* SPDX-License-Identifier: MIT */
#ifndef REDLOCKD_TEST_FOLDER_H
#define REDLOCKD_TEST_FOLDER_H

#include <stdbool.h>

/*
 * Removes it and all that is in it. A child that a killed redis-server leaves,
 * which rewrites a file there, may add to it for a while: so it tries for 10 s.
 */
bool folder_remove(const char *path);

/* The file has this text, and nothing else. */
void folder_write(const char *path, const char *text);

#endif
