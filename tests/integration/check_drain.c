/* SPDX-License-Identifier: MIT */
/*
 * The end: balancers are to notice it before clients do.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

static void expect_end(void)
{
    http_disconnect();
    server_await_end(here);
    world_stop();
}

SUITE(drain, .timeout_s = 60);

TEST(drain_is_told_to_balancers_and_fails_nobody)
{
    struct lock lock;

    world_start(3, "--drain-ms 60000");
    lock_take(here, "drain", 9000, &lock);
    kill(here->pid, SIGTERM);
    SOON(http_probe(here, "/readyz") == 503);
    answer_expect(HTTP(here, .method = "GET", .path = "/readyz"), 503,
                  "shutting_down");
    lock_expect_cycle(here, "more"); /* until they have noticed */
    const struct answer *last = lock_inspect(here, "more");
    ck_assert_has(last->head, "\r\nConnection: close\r\n");
    expect_ok(lock_extend(here, &lock, 9000));
    lock_drop(here, &lock);
    kill(here->pid, SIGTERM); /* the second: at once */
    expect_end();
}

/* With nothing in flight, too. */
TEST(drain_lasts_as_long_as_is_configured)
{
    world_start(1, "--drain-ms 1200");
    int64_t start_ms = harness_now_ms();
    kill(here->pid, SIGTERM);
    expect_end();
    ck_assert_int_ge(harness_now_ms() - start_ms, 1190);
}

TEST(interrupt_waits_for_no_balancer)
{
    world_start(1, "--drain-ms 600000");
    kill(here->pid, SIGINT);
    expect_end();
}

/* New locks would only put off the end. */
TEST(drain_that_is_over_refuses_new_locks)
{
    world_start(1, "");
    int fd = raw_ask(here, "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: "
                           "application/json\r\nContent-Length: 16\r\n\r\n");
    SOON(http_open_requests(here) == 1);
    kill(here->pid, SIGTERM);
    SOON(http_probe(here, "/readyz") == 503);
    answer_expect(lock_acquire(here, "more", 9000, NULL), 503, "shutting_down");
    close(fd);
    expect_end();
}

/* The server that granted the lock sends its fill after the release, which has
 * to come once more. */
TEST(a_release_is_brought_to_its_end_before_the_server_ends)
{
    world_start_two(5, "--drain-ms 0");
    for (int i = 0; i < 4; i++) {
        struct lock lock;
        lock_take(here, "ends", 30000, &lock);
        lock_drop(there, &lock);
        kill(there->pid, SIGTERM);
        server_await_end(there);
        expect_keys("ends", 0);
        STAYS(300, count_keys("ends") == 0); /* until all fills have come */
        world_serve(1, "--drain-ms 0");
    }
    world_stop();
}

/* As by an operator who is in a hurry, or by two supervisors. */
TEST(it_ends_well_however_often_it_is_told)
{
    world_start_nodes(1);
    for (int i = 0; i < 30; i++) {
        int status = -1;
        world_serve(0, AT_SIGHT);
        while (waitpid(here->pid, &status, WNOHANG) == 0)
            kill(here->pid, SIGTERM);
        ck_assert_int_eq(status, 0);
        here->pid = 0;
    }
    world_stop();
}

/* Requests that wait for silent nodes are answered before the end. */
TEST_RANGE(drain_answers_what_is_in_flight, 0, 2)
{
    static const int signals[] = {SIGTERM, SIGINT};
    world_start(1, AT_SIGHT " --node-timeout-ms 1000 --retry-count 0");
    node_pause(&world.nodes[0]);
    int fd = raw_post(here, "{\"resource\":\"x\"}", "");
    raw_stays(fd, 200);
    kill(here->pid, signals[_i]);
    raw_expect(fd, " 503 ");
    close(fd);
    world_stop();
}
