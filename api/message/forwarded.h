/*
 * The client of a request that proxies have passed on: what X-Forwarded-For
 * says, as far as it was written by proxies that are trusted. Pure.
 */
#ifndef REDLOCKD_FORWARDED_H
#define REDLOCKD_FORWARDED_H

#include "head.h"

/*
 * The address of the client, without a port, borrowed: the last one in the
 * fields that is none of the proxies, a list as in networks.h. ptr NULL: the
 * peer, address:port, is none of them, and so the client itself; or none of
 * them has told of another.
 */
struct span forwarded_client(const char *proxies, const char *peer,
                             const struct head *head);

#endif
