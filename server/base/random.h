/*
 * Random bytes from the kernel.
 */
#ifndef REDLOCKD_RANDOM_H
#define REDLOCKD_RANDOM_H

#include <stddef.h>

/* Fills buf with len bytes of getrandom(2), through a small buffer. */
void random_fill(void *buf, size_t len);

#endif
