/*
 * How much identities may ask and hold.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "auth.h"
#include "waiter.h"

enum { N = 3, SOON_MS = 9000, CROWD = 40, HALF = CROWD / 2, RESET_MS = 20 };

#define ASK(token)                                                             \
    "GET /nodes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " token "\r\n\r"  \
    "\n"
#define LOCKS "\nredlockd_identity_locks{identity=\"green\"}"
#define BLUE_LOCKS "\nredlockd_identity_locks{identity=\"blue\"}"
#define LIMITED                                                                \
    "\nredlockd_identity_requests_total{identity=\"red\",result=\"limited\"}"

/* red: hardly any requests; green: two locks; blue: as good as all */
static const char text[] =
    "red " AUTH_RED " lock,read prefix=* rate=1 burst=3\n"
    "green " AUTH_GREEN " lock,read prefix=* locks=2\n"
    "blue " AUTH_BLUE " lock,read,metrics,admin prefix=* locks=1000\n";

static char options[PATH_SIZE + 32];

static void start(void)
{
    char path[PATH_SIZE];
    auth_make(path, text);
    PRINT_TO(options, "--auth-file %s", path);
    world_start(N, options);
}

SUITE(limits, .timeout_s = 90, .set_up_once = start,
      .tear_down_once = world_finish);

/* ---- requests ----------------------------------------------------------- */

static int status_of(int fd)
{
    char out[8192];
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    return strncmp(out, "HTTP/1.1 ", 9) == 0 ? atoi(out + 9) : 0;
}

/* Late, but each gets one, and its connection goes on. */
TEST(a_crowd_of_refusals_is_answered)
{
    int fds[CROWD];
    int64_t begin_ms = harness_now_ms();
    for (int i = 0; i < CROWD; i++) {
        fds[i] = raw_connect(here);
        raw_send(fds[i], ASK("red"), sizeof ASK("red") - 1);
    }
    expect_ok(AUTH(here, "blue", .method = "GET", .path = "/nodes"));
    for (int i = 0; i < CROWD; i++) {
        int status = status_of(fds[i]);
        ck_assert_msg(status == 200 || status == 429, "%d", status);
    }
    ck_assert_int_ge(harness_now_ms() - begin_ms, 1000);
    for (int i = 0; i < CROWD; i++) {
        raw_send(fds[i], ASK("blue"), sizeof ASK("blue") - 1);
        ck_assert_int_eq(status_of(fds[i]), 200);
        close(fds[i]);
    }
}

TEST(who_leaves_while_its_refusal_is_late_is_gone)
{
    double limited = auth_metric(here, "blue", LIMITED);
    for (int i = 0; i < CROWD; i++) {
        int fd = raw_connect(here);
        raw_send(fd, ASK("red"), sizeof ASK("red") - 1);
        if (i % 2 == 0)
            raw_reset(fd);
        else
            close(fd);
    }
    SOON(auth_metric(here, "blue", LIMITED) > limited);
    SOON((int)auth_metric(here, "blue", "\nredlockd_connections ") < HALF);
    ck_assert_int_eq(http_probe(here, "/livez"), 200);
}

/* Its end must not wait for them, nor forget one. */
TEST(a_server_with_late_refusals_ends)
{
    int fds[CROWD];
    world_serve(1, options);
    for (int i = 0; i < CROWD; i++) {
        fds[i] = raw_connect(there);
        raw_send(fds[i], ASK("red"), sizeof ASK("red") - 1);
    }
    SOON((int)auth_metric(there, "blue", "\nredlockd_connections ") >= CROWD);
    world_stop_server(1);
    for (int i = 0; i < CROWD; i++)
        close(fds[i]);
}

/* ---- locks -------------------------------------------------------------- */

static void hold(const char *resource, int ttl_ms, struct lock *lock)
{
    const char *json =
        textf("{\"resource\":\"%s\",\"ttl_ms\":%d}", resource, ttl_ms);
    answer_expect(auth_acquire(here, "green", json, lock), 201, NULL);
}

