/*
 * The header fields of a request: picks those that matter, and finds framing
 * that two parties could read in two ways (RFC 9112 §6.3, §11.2). Pure.
 */
#ifndef REDLOCKD_HEAD_H
#define REDLOCKD_HEAD_H

#include "../server/types.h"

enum head_field {
    HEAD_HOST,
    HEAD_CONTENT_LENGTH,
    HEAD_TRANSFER_ENCODING,
    HEAD_CONTENT_TYPE,
    HEAD_LOCK_TOKEN,
    HEAD_IDEMPOTENCY_KEY,
    HEAD_REQUEST_ID,
    HEAD_FIELDS
};

struct head {
    const char *values[HEAD_FIELDS]; /* borrowed; NULL: not there */
    enum head_field twice;           /* a field that occurs twice */
    bool has_twice;
    bool has_bad_name;
    bool wants_verbose; /* of the query: ?verbose */
};

void head_init(struct head *head);

/* Takes one field. name need not end with NUL, value must, and must last. */
void head_add(struct head *head, struct span name, const char *value);

/* NULL: may be trusted; else why the request is refused (static). */
const char *head_check(const struct head *head, bool is_http_1_0);

/* The announced length of the body; -1: none, or not known before. */
int64_t head_content_length(const struct head *head);

#endif
