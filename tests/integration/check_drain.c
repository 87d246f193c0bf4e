/*
 * The end: balancers are to notice it before clients do.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

/* It ends unaided, with 0. */
static void expect_end(void)
{
    int status = harness_reap(here->pid, 20000);

    ck_assert_msg(status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0,
                  "%d", status);
    here->pid = 0;
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
    http_disconnect();
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

static const char head[] =
    "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    "Content-Length: 16\r\n\r\n";
static const char body[] = "{\"resource\":\"x\"}";

/* Those that ask for it have their answer when the next one asks. */
static double in_flight(void)
{
    return http_metric(here, "redlockd_http_requests_accepted_total") -
           http_metric(here, "redlockd_http_requests_answered_total") -
           http_metric(here, "redlockd_http_requests_abandoned_total");
}

/* New locks would only put off the end. */
TEST(drain_that_is_over_refuses_new_locks)
{
    world_start(1, "");
    int fd = raw_connect(here);
    raw_send(fd, head, strlen(head));
    SOON(in_flight() == 1);
    kill(here->pid, SIGTERM);
    SOON(http_probe(here, "/readyz") == 503);
    answer_expect(lock_acquire(here, "more", 9000, NULL), 503, "shutting_down");
    close(fd);
    http_disconnect();
    expect_end();
}

/* The server that granted the lock sends its fill after the release, which has
 * to come once more. */
TEST(a_release_is_brought_to_its_end_before_the_server_ends)
{
    struct server *const other = there;
    world_start_two(5, "--drain-ms 0");
    for (int i = 0; i < 4; i++) {
        struct lock lock;
        int status;
        lock_take(here, "ends", 30000, &lock);
        lock_drop(other, &lock);
        kill(other->pid, SIGTERM);
        status = harness_reap(other->pid, 20000);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%d",
                      status);
        other->pid = 0;
        expect_keys("ends", 0);
        STAYS(300, count_keys("ends") == 0); /* until all fills have come */
        world_serve(1, "--drain-ms 0");
    }
    world_stop();
}

/* Requests that wait for silent nodes are answered before the end. */
/* As by an operator who is in a hurry, or by two supervisors. */
TEST(it_ends_well_however_often_it_is_told)
{
    for (int i = 0; i < 10; i++) {
        int status = -1;
        world_start(1, AT_SIGHT);
        while (waitpid(here->pid, &status, WNOHANG) == 0)
            kill(here->pid, SIGTERM);
        ck_assert_int_eq(status, 0);
        here->pid = 0;
        world_stop();
    }
}

TEST_RANGE(drain_answers_what_is_in_flight, 0, 2)
{
    static const int signals[] = {SIGTERM, SIGINT};
    char out[4096];

    world_start(1, AT_SIGHT " --node-timeout-ms 1000 --retry-count 0");
    node_pause(&world.nodes[0]);
    int fd = raw_connect(here);
    raw_send(fd, head, strlen(head));
    raw_send(fd, body, strlen(body));
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    ck_assert_int_eq(poll(&wait, 1, 200), 0);
    kill(here->pid, signals[_i]);
    raw_read(fd, out, sizeof out, "}\n", 9000);
    ck_assert_has(out, " 503 ");
    close(fd);
    world_stop();
}
