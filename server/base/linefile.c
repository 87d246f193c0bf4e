/* SPDX-License-Identifier: MIT */
#include "linefile.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 *   bytes   lines, written │ line, written in part │ not yet │ free
 *                         line                  written     len     size
 */
struct linefile {
    int fd;
    bool is_regular; /* always takes all, or fails */
    size_t line;     /* the beginning of the first line that is not whole yet */
    size_t written;  /* what is in front is in the file */
    size_t len;
    size_t size;
    char *path;
    char bytes[];
};

/* ---- opening ------------------------------------------------------------ */

/*
 * Without a reader, Linux opens a FIFO only to read and write (fifo(7)). Lines
 * then wait in it for whoever reads it next.
 */
static int open_path(const char *path)
{
    const int flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    struct stat info;
    bool is_fifo = stat(path, &info) == 0 && S_ISFIFO(info.st_mode);
    return open(path, flags | (is_fifo ? O_RDWR : O_WRONLY), 0640);
}

static bool is_stdout(const char *path)
{
    return strcmp(path, "-") == 0;
}

static void use(struct linefile *file, int fd)
{
    struct stat info;
    file->fd = fd;
    file->is_regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

struct linefile *linefile_open(const char *path, size_t kept,
                               const char **reason)
{
    struct linefile *file = malloc(sizeof *file + kept);
    char *copy = strdup(path);
    int fd = -1;
    errno = ENOMEM;
    if (file != NULL && copy != NULL && is_stdout(path)) {
        /* a stdout that was closed became a /dev/null that only reads */
        int flags = fcntl(STDOUT_FILENO, F_GETFL);
        bool is_open = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
        fd = is_open ? STDOUT_FILENO : -1;
        errno = EBADF;
    } else if (file != NULL && copy != NULL) {
        fd = open_path(path);
    }
    if (fd < 0) {
        *reason = strerror(errno);
        free(copy);
        free(file);
        return NULL;
    }
    *file = (struct linefile){.path = copy, .size = kept};
    use(file, fd);
    return file;
}

void linefile_free(struct linefile *file)
{
    if (file == NULL)
        return;
    if (file->fd != STDOUT_FILENO)
        (void)close(file->fd); /* each write was checked */
    free(file->path);
    free(file);
}

bool linefile_reopen(struct linefile *file, const char **reason)
{
    if (is_stdout(file->path))
        return true;
    (void)linefile_flush(file); /* into the old one, if it takes it */
    int fd = open_path(file->path);
    if (fd < 0) {
        *reason = strerror(errno);
        return false;
    }
    (void)close(file->fd); /* each write was checked */
    use(file, fd);
    file->written = file->line;
    return true;
}

/* ---- writing ------------------------------------------------------------ */

static void note_written(struct linefile *file, size_t len)
{
    file->written += len;
    const char *first = file->bytes + file->line;
    const char *end = memrchr(first, '\n', file->written - file->line);
    if (end != NULL)
        file->line += (size_t)(end + 1 - first);
    if (file->written == file->len)
        file->line = file->written = file->len = 0;
}

int linefile_flush(struct linefile *file)
{
    struct pollfd out = {.fd = file->fd, .events = POLLOUT};
    while (file->written < file->len) {
        ssize_t len = 0;
        /*
         * What polls as writable has room for PIPE_BUF bytes, unless another
         * process fills it in between; our own descriptors do not even block
         * then.
         */
        size_t piece = file->len - file->written;
        if (!file->is_regular && piece > PIPE_BUF)
            piece = PIPE_BUF;
        /* broken is ready, too: write tells why */
        if (file->is_regular || poll(&out, 1, 0) == 1)
            len = write(file->fd, file->bytes + file->written, piece);
        if (len <= 0)
            return len < 0 ? errno : EAGAIN;
        note_written(file, (size_t)len);
    }
    return 0;
}

bool linefile_add(struct linefile *file, struct span line)
{
    assert(line.len > 0 && line.ptr[line.len - 1] == '\n');
    if (line.len > file->size - file->len && file->line > 0) {
        /* what is not written moves to the front */
        memmove(file->bytes, file->bytes + file->line, file->len - file->line);
        file->len -= file->line;
        file->written -= file->line;
        file->line = 0;
    }
    if (line.len > file->size - file->len)
        return false;
    file->len += span_copy(file->bytes + file->len, line);
    return true;
}

int64_t linefile_pending(const struct linefile *file)
{
    int64_t count = 0;
    struct span rest = {file->bytes + file->line, file->len - file->line};
    for (; rest.len > 0; count++)
        (void)span_take(&rest, '\n');
    return count;
}
