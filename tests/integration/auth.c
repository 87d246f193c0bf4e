/* SPDX-License-Identifier: MIT */
#include "auth.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

void auth_make(char path[PATH_SIZE], const char *text)
{
    char dir[PATH_SIZE];
    harness_make_dir(dir);
    snprintf(path, PATH_SIZE, "%.200s/auth", dir);
    write_text(path, text);
}

const char auth_standard[] =
    "# the tests' own\n"
    "red " AUTH_RED " lock,read prefix=r/ prefix=shared%20/\n"
    "green " AUTH_GREEN " lock,read prefix=g/ prefix=shared%20/\n"
    "blue " AUTH_BLUE " lock,read,metrics,admin prefix=*\n"
    "gate cert:dns:gate lock prefix=*\n";

void auth_reload(const struct server *server, const char *path,
                 const char *text)
{
    int before = server_count_log(server, "event=auth_file_re");
    const char *other = textf("%s.new", path);
    write_text(other, text);
    ck_assert_int_eq(rename(other, path), 0);
    kill(server->pid, SIGHUP);
    SOON(server_count_log(server, "event=auth_file_re") > before);
}

const struct answer *auth_call(const struct server *server, const char *token,
                               const struct request *request)
{
    struct request with = *request;
    int at = 0;
    while (with.headers[at] != NULL)
        at++;
    if (token != NULL)
        with.headers[at] = textf("Authorization: Bearer %s", token);
    return http_call(server, &with);
}

const struct answer *auth_acquire(const struct server *server,
                                  const char *token, const char *json,
                                  struct lock *lock)
{
    const struct answer *answer =
        AUTH(server, token, .method = "POST", .path = "/locks", .json = json);
    if (lock != NULL && answer->status < 300)
        lock_read(lock, answer->json);
    return answer;
}

const struct answer *auth_release(const struct server *server,
                                  const char *token, const struct lock *lock)
{
    return AUTH(server, token, .method = "DELETE", .path = lock->path,
                .token = lock->token);
}

double auth_metric(const struct server *server, const char *token,
                   const char *sample)
{
    const struct answer *answer =
        AUTH(server, token, .method = "GET", .path = "/metrics");
    const char *line = strstr(answer->body, sample);
    expect_ok(answer);
    return line != NULL ? strtod(line + strlen(sample), NULL) : -1;
}
