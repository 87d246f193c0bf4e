/*
 * POST /batch: many operations in one request, while nodes, servers and clients
 * come and go.
 */
#include <stdio.h>
#include <string.h>

#include "http.h"
#include "node.h"

enum { N = 5, MANY = 100, TTL_MS = 60000, SHORT_MS = 20000, BODY_MAX = 40000 };

WORLD(world_start_two, N, "--node-timeout-ms 500");
static struct lock locks[MANY];

SUITE(batches, .timeout_s = 90, WORLD_ONCE);

static void hold(int count, const char *prefix, int ttl_ms)
{
    for (int i = 0; i < count; i++) {
        const char *resource = textf("%s/%d", prefix, i);
        lock_take(&world.servers[i % 2], resource, ttl_ms, &locks[i]);
    }
}

/* The body; each operation is written by put. */
static const char *make(int count, const char *(*put)(int n))
{
    static char body[BODY_MAX];
    int len = snprintf(body, sizeof body, "{\"operations\":[");
    for (int i = 0; i < count; i++)
        len += snprintf(body + len, sizeof body - (size_t)len, "%s%s",
                        i > 0 ? "," : "", put(i));
    snprintf(body + len, sizeof body - (size_t)len, "]}");
    return body;
}

/* The answer stays until the next one. */
static const struct answer *ask(int server, const char *body)
{
    return HTTP(&world.servers[server], "POST", "/batch", .json = body);
}

static const char *with_token(const char *operation, int n)
{
    return textf("{\"operation\":\"%s\",\"id\":\"%s\",\"token\":\"%s\"",
                 operation, locks[n].path + strlen("/locks/"), locks[n].token);
}

static const char *put_extend(int n)
{
    return textf("%s,\"ttl_ms\":%d}", with_token("extend", n), TTL_MS);
}

static const char *put_release(int n)
{
    return textf("%s}", with_token("release", n));
}

static const char *put_acquire(int n)
{
    return textf("{\"operation\":\"acquire\",\"resource\":\"taken/%d\","
                 "\"ttl_ms\":%d,\"idempotency_key\":\"0123456789-%08d\"}",
                 n, TTL_MS, n);
}

/* Of three, one of each. */
static const char *put_mixed(int n)
{
    return n % 3 == 0   ? put_acquire(n)
           : n % 3 == 1 ? put_extend(n)
                        : put_release(n);
}

static const json_t *result(const struct answer *answer, int n)
{
    const json_t *list = json_object_get(answer->json, "results");
    const json_t *it = json_array_get(list, (size_t)n);
    ck_assert_uint_eq(json_object_size(it), 2);
    return it;
}

static int status(const struct answer *answer, int n)
{
    return (int)json_integer_value(
        json_object_get(result(answer, n), "status"));
}

static json_int_t member(const struct answer *answer, int n, const char *name)
{
    const json_t *it = result(answer, n);
    const char *kind = status(answer, n) < 300 ? "grant" : "problem";
    return json_integer_value(json_object_get(json_object_get(it, kind), name));
}

static void expect_extended(const struct answer *answer, int n)
{
    ck_assert_int_eq(status(answer, n), 200);
    ck_assert_int_eq(member(answer, n, "fencing_token"), locks[n].number);
    ck_assert_int_eq(member(answer, n, "ttl_ms"), TTL_MS);
    ck_assert_int_gt(member(answer, n, "validity_ms"), TTL_MS / 2);
}

TEST(a_hundred_of_each_kind_are_done)
{
    hold(MANY, "mixed", SHORT_MS);
    for (int turn = 0; turn < 2; turn++) { /* a repeat gets the same locks */
        const struct answer *answer =
            answer_expect(ask(turn, make(MANY, put_mixed)), 200, NULL);
        for (int i = 0; i < MANY; i++) {
            if (i % 3 == 0)
                ck_assert_int_eq(status(answer, i), turn == 0 ? 201 : 200);
            else if (i % 3 == 1)
                expect_extended(answer, i);
            else if (turn == 0)
                ck_assert_int_eq(status(answer, i), 200);
        }
    }
    answer_expect(lock_inspect(&world.servers[0], "taken%2F99"), 200, NULL);
}
