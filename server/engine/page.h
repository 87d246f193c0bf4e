/* SPDX-License-Identifier: MIT */
/*
 * A page of the locks that are held: the request and the answer.
 */
#ifndef REDLOCKD_PAGE_H
#define REDLOCKD_PAGE_H

#include "../base/types.h"

enum { ENGINE_LISTS_MAX = 16 }; /* at once */

/* The position of a listing. All 0: its beginning. */
struct list_cursor {
    uint16_t nodes; /* bit per node: scanned by this listing */
    int at;         /* index of the current one among them */
    int64_t scan;   /* the SCAN cursor there */
    uint64_t runs;  /* hash of their run IDs */
};

/* The request. */
struct engine_list {
    struct span prefix; /* of the resources, up to RESOURCE_MAX; may be empty */
    int limit;          /* about this many locks, at most */
    struct list_cursor cursor;
    bool (*is_name)(struct span name); /* others are not shown; NULL: all are */
    /* instead of all locks the slots of this pool; limit is its own, and there
       is one page */
    struct span pool;
};

enum list_outcome {
    LIST_PENDING,
    LIST_PAGE,
    LIST_LOST,      /* a node of the cursor is unreachable, or another server */
    LIST_REFUSED,   /* the node's ACL denies SCAN */
    LIST_NO_QUORUM, /* not enough nodes answered */
    LIST_NO_MEMORY,
};

/* The answer. */
struct engine_page {
    enum list_outcome outcome;
    int count;               /* of locks; may be 0 before the end */
    bool has_next;           /* there are more pages */
    struct list_cursor next; /* where the next one begins */
    int node;                /* scanned last; -1: none */
};

#endif
