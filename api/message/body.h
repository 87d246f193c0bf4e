/*
 * Reads the JSON bodies of requests, and tells people what is wrong with them.
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
    bool has_resource;
    bool has_resources;
    bool has_limit;
    bool has_permits;
    bool has_mode;
    bool is_shared;       /* mode is "shared" */
    struct span resource; /* joined as in names.h, if there are several */
    /* ptr NULL, or 0: it is not there */
    struct span owner;
    struct span token; /* any text; its form is not looked at here */
    int64_t ttl_ms;
    int64_t wait_ms;
    int64_t limit;
    int64_t permits; /* with a limit: at least 1 */
    struct json_t *root;
    char *joined; /* malloc'ed: several resources; else NULL */
};

/*
 * Reads the body of a call: acquire takes either resource or resources, and
 * ttl_ms, wait_ms, owner, mode; with resource also limit, permits; extend
 * token, ttl_ms, mode; release token. A member that is null is as if it was
 * left out, and so is an empty list beside resource. False: errors tells all
 * that is wrong, with the pointer "" for the body as a whole; nothing of a
 * token is repeated there. Without memory it tells nothing. Either way
 * body_fini must follow.
 */
bool body_read(struct body *body, struct span text, enum lock_call call,
               int64_t max_ttl_ms, struct faults *errors);
void body_fini(struct body *body);

/* The n-th member that the call takes, from 0; NULL: it takes no more. */
const char *body_member(enum lock_call call, int n);

/* ---- heartbeats: which locks to extend ---------------------------------- */

enum { LOCKLIST_MAX = 100 };

/* The spans lie in root. */
struct locklist {
    int64_t ttl_ms; /* 0: it is not there */
    int count;      /* of the locks, 1 … LOCKLIST_MAX */
    struct locklist_lock {
        struct span id;    /* any text; its form is not looked at here */
        struct span token; /* likewise */
    } locks[LOCKLIST_MAX];
    struct json_t *root;
};

/*
 * False: errors tells what is wrong, as body_read does; one that is about a
 * lock has a pointer like /locks/7/token. Either way locklist_fini must follow.
 */
bool locklist_read(struct locklist *list, struct span text, int64_t max_ttl_ms,
                   struct faults *errors);
void locklist_fini(struct locklist *list);

/* The n-th member of the body, and of a lock, from 0; NULL: no more. */
const char *locklist_member(int n);
const char *locklist_lock_member(int n);

#endif
