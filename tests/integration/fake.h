/*
 * A node that is none: a process that accepts connections and answers what a
 * test wants.
 */
#ifndef REDLOCKD_TEST_FAKE_H
#define REDLOCKD_TEST_FAKE_H

#include "harness.h"

/*
 * Becomes node i of world, the next free one, before the server is started.
 * Each read is answered with reply, once per command that can be seen in it
 * ("*" begins one); banner, if not NULL, is sent unasked on each connection.
 */
void fake_start(const char *banner, const char *reply);

#endif
