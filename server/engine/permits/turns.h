/*
 * Whose survey is next. Surveys of large pools cost the nodes time, and clients
 * cause them: so all of them together ask about one slot in 10 µs at most, in
 * the long run, and each identity that asks has an equal share of that. One
 * that has asked little of late asks at once, whatever the others do. No
 * identity has more under way than one survey of a large pool: on slow nodes,
 * others would wait behind it. Pure.
 *
 * The pools that an identity wants to know about stand in its line, first come,
 * first served; no pool is in two lines.
 */
#ifndef REDLOCKD_TURNS_H
#define REDLOCKD_TURNS_H

#include <sys/queue.h>

#include "../../lock/lock.h"

struct pool;

/* Of one identity. */
struct line {
    TAILQ_HEAD(, pool) pools;
    int64_t until_us; /* its surveys so far may take the nodes */
    int open;         /* slots that the nodes are being asked about */
};

struct turns {
    struct line lines[ASKERS_MAX];
};

void turns_init(struct turns *turns);

/* The pool is in no line, and goes to the end of this one. */
void turns_join(struct line *line, struct pool *pool);

/*
 * It leaves its line, if it is in one. Returns the pool that is now the first,
 * whose turn comes at a time that was not known before; NULL: there is none.
 */
struct pool *turns_leave(struct pool *pool);

/* From when on the pool may be surveyed; 0: not as it is, since it is not the
 * first of a line, or enough is under way. */
int64_t turns_from_us(const struct pool *pool);

/* A survey of so many slots begins, for this line. */
void turns_begin(struct turns *turns, struct line *line, int slots,
                 int64_t now_us);

/* It has ended. Returns the pool whose turn may have come; NULL: none. */
struct pool *turns_end(struct line *line, int slots);

#endif
