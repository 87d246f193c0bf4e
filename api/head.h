/*
 * The head of a request: picks the fields that matter, and finds what two
 * parties could read in two ways (RFC 9112 §6.3, §11.2) or what this server
 * does not understand. Pure.
 */
#ifndef REDLOCKD_HEAD_H
#define REDLOCKD_HEAD_H

#include "problem.h"

enum head_field {
    HEAD_HOST,
    HEAD_CONTENT_LENGTH,
    HEAD_TRANSFER_ENCODING,
    HEAD_CONTENT_TYPE,
    HEAD_CONTENT_ENCODING,
    HEAD_EXPECT,
    HEAD_LOCK_TOKEN,
    HEAD_IDEMPOTENCY_KEY,
    HEAD_REQUEST_ID,
    HEAD_FIELDS
};

/* The library's memory for a head that is not answered with 431 at most. */
enum { HEAD_COST_MAX = 6 * 1024 };

struct head {
    struct span values[HEAD_FIELDS]; /* borrowed; ptr NULL: not there */
    enum head_field twice;           /* a field that occurs twice */
    bool has_twice;
    bool has_bad_name;
    bool has_bad_value;
    bool has_bare_cr;   /* or a bare LF: a line that ends with one of them */
    bool wants_verbose; /* of the query: ?verbose */
    size_t cost;        /* bytes of the library's memory, at most */
};

/* bytes: of the head as it was sent. */
void head_init(struct head *head, size_t bytes);

/* Takes one field; both must last. Blanks behind the value are no part of it.
 */
void head_add(struct head *head, struct span name, struct span value);

/* Takes one argument of the query. */
void head_add_argument(struct head *head, struct span name);

/* Why a request is refused; reason (static) NULL: it is not. */
struct head_refusal {
    enum problem_code code;
    const char *reason;
};
struct head_refusal head_check(const struct head *head, bool is_http_1_0);

/* The announced length of the body; -1: none, or not known before. */
int64_t head_content_length(const struct head *head);

/* Whether it names JSON in UTF-8, RFC 9110 §8.3. ptr NULL: it does not. */
bool head_is_json(struct span content_type);

#endif
