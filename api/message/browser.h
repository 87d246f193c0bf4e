/*
 * What a web page may not do through the browser of somebody who reaches this
 * server. Pure.
 *
 * A page of another origin (RFC 6454) is told by the browser: in Origin, or in
 * Sec-Fetch-Site (Fetch Metadata Request Headers). A page whose name was made
 * to lead to this server, after it was loaded from elsewhere (DNS rebinding),
 * is of the same origin; but its name stands in Host.
 */
#ifndef REDLOCKD_BROWSER_H
#define REDLOCKD_BROWSER_H

#include "head.h"

struct browser_rules {
    const char *allowed_hosts; /* as in hosts.h */
    bool is_open;              /* anybody may ask anything */
};

/*
 * Why the request is refused; reason (static) NULL: it is not.
 *
 *   421  the server is open, and Host is none of: an IP address, localhost, a
 *        name without a dot, an allowed host
 *   403  Origin names another host than Host does, and no allowed one; or the
 *        request comes from another site, and does not just open a page
 *
 * is_get: its method is GET.
 */
struct head_refusal browser_check(const struct head *head,
                                  const struct browser_rules *rules,
                                  bool is_get);

#endif
