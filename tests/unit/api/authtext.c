/* SPDX-License-Identifier: MIT */
#include "authtext.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[64];

const char *authtext_write(const char *text)
{
    if (path[0] == '\0') {
        strcpy(path, "/tmp/redlockd-auth.XXXXXX");
        int made = mkstemp(path);
        ck_assert_int_ge(made, 0);
        close(made);
    }
    int fd = open(path, O_WRONLY | O_TRUNC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    return path;
}

struct access *authtext_access(const char *text)
{
    char error[IDENTITIES_TEXT_MAX];
    struct access *access = access_new(authtext_write(text), error);
    ck_assert_msg(access != NULL, "%s", error);
    return access;
}

void authtext_expect_metric(struct access *access, int64_t now_us,
                            const char *line)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    ck_assert(access_print(access, now_us, out));
    (void)fclose(out);
    ck_assert_msg(strstr(text, line) != NULL, "no %s in %s", line, text);
    free(text);
}

void authtext_remove(void)
{
    if (path[0] != '\0')
        ck_assert_int_eq(unlink(path), 0);
    path[0] = '\0';
}
