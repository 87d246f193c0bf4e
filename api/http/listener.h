/*
 * The listening socket.
 */
#ifndef REDLOCKD_LISTENER_H
#define REDLOCKD_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Binds and listens; the descriptor does not block. -1: error holds one line
 * for people. reuse_port: several processes may listen there at once.
 */
int listener_open(const char *host, int port, bool reuse_port, char *error,
                  size_t error_size);

#endif
