/*
 * Clients that wait for a lock: what they are told, and that nothing is left of
 * those that do not wait to the end.
 */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node.h"
#include "waiter.h"

enum { N = 3, TTL_MS = 60000, SOON_MS = 9000, TEXT_SIZE = 4096 };

static struct world world;
static struct server *const server = &world.servers[0];
static struct lock held;

static void begin(const char *options)
{
    world_start(&world, N, options);
    lock_take(server, "w", TTL_MS, &held);
}

static json_int_t waiters(void)
{
    return answer_int(lock_inspect(server, "w"), "waiters");
}

static int send_wait(void)
{
    int fd = waiter_send(server, "w", TTL_MS, 45000);
    WAIT_UNTIL(SOON_MS, waiters() == 1);
    return fd;
}

SUITE(wait_clients, .timeout_s = 60);

TEST(a_release_hands_the_lock_over)
{
    char out[TEXT_SIZE];
    begin("");
    int fd = send_wait();
    ck_assert_int_eq(recv(fd, out, sizeof out, MSG_DONTWAIT), -1);
    answer_expect(lock_release(server, &held), 200, NULL);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "HTTP/1.1 201 ");
    ck_assert_has(out, "\"waited_ms\":");
    ck_assert_int_eq((int)waiters(), 0);
    close(fd);
    world_stop(&world);
}

/* ---- clients that leave -------------------------------------------------- */

static void leave_politely(int fd)
{
    close(fd);
}

static void close_half(int fd)
{
    char out[TEXT_SIZE];
    shutdown(fd, SHUT_WR);
    ck_assert_uint_eq(raw_read(fd, out, sizeof out, NULL, SOON_MS), 0);
    close(fd);
}

/* It has sent more than the request that waits. */
static void leave_behind_another_request(int fd)
{
    static const char more[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
    raw_send(fd, more, sizeof more - 1);
    close(fd);
}

static void (*const leavings[])(int fd) = {
    leave_politely, raw_reset, close_half, leave_behind_another_request};

TEST_EACH(who_leaves_is_forgotten_at_once, leavings)
{
    begin("");
    leavings[_i](send_wait());
    WAIT_UNTIL(SOON_MS, waiters() == 0);
    answer_expect(lock_release(server, &held), 200, NULL);
    answer_expect_free(lock_inspect(server, "w"));
    WAIT_UNTIL(SOON_MS, world_count_keys(&world, "w") == 0);
    world_stop(&world);
}

/* ---- the server's end ---------------------------------------------------- */

TEST(a_server_that_drains_lets_nobody_wait)
{
    char out[TEXT_SIZE];
    begin("--drain-ms 60000");
    int fd = send_wait();
    kill(server->pid, SIGTERM);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "HTTP/1.1 503 ");
    ck_assert_has(out, "\r\nConnection: close\r\n");
    ck_assert_has(out, "\"code\":\"shutting_down\"");
    ck_assert_has(out, "\"waited_ms\":");
    close(fd);
    answer_expect(HTTP(server, .method = "POST", .path = "/locks",
                       .json = "{\"resource\":\"w\",\"wait_ms\":45000}"),
                  503, "shutting_down");
    answer_expect(lock_release(server, &held), 200, NULL);
    lock_expect_cycle(server, "w"); /* until balancers have noticed */
    http_disconnect();
    kill(server->pid, SIGTERM); /* the second: at once */
    ck_assert_int_ge(harness_reap(server->pid, SOON_MS), 0);
    server->pid = 0;
    world_stop(&world);
}

/* Nor does it end with a client that waits. */
TEST(an_interrupt_waits_for_nobody_who_waits)
{
    char out[TEXT_SIZE];
    begin("");
    int fd = send_wait();
    kill(server->pid, SIGINT);
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "\"code\":\"shutting_down\"");
    close(fd);
    http_disconnect();
    ck_assert_int_ge(harness_reap(server->pid, SOON_MS), 0);
    server->pid = 0;
    world_stop(&world);
}
