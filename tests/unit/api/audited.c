/* SPDX-License-Identifier: MIT */
#include "audited.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../../server/base/log.h"
#include "../said.h"

enum { TEXT_MAX = 4 * 1024 * 1024 };

struct audited audited;

static char dir[sizeof "/tmp/redlockd-audit.XXXXXX"];

void audited_open(struct access *access)
{
    char error[400];
    audited.setup.access = access;
    audited.audit = audit_open(&audited.setup, error, sizeof error);
    ck_assert_msg(audited.audit != NULL, "%s", error);
    ask.service.audit = audited.audit;
}

void audited_begin(void)
{
    said_begin();
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)strcpy(dir, "/tmp/redlockd-audit.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(audited.path, sizeof audited.path, "%s/audit", dir);
    (void)snprintf(audited.moved, sizeof audited.moved, "%s/audit.1", dir);
    ask_begin();
    log_set_level(LOG_INFO);
    audited.loop = loop_new();
    audited.setup = (struct audit_setup){
        .loop = audited.loop, .metrics = &play.metrics, .path = audited.path};
    audited_open(NULL);
    (void)strcpy(ask.request.identity, "billing");
    ask.request.client = "127.0.0.1:9";
}

void audited_end(void)
{
    audit_free(audited.audit);
    ask_end();
    loop_free(audited.loop);
    (void)unlink(audited.path);
    (void)unlink(audited.moved);
    ck_assert_int_eq(rmdir(dir), 0);
    said_end();
}

void audited_fill(void)
{
    static char line[AUDITED_FILLED];
    int fd = open(audited.path, O_WRONLY | O_APPEND);
    memset(line, '#', sizeof line);
    line[AUDITED_FILLED - 1] = '\n';
    ck_assert_int_eq(write(fd, line, sizeof line), (int)sizeof line);
    close(fd);
}

void audited_limit(bool is_limited)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = is_limited ? AUDITED_FILLED : limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void audited_block(void)
{
    audited_fill();
    audited_limit(true);
}

char *audited_all(const char *name)
{
    static char text[TEXT_MAX];
    int fd = open(name, O_RDONLY);
    ck_assert_int_ge(fd, 0);
    ssize_t len = read(fd, text, sizeof text - 1);
    ck_assert_int_ge(len, 0);
    text[len] = '\0';
    close(fd);
    return text;
}

int audited_count(const char *name)
{
    const char *at = audited_all(name);
    int count = 0;
    for (; (at = strchr(at, '\n')) != NULL; at++)
        count++;
    return count;
}

const char *audited_line(const char *name, int n)
{
    char *line = audited_all(name), *end;
    for (; (end = strchr(line, '\n')) != NULL; line = end + 1, n--) {
        *end = '\0';
        if (n == 0)
            return line;
    }
    return NULL;
}

const char *audited_body(const char *line)
{
    static const char form[] = "{\"ts\":\"0000-00-00T00:00:00.000Z\",";
    ck_assert_ptr_nonnull(line);
    for (size_t i = 0; i < sizeof form - 1; i++)
        ck_assert_msg(form[i] == '0' ? line[i] >= '0' && line[i] <= '9'
                                     : line[i] == form[i],
                      "%s", line);
    return line + sizeof form - 1;
}
