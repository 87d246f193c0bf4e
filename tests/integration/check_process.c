/* SPDX-License-Identifier: MIT */
/*
 * The process: how it starts, and what it says.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

enum { WORDS_MAX = 16 };

/* harness_run of the binary with options that are separated by spaces. */
static int run(const char *options, char **output)
{
    char copy[512], *rest = NULL;
    char *argv[WORDS_MAX] = {(char *)harness_binary()};
    int argc = 1;

    snprintf(copy, sizeof copy, "%s", options);
    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        argv[argc++] = word;
    return harness_run(argv, NULL, output);
}

/* ---- the start ----------------------------------------------------------- */

SUITE(process, .timeout_s = 60);

TEST(second_server_on_the_port_is_refused)
{
    char options[128], *output;

    world_start(1, "");
    snprintf(options, sizeof options,
             "--nodes 127.0.0.1:1 --listen 127.0.0.1:%d", here->port);
    ck_assert_int_ne(run(options, &output), 0);
    ck_assert_msg(strstr(output, "in use"), "%s", output);
    strcat(options, " --reuse-port");
    free(output);
    ck_assert_int_ne(run(options, &output), 0); /* both must say so */
    free(output);
    world_stop();
}

/* How often it has gone to sleep. */
static long sleeps(pid_t pid)
{
    char line[256];
    long count = -1;
    FILE *status = fopen(textf("/proc/%d/status", (int)pid), "r");
    ck_assert_ptr_nonnull(status);
    while (fgets(line, sizeof line, status) != NULL)
        (void)sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    (void)fclose(status);
    ck_assert_int_ge(count, 0);
    return count;
}

TEST(without_work_it_wakes_for_its_heartbeats_only)
{
    enum { SECONDS = 5, MOST = 15 };

    world_start(5, "");
    world_await(0, "/readyz");
    sleep(2); /* the connection ends */
    long before = sleeps(here->pid);
    sleep(SECONDS);
    ck_assert_int_le(sleeps(here->pid) - before, SECONDS * MOST);
    world_stop();
}

static bool has_logged(const struct server *it, const char *text)
{
    char *log = harness_read_file(it->log);
    bool has = strstr(log, text);

    free(log);
    return has;
}

static bool has_started(const struct server *it)
{
    return has_logged(it, "event=start");
}

/* Two servers on one port. */
static void start_sharing(const char *options)
{
    world_start(1, options);
    there->port = here->port;
    world_start_server(1, "--reuse-port");
    SOON(access(there->log, R_OK) == 0 && has_started(there));
}

TEST(two_servers_share_a_port_if_both_say_so)
{
    start_sharing("--reuse-port");
    world_await(0, "/readyz");
    world_stop();
}

/* Each is a new connection, which the kernel gives to one of the servers. */
static bool are_ready(const struct server *it, int probes)
{
    while (probes > 0 && http_probe(it, "/readyz") == 200)
        probes--;
    return probes == 0;
}

TEST(drain_leaves_a_shared_port_to_the_others)
{
    start_sharing("--reuse-port --drain-ms 60000");
    SOON(are_ready(here, 20));
    kill(here->pid, SIGTERM);
    SOON(has_logged(here, "event=draining"));
    WAIT_UNTIL(5000, are_ready(here, 40));
    ck_assert_int_ne(harness_state(here->pid), 'Z');
    kill(here->pid, SIGTERM); /* at once */
    world_stop();
}

TEST(starts_with_no_node_and_turns_ready)
{
    struct lock lock;

    world_start_nodes(3);
    world_kill_nodes(0, 3);
    world_start_server(0, "");
    world_await(0, "/livez");
    answer_expect(HTTP(here, .method = "GET", .path = "/readyz"), 503,
                  "no_quorum");
    answer_expect(lock_acquire(here, "none", 9000, NULL), 503, "no_quorum");
    world_restart_nodes(0, 3);
    world_wait_ready(0);
    lock_take(here, "none", 9000, &lock);
    lock_drop(here, &lock);
    world_stop();
}
