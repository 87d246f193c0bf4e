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

enum { SOON_MS = 9000, TTL_MS = 50000, WAIT_MS = 40000 };

static struct lock locks[HOLDERS];
static int fds[2 * HALF];

static void hold(const char *json, struct lock *lock)
{
    const struct answer *a =
        HTTP(here, .method = "POST", .path = "/locks", .json = json);
    answer_expect(a, 201, NULL);
    if (lock != NULL)
        lock_read(lock, a->json);
}

/* The lock w and the only permit of p are held, and those of the holders. */
static void setup(void)
{
    world_start_small(CONNECTIONS, "");
    ck_assert_int_eq((int)http_metric(here, "redlockd_waiters_max"), HALF);
    hold("{\"resource\":\"w\",\"ttl_ms\":50000}", NULL);
    hold("{\"resource\":\"p\",\"ttl_ms\":50000,\"limit\":1}", NULL);
    for (int i = 0; i < HOLDERS; i++) {
        hold(textf("{\"resource\":\"e%d\",\"ttl_ms\":50000}", i), &locks[i]);
    }
}

static void teardown(void)
{
    world_stop();
}

SUITE(wait_limits, .timeout_s = 90, .set_up = setup, .tear_down = teardown);

static int send_text(const char *text)
{
    int fd = raw_connect(here);
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
        return waiter_send(here, "w", TTL_MS, WAIT_MS);
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

TEST(all_that_wait_fill_half_of_the_connections)
{
    for (int i = 0; i < HALF; i++)
        fds[i] = send_waiting(i);
    waiter_expect_count(here, HALF);
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
    waiter_expect_count(here, HALF - 1);
    fds[0] = send_waiting(2);
    waiter_expect_count(here, HALF);
    for (int i = 0; i < HALF; i++)
        close(fds[i]);
    waiter_expect_count(here, 0);
}
