/*
 * Clients that wait for another version of a lock, while it changes hands
 * through the same server or another one.
 */
#include <stdio.h>

#include "grant.h"
#include "http.h"
#include "node.h"

enum { N = 5, SOON_MS = 20000, WAIT_MS = 40000, A_WHILE_MS = 300 };

WORLD(world_start_two, N, "--node-timeout-ms 500");

SUITE(watches, .timeout_s = 90, WORLD_ONCE);

/* Returns the connection. */
static int watch(int server, const char *resource, const char *version)
{
    char text[300];
    int fd = raw_connect(&world.servers[server]);
    int len = snprintf(text, sizeof text,
                       "GET /locks/%s?after=%s&wait_ms=%d HTTP/1.1\r\n"
                       "Host: localhost\r\nConnection: close\r\n\r\n",
                       resource, version, WAIT_MS);
    raw_send(fd, text, (size_t)len);
    pause_ms(A_WHILE_MS);
    return fd;
}

/* The same, while the lock has this number. */
static int watch_number(int server, const char *resource, long long number)
{
    char version[24];
    snprintf(version, sizeof version, "%lld", number);
    return watch(server, resource, version);
}

/* The answer has this version. */
static void expect_version(int fd, const char *version)
{
    char out[4096];
    raw_read(fd, out, sizeof out, "}\n", SOON_MS);
    ck_assert_has(out, "HTTP/1.1 200 ");
    ck_assert_has(out, textf("\"version\":\"%s\"", version));
}

TEST_RANGE(a_grant_and_a_release_are_told, 0, 2)
{
    struct lock lock;
    int first = watch(0, "handed", "free"), second = watch(0, "handed", "free");
    lock_take(&world.servers[_i], "handed", 9000, &lock);
    ck_assert_int_eq(grant_read(first, 200, SOON_MS).number, lock.number);
    ck_assert_int_eq(grant_read(second, 200, SOON_MS).number, lock.number);
    int fd = watch_number(0, "handed", lock.number);
    lock_drop(&world.servers[_i], &lock);
    expect_version(fd, "free");
}

TEST(the_end_of_a_ttl_is_told)
{
    struct lock lock;
    lock_take(there, "expires", 1500, &lock);
    expect_version(watch_number(0, "expires", lock.number), "free");
}
