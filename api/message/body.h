/* SPDX-License-Identifier: MIT */
/*
 * Reads the JSON bodies of requests, and reports what is wrong with them.
 */
#ifndef REDLOCKD_BODY_H
#define REDLOCKD_BODY_H

#include "../../server/base/types.h"
#include "../../server/lock/lock.h"
#include "problem.h"

struct json_t;

/* ---- about one lock ----------------------------------------------------- */

/* The members of a body. The spans lie in root, or in joined. */
struct body {
    enum lock_call call; /* which it is about */
    bool has_resource;
    bool has_resources;
    bool has_mode;
    bool is_shared;       /* mode is "shared" */
    struct span resource; /* joined as in names.h, if there are several */
    /* ptr NULL, or 0: it is not there */
    struct span owner;
    struct span token; /* any text; its form is not looked at here, unless it
                          is of an operation */
    struct span key;   /* of an operation that acquires: any text */
    int64_t ttl_ms;
    int64_t wait_ms;
    int64_t limit;
    int64_t permits;     /* with a limit: at least 1 */
    struct json_t *root; /* NULL: that of the operations */
    char *joined; /* malloc'ed: several resources, or those of an id that is not
                     itself one; else NULL */
};

/*
 * Reads the body of a call: acquire takes either resource or resources, and
 * ttl_ms, wait_ms, owner, mode; with resource also limit, permits; extend
 * token, ttl_ms, mode; release token. A member that is null is as if it was
 * left out, and so is an empty list beside resource. False: errors has all that
 * is wrong, with the pointer "" for the body as a whole; nothing of a token is
 * repeated there. Without memory it reports nothing. Either way body_fini must
 * follow.
 */
bool body_read(struct body *body, struct span text, enum lock_call call,
               int64_t max_ttl_ms, struct faults *errors);
void body_fini(struct body *body);

/* The n-th member that the call takes, from 0; NULL: it takes no more. */
const char *body_member(enum lock_call call, int n);

/* ---- operations: what a batch asks --------------------------------------- */

enum { BODY_LIST_MAX = 100 };

struct body_list {
    int count; /* 1 … BODY_LIST_MAX */
    struct json_t *root;
};

/*
 * Reads what is around the operations. False: errors has what is wrong with
 * the body as a whole, as body_read does. Either way body_list_fini must
 * follow.
 */
bool body_list_read(struct body_list *it, struct span text,
                    struct faults *errors);
void body_list_fini(struct body_list *it);

/*
 * Reads the n-th operation, which has the members of its call, but for wait_ms;
 * acquire also idempotency_key, the others id, which is resource then. An id
 * and a token must have their forms. The spans lie in operations, or in joined.
 * False, errors and body_fini as of body_read.
 */
bool body_read_item(const struct body_list *it, int n, struct body *body,
                    int64_t max_ttl_ms, struct faults *errors);

/* As body_member, of an operation of this call. */
const char *body_item_member(enum lock_call call, int n);

#endif
