/* SPDX-License-Identifier: MIT */
#include "real.h"

#include <fcntl.h>
#include <ftw.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TRIES = 6000, TRY_US = 10000 }; /* a minute: others may compile */

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "a real node: %s: %s\n", what, why);
    exit(EXIT_FAILURE);
}

/* ---- begin and end ------------------------------------------------------ */

static void run_server(const struct real *real)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open("/dev/null", O_WRONLY);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0)
        _exit(126);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
           real->path, "--dir", real->dir, "--save", "", "--appendonly", "no",
           "--enable-debug-command", "yes", (char *)NULL);
    _exit(127);
}

/* NULL: it does not answer. */
static redisContext *connect_to(const struct real *real)
{
    redisContext *redis = redisConnectUnix(real->path);
    if (redis == NULL || redis->err == 0)
        return redis;
    redisFree(redis);
    return NULL;
}

static void load_script(struct real *real)
{
    struct span text = script_text();
    redisReply *reply =
        redisCommand(real->redis, "SCRIPT LOAD %b", text.ptr, text.len);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        fail("the script", reply != NULL ? reply->str : real->redis->errstr);
    snprintf(real->sha, sizeof real->sha, "%s", reply->str);
    freeReplyObject(reply);
}

void real_start(struct real *real)
{
    snprintf(real->dir, sizeof real->dir, "/tmp/redlockd-XXXXXX");
    if (mkdtemp(real->dir) == NULL)
        fail("a directory", "cannot be made");
    snprintf(real->path, sizeof real->path, "%s/s", real->dir);
    real->pid = fork();
    if (real->pid < 0)
        fail("redis-server", "cannot be forked");
    if (real->pid == 0)
        run_server(real);
    int tries = 0;
    while ((real->redis = connect_to(real)) == NULL) {
        if (++tries == TRIES || waitpid(real->pid, NULL, WNOHANG) != 0)
            fail("redis-server", "does not start");
        usleep(TRY_US);
    }
    real->ears = connect_to(real);
    if (real->ears == NULL)
        fail("redis-server", "takes no second connection");
    load_script(real);
}

static void forget_said(struct real *real)
{
    for (int i = 0; i < real->batches; i++)
        freeReplyObject(real->said[i]);
    real->batches = 0;
}

static int remove_one(const char *path, const struct stat *status, int type,
                      struct FTW *at)
{
    (void)status, (void)type, (void)at;
    return remove(path);
}

void real_stop(struct real *real)
{
    forget_said(real);
    redisFree(real->redis);
    redisFree(real->ears);
    kill(real->pid, SIGKILL);
    waitpid(real->pid, NULL, 0);
    /* a child that saves outlives it, and makes and removes files in there */
    int tries = 0;
    while (nftw(real->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) != 0) {
        if (++tries == TRIES)
            fail(real->dir, "cannot be removed");
        usleep(TRY_US);
    }
}

static redisReply *say(struct real *real, const char *format, va_list args)
{
    redisReply *reply = redisvCommand(real->redis, format, args);
    if (reply == NULL)
        fail(format, real->redis->errstr);
    return reply;
}

void real_command(struct real *real, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = say(real, format, args);
    va_end(args);
    if (reply->type == REDIS_REPLY_ERROR)
        fail(format, reply->str);
    freeReplyObject(reply);
}

const char *real_text(struct real *real, const char *format, ...)
{
    static char texts[4][4096];
    static int next;
    char *text = texts[next++ % 4];
    va_list args;
    va_start(args, format);
    redisReply *reply = say(real, format, args);
    va_end(args);
    snprintf(text, sizeof *texts, "%s", reply->str != NULL ? reply->str : "");
    freeReplyObject(reply);
    return text;
}

long long real_integer(struct real *real, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    redisReply *reply = say(real, format, args);
    va_end(args);
    if (reply->type != REDIS_REPLY_INTEGER)
        fail(format, reply->str != NULL ? reply->str : "no integer");
    long long integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

void real_info(struct real *real, const char *section, const char *name,
               char value[SIM_REPLID_LEN + 1])
{
    redisReply *reply = redisCommand(real->redis, "INFO %s", section);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING)
        fail("INFO", real->redis->errstr);
    const char *found = strstr(reply->str, name);
    if (found == NULL)
        fail(name, "is missing");
    found += strlen(name);
    size_t len = strcspn(found, "\r");
    if (len > SIM_REPLID_LEN)
        fail(name, "is too long");
    memcpy(value, found, len);
    value[len] = '\0';
    freeReplyObject(reply);
}

/* ---- announcements ------------------------------------------------------ */

#define CHANNEL REAL_PREFIX SCRIPT_RELEASED

