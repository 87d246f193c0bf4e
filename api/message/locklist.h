/*
 * Reads the JSON body of a heartbeat: which locks to extend.
 */
#ifndef REDLOCKD_LOCKLIST_H
#define REDLOCKD_LOCKLIST_H

#include "../../server/base/types.h"
#include "problem.h"

struct json_t;

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
