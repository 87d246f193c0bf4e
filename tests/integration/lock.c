/*
 * The four calls on a lock.
 */
#include "http.h"

#include <stdio.h>
#include <string.h>

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

static void fill(struct lock *lock, const char *resource,
                 const struct answer *answer)
{
    const char *path = answer_header(answer, "Location");

    ck_assert_ptr_nonnull(path);
    snprintf(lock->resource, sizeof lock->resource, "%s", resource);
    snprintf(lock->path, sizeof lock->path, "%s", path);
    snprintf(lock->token, sizeof lock->token, "%s",
             answer_text(answer, "token"));
    lock->number = answer_int(answer, "fencing_token");
    lock->validity_ms = answer_int(answer, "validity_ms");
}

const struct answer *lock_acquire(const struct server *server,
                                  const char *resource, int ttl_ms,
                                  struct lock *lock)
{
    json_t *object =
        json_pack("{ss,si}", "resource", resource, "ttl_ms", ttl_ms);
    const struct answer *answer = HTTP(
        server, .method = "POST", .path = "/locks", .json = body_of(object));

    if (answer->status == 201 && lock)
        fill(lock, resource, answer);
    return answer;
}

const struct answer *lock_extend(const struct server *server,
                                 const struct lock *lock, int ttl_ms)
{
    char path[1520];

    snprintf(path, sizeof path, "%s/extend", lock->path);
    return HTTP(server, .method = "PUT", .path = path, .token = lock->token,
                .json = body_of(json_pack("{si}", "ttl_ms", ttl_ms)));
}

const struct answer *lock_release(const struct server *server,
                                  const struct lock *lock)
{
    return HTTP(server, .method = "DELETE", .path = lock->path,
                .token = lock->token);
}

const struct answer *lock_inspect(const struct server *server,
                                  const char *resource)
{
    char path[1100];

    snprintf(path, sizeof path, "/locks/%s", resource);
    return HTTP(server, .method = "GET", .path = path);
}

void lock_expect_cycle(const struct server *server, const char *resource)
{
    struct lock lock;

    answer_expect(lock_acquire(server, resource, 9000, &lock), 201, NULL);
    answer_expect(lock_release(server, &lock), 200, NULL);
}
