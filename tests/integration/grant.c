#include "grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/jsonat/jsonat.h"

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
