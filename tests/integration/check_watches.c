/*
 * Clients that wait for another holder of a lock, while it changes hands
 * through the same server or another one.
 */
#include <stdio.h>

#include "grant.h"
#include "http.h"
#include "node.h"

enum { N = 5, SOON_MS = 20000, WAIT_MS = 40000, A_WHILE_MS = 300 };

WORLD(world_start_two, N, "--node-timeout-ms 500");

SUITE(watches, .timeout_s = 90, WORLD_ONCE);

/* Returns the connection. known 0: nobody. */
static int watch(int server, const char *resource, long long known)
{
    char text[300], number[24] = "free";
    int fd = raw_connect(&world.servers[server]);
    if (known != 0)
        snprintf(number, sizeof number, "%lld", known);
    int len = snprintf(text, sizeof text,
                       "GET /locks/%s?after=%s&wait_ms=%d HTTP/1.1\r\n"
                       "Host: localhost\r\nConnection: close\r\n\r\n",
                       resource, number, WAIT_MS);
    raw_send(fd, text, (size_t)len);
    harness_pause_ms(A_WHILE_MS);
    return fd;
}

TEST_RANGE(a_grant_and_a_release_are_told, 0, 2)
{
    struct lock lock;
    int first = watch(0, "handed", 0), second = watch(0, "handed", 0);
    lock_take(&world.servers[_i], "handed", 9000, &lock);
    ck_assert_int_eq(grant_read(first, 200, SOON_MS).number, lock.number);
    ck_assert_int_eq(grant_read(second, 200, SOON_MS).number, lock.number);
    int fd = watch(0, "handed", lock.number);
    answer_expect(lock_release(&world.servers[_i], &lock), 200, NULL);
    (void)grant_read(fd, 404, SOON_MS);
}

TEST(the_end_of_a_ttl_is_told)
{
    struct lock lock;
    lock_take(&world.servers[1], "expires", 1500, &lock);
    (void)grant_read(watch(0, "expires", lock.number), 404, SOON_MS);
}

/* One node of five never answers. */
TEST(a_change_is_told_while_a_node_is_paused)
{
    struct lock lock;
    node_pause(&world.nodes[0]);
    int fd = watch(0, "beside", 0);
    lock_take(&world.servers[1], "beside", 9000, &lock);
    ck_assert_int_eq(grant_read(fd, 200, SOON_MS).number, lock.number);
    node_resume(&world.nodes[0]);
}

/* Last: it stops a server. */
TEST(a_server_that_stops_tells_so)
{
    int fd = watch(1, "stopped", 0);
    world_stop_server(&world, 1);
    (void)grant_read(fd, 503, SOON_MS);
}
