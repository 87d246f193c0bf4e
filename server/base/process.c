#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

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
