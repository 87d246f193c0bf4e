#include "authfile.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../server/base/log.h"

/* A file as it was read. */
struct file {
    char *text; /* malloc'ed */
    size_t len;
    bool is_open_to_others; /* they may read or write it */
};

static bool fail(char reason[IDENTITIES_ERROR_MAX], const char *text)
{
    (void)snprintf(reason, IDENTITIES_ERROR_MAX, "%c%s",
                   tolower((unsigned char)text[0]), text + 1);
    return false;
}

/* All of it; the size is only what it was a moment ago. */
static bool read_all(struct file *file, int fd,
                     char reason[IDENTITIES_ERROR_MAX])
{
    size_t size = AUTHFILE_SIZE_MAX + 1;
    struct stat info;
    if (fstat(fd, &info) != 0)
        return fail(reason, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return fail(reason, "it is not a regular file");
    file->is_open_to_others = (info.st_mode & (S_IROTH | S_IWOTH)) != 0;
    file->text = malloc(size);
    if (file->text == NULL)
        return fail(reason, "no memory");
    while (file->len < size) {
        ssize_t got = read(fd, file->text + file->len, size - file->len);
        if (got < 0)
            return fail(reason, strerror(errno));
        if (got == 0)
            return true;
        file->len += (size_t)got;
    }
    return fail(reason, "it is larger than 1 MiB");
}

/* False: reason tells why, and there is no text. */
static bool read_file(struct file *file, const char *path,
                      char reason[IDENTITIES_ERROR_MAX])
{
    *file = (struct file){.text = NULL};
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return fail(reason, strerror(errno));
    bool is_read = read_all(file, fd, reason);
    (void)close(fd); /* only read */
    if (!is_read) {
        free(file->text);
        file->text = NULL;
    }
    return is_read;
}

void authfile_explain(const char *path, const char *reason,
                      char error[AUTHFILE_ERROR_MAX])
{
    bool has_line = reason[0] >= '0' && reason[0] <= '9';
    (void)snprintf(error, AUTHFILE_ERROR_MAX, "--auth-file: %.120s:%s%s", path,
                   has_line ? "" : " ", reason);
}

struct identities *authfile_load(const char *path,
                                 char error[AUTHFILE_ERROR_MAX])
{
    struct file file;
    char reason[IDENTITIES_ERROR_MAX];
    if (!read_file(&file, path, reason)) {
        authfile_explain(path, reason, error);
        return NULL;
    }
    struct identities *identities =
        identities_parse((struct span){file.text, file.len}, reason);
    free(file.text);
    if (identities == NULL)
        authfile_explain(path, reason, error);
    else if (file.is_open_to_others)
        log_write(LOG_WARN, "auth_file_open",
                  (struct log_field[]){
                      LOG_S("file", path),
                      LOG_S("detail", "every user of this machine may read or "
                                      "write the auth file; chmod 640"),
                      LOG_END});
    return identities;
}
