/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of a start fails once: the server says so and ends, or
 * serves. Then every one of what it does unasked while it serves.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "http.h"
#include "node.h"
#include "starve.h"

/* Allocations of a connection to a node, or of a call, are fewer than SOME. */
enum { N = 5, SOON_MS = 20000, SOME = 40, STRAND = 64, VALUE_UNITS = 30 };

/* ---- the start ---------------------------------------------------------- */

static bool has_ended(int *status)
{
    if (waitpid(here->pid, status, WNOHANG) == 0)
        return false;
    here->pid = 0;
    return true;
}

static bool is_up(int *status)
{
    return has_ended(status) || http_probe(here, "/readyz") == 200;
}

/* What it has not read of its configuration is like a mistake in it. */
static bool is_refusal(int status)
{
    return WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_FAILURE ||
                                 WEXITSTATUS(status) == EX_CONFIG);
}

/* With a word why. */
static void check_end(int n, int status)
{
    char *log = harness_read_file(here->log);

    ck_assert_msg(is_refusal(status) && strstr(log, "redlockd: ") &&
                      !strstr(log, "Sanitizer"),
                  "allocation %d: wait status %d, log:\n%s", n, status, log);
    free(log);
}

/* A server that gets memory again serves. */
static void check_service(void)
{
    int status = 0;

    AWHILE(is_up(&status));
    lock_expect_cycle(here, "after:a:start");
    http_disconnect();
    world_stop_server(0);
}

/* It ended, is ready, or has tried for a while. */
static bool has_tried(bool lasts, int *status)
{
    return is_up(status) || (lasts && starve_count() > N);
}

/* False: a start makes fewer than n allocations. */
static bool try_start(int n, bool lasts, int *ends)
{
    int status = 0;

    starve_begin(n, lasts);
    world_start_server(0, "--log-level warn --audit-log /dev/null");
    AWHILE(has_tried(lasts, &status));
    bool has_failed = starve_end() > 0;
    if (here->pid) {
        check_service();
    } else {
        check_end(n, status);
        ++*ends;
    }
    ck_assert_int_eq(truncate(here->log, 0), 0);
    return has_failed;
}

/* STARVED_STRIDE=1 tries each; a start under ASan is long. */
static void sweep_starts(bool lasts)
{
    const char *stride = getenv("STARVED_STRIDE");
    int ends = 0, n = 1;

    world_start_nodes(N);
    starve_prepare(here);
    while (try_start(n, lasts, &ends))
        n += stride != NULL ? atoi(stride) : 7;
    printf("%d allocations of a start: %d ended it with an error\n", n - 1,
           ends);
    world_stop();
}

SUITE(starved_server, .timeout_s = 300);

TEST(each_allocation_of_a_start_fails_once)
{
    sweep_starts(false);
}

TEST(all_allocations_of_a_start_fail_from_one_on)
{
    sweep_starts(true);
}

/* ---- connections to nodes ----------------------------------------------- */

static int count_descriptors(void)
{
    int count = 0;

    DIR *dir = opendir(textf("/proc/%d/fd", (int)here->pid));
    ck_assert_ptr_nonnull(dir);
    /* cppcheck-suppress readdirCalled; there is one thread */
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* Without memory there may be no answer; each look uses some up. */
static bool are_all_voting(void)
{
    const struct answer *answer =
        http_try(here, &(struct request){.method = "GET", .path = "/nodes"});

    return answer && answer->status == 200 && answer_int(answer, "voting") == N;
}

static void start(void)
{
    world_start_nodes(N);
    world_admit_nodes("");
    starve_prepare(here);
    world_serve(0, "");
}

TEST(each_allocation_of_a_connection_to_a_node_fails_once)
{
    start();
    int descriptors = count_descriptors();
    for (int n = 1; n <= SOME; n++) {
        starve_begin(n, false);
        node_do(&world.nodes[n % N], "CLIENT KILL TYPE normal SKIPME yes");
        AWHILE(are_all_voting() && starve_count() > 0);
        AWHILE(are_all_voting());
    }
    AWHILE(count_descriptors() <= descriptors);
    lock_expect_cycle(here, "after:all:that");
    world_stop();
}

/* Inspections that are all handled in one turn, and come back as one reply. */
static void inspect_many(const char *path)
{
    char request[1024], answer[4096];
    int fds[STRAND];

    int len = PRINT_TO(request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    server_pause(here);
    for (int i = 0; i < STRAND; i++) {
        fds[i] = raw_connect(here);
        raw_send(fds[i], request, (size_t)len);
    }
    server_resume(here);
    for (int i = 0; i < STRAND; i++) {
        raw_read(fds[i], answer, sizeof answer, "\r\n\r\n", SOON_MS);
        ck_assert_has(answer, " 200 OK");
        close(fds[i]);
    }
}

/* The buffers for what is read have grown then, and shrink. */
TEST(each_allocation_behind_a_long_reply_fails_once)
{
    char *value = harness_repeat("#", "somebody", VALUE_UNITS);

    start();
    world_set(0, N, "held", value, 0);
    for (int n = 1; n <= SOME; n++) {
        AWHILE(are_all_voting());
        inspect_many("/locks/held");
        starve_begin(n, false);
        (void)http_try(
            here, &(struct request){.method = "GET", .path = "/locks/held"});
        (void)starve_end();
    }
    AWHILE(are_all_voting());
    answer_expect_held(lock_inspect(here, "held"));
    free(value);
    world_stop();
}