void real_subscribe(struct real *real, const char *resource, bool is_on)
{
    redisReply *reply =
        redisCommand(real->ears, is_on ? "SUBSCRIBE %s%s" : "UNSUBSCRIBE %s%s",
                     CHANNEL, resource);
    if (reply == NULL || reply->type != REDIS_REPLY_ARRAY)
        fail("a subscription", real->ears->errstr);
    freeReplyObject(reply);
}

/* Appends resource and message to text. False: it is the reply to the PING. */
static bool take_message(const redisReply *reply, char text[REAL_HEARD_MAX])
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3)
        return false;
    const redisReply *const *it = (const redisReply *const *)reply->element;
    size_t len = strlen(text);
    if (strcmp(it[0]->str, "message") != 0 ||
        strncmp(it[1]->str, CHANNEL, strlen(CHANNEL)) != 0)
        fail("a message", it[1]->str);
    snprintf(text + len, REAL_HEARD_MAX - len, " %s=%s",
             it[1]->str + strlen(CHANNEL), it[2]->str);
    return true;
}

void real_hear(struct real *real, char text[REAL_HEARD_MAX])
{
    text[0] = '\0';
    redisAppendCommand(real->ears, "PING");
    for (bool is_message = true; is_message;) {
        redisReply *reply;
        if (redisGetReply(real->ears, (void **)&reply) != REDIS_OK)
            fail("an announcement", real->ears->errstr);
        is_message = take_message(reply, text);
        freeReplyObject(reply);
    }
}

/* ---- calls -------------------------------------------------------------- */

struct fields {
    int count;
    struct script_field field[BATCH_FIELDS_MAX];
};

/* The decoder wants an array before its elements. */
/* NOLINTNEXTLINE(misc-no-recursion): two levels deep */
static void flatten(struct fields *fields, const redisReply *reply)
{
    if (fields->count == BATCH_FIELDS_MAX)
        fail("a reply", "is too long");
    struct script_field *field = &fields->field[fields->count++];
    *field = (struct script_field){.type = SCRIPT_FIELD_NIL};
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        field->type = SCRIPT_FIELD_INTEGER;
        field->integer = reply->integer;
        break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
    case REDIS_REPLY_ERROR:
        field->type = reply->type == REDIS_REPLY_ERROR ? SCRIPT_FIELD_ERROR
                                                       : SCRIPT_FIELD_STRING;
        field->string = (struct span){reply->str, reply->len};
        break;
    case REDIS_REPLY_ARRAY:
        field->type = SCRIPT_FIELD_ARRAY;
        field->integer = (int64_t)reply->elements;
        for (size_t i = 0; i < reply->elements; i++)
            flatten(fields, reply->element[i]);
        break;
    default:
        break;
    }
}

static redisReply *send_batch(struct real *real, const struct batch *batch)
{
    static const char *argv[BATCH_COMMAND_MAX];
    static size_t len[BATCH_COMMAND_MAX];
    struct batch_command command;
    batch_command(batch, real->sha, &command);
    for (int i = 0; i < command.count; i++) {
        len[i] = command.args[i].len;
        argv[i] = len[i] > 0 ? command.args[i].ptr : "";
    }
    redisReply *reply = redisCommandArgv(real->redis, command.count, argv, len);
    if (reply == NULL)
        fail("a call", real->redis->errstr);
    return reply;
}

/* As many of the calls as one batch holds; returns how many. */
static int ask_batch(struct real *real, const struct call *calls, int count,
                     struct call_reply *replies)
{
    static struct batch batch;
    static struct fields fields;
    struct batch_reader reader;
    int taken = 0;
    batch_reset(&batch);
    batch.prefix = span_of(REAL_PREFIX);
    while (taken < count && batch_add(&batch, &calls[taken]))
        taken++;
    if (taken == 0 || real->batches == REAL_BATCHES_MAX)
        fail("a batch", "has no room");
    redisReply *reply = send_batch(real, &batch);
    real->said[real->batches++] = reply;
    fields.count = 0;
    flatten(&fields, reply);
    batch_read(&reader, fields.field, fields.count, taken);
    for (int i = 0; i < taken; i++)
        replies[i] = batch_next(&reader, calls[i].kind);
    return taken;
}

int real_ask(struct real *real, const struct call *calls, int count,
             struct call_reply *replies)
{
    forget_said(real);
    for (int at = 0; at < count;)
        at += ask_batch(real, calls + at, count - at, replies + at);
    return real->batches;
}

void real_run(struct real *real, const struct call *calls, int count,
              struct simreply *replies)
{
    struct call_reply said[BATCH_CALLS_MAX];
    if (real_ask(real, calls, count, said) != 1)
        fail("a batch", "has no room");
    for (int i = 0; i < count; i++) {
        replies[i].reply = said[i];
        simreply_keep(&replies[i]);
    }
}
