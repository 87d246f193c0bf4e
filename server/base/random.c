#include "random.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

/*
 * One system call fills this for many tokens. getrandom(2) never returns less
 * than was asked for up to 256 bytes.
 */
static unsigned char pool[256];
static size_t used = sizeof pool;

void random_fill(void *buf, size_t len)
{
    unsigned char *to = buf;
    while (len > 0) {
        if (used == sizeof pool) {
            ssize_t got;
            do
                got = getrandom(pool, sizeof pool, 0);
            while (got < 0 && errno == EINTR);
            /* Without randomness the tokens could be guessed. */
            assert(got == (ssize_t)sizeof pool);
            used = 0;
        }
        size_t part = sizeof pool - used < len ? sizeof pool - used : len;
        memcpy(to, pool + used, part);
        memset(pool + used, 0, part); /* no token may be found here later */
        used += part;
        to += part;
        len -= part;
    }
}
