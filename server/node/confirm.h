/*
 * Probes whether the name of a connected node still leads to it: again and
 * again it looks the name up, connects, asks for the run_id and closes. The old
 * connection cannot tell: it would go on working with a server that no new
 * client finds, while they find another one.
 */
#ifndef REDLOCKD_CONFIRM_H
#define REDLOCKD_CONFIRM_H

#include "dial.h"

/* How long after a failed probe the next one begins. */
enum { CONFIRM_RETRY_US = 500000 };

struct confirm;

/*
 * Called in the loop. They may call confirm_begin and confirm_end, but must not
 * free. A node that cannot be reached, or cannot answer now, is neither
 * confirmed nor refuted: the next probe is soon.
 *
 * confirmed  it is the same node, and still fit. result->wire is already freed
 * refuted    it is another node, or no longer fit; reason and detail as of a
 *            link that goes down. No more probes
 */
struct confirm_events {
    void (*confirmed)(void *ctx, const struct dial_result *result);
    void (*refuted)(void *ctx, enum node_state reason, const char *detail);
    void *ctx;
};

/*
 * Takes all of dialing but is_probe and events. interval_us: the longest time
 * from the start of one probe to the start of the next. NULL: no memory.
 */
struct confirm *confirm_new(const struct dial_setup *dialing,
                            int64_t interval_us,
                            const struct confirm_events *events);
void confirm_free(struct confirm *confirm);

/*
 * From now on the node must have this run_id. It had it at known_us; 0: nobody
 * knows when, so the first probe is soon. Calls nobody back before it returns.
 */
void confirm_begin(struct confirm *confirm, const char *run_id,
                   int64_t known_us);

/* No more probes, and no more events. */
void confirm_end(struct confirm *confirm);

#endif
