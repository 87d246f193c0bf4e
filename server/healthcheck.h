/*
 * --healthcheck: asks a running server whether it is ready, for container
 * runtimes that can only run a command.
 */
#ifndef REDLOCKD_HEALTHCHECK_H
#define REDLOCKD_HEALTHCHECK_H

#include <stdbool.h>

/*
 * GET /readyz on host and port, over TLS or not, blocking, for at most 5 s. A
 * host that means every address is asked at loopback. 0: ready; 1: not, a line
 * on stderr says why. Both are exit codes.
 */
int healthcheck_run(const char *host, int port, bool has_tls);

#endif
