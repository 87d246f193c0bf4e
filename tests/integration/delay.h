/*
 * A slow way to a node: the nemesis' proxy, for one server and one node.
 */
#ifndef REDLOCKD_TEST_DELAY_H
#define REDLOCKD_TEST_DELAY_H

#include "harness.h"

/*
 * Starts a proxy that hands the node's replies on only after ms; what is sent
 * to the node passes at once. Returns its port. It ends with this process.
 */
int delay_replies(const struct node *node, int ms);

#endif
