/*
 * What the kernel has taken for a connection, whatever became of it since.
 */
#ifndef REDLOCKD_WRITTEN_H
#define REDLOCKD_WRITTEN_H

#include <stdint.h>

/*
 * How many bytes were written to the socket since it was connected, also after
 * a reset. -1: the kernel does not tell.
 */
int64_t written_bytes(int fd);

#endif
