/* SPDX-License-Identifier: MIT */
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../../server/lock/metrics.h"
#include "../../lib/suite/suite.h"

static struct metrics metrics;
static char *text;
static size_t text_len;

/* Of an acquire only. */
static const char *outcome_of(enum lock_call call, int outcome)
{
    static const char *const names[] = {NULL, "granted", "held"};
    return call == LOCK_ACQUIRE && outcome < 3 ? names[outcome] : NULL;
}

enum { GRANTED, SILENT };

static const char *vote_of(int vote)
{
    return vote == GRANTED ? "granted" : "silent";
}

static const struct metrics_names names = {outcome_of, vote_of};

static void set_up(void)
{
    metrics = (struct metrics){.names = &names,
                               .nodes = 2,
                               .quorum = 2,
                               .node_names = {"h:1", "h:2"},
                               .node_addresses = {"h:1", "i:2"}};
}

static void tear_down(void)
{
    free(text);
    text = NULL;
}

static void print(void)
{
    free(text);
    FILE *out = open_memstream(&text, &text_len);
    ck_assert_ptr_nonnull(out);
    ck_assert(metrics_print(&metrics, out));
    int rc = fclose(out);
    ck_assert_int_eq(rc, 0);
}

static void expect_line(const char *line)
{
    const char *at = strstr(text, line);
    ck_assert_msg(at != NULL && (at == text || at[-1] == '\n') &&
                      at[strlen(line)] == '\n',
                  "%s", line);
}

/* ---- the format ---------------------------------------------------------- */

SUITE(metrics, .set_up = set_up, .tear_down = tear_down);

static void expect_form(const regex_t *sample, const char *line)
{
    char name[80], type[16];
    if (*line != '#') {
        ck_assert_msg(regexec(sample, line, 0, NULL, 0) == 0, "%s", line);
    } else if (strncmp(line, "# HELP ", 7) != 0) {
        ck_assert_int_eq(sscanf(line, "# TYPE %79s %15s", name, type), 2);
        size_t len = strlen(name);
        bool is_total = len > 6 && strcmp(name + len - 6, "_total") == 0;
        ck_assert_msg(is_total == (strcmp(type, "counter") == 0), "%s", line);
    }
}

