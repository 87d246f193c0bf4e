/*
 * The audit log: who was given which lock, who gave it back, and who was
 * refused, as lines of JSON, each written before its answer leaves. It holds no
 * tokens and no idempotency keys.
 *
 * An answer does not wait for a file that takes no lines: they are kept for a
 * while and then lost, which the metrics, the log and the next line tell.
 *
 * Without an audit log each function takes NULL and does nothing.
 */
#ifndef REDLOCKD_AUDIT_H
#define REDLOCKD_AUDIT_H

#include "../server/base/loop.h"
#include "http.h"

struct access;
struct audit;

/*
 * Appends to path; "-" is stdout. NULL: error is one line for people. access
 * may be NULL, and must live as long.
 */
struct audit *audit_open(struct loop *loop, struct metrics *metrics,
                         struct access *access, const char *path, char *error,
                         size_t size);
void audit_free(struct audit *audit);

/* The file was moved away: a new one is made. */
void audit_reopen(struct audit *audit);

/*
 * What came of an acquire, extend, release or force, as the response tells it.
 * Nothing of an inspect.
 */
void audit_note(struct audit *audit, struct http_request *request,
                const struct engine_result *result,
                const struct http_response *response);

/*
 * The client leaves, or the process ends, before the answer: result is as far
 * as the operation got. A grant is released, an acquire comes to nothing;
 * what else was asked may take effect.
 */
void audit_note_abandoned(struct audit *audit,
                          const struct http_request *request,
                          const struct engine_result *result);

/*
 * A 401, 403 or 429 that audit_note has not told of; of other answers nothing.
 * A flood of them is counted instead: of strangers together, and of each
 * identity. names: of the resources, as in names.h; len 0: those of the path,
 * if any.
 */
void audit_note_refusal(struct audit *audit, struct http_request *request,
                        struct span names,
                        const struct http_response *response);

#endif
