/* SPDX-License-Identifier: MIT */
/*
 * As many connections as the server may have: those that do nothing give way,
 * and those that wait, for whatever, take half of them at most, as the other
 * half is for holders.
 */
#include <unistd.h>

#include "http.h"
#include "waiter.h"

enum { LIMIT = 136, HALF = LIMIT / 2, TTL_MS = 50000, WAIT_MS = 40000 };

static int fds[LIMIT];

static void set_up(void)
{
    world_start_small(LIMIT, "");
    http_disconnect();
}

SUITE(flood, .timeout_s = 60, .set_up = set_up, .tear_down = world_stop);

static void leave_all(int count)
{
    for (int i = 0; i < count; i++)
        close(fds[i]);
}

static void expect_open(void)
{
    int fd = raw_ask(here, RAW_LIVEZ);
    raw_expect(fd, " 200 ");
    close(fd);
}

TEST(idle_ones_that_leave_while_it_stands_still_make_room)
{
    for (int i = 0; i < LIMIT; i++) {
        fds[i] = raw_ask(here, RAW_LIVEZ);
        raw_expect(fds[i], " 200 ");
    }
    server_pause(here);
    leave_all(LIMIT);
    server_resume(here);
    expect_open();
    SOON(http_metric(here, "redlockd_connections") < 10);
}

TEST(silent_ones_give_way)
{
    for (int i = 0; i < LIMIT; i++)
        fds[i] = raw_connect(here);
    for (int i = 0; i < 20; i++)
        expect_open();
    leave_all(LIMIT);
}

#define PERMIT "{\"resource\":\"p\",\"limit\":1"

/* For a lock, a permit, or another version, in turn. */
static int send_waiting(int kind)
{
    if (kind % 3 == 0)
        return waiter_send(here, "w", TTL_MS, WAIT_MS);
    if (kind % 3 == 1)
        return raw_post(here, PERMIT ",\"wait_ms\":40000}", "");
    return raw_ask(here, "GET /locks/none?after=free&wait_ms=40000 HTTP/1.1\r\n"
                         "Host: x\r\n\r\n");
}

TEST(all_that_wait_fill_half_of_the_connections)
{
    raw_expect(waiter_send(here, "w", TTL_MS, 0), " 201 ");
    raw_expect(raw_post(here, PERMIT ",\"ttl_ms\":50000}", ""), " 201 ");
    for (int i = 0; i < HALF; i++)
        fds[i] = send_waiting(i);
    waiter_expect_count(here, HALF);
    for (int kind = 0; kind < 3; kind++)
        raw_expect(send_waiting(kind), " 429 ");
    /* what does not wait is told who has it */
    raw_expect(waiter_send(here, "w", TTL_MS, 0), "\"lock_held\"");
    raw_expect(raw_post(here, PERMIT "}", ""), "\"lock_held\"");
    close(fds[0]);
    waiter_expect_count(here, HALF - 1);
    fds[0] = send_waiting(2);
    waiter_expect_count(here, HALF);
    leave_all(HALF);
    waiter_expect_count(here, 0);
}
