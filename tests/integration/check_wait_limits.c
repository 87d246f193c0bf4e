/*
 * Those that wait, whatever they wait for, take half of the connections at
 * most: the other half is for holders.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth.h"
#include "node.h"
#include "waiter.h"

enum { CONNECTIONS = 136, HALF = CONNECTIONS / 2, HOLDERS = 20 };

enum { SOON_MS = 9000, TTL_MS = 50000, WAIT_MS = 40000, SLACK_MS = 1000 };

static struct world world;
static struct server *server = &world.servers[0];
static struct lock locks[HOLDERS];
static int fds[2 * HALF];

static void hold(const char *json, struct lock *lock)
{
    const struct answer *a =
        HTTP(server, .method = "POST", .path = "/locks", .json = json);
    answer_expect(a, 201, NULL);
    if (lock != NULL)
        lock_read(lock, a->json);
}

/* The lock w and the only permit of p are held, and those of the holders. */
static void setup(void)
{
    world_start_small(&world, CONNECTIONS, "");
    ck_assert_int_eq((int)http_metric(server, "redlockd_waiters_max"), HALF);
    hold("{\"resource\":\"w\",\"ttl_ms\":50000}", NULL);
    hold("{\"resource\":\"p\",\"ttl_ms\":50000,\"limit\":1}", NULL);
    for (int i = 0; i < HOLDERS; i++) {
        hold(textf("{\"resource\":\"e%d\",\"ttl_ms\":50000}", i), &locks[i]);
    }
}

static void teardown(void)
{
    world_stop(&world);
}

SUITE(wait_limits, .timeout_s = 90, .set_up = setup, .tear_down = teardown);

static int send_text(const char *text)
{
    int fd = raw_connect(server);
    raw_send(fd, text, strlen(text));
    return fd;
}

static int post(const char *json)
{
    return send_text(textf("POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: "
                           "application/json\r\nContent-Length: %zu\r\n\r\n%s",
                           strlen(json), json));
}

/* For a lock, a permit, or another version, in turn. */
static int send_waiting(int kind)
{
    if (kind % 3 == 0)
        return waiter_send(server, "w", TTL_MS, WAIT_MS);
    if (kind % 3 == 1)
        return post("{\"resource\":\"p\",\"limit\":1,\"wait_ms\":40000}");
    return send_text("GET /locks/none?after=free&wait_ms=40000 HTTP/1.1\r\n"
                     "Host: x\r\n\r\n");
}

static void expect_status(int fd, const char *status, const char *part)
{
    char out[2048];
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_msg(strstr(out, status) != NULL && strstr(out, part) != NULL,
                  "%s", out);
    close(fd);
}

/* How long it takes all holders to extend, each on a new connection. */
static int extend_all(void)
{
    int64_t begin_ms = harness_now_ms();
    for (int i = 0; i < HOLDERS; i++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s/extend", locks[i].path);
        answer_expect(HTTP(server, .method = "PUT", .path = path,
                           .token = locks[i].token, .is_fresh = true),
                      200, NULL);
    }
    return (int)(harness_now_ms() - begin_ms);
}

TEST(all_that_wait_fill_half_of_the_connections)
{
    for (int i = 0; i < HALF; i++)
        fds[i] = send_waiting(i);
    waiter_expect_count(server, HALF);
    for (int kind = 0; kind < 3; kind++)
        expect_status(send_waiting(kind), " 429 ",
                      "68 clients already wait on this server");
    /* a reader may not overtake them, but it does not wait */
    expect_status(post("{\"resource\":\"w\",\"mode\":\"shared\"}"), " 409 ",
                  "lock_held");
    expect_status(post("{\"resource\":\"w\"}"), " 409 ", "lock_held");
    expect_status(post("{\"resource\":\"p\",\"limit\":1}"), " 409 ",
                  "lock_held");
    close(fds[0]);
    waiter_expect_count(server, HALF - 1);
    fds[0] = send_waiting(2);
    waiter_expect_count(server, HALF);
    for (int i = 0; i < HALF; i++)
        close(fds[i]);
    waiter_expect_count(server, 0);
}

TEST(crowds_that_wait_leave_holders_their_half)
{
    int alone_ms = extend_all();
    for (int i = 0; i < 2 * HALF; i++)
        fds[i] = send_waiting(i < HALF ? 0 : 2);
    int beside_ms = extend_all();
    ck_assert_int_le(beside_ms, alone_ms + SLACK_MS);
    ck_assert_int_eq((int)http_metric(server, "redlockd_waiters"), HALF);
    for (int i = 0; i < 2 * HALF; i++)
        close(fds[i]);
}

/* ---- identities --------------------------------------------------------- */

static void start_with_identities(void)
{
    char path[PATH_SIZE];
    auth_make(path, "green " AUTH_GREEN " lock prefix=*\n"
                    "blue " AUTH_BLUE " lock,metrics prefix=*\n");
    world_start_small(&world, CONNECTIONS, textf("--auth-file %s", path));
}

GROUP(wait_places, .timeout_s = 90, .set_up = start_with_identities,
      .tear_down = teardown);

/* A wait of blue's for the only permit of a pool, with a key of its own. */
static int wait_for_permit(int number)
{
    static const char json[] =
        "{\"resource\":\"pool\",\"limit\":1,\"wait_ms\":40000}";
    int fd = raw_connect(server);
    const char *asked = textf(
        "POST /locks HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer blue\r\n"
        "Idempotency-Key: ghost-%019d\r\nContent-Type: "
        "application/json\r\nContent-Length: %zu\r\n\r\n%s",
        number, sizeof json - 1, json);
    raw_send(fd, asked, strlen(asked));
    return fd;
}

/* Not even a request that gets no place leaves its own earlier ones waiting. */
TEST(who_has_no_place_ends_its_own_wait)
{
    char out[2048];
    struct lock lock;
    static const char json[] =
        "{\"resource\":\"pool\",\"limit\":1,\"ttl_ms\":50000}";
    answer_expect(auth_acquire(server, "green", json, &lock), 201, NULL);
    for (int i = 0; i < HALF; i++)
        fds[i] = wait_for_permit(i);
    WAIT_UNTIL(SOON_MS,
               auth_metric(server, "blue", "\nredlockd_waiters ") >= HALF / 2);
    for (int i = 0; i < 2; i++) { /* which frees the place of the first one */
        const struct answer *a = AUTH(
            server, "blue", .method = "POST", .path = "/locks", .json = json,
            .headers = {textf("Idempotency-Key: ghost-%019d", 0)});
        answer_expect(a, i == 0 ? 429 : 409,
                      i == 0 ? "rate_limited" : "lock_held");
        if (i == 0)
            raw_read(fds[0], out, sizeof out, "}\n", SOON_MS);
    }
    ck_assert_ptr_nonnull(strstr(out, "lock_held"));
    for (int i = 0; i < HALF; i++)
        close(fds[i]);
    answer_expect(auth_release(server, "green", &lock), 200, NULL);
}
