/* SPDX-License-Identifier: MIT */
#include "waiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node.h"

enum { TEXT_SIZE = 4096 };

int waiter_send(const struct server *server, const char *resource, int ttl_ms,
                int wait_ms)
{
    return raw_post(server,
                    textf("{\"resource\":\"%s\",\"ttl_ms\":%d,"
                          "\"wait_ms\":%d}",
                          resource, ttl_ms, wait_ms),
                    "");
}

void waiter_expect_count(const struct server *server, int count)
{
    AWHILE((int)http_metric(server, "redlockd_waiters") == count);
}

static void fill(struct verdict *verdict, json_t *body)
{
    json_t *waited = json_object_get(body, "waited_ms");
    json_t *elapsed = json_object_get(body, "elapsed_ms");
    json_t *code = json_object_get(body, "code");
    verdict->waited_ms = waited ? (int)json_integer_value(waited) : -1;
    verdict->elapsed_ms = elapsed ? (int)json_integer_value(elapsed) : -1;
    if (code)
        PRINT_TO(verdict->code, "%s", json_string_value(code));
    if (verdict->status == 201)
        lock_read(&verdict->lock, body);
}

struct verdict waiter_read(int fd, int ms)
{
    struct verdict verdict = {0};
    char out[TEXT_SIZE];
    raw_read(fd, out, sizeof out, "}\n", ms);
    close(fd);
    ck_assert_msg(strncmp(out, "HTTP/1.1 ", 9) == 0, "answer: '%s'", out);
    verdict.status = (int)strtol(out + 9, NULL, 10);
    const char *text = strstr(out, "\r\n\r\n");
    ck_assert_ptr_nonnull(text);
    json_t *body = json_loads(text + 4, 0, NULL);
    ck_assert_msg(body, "body: '%s'", text);
    fill(&verdict, body);
    json_decref(body);
    return verdict;
}

struct verdict waiter_expect_grant(int fd, const char *resource, int ms)
{
    struct verdict verdict = waiter_read(fd, ms);
    ck_assert_msg(verdict.status == 201, "%d %s", verdict.status, verdict.code);
    ck_assert_str_eq(verdict.lock.resource, resource);
    ck_assert_int_gt(verdict.lock.validity_ms, 0);
    return verdict;
}

static int count_listeners(struct node *node, const char *resource)
{
    return (int)node_integer(
        node, "EVAL %s 0 redlockd:released:%s",
        "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]", resource);
}

void waiter_expect_listeners(const char *resource, int servers)
{
    for (int i = 0; i < world.nodes_count; i++)
        SOON(count_listeners(&world.nodes[i], resource) == servers);
}

int waiter_handovers(const struct server *server, const char *cause)
{
    const char *sample = textf("redlockd_handovers_total{cause=\"%s\"}", cause);
    return (int)http_metric(server, sample);
}
