/*
 * A way to a node on which somebody else speaks, too.
 */
#ifndef REDLOCKD_TEST_MEDDLER_H
#define REDLOCKD_TEST_MEDDLER_H

#include "harness.h"

/*
 * Starts a process that passes on everything between a server and the node, and
 * returns its port. On connections that have subscribed, text goes before each
 * piece that the node says. It ends with this process.
 */
int meddle(const struct node *node, const char *text);

#endif
