/* SPDX-License-Identifier: MIT */
/*
 * The calls over HTTP, one of each kind, and the options that change what they
 * answer. The units have every case.
 */

#include "http.h"
#include "node.h"

enum { N = 3, TTL_MS = 20000 };

WORLD(world_start, N, "");

SUITE(api, .timeout_s = 60, WORLD_ONCE);

TEST(life_of_a_lock)
{
    struct lock lock;
    lock_take(here, "api:life", TTL_MS, &lock);
    expect_keys("api:life", N);
    for (int i = 0; i < N; i++) {
        ck_assert_str_eq(node_text(&world.nodes[i], "GET api:life"),
                         lock.token);
        ck_assert_int_le(node_integer(&world.nodes[i], "PTTL api:life"),
                         TTL_MS);
    }
    const struct answer *a = answer_expect_held(lock_inspect(here, "api:life"));
    ck_assert_lacks(a->body, lock.token);
    ck_assert_int_eq(answer_int(a, "fencing_token"), lock.number);
    answer_expect(lock_acquire(here, "api:life", TTL_MS, NULL), 409,
                  "lock_held");
    a = expect_ok(lock_extend(here, &lock, 30000));
    ck_assert_str_eq(answer_text(a, "token"), lock.token);
    ck_assert_int_gt(answer_int(a, "validity_ms"), TTL_MS);
    ck_assert_int_gt(node_integer(&world.nodes[0], "PTTL api:life"), TTL_MS);
    a = expect_ok(HTTP(here, .method = "GET", .path = "/locks?prefix=api:l"));
    ck_assert_has(a->body, "\"api:life\"");
    lock_drop(here, &lock);
    answer_expect_free(lock_inspect(here, "api:life"));
    answer_expect(lock_release(here, &lock), 404, "lock_not_found");
    answer_expect(lock_extend(here, &lock, 1000), 404, "lock_not_found");
    expect_keys("api:life", 0);
    /* the log, which tells everything else, has no token */
    ck_assert_int_eq(server_count_log(here, lock.token + 17), 0);
}

TEST(a_batch_does_one_of_each_kind)
{
    struct lock kept, ended;
    lock_take(here, "b:kept", TTL_MS, &kept);
    lock_take(here, "b:ended", TTL_MS, &ended);
    const struct answer *a = expect_ok(HTTP(
        here, "POST", "/batch",
        .json = textf(
            "{\"operations\":["
            "{\"operation\":\"acquire\",\"resource\":\"b:new\"},"
            "{\"operation\":\"extend\",\"id\":\"b:kept\",\"token\":\"%s\"},"
            "{\"operation\":\"release\",\"id\":\"b:ended\",\"token\":\"%s\"}]}",
            kept.token, ended.token)));
    ck_assert_int_eq(answer_int(a, "results.0.status"), 201);
    ck_assert_int_eq(answer_int(a, "results.1.status"), 200);
    ck_assert_int_eq(answer_int(a, "results.1.grant.fencing_token"),
                     kept.number);
    ck_assert_int_eq(answer_int(a, "results.2.status"), 200);
    expect_keys("b:new", N);
    expect_keys("b:ended", 0);
}

/* By an operator, and the log tells of it. */
TEST(a_lock_is_deleted_by_its_number)
{
    struct lock lock;
    lock_take(here, "f:a", TTL_MS, &lock);
    expect_keys("f:a", N);
    const char *path =
        textf("%s?force=%lld", lock.path, (long long)lock.number);
    const struct answer *a =
        expect_ok(HTTP(here, .method = "DELETE", .path = path));
    ck_assert_int_ge(answer_int(a, "nodes.released"), 2);
    ck_assert_int_eq(
        server_count_log(here, textf("event=force_release request_id=%s "
                                     "fencing_token=%lld resource=f:a\n",
                                     answer_header(a, "X-Request-Id"),
                                     (long long)lock.number)),
        1);
    expect_keys("f:a", 0);
    answer_expect(lock_extend(here, &lock, TTL_MS), 404, "lock_not_found");
}

TEST(probes_answer)
{
    expect_ok(HTTP(here, .method = "HEAD", .path = "/livez"));
    expect_ok(HTTP(here, .method = "GET", .path = "/openapi.yaml"));
    const struct answer *a =
        expect_ok(HTTP(here, .method = "GET", .path = "/readyz?verbose"));
    ck_assert_has(a->body, textf("127.0.0.1:%d", world.nodes[N - 1].port));
}

static const struct {
    const char *method, *path, *json, *header;
    int status;
    const char *code;
} refused[] = {
    {"GET", "/nope", NULL, NULL, 404, "not_found"},
    {"PATCH", "/livez", NULL, NULL, 405, "method_not_allowed"},
    {"POST", "/locks", "{", NULL, 400, "invalid_request"},
    {"POST", "/locks", "{\"resource\":\"x\"}", "Content-Type: text/plain", 415,
     "unsupported_media_type"},
    {"GET", "/locks/~YS9", NULL, NULL, 400, "invalid_request"},
    {"DELETE", "/locks/x", NULL, "X-Lock-Token: a b", 400, "invalid_request"},
    /* where this installation and another one keep their own state */
    {"POST", "/locks", "{\"resource\":\"redlockd:state\"}", NULL, 400,
     "invalid_request"},
    {"POST", "/locks", "{\"resource\":\"other:redlockd:state\"}", NULL, 400,
     "invalid_request"},
};

TEST_EACH(what_is_wrong_is_refused_with_its_code, refused)
{
    answer_expect(HTTP(here, .method = refused[_i].method,
                       .path = refused[_i].path, .json = refused[_i].json,
                       .headers = {refused[_i].header}),
                  refused[_i].status, refused[_i].code);
    lock_expect_cycle(here, "input:next"); /* on the same connection, too */
}

/* ---- options ------------------------------------------------------------- */

GROUP(options, .timeout_s = 60);

TEST(each_option_counts)
{
    static const char reader[] = "{\"resource\":\"r\",\"mode\":\"shared\"}";
    struct lock lock;
    world_start(1, "--max-ttl-ms 20000 --default-ttl-ms 15000 "
                   "--max-hold-ms 20000 --max-readers 1 --drift-factor 0.5 "
                   "--key-prefix redlock:");
    answer_expect(lock_acquire(here, "m", 20001, NULL), 400, "invalid_request");
    const struct answer *a =
        grant_take(here, "{\"resource\":\"m\"}", NULL, &lock);
    ck_assert_int_eq(answer_int(a, "ttl_ms"), 15000);
    ck_assert_int_le(lock.validity_ms, 7500);
    ck_assert_int_eq(node_integer(&world.nodes[0], "EXISTS redlock:m"), 1);
    ck_assert_int_eq(node_integer(&world.nodes[0], "DBSIZE"), 2);
    pause_ms(2); /* into the next millisecond */
    answer_expect(lock_extend(here, &lock, 20000), 409, "max_hold_reached");
    a = expect_ok(lock_extend(here, &lock, 5000));
    ck_assert_int_eq(answer_int(a, "max_hold_ms"), 20000);
    grant_take(here, reader, NULL, NULL);
    answer_expect(grant_ask(here, reader, NULL, NULL), 409, "too_many_readers");
    world_stop();
}
