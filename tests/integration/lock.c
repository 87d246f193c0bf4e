/* SPDX-License-Identifier: MIT */
/*
 * The four calls on a lock.
 */
#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/jsonat/jsonat.h"

static char *body_of(json_t *object)
{
    static char text[4096];
    size_t len = json_dumpb(object, text, sizeof text - 1, JSON_COMPACT);

    ck_assert_uint_gt(len, 0);
    ck_assert_uint_lt(len, sizeof text);
    text[len] = '\0';
    json_decref(object);
    return text;
}

void lock_read(struct lock *lock, json_t *body)
{
    const char *resource = "", *id, *token;

    ck_assert_int_eq(json_unpack(body, "{s?s,ss,ss,sI,sI}", "resource",
                                 &resource, "id", &id, "token", &token,
                                 "fencing_token", &lock->number, "validity_ms",
                                 &lock->validity_ms),
                     0);
    snprintf(lock->resource, sizeof lock->resource, "%s", resource);
    snprintf(lock->path, sizeof lock->path, "/locks/%s", id);
    snprintf(lock->token, sizeof lock->token, "%s", token);
}

const struct answer *lock_acquire(const struct server *server,
                                  const char *resource, int ttl_ms,
                                  struct lock *lock)
{
    json_t *object =
        json_pack("{ss,si}", "resource", resource, "ttl_ms", ttl_ms);
    const struct answer *answer = HTTP(
        server, .method = "POST", .path = "/locks", .json = body_of(object));

    if (answer->status == 201 && lock) {
        lock_read(lock, answer->json);
        ck_assert_str_eq(answer_header(answer, "Location"), lock->path);
    }
    return answer;
}

const struct answer *lock_take(const struct server *server,
                               const char *resource, int ttl_ms,
                               struct lock *lock)
{
    return answer_expect(lock_acquire(server, resource, ttl_ms, lock), 201,
                         NULL);
}

const struct answer *lock_extend(const struct server *server,
                                 const struct lock *lock, int ttl_ms)
{
    return HTTP(server, .method = "PUT", .path = textf("%s/extend", lock->path),
                .token = lock->token,
                .json = body_of(json_pack("{si}", "ttl_ms", ttl_ms)));
}

const struct answer *lock_release(const struct server *server,
                                  const struct lock *lock)
{
    return HTTP(server, .method = "DELETE", .path = lock->path,
                .token = lock->token);
}

const struct answer *lock_drop(const struct server *server,
                               const struct lock *lock)
{
    return expect_ok(lock_release(server, lock));
}

const struct answer *lock_inspect(const struct server *server,
                                  const char *resource)
{
    return HTTP(server, .method = "GET", .path = textf("/locks/%s", resource));
}

void lock_expect_cycle(const struct server *server, const char *resource)
{
    struct lock lock;

    lock_take(server, resource, 9000, &lock);
    lock_drop(server, &lock);
}

/* ---- in the client's own words --------------------------------------------
 */

const struct answer *grant_ask(const struct server *server, const char *json,
                               const char *key, struct lock *lock)
{
    struct request request = {.method = "POST", .path = "/locks", .json = json};
    if (key != NULL)
        request.headers[0] = textf("Idempotency-Key: %s", key);
    const struct answer *answer = http_call(server, &request);
    if (lock != NULL && answer->status < 300)
        lock_read(lock, answer->json);
    return answer;
}

const struct answer *grant_take(const struct server *server, const char *json,
                                const char *key, struct lock *lock)
{
    return answer_expect(grant_ask(server, json, key, lock), 201, NULL);
}

const struct answer *grant_extend(const struct server *server,
                                  const struct lock *lock, const char *members)
{
    return HTTP(server, .method = "PUT", .path = textf("%s/extend", lock->path),
                .json = textf("{%s,\"token\":\"%s\"}", members, lock->token));
}

const struct answer *grant_inspect(const struct server *server,
                                   const struct lock *lock)
{
    return HTTP(server, .method = "GET", .path = lock->path);
}

int grant_send(const struct server *server, const char *json, const char *key)
{
    return raw_post(server, json,
                    key ? textf("Idempotency-Key: %s\r\n", key) : "");
}

struct lock grant_read(int fd, int status, int ms)
{
    struct lock lock = {0};
    char out[4096];
    raw_read(fd, out, sizeof out, "}\n", ms);
    ck_assert_msg(atoi(out + strlen("HTTP/1.1 ")) == status, "%s", out);
    json_t *body = json_loads(strstr(out, "\r\n\r\n") + 4, 0, NULL);
    ck_assert_ptr_nonnull(body);
    if (json_at(body, "token") != NULL)
        lock_read(&lock, body);
    else
        lock.number = json_integer_value(json_at(body, "fencing_token"));
    json_decref(body);
    return lock;
}