static void expect_locks(int count)
{
    SOON(auth_metric(here, "blue", LOCKS) == count);
}

#define MORE "{\"resource\":\"more\",\"ttl_ms\":1000}"

static void expect_full(void)
{
    const struct answer *a = auth_acquire(here, "green", MORE, NULL);
    answer_expect(a, 429, "lock_quota_exceeded");
    ck_assert_has(answer_text(a, "detail"), "locks");
}

static int send_acquire(const char *token, const char *resource, int wait_ms)
{
    char message[512], json[128];
    int fd = raw_connect(here);
    PRINT_TO(json, "{\"resource\":\"%s\",\"wait_ms\":%d}", resource, wait_ms);
    PRINT_TO(message,
             "POST /locks HTTP/1.1\r\nHost: x\r\n"
             "Authorization: Bearer %s\r\n"
             "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             token, strlen(json), json);
    raw_send(fd, message, strlen(message));
    return fd;
}

/* What nodes have, of a list that is not cut. */
static int count_held(void)
{
    const struct answer *a = AUTH(here, "blue", .method = "GET",
                                  .path = "/locks?prefix=n&page_size=1000");
    expect_ok(a);
    return answer_has(a, "next_cursor")
               ? -2
               : (int)json_array_size(json_object_get(a->json, "locks"));
}

/* Many leave at about the moment of their grant: none may stay counted. */
TEST(what_nobody_got_does_not_count)
{
    for (int i = 0; i < 200; i++) {
        int fd = send_acquire("blue", textf("n%d", i), 0);
        for (volatile int spin = i * 500; spin > 0; spin--)
            ;
        raw_reset(fd);
    }
    SOON(count_held() == auth_metric(here, "blue", BLUE_LOCKS));
}

/* The nodes stand still until the client has reset the connection. */
static void ask_and_reset(const char *message)
{
    static const char accepted[] = "\nredlockd_http_requests_accepted_total ";
    int fd = raw_connect(here);
    for (int i = 0; i < N; i++)
        node_pause(&world.nodes[i]);
    double seen = auth_metric(here, "blue", accepted);
    raw_send(fd, message, strlen(message));
    /* each look is one more */
    SOON(auth_metric(here, "blue", accepted) > ++seen);
    raw_reset(fd);
    pause_ms(RESET_MS);
    for (int i = 0; i < N; i++)
        node_resume(&world.nodes[i]);
}

#define DELETE_BY(token)                                                       \
    "DELETE %s%s%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " token "\r\n"

/* As what the nodes do, whoever is told of it. */
TEST(a_release_counts_though_its_client_resets)
{
    struct lock it;
    hold("r", 50000, &it);
    ask_and_reset(textf(DELETE_BY("green") "X-Lock-Token: %s\r\n\r\n", it.path,
                        "", "", it.token));
    expect_locks(0);
    hold("r", 50000, &it);
    ask_and_reset(textf(DELETE_BY("blue") "\r\n", it.path,
                        "?force=", textf("%lld", (long long)it.number)));
    expect_locks(0);
}

/* what it stops, it must have started */
GROUP(own, .timeout_s = 90, .set_up = start, .tear_down = world_finish);

TEST(each_server_counts_its_own)
{
    struct lock a, b, c;
    world_serve(1, options);
    hold("a", 50000, &a);
    hold("b", 50000, &b);
    answer_expect(auth_acquire(there, "green", MORE, &c), 201, NULL);
    expect_ok(auth_release(there, "green", &a));
    const char *force = textf("%s?force=%lld", b.path, (long long)b.number);
    expect_ok(AUTH(here, "blue", .method = "DELETE", .path = force));
    expect_locks(1);
    hold("b", 50000, &b);
    expect_full();
    expect_ok(auth_release(here, "green", &b));
    expect_locks(1); /* it cannot know that the other server did it */
    answer_expect(auth_release(here, "green", &a), 404, NULL);
    expect_locks(0);
    hold("a", 50000, &a);
    world_stop_server(1);
    world_stop_server(0);
    world_serve(0, options);
    expect_locks(0);
}
