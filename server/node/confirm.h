/*
 * Whether a node that is connected is still where its name leads: again and
 * again a fresh connection, by a fresh lookup, is asked for the run_id, and
 * closed. The old connection cannot tell: it would go on well with a server
 * that no other client finds any more, beside the one they find.
 */
#ifndef REDLOCKD_CONFIRM_H
#define REDLOCKD_CONFIRM_H

#include "dial.h"

/* How long after one that came to nothing the next confirmation begins. */
enum { CONFIRM_RETRY_US = 500000 };

struct confirm;

/*
 * Called in the loop. They may end and begin, but must not free. A node that
 * cannot be reached, or answers that it cannot answer now, is neither: it is
 * asked again soon.
 *
 * confirmed  it is the same, and fit. The wire is none of the callee's
 * refuted    it is another one, or not fit any more: reason and detail as of a
 *            link that goes down. It is not asked again
 */
struct confirm_events {
    void (*confirmed)(void *ctx, const struct dial_result *result);
    void (*refuted)(void *ctx, enum node_state reason, const char *detail);
    void *ctx;
};

/*
 * dialing: its is_look and events are set here. interval_us: the longest time
 * from the begin of one confirmation to that of the next. NULL: no memory.
 */
struct confirm *confirm_new(const struct dial_setup *dialing,
                            int64_t interval_us,
                            const struct confirm_events *events);
void confirm_free(struct confirm *confirm);

/*
 * From now on the node must have this run_id, as it had at known_us (0: at no
 * moment that counts, so the first look is soon). Calls nobody back before it
 * returns.
 */
void confirm_begin(struct confirm *confirm, const char *run_id,
                   int64_t known_us);

/* Nobody is called back any more. */
void confirm_end(struct confirm *confirm);

#endif
