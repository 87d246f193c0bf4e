/* SPDX-License-Identifier: MIT */
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
    HEAD_TRACEPARENT,
    HEAD_AUTHORIZATION,
    HEAD_ORIGIN,
    HEAD_SEC_FETCH_SITE,
    HEAD_SEC_FETCH_MODE,
    HEAD_SEC_FETCH_DEST,
    HEAD_FIELDS
};

enum {
    HEAD_FORWARDED_MAX = 4,
    /* The most of the library's memory that a head may take beside its path;
     * above it, 431. */
    HEAD_COST_MAX = 6 * 1024,
    /* The longest path of a lock, if "~~" is percent-encoded; what a path has
     * beyond that counts, too. */
    HEAD_PATH_MAX =
        sizeof HTTP_LOCKS_PATH "/extend" - 1 + ID_MAX + 2 * (sizeof "%7E" - 2),
};

struct head {
    struct span values[HEAD_FIELDS]; /* borrowed; ptr NULL: not there */
    /* the last fields X-Forwarded-For, the last one first; borrowed */
    struct span forwarded[HEAD_FORWARDED_MAX];
    int forwarded_count;
    enum head_field twice; /* a field that occurs twice */
    bool has_twice;
    bool has_fold; /* a field that goes on in the next line */
    bool has_bad_name;
    bool has_bad_value;
    bool has_bare_cr;     /* or a bare LF: a line that ends with one of them */
    struct query query;   /* of the target */
    size_t cost;          /* bytes of the library's memory, at most, without the
                             path */
    const char *line_end; /* of the line before; the front sets the first */
};

/* bytes: of the head as it was sent, path_len of them its path. */
void head_init(struct head *head, size_t bytes, size_t path_len);

/*
 * Takes one field, in the buffer that the library read it into. value.ptr NULL:
 * it has no value.
 *
 * The library also ends a line at a single CR or LF, which it overwrites with a
 * NUL: the next line then begins one byte after line_end. We would see a field
 * where a proxy in front of us saw a part of the value.
 *
 * libmicrohttpd 0.9 adds what the next line says to a copy of the name, and
 * leaves the value behind: it would read "Content-Length:" and " 9" as no
 * length, and the body as the next request. Later ones join both lines.
 */
void head_add_line(struct head *head, struct span name, struct span value);

/* Takes one field, which must last; without the blanks around its value. */
void head_add(struct head *head, struct span name, struct span value);

/* Takes one query parameter. */
void head_add_parameter(struct head *head, struct span name, struct span value);

/* Why a request is refused; reason (static) NULL: it is not. */
struct head_refusal {
    enum problem_code code;
    const char *reason;
};
struct head_refusal head_check(const struct head *head, bool is_http_1_0);

/* The announced length of the body; -1: none is announced. */
int64_t head_content_length(const struct head *head);

/*
 * The client of a request that proxies have passed on, as far as they are
 * trusted: the last address in X-Forwarded-For that is none of the proxies, a
 * list as in address.h; without a port, borrowed. ptr NULL: the peer,
 * address:port, is none of them, and so the client itself; or none of them has
 * told of another.
 */
struct span head_client(const struct head *head, const char *proxies,
                        const char *peer);

/* Whether it names JSON in UTF-8, RFC 9110 §8.3. ptr NULL: it does not. */
bool head_is_json(struct span content_type);

/* ---- web pages ---------------------------------------------------------- */

/*
 * What a web page may not do through the browser of somebody who reaches this
 * server. Of a page of another origin (RFC 6454) the browser tells in Origin,
 * or in Sec-Fetch-Site (Fetch Metadata Request Headers). A page whose name was
 * made to lead to this server after it was loaded (DNS rebinding) is of the
 * same origin; but its name stands in Host. So there is:
 *
 *   421  the server is open, and Host is none of: an IP address, localhost, a
 *        name without a dot, an allowed host
 *   403  Origin names another host than Host does, and no allowed one; or the
 *        request comes from another site, and does not just open a page
 *
 * allowed_hosts: as in address.h. is_open: anybody may ask anything. is_get:
 * its method is GET.
 */
struct head_refusal head_check_page(const struct head *head,
                                    const char *allowed_hosts, bool is_open,
                                    bool is_get);

#endif
