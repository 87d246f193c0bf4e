/* SPDX-License-Identifier: MIT */
/*
 * Clients that wait for another version of a lock, while it changes hands
 * through the same server or another one.
 */

#include "http.h"
#include "node.h"
#include "waiter.h"

enum { N = 5, SOON_MS = 20000, WAIT_MS = 40000 };

WORLD(world_start_two, N, "--node-timeout-ms 500");

SUITE(watches, .timeout_s = 90, WORLD_ONCE);

/* Returns the connection. */
static int watch(const char *resource, const char *version)
{
    int waiters = (int)http_metric(here, "redlockd_waiters");
    int fd =
        raw_ask(here, textf("GET /locks/%s?after=%s&wait_ms=%d HTTP/1.1\r\n"
                            "Host: x\r\nConnection: close\r\n\r\n",
                            resource, version, WAIT_MS));
    waiter_expect_count(here, waiters + 1);
    return fd;
}

/* The answer has this version. */
static void expect_version(int fd, const char *version)
{
    raw_expect(fd, textf("\"version\":\"%s\"", version));
}

TEST_RANGE(a_grant_and_a_release_are_told, 0, 2)
{
    struct lock lock;
    int first = watch("handed", "free"), second = watch("handed", "free");
    lock_take(&world.servers[_i], "handed", 9000, &lock);
    ck_assert_int_eq(grant_read(first, 200, SOON_MS).number, lock.number);
    ck_assert_int_eq(grant_read(second, 200, SOON_MS).number, lock.number);
    int fd = watch("handed", textf("%lld", (long long)lock.number));
    lock_drop(&world.servers[_i], &lock);
    expect_version(fd, "free");
}

TEST(the_end_of_a_ttl_is_told)
{
    struct lock lock;
    lock_take(there, "expires", 1500, &lock);
    expect_version(watch("expires", textf("%lld", (long long)lock.number)),
                   "free");
}
