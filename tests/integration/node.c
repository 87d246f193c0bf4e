/*
 * hiredis' blocking API, one connection a node.
 */
#include "node.h"

#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TIMEOUT_S = 10, TEXT_SIZE = 4096 };

void node_disconnect(struct node *node)
{
    if (node->redis)
        redisFree(node->redis);
    node->redis = NULL;
}

static redisReply *ask(struct node *node, const char *format, va_list args)
{
    struct timeval timeout = {TIMEOUT_S, 0};

    if (!node->redis)
        node->redis = redisConnectWithTimeout("127.0.0.1", node->port, timeout);
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
    static char text[TEXT_SIZE];
    va_list args;

    va_start(args, format);
    redisReply *reply = ask(node, format, args);
    va_end(args);
    check_reply(node, reply, format);
    bool is_nil = reply->type == REDIS_REPLY_NIL;
    if (!is_nil)
        snprintf(text, sizeof text, "%s", reply->str);
    freeReplyObject(reply);
    return is_nil ? NULL : text;
}

int world_count_keys(struct world *world, const char *key)
{
    int count = 0;

    for (int i = 0; i < world->nodes_count; i++)
        if (world->nodes[i].pid)
            count += (int)node_integer(&world->nodes[i], "EXISTS %s", key);
    return count;
}

void world_set(struct world *world, int first, int count, const char *key,
               const char *value, int ttl_ms)
{
    for (int i = first; i < first + count; i++) {
        if (ttl_ms)
            node_do(&world->nodes[i], "SET %s %s PX %d", key, value, ttl_ms);
        else
            node_do(&world->nodes[i], "SET %s %s", key, value);
    }
}

void world_del(struct world *world, int first, int count, const char *key)
{
    for (int i = first; i < first + count; i++)
        node_do(&world->nodes[i], "DEL %s", key);
}