TEST(every_line_keeps_the_format)
{
    regex_t sample;
    char *rest = NULL;
    ck_assert_int_eq(
        regcomp(&sample,
                "^[a-z_]+(\\{[a-z_]+=\"([^\"\\\\]|\\\\[\\\\\"n])*\""
                "(,[a-z_]+=\"([^\"\\\\]|\\\\[\\\\\"n])*\")*\\})? "
                "-?[0-9]+(\\.[0-9]+)?$",
                REG_EXTENDED | REG_NOSUB),
        0);
    metrics.responses[LOCK_ACQUIRE][201] = 3;
    metrics.outcomes[LOCK_ACQUIRE][1] = 3;
    metrics.votes[1][GRANTED] = 2;
    metrics.node_names[0] = "/a\"b\\c";
    metrics_observe(&metrics.round_duration[LOCK_ACQUIRE], 1234567);
    print();
    ck_assert_int_eq(text[text_len - 1], '\n');
    for (const char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        expect_form(&sample, line);
    regfree(&sample);
}

/* ---- the numbers --------------------------------------------------------- */

TEST(counters_are_told)
{
    metrics.requests_accepted = 7;
    metrics.undelivered_grants = 2;
    metrics.responses[LOCK_RELEASE][404] = 5;
    metrics.outcomes[LOCK_ACQUIRE][2] = 4;
    metrics.votes[1][SILENT] = 3;
    metrics.node_is_voting[1] = 1;
    metrics.clock_offset_us[0] = -1500000;
    metrics.clock_steps[1] = 6;
    metrics.quarantine_us[1] = 66650000;
    metrics.node_is_restarted[1] = true;
    metrics.node_is_new[0] = true;
    metrics.node_certificate_until_s[1] = 1798761600;
    print();
    expect_line("redlockd_http_requests_accepted_total 7");
    expect_line("redlockd_undelivered_grants_total 2");
    expect_line(
        "redlockd_http_requests_total{call=\"release\",status=\"404\"} 5");
    expect_line(
        "redlockd_operations_total{operation=\"acquire\",outcome=\"held\"} 4");
    expect_line("redlockd_votes_total{node=\"h:2\",vote=\"silent\"} 3");
    expect_line("redlockd_node_info{node=\"h:2\",address=\"i:2\"} 1");
    expect_line("redlockd_node_voting{node=\"h:1\"} 0");
    expect_line("redlockd_node_voting{node=\"h:2\"} 1");
    expect_line("redlockd_quorum_margin -1");
    expect_line("redlockd_node_clock_lead_seconds{node=\"h:1\"} -1.500000");
    expect_line("redlockd_node_clock_steps_total{node=\"h:2\"} 6");
    expect_line("redlockd_node_quarantine_seconds{node=\"h:1\"} 0.000");
    expect_line("redlockd_node_quarantine_seconds{node=\"h:2\"} 66.650");
    expect_line("redlockd_node_new{node=\"h:1\"} 1");
    expect_line("redlockd_node_new{node=\"h:2\"} 0");
    expect_line("redlockd_node_restarted{node=\"h:1\"} 0");
    expect_line("redlockd_node_restarted{node=\"h:2\"} 1");
    expect_line("redlockd_node_tls_certificate_expiry_timestamp_seconds{node="
                "\"h:2\"} 1798761600");
}

/* Only of what the call can come to. */
TEST(a_file_that_is_refused_keeps_when_it_was_read)
{
    print();
    ck_assert_lacks(text, "{file=");
    metrics_note_file(&metrics, FILE_AUTH, true, 1795419065042999);
    metrics_note_file(&metrics, FILE_AUTH, false, 1795419066042999);
    print();
    expect_line("redlockd_file_read_timestamp_seconds{file=\"auth\"} "
                "1795419065");
    expect_line("redlockd_file_refused{file=\"auth\"} 1");
    ck_assert_lacks(text, "{file=\"certificates\"}");
    metrics_note_file(&metrics, FILE_AUTH, true, 1795419067042999);
    print();
    expect_line("redlockd_file_read_timestamp_seconds{file=\"auth\"} "
                "1795419067");
    expect_line("redlockd_file_refused{file=\"auth\"} 0");
}

TEST(outcomes_begin_at_zero)
{
    print();
    expect_line("redlockd_operations_total{operation=\"acquire\","
                "outcome=\"granted\"} 0");
    expect_line("redlockd_operations_total{operation=\"acquire\","
                "outcome=\"held\"} 0");
    ck_assert_lacks(text, "operation=\"extend\",outcome=");
}

TEST(histogram_counts_cumulatively)
{
    struct metrics_histogram *histogram = &metrics.node_rtt[0];
    metrics_observe(histogram, 0);
    metrics_observe(histogram, 100); /* a bound belongs to its bucket */
    metrics_observe(histogram, 101);
    metrics_observe(histogram, 3600000000);
    metrics_observe(histogram, -5); /* of a clock that is not ours */
    ck_assert_uint_eq(histogram->count, 5);
    print();
#define RTT "redlockd_node_round_trip_seconds"
    expect_line(RTT "_bucket{node=\"h:1\",le=\"0.0001\"} 3");
    expect_line(RTT "_bucket{node=\"h:1\",le=\"0.00025\"} 4");
    expect_line(RTT "_bucket{node=\"h:1\",le=\"2.5\"} 4");
    expect_line(RTT "_bucket{node=\"h:1\",le=\"+Inf\"} 5");
    expect_line(RTT "_sum{node=\"h:1\"} 3600.000201");
    expect_line(RTT "_count{node=\"h:1\"} 5");
}

/* Its bounds are its own, and it has no label. */
TEST(waits_are_counted_up_to_a_minute)
{
    metrics_observe_wait(&metrics, 1000);
    metrics_observe_wait(&metrics, 50000000);
    metrics_observe_wait(&metrics, 60000001);
    metrics.waiting[WAITING_LOCK] = 4;
    metrics.waiting[WAITING_PERMIT] = 5;
    metrics.waiting[WAITING_WATCH] = 3;
    metrics.handovers[HANDOVER_RELEASE] = 3;
    metrics.handovers[HANDOVER_RETRY] = 4;
    print();
#define WAIT "redlockd_wait_duration_seconds"
    expect_line(WAIT "_bucket{le=\"0.001\"} 1");
    expect_line(WAIT "_bucket{le=\"25\"} 1");
    expect_line(WAIT "_bucket{le=\"60\"} 2");
    expect_line(WAIT "_bucket{le=\"+Inf\"} 3");
    expect_line(WAIT "_sum 110.001001");
    expect_line(WAIT "_count 3");
    expect_line("redlockd_waiters 12");
    expect_line("redlockd_handovers_total{cause=\"release\"} 3");
    expect_line("redlockd_handovers_total{cause=\"announcement\"} 0");
    expect_line("redlockd_handovers_total{cause=\"expiry\"} 0");
    expect_line("redlockd_handovers_total{cause=\"retry\"} 4");
}

static double number_of(const char *name)
{
    const char *line = textf("\n%s ", name);
    const char *at = strstr(text, line);
    ck_assert_msg(at != NULL, "%s", name);
    return strtod(at + strlen(line), NULL);
}

TEST(the_process_tells_its_limits_and_its_use)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    metrics.started_us = 1795232967123456;
    metrics.connections_max = 20000;
    print();
    double before = number_of("process_cpu_seconds_total");
    while ((double)clock() < (before + 0.02) * (double)CLOCKS_PER_SEC)
        ;
    print();
    expect_line("process_start_time_seconds 1795232967.123");
    expect_line("redlockd_connections_max 20000");
    ck_assert_double_gt(number_of("process_cpu_seconds_total"), before);
    ck_assert_double_eq(number_of("process_max_fds"), (double)limit.rlim_cur);
}

