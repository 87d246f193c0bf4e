/*
 * The process: how it starts, and what it says.
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "node.h"

enum { WORDS_MAX = 16 };

static struct world world;
static const struct server *const server = &world.servers[0];

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

static const struct {
    const char *options, *says;
} bad_starts[] = {
    {"", "--nodes"},
    {"--nodes 127.0.0.1:1 --listen 203.0.113.1:80", "--allow-anonymous"},
    {"--nodes 127.0.0.1:1 --allow-anonymous --listen 203.0.113.1:80",
     "203.0.113.1:80"},
    {"--nodes 127.0.0.1:1 --allow-anonymous --listen no-such-host.invalid:80",
     "no-such-host.invalid"},
    {"--check-config --nodes 127.0.0.1:1 --retry-count x", "--retry-count"},
};

SUITE(process, .timeout_s = 60);

TEST_EACH(bad_configuration_is_one_line_and_no_start, bad_starts)
{
    char *output;

    ck_assert_int_ne(run(bad_starts[_i].options, &output), 0);
    ck_assert_msg(strstr(output, bad_starts[_i].says), "%s", output);
    ck_assert_msg(strchr(output, '\n') == output + strlen(output) - 1,
                  "not one line: %s", output);
    free(output);
}

static const struct {
    const char *options, *says;
} actions[] = {
    {"--version", "redlockd "},
    {"--help", "--max-ttl-ms"},
    {"-h", "--nodes"},
    {"--check-config --nodes 127.0.0.1:1", ""},
    {"--print-config --nodes 127.0.0.1:1", "--nodes=127.0.0.1:1\n"},
    {"--print-config --nodes redis://u:SECRET@h:1", "u:***@h:1"},
};

TEST_EACH(action_exits_with_0, actions)
{
    char *output;

    ck_assert_int_eq(run(actions[_i].options, &output), 0);
    ck_assert_msg(strstr(output, actions[_i].says), "%s", output);
    ck_assert_lacks(output, "SECRET");
    free(output);
}

TEST(second_server_on_the_port_is_refused)
{
    char options[128], *output;

    world_start(&world, 1, "");
    snprintf(options, sizeof options,
             "--nodes 127.0.0.1:1 --listen 127.0.0.1:%d", server->port);
    ck_assert_int_ne(run(options, &output), 0);
    ck_assert_msg(strstr(output, "in use"), "%s", output);
    strcat(options, " --reuse-port");
    free(output);
    ck_assert_int_ne(run(options, &output), 0); /* both must say so */
    free(output);
    world_stop(&world);
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
    fclose(status);
    ck_assert_int_ge(count, 0);
    return count;
}

TEST(without_work_it_wakes_for_its_heartbeats_only)
{
    enum { SECONDS = 5, MOST = 15 };

    world_start(&world, 5, "");
    WAIT_UNTIL(20000, http_probe(server, "/readyz") == 200);
    sleep(2); /* the connection ends */
    long before = sleeps(server->pid);
    sleep(SECONDS);
    ck_assert_int_le(sleeps(server->pid) - before, SECONDS * MOST);
    world_stop(&world);
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
    world_start(&world, 1, options);
    world.servers[1].port = server->port;
    world_start_server(&world, 1, "--reuse-port");
    WAIT_UNTIL(10000, access(world.servers[1].log, R_OK) == 0 &&
                          has_started(&world.servers[1]));
}

TEST(two_servers_share_a_port_if_both_say_so)
{
    start_sharing("--reuse-port");
    WAIT_UNTIL(10000, http_probe(server, "/readyz") == 200);
    world_stop(&world);
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
    WAIT_UNTIL(10000, are_ready(server, 20));
    kill(server->pid, SIGTERM);
    WAIT_UNTIL(10000, has_logged(server, "event=draining"));
    WAIT_UNTIL(5000, are_ready(server, 40));
    ck_assert_int_ne(harness_state(server->pid), 'Z');
    kill(server->pid, SIGTERM); /* at once */
    world_stop(&world);
}

