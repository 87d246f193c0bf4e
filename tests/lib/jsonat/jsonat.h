/* Members of a JSON text, by path. */
/* SPDX-License-Identifier: MIT */
#ifndef REDLOCKD_TEST_JSONAT_H
#define REDLOCKD_TEST_JSONAT_H

#include <jansson.h>

/* The member "held_by.owner", the element "nodes.0.state"; NULL: not there. */
json_t *json_at(json_t *root, const char *path);

#endif
