/*
 * The answers to acquire, extend and release as JSON, written straight into
 * their buffer: a JSON library's objects cost an eighth of the CPU time of
 * each lock cycle.
 */
#ifndef REDLOCKD_RENDER_H
#define REDLOCKD_RENDER_H

#include "../server/engine/result.h"

/* What a grant or an extension tells beyond the engine's result. */
struct render_times {
    int64_t elapsed_ms;
    int64_t renew_after_ms;
};

/*
 * malloc'ed, with a newline behind, and the length; NULL: no memory. The texts
 * of result must be valid UTF-8.
 */
char *render_grant(const struct engine_result *result,
                   const struct render_times *times, size_t *len);
char *render_release(const struct engine_result *result, size_t *len);

#endif
