/* SPDX-License-Identifier: MIT */
/*
 * The auth file of a server that runs: how it is changed, and what its limits
 * do when clients leave. Which request is refused, the units have, and
 * tests/rights/matrix.py.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth.h"

enum { N = 3, CROWD = 40, HALF = CROWD / 2 };

#define BEARER(token) "Authorization: Bearer " token "\r\n"
#define ASK(token) "GET /nodes HTTP/1.1\r\nHost: x\r\n" BEARER(token) "\r\n"
#define BLUE "blue " AUTH_BLUE " lock,read,metrics,admin prefix=*\n"

/* green: two locks; dim: hardly any requests */
#define STANDARD                                                               \
    "red " AUTH_RED " lock,read prefix=r/\n"                                   \
    "green " AUTH_GREEN " lock,read prefix=* locks=2 rate=1 burst=9\n" BLUE

static char path[PATH_SIZE];
static const char *options;

static void start(void)
{
    auth_make(path, STANDARD);
    options = textf("--auth-file %s", path);
    world_start(N, options);
}

/* The log has no token. */
static void finish(void)
{
    char *log = harness_read_file(here->log);
    if (strstr(log, "Bearer") != NULL)
        harness_fail("the log contains a token");
    free(log);
    world_finish();
}

static double metric(const char *name)
{
    return auth_metric(here, "blue", textf("\nredlockd_%s ", name));
}

SUITE(auth, .timeout_s = 60, .set_up_once = start, .tear_down_once = finish);

TEST(a_refusal_has_a_challenge)
{
    const struct answer *a =
        answer_expect(AUTH(here, "nobody", .method = "GET", .path = "/nodes"),
                      401, "unauthorized");
    ck_assert_str_eq(answer_header(a, "WWW-Authenticate"),
                     "Bearer realm=\"redlockd\", error=\"invalid_token\"");
}

/* ---- reload -------------------------------------------------------------- */

TEST(a_reload_changes_who_may_ask)
{
    int fd = raw_ask(here, ASK("red"));
    raw_expect(fd, "HTTP/1.1 200 ");
    auth_reload(here, path, BLUE);
    ck_assert_int_eq(server_count_log(here, "identities=1"), 1);
    raw_send(fd, ASK("red"), strlen(ASK("red"))); /* it is as it was */
    raw_expect(fd, "HTTP/1.1 401 ");
    close(fd);
    auth_reload(here, path, STANDARD);
    expect_ok(AUTH(here, "red", .method = "GET", .path = "/nodes"));
}

TEST(a_bad_reload_changes_nothing)
{
    static const char read[] = "file_read_timestamp_seconds{file=\"auth\"}";
    static const char refused[] = "file_refused{file=\"auth\"}";
    double read_s = metric(read);
    ck_assert(read_s > 0 && metric(refused) == 0);
    auth_reload(here, path, "");
    expect_ok(AUTH(here, "red", .method = "GET", .path = "/nodes"));
    ck_assert(metric(read) == read_s && metric(refused) == 1);
    auth_reload(here, path, STANDARD);
    ck_assert(metric(read) >= read_s && metric(refused) == 0);
}

static const struct {
    const char *text, *answer;
} losses[] = {
    {BLUE, "HTTP/1.1 401 "},
    {"red " AUTH_RED " lock prefix=g/\n" BLUE, "HTTP/1.1 403 "},
};

/* The lock is not released before that is told. */
TEST_EACH(who_may_not_any_more_waits_no_longer, losses)
{
    struct lock lock;
    answer_expect(auth_acquire(here, "blue", "{\"resource\":\"r/w\"}", &lock),
                  201, NULL);
    int fd = raw_post(here, "{\"resource\":\"r/w\",\"wait_ms\":45000}",
                      BEARER("red"));
    SOON(metric("waiters") == 1);
    auth_reload(here, path, losses[_i].text);
    raw_expect(fd, losses[_i].answer);
    close(fd);
    ck_assert(metric("waiters") == 0);
    expect_ok(auth_release(here, "blue", &lock));
    auth_reload(here, path, STANDARD);
}