TEST(starts_with_no_node_and_turns_ready)
{
    struct lock lock;

    world_start_nodes(&world, 3);
    world_kill_nodes(&world, 0, 3);
    world_start_server(&world, 0, "");
    WAIT_UNTIL(10000, http_probe(server, "/livez") == 200);
    answer_expect(HTTP(server, .method = "GET", .path = "/readyz"), 503,
                  "no_quorum");
    answer_expect(lock_acquire(server, "none", 9000, NULL), 503, "no_quorum");
    world_restart_nodes(&world, 0, 3);
    world_wait_ready(&world, 0);
    lock_take(server, "none", 9000, &lock);
    answer_expect(lock_release(server, &lock), 200, NULL);
    world_stop(&world);
}

/* ---- what it says -------------------------------------------------------- */

/* world_stop looks for tokens; here at debug level, with errors on the way. */
TEST(no_token_comes_into_the_log)
{
    struct lock lock;

    world_start(&world, 3, "--log-level debug --ask all");
    for (int i = 0; i < 3; i++) {
        lock_take(server, "log", 9000, &lock);
        lock_acquire(server, "log", 9000, NULL);
        lock_extend(server, &lock, 9000);
        lock_inspect(server, "log");
        lock_release(server, &lock);
        lock_release(server, &lock);
        lock_extend(server, &lock, 1);
    }
    lock_take(server, "log", 9000, &lock);
    world_kill_nodes(&world, 0, 2);
    answer_expect(lock_extend(server, &lock, 9000), 503, "no_quorum");
    answer_expect(lock_release(server, &lock), 503, "no_quorum");
    char *log = harness_read_file(server->log);
    ck_assert_lacks(log, lock.token);
    ck_assert_lacks(log, lock.token + 17);
    free(log);
    world_stop(&world);
}

/* What each line looks like is in tests/unit/base/check_metrics.c. */
TEST(metrics_count)
{
    struct lock lock;

    world_start(&world, 3, "");
    lock_take(server, "m", 9000, &lock);
    answer_expect(lock_acquire(server, "m", 9000, NULL), 409, "lock_held");
    answer_expect(lock_release(server, &lock), 200, NULL);
    const struct answer *a = HTTP(server, .method = "GET", .path = "/metrics");
    ck_assert_has(answer_header(a, "Content-Type"), "0.0.4");
    ck_assert_lacks(a->body, lock.token);
    /* the request that asks is the only one that is open */
    double open = http_metric(server, "redlockd_http_requests_accepted_total") -
                  http_metric(server, "redlockd_http_requests_answered_total") -
                  http_metric(server, "redlockd_http_requests_abandoned_total");
    ck_assert_double_le(open, 1);
    ck_assert_double_eq(http_metric(server, "redlockd_quorum_margin"), 1);
    ck_assert_double_ge(http_metric(server, "redlockd_connections_max"), 16);
    ck_assert_double_le(fabs(http_metric(server, "process_start_time_seconds") -
                             (double)time(NULL)),
                        60);
    world_stop(&world);
}

static double answers_to(const char *call)
{
    const char *sample =
        textf("redlockd_http_requests_total{call=\"%s\",status=\"200\"}", call);
    return http_metric(server, sample);
}

TEST(probes_and_scrapes_are_counted_apart)
{
    world_start(&world, 1, ""); /* by its probe */
    answer_expect(HTTP(server, .method = "GET", .path = "/nodes"), 200, NULL);
    (void)answers_to("metrics");
    double probes = answers_to("probe");
    double scrapes = answers_to("metrics");
    double others = answers_to("other");
    answer_expect(HTTP(server, .method = "GET", .path = "/livez"), 200, NULL);
    answer_expect(HTTP(server, .method = "HEAD", .path = "/readyz"), 200, NULL);
    answer_expect(HTTP(server, .method = "GET", .path = "/nodes"), 200, NULL);
    ck_assert_double_eq(answers_to("probe") - probes, 2);
    ck_assert_double_eq(answers_to("other") - others, 1);
    ck_assert_double_eq(answers_to("metrics") - scrapes, 4);
    world_stop(&world);
}
