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

static struct world world;
static struct server *server = &world.servers[0];
static int fds[LIMIT + 1];

static void setup(void)
{
    world_start_small(&world, LIMIT, "");
    http_disconnect();
    WAIT_UNTIL(WAIT_MS, http_probe(server, "/livez") == 200);
}

static void teardown(void)
{
    world_stop(&world);
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
        fds[i] = raw_connect(server);
}

static void fill_with_idle(void)
{
    fill();
    for (int i = 0; i < LIMIT; i++) {
        ask(fds[i]);
        expect_answer(fds[i]);
    }
}

/* In the midst of a request, and nothing more comes. */
static void fill_with_halves(void)
{
    static const char half[] = "POST /locks HTTP/1.1\r\nHost: a\r\n"
                               "Content-Length: 100\r\n\r\n{";
    fill();
    for (int i = 0; i < LIMIT; i++)
        raw_send(fds[i], half, sizeof half - 1);
}

static void leave_all(void)
{
    for (int i = 0; i < LIMIT; i++)
        close(fds[i]);
}

static void expect_open(void)
{
    int fd = raw_connect(server);
    ask(fd);
    expect_answer(fd);
    close(fd);
}

SUITE(flood, .timeout_s = 60, .set_up = setup, .tear_down = teardown);

TEST(silent_ones_that_leave_make_room)
{
    fill();
    leave_all();
    expect_open();
    WAIT_UNTIL(WAIT_MS, http_metric(server, "redlockd_connections") < 10);
}

TEST(idle_ones_that_leave_while_it_stands_still_make_room)
{
    fill_with_idle();
    server_pause(server);
    leave_all();
    server_resume(server);
    expect_open();
    WAIT_UNTIL(WAIT_MS, http_metric(server, "redlockd_connections") < 10);
}

TEST(one_that_leaves_makes_room_for_one_that_waits)
{
    fill_with_halves();
    int fd = raw_connect(server);
    ask(fd);
    harness_pause_ms(50); /* it is heard, and nobody gives way */
    close(fds[7]);
    expect_answer(fd);
    close(fd);
    leave_all();
}

TEST(the_one_that_was_idle_for_longest_gives_way)
{
    char out[16];
    fill_with_idle();
    ask(fds[0]); /* now it is the second */
    expect_answer(fds[0]);
    fds[LIMIT] = raw_connect(server);
    ask(fds[LIMIT]);
    expect_answer(fds[LIMIT]);
    ck_assert_uint_eq(raw_read(fds[1], out, sizeof out, NULL, WAIT_MS), 0);
    ask(fds[0]);
    expect_answer(fds[0]);
    ask(fds[2]);
    expect_answer(fds[2]);
    leave_all();
    close(fds[LIMIT]);
}

TEST(those_that_let_it_wait_give_way)
{
    fill_with_halves();
    for (int i = 0; i < 3; i++)
        expect_open();
    leave_all();
}

TEST(silent_ones_give_way)
{
    fill();
    for (int i = 0; i < 20; i++)
        expect_open();
    leave_all();
}
