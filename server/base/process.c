/* SPDX-License-Identifier: MIT */
#include "process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- random bytes -------------------------------------------------------- */

/*
 * One system call fills this for many tokens. getrandom(2) never returns less
 * than was asked for up to 256 bytes.
 */
static unsigned char pool[256];
static size_t used = sizeof pool;

void random_bytes(void *buf, size_t len)
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

/* ---- descriptors, and stdout --------------------------------------------- */

bool process_fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* open returns the lowest free one: fd. Writing to it still fails */
        if (open("/dev/null", O_RDONLY) != fd)
            return false;
    }
    return true;
}

int64_t process_raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 1024;
    rlim_t soft = limit.rlim_cur;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        limit.rlim_cur = soft;
    return limit.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)limit.rlim_cur;
}

bool process_end_output(void)
{
    /* errno is from the last write that failed */
    if (!ferror(stdout) && fflush(stdout) == 0)
        return true;
    perror("redlockd: standard output");
    return false;
}

char *process_read_file(const char *path, int flags, size_t most, size_t *len,
                        mode_t *mode)
{
    struct stat info = {.st_mode = 0};
    char *text = NULL;
    ssize_t got = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    *len = 0;
    *mode = 0;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &info) == 0) {
        errno = ENOMEM;
        text = malloc(most + 1);
    }
    while (text != NULL && *len <= most &&
           (got = read(fd, text + *len, most + 1 - *len)) > 0)
        *len += (size_t)got;
    int error = *len > most ? EFBIG : errno;
    (void)close(fd); /* only read: nothing can be lost */
    *mode = info.st_mode;
    if (got != 0) {
        free(text);
        errno = error;
        return NULL;
    }
    text[*len] = '\0';
    return text;
}
