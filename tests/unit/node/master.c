#include "master.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../lib/folder/folder.h"
#include "../../lib/suite/suite.h"

enum { TRIES = 1000, TRY_US = 10000, HEAR_S = 5 };

static void run_server(const struct master *master)
{
    const char *out = textf("%s/log", master->dir);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(out, O_WRONLY | O_CREAT, 0600);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(126);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
           master->path, "--dir", master->dir, "--save", "", "--appendonly",
           "no", (char *)NULL);
    _exit(127);
}

static bool is_answering(struct master *master)
{
    master->redis = redisConnectUnix(master->path);
    redisReply *reply = NULL;
    if (master->redis != NULL && master->redis->err == 0)
        reply = redisCommand(master->redis, "PING");
    bool is_pong = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (reply != NULL)
        freeReplyObject(reply);
    if (!is_pong && master->redis != NULL)
        redisFree(master->redis);
    return is_pong;
}

void master_start(struct master *master)
{
    master->ears = NULL;
    snprintf(master->dir, sizeof master->dir, "/tmp/redlockd-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(master->dir));
    snprintf(master->path, sizeof master->path, "%s/s", master->dir);
    master->pid = fork();
    ck_assert_int_ge(master->pid, 0);
    if (master->pid == 0)
        run_server(master);
    for (int i = 0; i < TRIES; i++) {
        if (is_answering(master))
            return;
        ck_assert_msg(waitpid(master->pid, NULL, WNOHANG) == 0,
                      "redis-server does not start");
        usleep(TRY_US);
    }
    ck_abort_msg("redis-server does not answer");
}

void master_stop(struct master *master)
{
    redisFree(master->redis);
    if (master->ears != NULL)
        redisFree(master->ears);
    kill(master->pid, SIGKILL);
    waitpid(master->pid, NULL, 0);
    ck_assert(folder_remove(master->dir));
}

static redisReply *ask(struct master *master, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(master->redis, format, args);
    ck_assert_msg(reply != NULL, "%s: %s", format, master->redis->errstr);
    return reply;
}

const char *master_text(struct master *master, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask(master, format, args);
    va_end(args);
    const char *text = textf("%s", reply->str != NULL ? reply->str : "");
    freeReplyObject(reply);
    return text;
}

long long master_integer(struct master *master, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = ask(master, format, args);
    va_end(args);
    ck_assert_msg(reply->type == REDIS_REPLY_INTEGER, "%s: %s", format,
                  reply->str != NULL ? reply->str : "no integer");
    long long integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

/* ---- announcements ------------------------------------------------------ */

static redisReply *try_subscribe(struct master *master, const char *channel)
{
    if (master->ears == NULL) {
        master->ears = redisConnectUnix(master->path);
        ck_assert_ptr_nonnull(master->ears);
        redisSetTimeout(master->ears, (struct timeval){.tv_sec = HEAR_S});
    }
    return redisCommand(master->ears, "SUBSCRIBE %s", channel);
}

void master_subscribe(struct master *master, const char *channel)
{
    redisReply *reply = try_subscribe(master, channel);
    if (reply == NULL) { /* the server has closed it */
        redisFree(master->ears);
        master->ears = NULL;
        reply = try_subscribe(master, channel);
    }
    ck_assert_ptr_nonnull(reply);
    ck_assert_uint_eq(reply->elements, 3);
    ck_assert_str_eq(reply->element[0]->str, "subscribe");
    freeReplyObject(reply);
}

const char *master_hear(struct master *master)
{
    redisReply *reply;
    ck_assert_msg(redisGetReply(master->ears, (void **)&reply) == REDIS_OK,
                  "nothing was announced");
    ck_assert_uint_eq(reply->elements, 3);
    ck_assert_str_eq(reply->element[0]->str, "message");
    const char *message = reply->element[2]->str;
    const char *heard = textf("%s%s%s", reply->element[1]->str,
                              message[0] != '\0' ? "=" : "", message);
    freeReplyObject(reply);
    return heard;
}