/* ---- limits of requests -------------------------------------------------- */

/* Late, but each gets one, and its connection goes on. */
TEST(a_crowd_of_refusals_is_answered)
{
    int fds[CROWD];
    int64_t begin_ms = harness_now_ms();
    for (int i = 0; i < CROWD; i++)
        fds[i] = raw_ask(here, ASK("green"));
    expect_ok(AUTH(here, "blue", .method = "GET", .path = "/nodes"));
    for (int i = 0; i < CROWD; i++)
        raw_expect(fds[i], "}\n");
    ck_assert_int_ge(harness_now_ms() - begin_ms, 1000);
    for (int i = 0; i < CROWD; i++) {
        raw_send(fds[i], ASK("blue"), strlen(ASK("blue")));
        raw_expect(fds[i], "HTTP/1.1 200 ");
        close(fds[i]);
    }
}

TEST(who_leaves_while_its_refusal_is_late_is_gone)
{
    static const char limited[] =
        "identity_requests_total{identity=\"green\",result=\"limited\"}";
    double before = metric(limited);
    for (int i = 0; i < CROWD; i++)
        (i % 2 == 0 ? raw_reset : raw_close)(raw_ask(here, ASK("green")));
    SOON(metric(limited) > before);
    SOON(metric("connections") < HALF);
    ck_assert_int_eq(http_probe(here, "/livez"), 200);
}

/* Its end must not wait for them, nor forget one. */
TEST(a_server_with_late_refusals_ends)
{
    world_serve(1, options);
    for (int i = 0; i < CROWD; i++)
        raw_ask(there, ASK("green"));
    SOON(auth_metric(there, "blue", "\nredlockd_connections ") >= CROWD);
    world_stop_server(1);
}

/* ---- limits of locks ----------------------------------------------------- */

/* What nodes have, of a list that is not cut. */
static int count_held(void)
{
    const struct answer *a =
        expect_ok(AUTH(here, "blue", .method = "GET",
                       .path = "/locks?prefix=n&page_size=1000"));
    return answer_has(a, "next_cursor")
               ? -2
               : (int)json_array_size(json_object_get(a->json, "locks"));
}

/* Many leave at about the moment of their grant: none may stay counted. */
TEST(what_nobody_got_does_not_count)
{
    auth_reload(here, path,
                "blue " AUTH_BLUE " lock,read,metrics prefix=* locks=1000\n");
    for (int i = 0; i < 200; i++) {
        int fd =
            raw_post(here, textf("{\"resource\":\"n%d\"}", i), BEARER("blue"));
        for (volatile int spin = i * 500; spin > 0; spin--)
            ;
        raw_reset(fd);
    }
    SOON(count_held() == metric("identity_locks{identity=\"blue\"}"));
    auth_reload(here, path, STANDARD);
}

GROUP(own, .timeout_s = 90, .set_up = start, .tear_down = finish);

static void hold(const struct server *server, const char *name, int status,
                 struct lock *lock)
{
    const char *json = textf("{\"resource\":\"%s\",\"ttl_ms\":50000}", name);
    ck_assert_int_eq(auth_acquire(server, "green", json, lock)->status, status);
}

static void expect_locks(int count)
{
    SOON(metric("identity_locks{identity=\"green\"}") == count);
}

TEST(each_server_counts_its_own)
{
    struct lock a, b, c;
    world_serve(1, options);
    hold(here, "a", 201, &a);
    hold(here, "b", 201, &b);
    hold(here, "c", 429, &c);
    hold(there, "c", 201, &c);
    expect_ok(auth_release(there, "green", &a));
    const char *force = textf("%s?force=%lld", b.path, (long long)b.number);
    expect_ok(AUTH(here, "blue", .method = "DELETE", .path = force));
    expect_locks(1); /* it cannot know that the other server did it */
    answer_expect(auth_release(here, "green", &a), 404, NULL);
    expect_locks(0);
    world_stop_server(1);
    world_stop_server(0);
    world_serve(0, options);
    expect_locks(0);
}
