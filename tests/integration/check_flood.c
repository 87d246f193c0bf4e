/*
 * As many connections as the server may have: those that go make room, and
 * those that do nothing give way.
 */
#include <stdio.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

enum { LIMIT = 200 };

/* Less than the 10 s in which a request has to come: none is cut for that. */
enum { WAIT_MS = 8000 };

static int fds[LIMIT + 1];

static void setup(void)
{
    world_start_small(LIMIT, "");
    http_disconnect();
    world_await(0, "/livez");
}

static void teardown(void)
{
    world_stop();
}

static void ask(int fd)
{
    static const char text[] = "GET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
    raw_send(fd, text, sizeof text - 1);
}

static void expect_answer(int fd)
{
    char out[1024];
    raw_read(fd, out, sizeof out, "}\n", WAIT_MS);
    ck_assert_has(out, " 200 ");
}

/* As many as the server has room for. */
static void fill(void)
{
    for (int i = 0; i < LIMIT; i++)
        fds[i] = raw_connect(here);
}

static void fill_with_idle(void)
{
    fill();
    for (int i = 0; i < LIMIT; i++) {
        ask(fds[i]);
        expect_answer(fds[i]);
    }
}

static void leave_all(void)
{
    for (int i = 0; i < LIMIT; i++)
        close(fds[i]);
}

static void expect_open(void)
{
    int fd = raw_connect(here);
    ask(fd);
    expect_answer(fd);
    close(fd);
}

SUITE(flood, .timeout_s = 60, .set_up = setup, .tear_down = teardown);

TEST(idle_ones_that_leave_while_it_stands_still_make_room)
{
    fill_with_idle();
    server_pause(here);
    leave_all();
    server_resume(here);
    expect_open();
    SOON(http_metric(here, "redlockd_connections") < 10);
}

TEST(silent_ones_give_way)
{
    fill();
    for (int i = 0; i < 20; i++)
        expect_open();
    leave_all();
}
