/* SPDX-License-Identifier: MIT */
/*
 * Clients that leave while what they asked for is under way at the nodes, and
 * servers that are told to stop then. No server may end, unless it is told to:
 * then it drains and exits with 0.
 *
 *   LEAVING_REQUESTS=2000   of each scene, to one server
 *   LEAVING_TRIES=20        of each scene, each with a new server; with
 *                           CK_TIMEOUT_MULTIPLIER=20
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

enum {
    N = 5,
    MAJORITY = 3,
    REQUESTS = 500,
    BURST = 50, /* requests that wait at once */
    POOLS = 7,
    WAITING = 3,
    STEPS = 6,    /* moments at which a client leaves … */
    STEP_US = 80, /* … as the nodes answer in less than a millisecond */
    STANDS_MS = 100,
    LOOKS_MS = 60, /* the next tick begins an inspection */
    WAIT_MS = 20000,
    EXIT_MS = 20000,
    TEXT_MAX = 512,
};

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : otherwise;
}

static int requests(void)
{
    return number_of("LEAVING_REQUESTS", REQUESTS);
}

static void begin(void)
{
    world_start_nodes(N);
    world_admit_nodes("");
}

SUITE(leaving, .timeout_s = 120, .set_up_once = begin,
      .tear_down_once = world_finish);

/* ---- clients ------------------------------------------------------------ */

/* The connection on which it waits; -1: the server is gone. */
static int ask(const char *text)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)here->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        close(fd);
        return -1;
    }
    raw_send(fd, text, strlen(text));
    return fd;
}

static int post(const char *body, int key)
{
    const char *text =
        textf("POST /locks HTTP/1.1\r\nHost: localhost\r\n"
              "Content-Type: application/json\r\n"
              "Content-Length: %d\r\nIdempotency-Key: leaver-%010d\r\n\r\n%s",
              (int)strlen(body), key, body);
    return ask(text);
}

/* It needs a query first, because of its key. */
static int ask_for_permit(int number, int wait_ms)
{
    const char *body =
        textf("{\"resource\":\"pool%d\",\"ttl_ms\":60000,\"limit\":1,"
              "\"wait_ms\":%d}",
              number % POOLS, wait_ms);
    return post(body, number);
}

static int ask_permit(int number)
{
    return ask_for_permit(number, number % 2 == 0 ? WAIT_MS : 0);
}

static int ask_wait(int number)
{
    return post("{\"resource\":\"wanted\",\"ttl_ms\":2000,\"wait_ms\":10000}",
                number);
}

static int ask_watch(int number)
{
    return ask(textf("GET /locks/watched%d?after=free&wait_ms=%d HTTP/1.1\r\n"
                     "Host: localhost\r\n\r\n",
                     number % POOLS, WAIT_MS));
}

