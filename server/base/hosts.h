/*
 * A list of hosts, as in "locks.example.com,.example.org": names and addresses,
 * without ports. One that begins with a dot stands for all names that end so.
 * Case does not count. Pure.
 */
#ifndef REDLOCKD_HOSTS_H
#define REDLOCKD_HOSTS_H

#include "types.h"

/* Whether the text is such a list; the empty one is, too. */
bool hosts_are_valid(const char *list);

/* Whether the list has this host. */
bool hosts_have(const char *list, struct span host);

#endif
