/* SPDX-License-Identifier: MIT */
/*
 * hiredis' blocking API, one connection a node.
 */
#include "node.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TIMEOUT_S = 10, SYNC_MS = 10000 };

void node_disconnect(struct node *node)
{
    if (node->redis)
        redisFree(node->redis);
    node->redis = NULL;
}

redisContext *node_connect(const struct node *node)
{
    const struct timeval timeout = {TIMEOUT_S, 0};

    if (!*node->tls)
        return redisConnectWithTimeout("127.0.0.1", node->port, timeout);
    return redisConnectUnixWithTimeout(textf("%s/socket", node->dir), timeout);
}

static redisReply *ask(struct node *node, const char *format, va_list args)
{
    struct timeval timeout = {TIMEOUT_S, 0};

    if (!node->redis)
        node->redis = node_connect(node);
    if (!node->redis)
        return NULL;
    redisReply *reply = NULL;
    if (!node->redis->err && redisSetTimeout(node->redis, timeout) == REDIS_OK)
        reply = redisvCommand(node->redis, format, args);
    if (!reply)
        node_disconnect(node);
    return reply;
}

static void check_reply(const struct node *node, const redisReply *reply,
                        const char *format)
{
    ck_assert_msg(reply, "node %d does not answer %s", node->port, format);
    ck_assert_msg(reply->type != REDIS_REPLY_ERROR, "node %d: %s: %s",
                  node->port, format, reply->str);
}

redisReply *node_try(struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = ask(node, format, args);
    va_end(args);
    return reply;
}

void node_do(struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = ask(node, format, args);
    va_end(args);
    check_reply(node, reply, format);
    freeReplyObject(reply);
}

long long node_integer(struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = ask(node, format, args);
    va_end(args);
    check_reply(node, reply, format);
    ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
    long long integer = reply->integer;
    freeReplyObject(reply);
    return integer;
}

const char *node_text(struct node *node, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    redisReply *reply = ask(node, format, args);
    va_end(args);
    check_reply(node, reply, format);
    bool is_nil = reply->type == REDIS_REPLY_NIL;
    const char *text = is_nil ? NULL : textf("%s", reply->str);
    freeReplyObject(reply);
    return text;
}

int node_count(struct node *node, const char *command)
{
    char name[64];
    int len = snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    redisReply *reply = node_try(node, "INFO commandstats");

    ck_assert_ptr_nonnull(reply);
    const char *at = strstr(reply->str, name);
    int calls = at ? (int)strtol(at + len, NULL, 10) : 0;
    freeReplyObject(reply);
    return calls;
}

/* ---- memory of another --------------------------------------------------- */

static bool has_synced(struct node *node)
{
    const char *info = node_text(node, "INFO replication");

    return strstr(info, "master_link_status:up") &&
           strstr(info, "master_sync_in_progress:0");
}

void node_replicate(struct node *node, struct node *source)
{
    node_do(source, "CONFIG SET repl-diskless-sync-delay 0");
    node_do(node, "REPLICAOF 127.0.0.1 %d", source->port);
    SOON(has_synced(node));
}

static void run(char *const argv[])
{
    ck_assert_int_eq(harness_reap(harness_spawn(argv, NULL, NULL), SYNC_MS), 0);
}

void node_copy_files(const struct node *to, const struct node *from)
{
    char source[PATH_SIZE + 16], target[PATH_SIZE + 16];

    ck_assert_int_eq(to->pid, 0);
    snprintf(source, sizeof source, "%s/appendonlydir", from->dir);
    snprintf(target, sizeof target, "%s/appendonlydir", to->dir);
    run((char *[]){"rm", "-rf", target, NULL});
    run((char *[]){"cp", "-a", source, target, NULL});
}

/* The first one: it is too short to be rewritten. */
static void file_path(const struct node *node, char path[PATH_SIZE + 64])
{
    snprintf(path, PATH_SIZE + 64, "%s/appendonlydir/appendonly.aof.1.incr.aof",
             node->dir);
}

long node_file_length(const struct node *node)
{
    char path[PATH_SIZE + 64];
    struct stat info;

    file_path(node, path);
    ck_assert_int_eq(stat(path, &info), 0);
    return (long)info.st_size;
}

void node_cut_file(const struct node *node, long length)
{
    char path[PATH_SIZE + 64];

    ck_assert_int_eq(node->pid, 0);
    ck_assert_int_le(length, node_file_length(node));
    file_path(node, path);
    ck_assert_int_eq(truncate(path, length), 0);
}

void node_start_copy(struct node *copy, const struct node *node)
{
    *copy = (struct node){.is_durable = true, .port = harness_free_port()};
    harness_make_dir(copy->dir);
    node_copy_files(copy, node);
    node_start(copy);
}

void node_bring_back(struct node *node, struct node *copy)
{
    node_replicate(node, copy);
    node_do(node, "REPLICAOF NO ONE");
}

void node_disturb(struct node *node, char how, int ms)
{
    if (how == 'p')
        node_pause(node);
    else if (how == 'k')
        node_kill(node);
    else
        node_do(node, "FLUSHALL");
    pause_ms(ms);
    if (how == 'p')
        node_resume(node);
    else if (how == 'k')
        node_start(node);
}

/* ---- clocks -------------------------------------------------------------- */

/* The page of tests/nemesis/shim.c, with one setting of two in use. */
struct setting {
    int64_t base_ns, offset_ns, rate_ppb;
};

static void write_page(int fd, const void *data, size_t size, size_t at)
{
    ck_assert_int_eq(pwrite(fd, data, size, (off_t)at), (ssize_t)size);
}

void node_set_clock(const struct node *node, int64_t ms)
{
    const struct setting setting = {.offset_ns = ms * 1000000};
    const struct setting none[2] = {{0}};
    const size_t settings = 8;
    uint8_t index = 0;

    const char *path = textf("%s/clock", node->dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    if (pread(fd, &index, 1, 0) == 0) { /* a new one */
        write_page(fd, none, sizeof none, settings);
        write_page(fd, &(uint64_t){0}, settings, 0);
    }
    index = !index;
    write_page(fd, &setting, sizeof setting, settings + index * sizeof setting);
    write_page(fd, &index, 1, 0); /* one byte: seen as a whole */
    close(fd);
}

/* ---- keys ---------------------------------------------------------------- */

int count_keys(const char *key)
{
    int count = 0;

    for (int i = 0; i < world.nodes_count; i++)
        if (world.nodes[i].pid)
            count += (int)node_integer(&world.nodes[i], "EXISTS %s", key);
    return count;
}

void expect_keys(const char *key, int count)
{
    SOON(count_keys(key) == count);
}

void world_set(int first, int count, const char *key, const char *value,
               int ttl_ms)
{
    for (int i = first; i < first + count; i++) {
        if (ttl_ms)
            node_do(&world.nodes[i], "SET %s %s PX %d", key, value, ttl_ms);
        else
            node_do(&world.nodes[i], "SET %s %s", key, value);
    }
}

void world_del(int first, int count, const char *key)
{
    for (int i = first; i < first + count; i++)
        node_do(&world.nodes[i], "DEL %s", key);
}