/* The kernel reports them since 6.2. */
TEST(open_descriptors_are_counted_or_left_out)
{
    struct stat status;
    ck_assert_int_eq(stat("/proc/self/fd", &status), 0);
    int fd = dup(STDERR_FILENO);
    print();
    (void)close(fd); /* not written to */
    if (status.st_size == 0)
        ck_assert_lacks(text, "process_open_fds ");
    else
        ck_assert_double_eq(number_of("process_open_fds"),
                            (double)status.st_size + 1);
}

TEST(the_process_tells_its_version_and_its_memory)
{
    print();
    expect_line("redlockd_build_info{version=\"" REDLOCKD_VERSION "\"} 1");
    const char *memory = strstr(text, "\nprocess_resident_memory_bytes ");
    ck_assert_ptr_nonnull(memory);
    ck_assert_int_gt(strtoll(strchr(memory, ' '), NULL, 10), 100000);
}

TEST(a_name_of_two_lines_takes_one)
{
    metrics.node_names[0] = "a\n\\n\n";
    print();
    ck_assert_has(text, "\nredlockd_node_voting{node=\"a\\n\\\\n\\n\"} ");
}

/* Not within an escape. */
TEST(a_name_that_is_too_long_is_cut)
{
    static char name[5000];
    char ending[] = "\\\"\"} 0\n";
    memset(name, '"', sizeof name - 1);
    metrics.node_names[1] = name;
    print();
    const char *line = strstr(text, "\nredlockd_node_voting{node=\"\\");
    ck_assert_ptr_nonnull(line);
    size_t len = strcspn(line + 1, "\n");
    ck_assert_uint_lt(len, sizeof name);
    ck_assert_mem_eq(line + 1 + len - (sizeof ending - 2), ending,
                     sizeof ending - 1);
}

/* As a stream in memory that cannot grow: it tells only whom it fails. */
TEST(a_text_without_room_is_not_whole)
{
    FILE *out = fopen("/dev/full", "w");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(setvbuf(out, NULL, _IONBF, 0), 0);
    ck_assert(!metrics_print(&metrics, out));
    (void)fclose(out); /* nothing was written */
}
