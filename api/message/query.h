/*
 * The arguments of a target: those that a call knows; others are ignored. Pure.
 */
#ifndef REDLOCKD_QUERY_H
#define REDLOCKD_QUERY_H

#include "../../server/base/types.h"

enum query_argument {
    QUERY_VERBOSE,
    QUERY_FORCE,
    QUERY_PREFIX,
    QUERY_LIMIT,
    QUERY_CURSOR,
    QUERY_ARGUMENTS
};

struct query {
    struct span values[QUERY_ARGUMENTS]; /* borrowed, still percent-encoded;
                                            ptr NULL: not there */
    bool is_twice[QUERY_ARGUMENTS];
};

extern const char *const query_names[QUERY_ARGUMENTS];

/* Takes one argument. value.ptr NULL: it has none, and counts as empty. */
void query_add(struct query *query, struct span name, struct span value);

static inline bool query_has(const struct query *query,
                             enum query_argument argument)
{
    return query->values[argument].ptr != NULL;
}

/*
 * Decodes the value of an argument that is there into out, which has room for
 * size bytes. NULL, or why it is refused (static).
 */
const char *query_read(const struct query *query, enum query_argument argument,
                       char *out, size_t size, size_t *len);

#endif