static int ask_page(int number)
{
    (void)number;
    return ask("GET /locks?page_size=5 HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

/* By a FIN, or by a reset. */
static void leave(int fd, int number)
{
    if (fd < 0)
        return;
    if (number % 3 == 0)
        raw_reset(fd);
    else
        close(fd);
}

/* ---- tries -------------------------------------------------------------- */

static void pause_nodes(void)
{
    world_pause_nodes(0, MAJORITY);
}

static void resume_nodes(void)
{
    world_resume_nodes(0, MAJORITY);
}

/* It ends within the time, with 0. */
static bool ends_well(void)
{
    int status = harness_reap(here->pid, EXIT_MS);
    if (status < 0) {
        kill(here->pid, SIGKILL);
        (void)harness_reap(here->pid, EXIT_MS);
    }
    here->pid = 0;
    return status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool stops_well(void)
{
    kill(here->pid, SIGTERM);
    return ends_well();
}

/* Each try has a server of its own. scene is false if that did not do well. */
static void try(bool (*scene)(int))
{
    int tries = number_of("LEAVING_TRIES", 1), failed = 0;
    for (int i = 0; i < tries; i++) {
        world_serve(0, "--node-timeout-ms 500 --drain-ms 100");
        http_disconnect();
        failed += !scene(i);
    }
    ck_assert_msg(failed == 0, "%d of %d servers ended badly", failed, tries);
}

/* ---- scenes ------------------------------------------------------------- */

/* The nodes stand still, and the clients leave before they go on. */
static void leave_burst(int (*ask_one)(int), int count)
{
    int fds[BURST];
    pause_nodes();
    for (int i = 0; i < count; i++)
        fds[i] = ask_one(i);
    pause_ms(LOOKS_MS);
    for (int i = 0; i < count; i++)
        leave(fds[i], i);
    pause_ms(STANDS_MS - LOOKS_MS);
    resume_nodes();
}

static bool leave_all(int (*ask_one)(int))
{
    for (int left = requests(); left > 0; left -= BURST)
        leave_burst(ask_one, left < BURST ? left : BURST);
    return stops_well();
}

/* All pools are full. Some clients wait for a permit for a while; others leave
 * at once, as the last users of their pools. */
static bool leave_queries(int turn)
{
    int held[POOLS], waiting[WAITING];
    for (int i = 0; i < POOLS; i++) {
        char out[TEXT_MAX * 8];
        held[i] = ask_for_permit(i, 0);
        raw_read(held[i], out, sizeof out, "}\n", WAIT_MS);
    }
    for (int i = 0; i < WAITING; i++)
        waiting[i] = -1;
    for (int i = 0; i < requests(); i += 2) {
        int key = POOLS * (turn * requests() + i + 1) + i / 2 % POOLS;
        int *one = &waiting[i / 2 % WAITING];
        leave(*one, i / 2);
        *one = ask_for_permit(key + WAITING, WAIT_MS);
        int fd = ask_for_permit(key, 0);
        usleep((useconds_t)(i / 2 % STEPS * STEP_US));
        leave(fd, i / 2);
    }
    for (int i = 0; i < WAITING; i++)
        leave(waiting[i], i);
    for (int i = 0; i < POOLS; i++)
        leave(held[i], 1);
    return stops_well();
}

TEST(story_63_permits_during_a_query)
{
    try(leave_queries);
}

static bool leave_watches(int turn)
{
    (void)turn;
    return leave_all(ask_watch);
}

TEST(story_64_watches_during_an_inspection)
{
    try(leave_watches);
}

static int ask_any(int number)
{
    static int (*const asks[])(int) = {ask_permit, ask_watch, ask_wait,
                                       ask_page};
    return asks[number % 4](number);
}

static bool leave_anything(int turn)
{
    (void)turn;
    return leave_all(ask_any);
}

TEST(anything_while_the_nodes_stand_still)
{
    try(leave_anything);
}

/* Told to stop, the server says so to whoever waits, and drains. */
static bool stop_during_inspections(int turn)
{
    char out[TEXT_MAX * 8];
    int before = server_count_log(here, "draining"); /* of earlier tries */
    (void)turn;
    pause_nodes();
    int fd = ask_watch(0);
    pause_ms(LOOKS_MS);
    kill(here->pid, SIGTERM);
    raw_read(fd, out, sizeof out, "}\n", WAIT_MS);
    close(fd);
    pause_ms(STANDS_MS - LOOKS_MS); /* a tick comes before a reply */
    resume_nodes();
    return ends_well() && strstr(out, "shutting_down") != NULL &&
           server_count_log(here, "draining") == before + 1;
}

TEST(story_64_servers_during_an_inspection)
{
    try(stop_during_inspections);
}

static bool stop_during_anything(int turn)
{
    int fds[BURST];
    pause_nodes();
    for (int i = 0; i < BURST; i++)
        fds[i] = ask_any(turn * BURST + i);
    pause_ms(turn * 7 % STANDS_MS);
    kill(here->pid, SIGTERM);
    resume_nodes();
    bool is_well = ends_well();
    for (int i = 0; i < BURST; i++)
        leave(fds[i], i);
    return is_well;
}

TEST(servers_while_anything_is_under_way)
{
    try(stop_during_anything);
}
