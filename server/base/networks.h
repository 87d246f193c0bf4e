/*
 * A list of networks, as in "10.0.0.0/8,2001:db8::/32,192.0.2.1": addresses,
 * each with the length of its prefix (RFC 4632, RFC 4291 §2.3), or alone. Pure.
 */
#ifndef REDLOCKD_NETWORKS_H
#define REDLOCKD_NETWORKS_H

#include "types.h"

enum { NETWORKS_ADDRESS_MAX = 46 }; /* the text of an address, with its NUL */

/* Whether the text is such a list; the empty one is, too. */
bool networks_are_valid(const char *list);

/*
 * Whether one of them has the address, without a port. An IPv4 address in the
 * form of IPv6, ::ffff:192.0.2.1, is that of IPv4.
 */
bool networks_have(const char *list, struct span address);

/*
 * Takes the address out of "192.0.2.1", "192.0.2.1:80", "2001:db8::1",
 * "[2001:db8::1]" or "[2001:db8::1]:80". False: it is none of them.
 */
bool networks_read_address(struct span text, struct span *address);

#endif
