/* SPDX-License-Identifier: MIT */
/*
 * The audit log: who was given which lock, who gave it back, and who was
 * refused, as lines of JSON, each written before its answer leaves. It holds no
 * tokens and no idempotency keys.
 *
 * An answer does not wait for a file that takes no lines: they are kept for a
 * while and then lost, which the metrics, the log and the next line tell.
 * Unless each change must have its line: then it is told before it begins, too,
 * and does not begin if the file does not take that line.
 *
 * Without an audit log each function takes NULL and does nothing.
 */
#ifndef REDLOCKD_AUDIT_H
#define REDLOCKD_AUDIT_H

#include "../../server/base/loop.h"
#include "../message/http.h"

struct access;
struct audit;

/* All borrowed until audit_free. */
struct audit_setup {
    struct loop *loop;
    struct metrics *metrics;
    struct access *access; /* may be NULL */
    const char *path;      /* to append to; "-" is stdout */
    bool is_required;      /* no lock may change without a line */
    bool has_reads;        /* who looked at which lock has a line, too */
};

/* NULL: error is one line for people. */
struct audit *audit_open(const struct audit_setup *setup, char *error,
                         size_t size);
void audit_free(struct audit *audit);

/* The file was moved away: a new one is made. */
void audit_reopen(struct audit *audit);

/* A change is about to begin. False: it must have a line, and the file takes
 * none. Nothing is written if none is needed. */
bool audit_announce(struct audit *audit, const struct http_call *call,
                    struct span names);

/* What came of a change, as in its response; of an inspect if reads are
 * logged. False: it must have a line, which the file has not taken yet. */
bool audit_note(struct audit *audit, struct http_call *call,
                const struct engine_result *result);

/* A page of a list, if reads are logged. */
void audit_note_list(struct audit *audit, const struct http_call *call);

/*
 * The client leaves, or the process ends, before the answer: result is as far
 * as the operation got. A grant is released, an acquire comes to nothing;
 * what else was asked may take effect.
 */
void audit_note_abandoned(struct audit *audit, const struct http_call *call,
                          const struct engine_result *result);

/*
 * A 401, 403 or 429 that audit_note has not told of; of other answers nothing.
 * A flood of them is counted instead: of strangers together, and of each
 * identity. names: of the resources, as in names.h; len 0: those of the path,
 * if any.
 */
void audit_note_refusal(struct audit *audit, struct http_call *call,
                        struct span names);

#endif
