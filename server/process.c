#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

bool process_fill_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* the lowest that is free: fd. To write to it still fails, as before */
        if (open("/dev/null", O_RDONLY) != fd)
            return false;
    }
    return true;
}
