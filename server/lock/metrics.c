#include "metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const metrics_call_names[METRICS_CALLS] = {
    [LOCK_ACQUIRE] = "acquire",   [LOCK_EXTEND] = "extend",
    [LOCK_RELEASE] = "release",   [LOCK_INSPECT] = "inspect",
    [LOCK_FORCE] = "force",       [METRICS_LIST] = "list",
    [METRICS_BATCH] = "batch",    [METRICS_PROBE] = "probe",
    [METRICS_SCRAPE] = "metrics", [METRICS_OTHER] = "other",
};

static const char *const handover_names[HANDOVER_CAUSES] = {
    [HANDOVER_RELEASE] = "release",
    [HANDOVER_ANNOUNCEMENT] = "announcement",
    [HANDOVER_EXPIRY] = "expiry",
    [HANDOVER_RETRY] = "retry",
};

static const char *const waiting_names[WAITING_KINDS] = {
    [WAITING_LOCK] = "lock",
    [WAITING_PERMIT] = "permit",
    [WAITING_WATCH] = "watch",
};

static const char *const widening_names[WIDENING_CAUSES] = {
    [WIDENING_SPLIT] = "split",
    [WIDENING_NO_ANSWER] = "no_answer",
    [WIDENING_SLOW] = "slow",
};

static const char *const handshake_names[HANDSHAKE_RESULTS] = {
    [HANDSHAKE_DONE] = "done",
    [HANDSHAKE_CLOSED] = "closed",
    [HANDSHAKE_NOT_TLS] = "not_tls",
    [HANDSHAKE_BAD_CERTIFICATE] = "bad_certificate",
    [HANDSHAKE_FAILED] = "failed",
};

static const char *const file_names[METRICS_FILES] = {
    [FILE_AUTH] = "auth",
    [FILE_CERTIFICATES] = "certificates",
    [FILE_CRL] = "crl",
};

/* ---- durations ---------------------------------------------------------- */

/* Upper bounds of the buckets, in µs, and in seconds for Prometheus. */
struct bound {
    int64_t us;
    const char *seconds;
};

static const struct bound usual_bounds[METRICS_BUCKETS] = {
    {100, "0.0001"},  {250, "0.00025"}, {500, "0.0005"},  {1000, "0.001"},
    {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"},
    {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
    {1000000, "1"},   {2500000, "2.5"},
};

/* Up to WAIT_MAX_MS, and an attempt. */
static const struct bound wait_bounds[METRICS_BUCKETS] = {
    {1000, "0.001"},  {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"},
    {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
    {1000000, "1"},   {2500000, "2.5"}, {5000000, "5"},   {10000000, "10"},
    {25000000, "25"}, {60000000, "60"},
};

static void observe(struct metrics_histogram *histogram,
                    const struct bound *bounds, int64_t duration_us)
{
    int bucket = 0;
    while (bucket < METRICS_BUCKETS && duration_us > bounds[bucket].us)
        bucket++;
    histogram->buckets[bucket]++;
    histogram->count++;
    if (duration_us > 0)
        histogram->sum_us += (uint64_t)duration_us;
}

void metrics_observe(struct metrics_histogram *histogram, int64_t duration_us)
{
    observe(histogram, usual_bounds, duration_us);
}

void metrics_observe_wait(struct metrics *metrics, int64_t duration_us)
{
    observe(&metrics->wait_duration, wait_bounds, duration_us);
}

void metrics_note_file(struct metrics *metrics, enum metrics_file file,
                       bool is_read, int64_t wall_us)
{
    metrics->file_is_refused[file] = !is_read;
    if (is_read)
        metrics->file_read_s[file] = wall_us / US_PER_S;
}

/* ---- text --------------------------------------------------------------- */

/* A memory stream does not remember that there was no room for a piece. */
struct text {
    FILE *stream;
    bool is_whole;
};

__attribute__((format(printf, 2, 3))) static void print(struct text *out,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (vfprintf(out->stream, format, args) < 0)
        out->is_whole = false;
    va_end(args);
}

static void head(struct text *out, const char *name, const char *type,
                 const char *help)
{
    print(out, "# HELP redlockd_%s %s\n# TYPE redlockd_%s %s\n", name, help,
          name, type);
}

/* The samples of one histogram. */
struct series {
    const char *name;
    const char *label; /* NULL: none */
    const char *value; /* of the label */
    const struct bound *bounds;
};

/* A sample's name and labels; le: the bucket's bound, NULL: it is no bucket. */
static void print_name(struct text *out, const struct series *series,
                       const char *suffix, const char *le)
{
    print(out, "redlockd_%s_%s", series->name, suffix);
    if (series->label != NULL)
        print(out, "{%s=\"%s\"%s", series->label, series->value,
              le != NULL ? "," : "}");
    if (le != NULL)
        print(out, "%sle=\"%s\"}", series->label != NULL ? "" : "{", le);
}

static void print_series(struct text *out, const struct series *series,
                         const struct metrics_histogram *histogram)
{
    uint64_t below = 0;
    for (int i = 0; i < METRICS_BUCKETS; i++) {
        below += histogram->buckets[i];
        print_name(out, series, "bucket", series->bounds[i].seconds);
        print(out, " %" PRIu64 "\n", below);
    }
    print_name(out, series, "bucket", "+Inf");
    print(out, " %" PRIu64 "\n", histogram->count);
    print_name(out, series, "sum", NULL);
    print(out, " %.6f\n", (double)histogram->sum_us / 1e6);
    print_name(out, series, "count", NULL);
    print(out, " %" PRIu64 "\n", histogram->count);
}

static void print_histogram(struct text *out, const char *name,
                            const char *label, const char *value,
                            const struct metrics_histogram *histogram)
{
    const struct series series = {name, label, value, usual_bounds};
    print_series(out, &series, histogram);
}

/* The metrics without labels. */
static const struct plain {
    const char *name;
    const char *type;
    const char *help;
    size_t offset; /* of a uint64_t in struct metrics */
} plains[] = {
#define PLAIN(member, name, type, help)                                        \
    {                                                                          \
        name, type, help, offsetof(struct metrics, member)                     \
    }
    PLAIN(requests_accepted, "http_requests_accepted_total", "counter",
          "Requests whose head was read."),
    PLAIN(requests_answered, "http_requests_answered_total", "counter",
          "Requests that were answered."),
    PLAIN(requests_abandoned, "http_requests_abandoned_total", "counter",
          "Requests whose client disconnected before the answer."),
    PLAIN(connections, "connections", "gauge", "Open client connections."),
    PLAIN(connections_max, "connections_max", "gauge",
          "Client connections that may be open at once."),
    PLAIN(connections_cut, "connections_cut_total", "counter",
          "Client connections that were cut by a deadline."),
    PLAIN(audit_lost, "audit_lost_total", "counter",
          "Lines that could not be written to the audit log."),
    PLAIN(undelivered_grants, "undelivered_grants_total", "counter",
          "Grants that were released because the client had disconnected, or "
          "lost its right to them."),
    PLAIN(fills, "fills_total", "counter",
          "Locks that were still held when the nodes that had not been asked "
          "got them."),
    PLAIN(locks_thin, "locks_thin_total", "counter",
          "Locks whose validity ended while a voting node lacked them, or that "
          "were given up as too many did."),
    PLAIN(releases_pending, "releases_pending", "gauge",
          "Releases under way, and those that a node has yet to receive."),
    PLAIN(
        releases_dropped, "releases_dropped_total", "counter",
        "Releases that a node will not get, for lack of memory: its key stays "
        "until the TTL ends."),
    PLAIN(releases_forgone, "releases_forgone_total", "counter",
          "Releases that a node will not get, for the same reason: it was "
          "unreachable when the lock was acquired, and has the key only if "
          "another server reached it."),
    PLAIN(waiters_max, "waiters_max", "gauge",
          "How many clients may wait at once."),
    PLAIN(permit_grants, "permit_grants_total", "counter",
          "Permits granted: acquires with a limit."),
    PLAIN(permit_tries, "permit_tries_total", "counter",
          "Acquires of slots for permits: a round or more each."),
    PLAIN(permit_surveys, "permit_surveys_total", "counter",
          "Rounds that asked which slots of a pool are free."),
    PLAIN(permit_refusals, "permit_refusals_total", "counter",
          "Acquires with a limit that found no slot free."),
#undef PLAIN
};

static void print_plains(const struct metrics *metrics, struct text *out)
{
    for (size_t i = 0; i < sizeof plains / sizeof *plains; i++) {
        uint64_t value;
        memcpy(&value, (const char *)metrics + plains[i].offset, sizeof value);
        head(out, plains[i].name, plains[i].type, plains[i].help);
        print(out, "redlockd_%s %" PRIu64 "\n", plains[i].name, value);
    }
}

static void metrics_print_requests(const struct metrics *metrics,
                                   struct text *out)
{
    head(out, "http_requests_total", "counter",
         "Answered requests, and the operations of batches, by call and "
         "status.");
    for (int call = 0; call < METRICS_CALLS; call++)
        for (int status = 0; status < METRICS_STATUSES; status++)
            if (metrics->responses[call][status] > 0)
                print(out,
                      "redlockd_http_requests_total{call=\"%s\","
                      "status=\"%d\"} %" PRIu64 "\n",
                      metrics_call_names[call], status,
                      metrics->responses[call][status]);
    head(out, "http_request_duration_seconds", "histogram",
         "From the head of a request to its answer, except acquires that "
         "may wait; of operations in batches, too.");
    for (int call = 0; call < METRICS_CALLS; call++)
        print_histogram(out, "http_request_duration_seconds", "call",
                        metrics_call_names[call],
                        &metrics->request_duration[call]);
}

static void print_tls(const struct metrics *metrics, struct text *out)
{
    head(out, "tls_handshakes_total", "counter",
         "TLS handshakes of clients by their result.");
    for (int i = 0; i < HANDSHAKE_RESULTS; i++)
        print(out, "redlockd_tls_handshakes_total{result=\"%s\"} %" PRIu64 "\n",
              handshake_names[i], metrics->tls_handshakes[i]);
    head(out, "tls_certificate_expiry_timestamp_seconds", "gauge",
         "When the certificate of --tls-cert expires, in Unix time.");
    if (metrics->tls_until_s != 0)
        print(out,
              "redlockd_tls_certificate_expiry_timestamp_seconds %" PRId64 "\n",
              metrics->tls_until_s);
    head(out, "tls_client_crl_next_update_timestamp_seconds", "gauge",
         "When the list of --tls-client-crl is outdated, in Unix time.");
    if (metrics->crl_until_s != 0)
        print(out,
              "redlockd_tls_client_crl_next_update_timestamp_seconds %" PRId64
              "\n",
              metrics->crl_until_s);
}

static void print_files(const struct metrics *metrics, struct text *out)
{
    head(out, "file_read_timestamp_seconds", "gauge",
         "When a file of the configuration was last read successfully, in "
         "Unix time.");
    for (int i = 0; i < METRICS_FILES; i++)
        if (metrics->file_read_s[i] != 0)
            print(out,
                  "redlockd_file_read_timestamp_seconds{file=\"%s\"} %" PRId64
                  "\n",
                  file_names[i], metrics->file_read_s[i]);
    head(out, "file_refused", "gauge",
         "1 if a file was unusable when it was last read: its previous "
         "content stays in effect.");
    for (int i = 0; i < METRICS_FILES; i++)
        if (metrics->file_read_s[i] != 0)
            print(out, "redlockd_file_refused{file=\"%s\"} %d\n", file_names[i],
                  metrics->file_is_refused[i]);
}

/* Outcomes start at 0: a rate needs a value from before the first event. */
static void print_operations(const struct metrics *metrics, struct text *out)
{
    head(out, "operations_total", "counter",
         "Finished operations by their outcome.");
    for (int call = 0; call < LOCK_CALLS; call++)
        for (int i = 0; i < METRICS_OUTCOMES; i++) {
            const char *name = metrics->names->outcome((enum lock_call)call, i);
            if (name != NULL)
                print(out,
                      "redlockd_operations_total{operation=\"%s\","
                      "outcome=\"%s\"} %" PRIu64 "\n",
                      metrics_call_names[call], name,
                      metrics->outcomes[call][i]);
        }
    head(out, "round_duration_seconds", "histogram",
         "From the sending of a round to its verdict.");
    for (int call = 0; call < LOCK_CALLS; call++)
        print_histogram(out, "round_duration_seconds", "operation",
                        metrics_call_names[call],
                        &metrics->round_duration[call]);
    head(out, "rounds_widened_total", "counter",
         "Acquire rounds that asked more than a quorum, by the reason.");
    for (int i = 0; i < WIDENING_CAUSES; i++)
        print(out, "redlockd_rounds_widened_total{cause=\"%s\"} %" PRIu64 "\n",
              widening_names[i], metrics->widenings[i]);
}

uint64_t metrics_waiters(const struct metrics *metrics)
{
    uint64_t count = 0;
    for (int i = 0; i < WAITING_KINDS; i++)
        count += metrics->waiting[i];
    return count;
}

static void print_waiting(const struct metrics *metrics, struct text *out)
{
    static const struct series waits = {"wait_duration_seconds", NULL, NULL,
                                        wait_bounds};
    head(out, "waiters", "gauge", "Clients that wait now.");
    print(out, "redlockd_waiters %" PRIu64 "\n", metrics_waiters(metrics));
    head(out, "waiters_by_kind", "gauge",
         "Clients that wait now, by what they wait for.");
    for (int i = 0; i < WAITING_KINDS; i++)
        print(out, "redlockd_waiters_by_kind{kind=\"%s\"} %" PRIu64 "\n",
              waiting_names[i], metrics->waiting[i]);
    head(out, "wait_duration_seconds", "histogram",
         "From an acquire that may wait to its outcome.");
    print_series(out, &waits, &metrics->wait_duration);
    head(out, "handovers_total", "counter",
         "Grants to waiting acquires, by how they learned that the lock was "
         "free.");
    for (int i = 0; i < HANDOVER_CAUSES; i++)
        print(out, "redlockd_handovers_total{cause=\"%s\"} %" PRIu64 "\n",
              handover_names[i], metrics->handovers[i]);
}

enum { LABEL_MAX = 2 * 512 };

/* A label's value: '\\', '"' and line feed are escaped. */
static void escape(const char *text, char out[LABEL_MAX + 1])
{
    size_t len = 0;
    for (; *text != '\0' && len + 2 <= LABEL_MAX; text++) {
        if (*text == '\\' || *text == '"' || *text == '\n')
            out[len++] = '\\';
        out[len++] = *text;
        if (*text == '\n')
            out[len - 1] = 'n';
    }
    out[len] = '\0';
}

static void print_votes(const struct metrics *metrics, int node,
                        const char *name, struct text *out)
{
    for (int vote = 0; vote < METRICS_VOTES; vote++)
        if (metrics->votes[node][vote] > 0)
            print(out,
                  "redlockd_votes_total{node=\"%s\",vote=\"%s\"} %" PRIu64 "\n",
                  name, metrics->names->vote(vote), metrics->votes[node][vote]);
}

/* A sample that has no other label. */
static void print_of_node(struct text *out, const char *metric,
                          const char *node, int64_t value)
{
    print(out, "redlockd_%s{node=\"%s\"} %" PRId64 "\n", metric, node, value);
}

static void print_clocks(const struct metrics *metrics,
                         char names[][LABEL_MAX + 1], struct text *out)
{
    head(out, "node_clock_lead_seconds", "gauge",
         "How far a node's clock is ahead of the median of all.");
    for (int i = 0; i < metrics->nodes; i++)
        print(out, "redlockd_node_clock_lead_seconds{node=\"%s\"} %.6f\n",
              names[i], (double)metrics->clock_offset_us[i] / 1e6);
    head(out, "node_clock_steps_total", "counter",
         "Steps of a node's clock; each costs it its vote for a while.");
    for (int i = 0; i < metrics->nodes; i++)
        print_of_node(out, "node_clock_steps_total", names[i],
                      (int64_t)metrics->clock_steps[i]);
    head(out, "node_tls_certificate_expiry_timestamp_seconds", "gauge",
         "When the certificate that a node shows expires, in Unix time.");
    for (int i = 0; i < metrics->nodes; i++)
        if (metrics->node_certificate_until_s[i] != 0)
            print_of_node(out, "node_tls_certificate_expiry_timestamp_seconds",
                          names[i], metrics->node_certificate_until_s[i]);
}

static void metrics_print_nodes(const struct metrics *metrics, struct text *out)
{
    char names[NODES_MAX][LABEL_MAX + 1];
    int voting = 0;
    for (int i = 0; i < metrics->nodes; i++)
        escape(metrics->node_names[i], names[i]);
    head(out, "node_info", "gauge", "1; each node with its address.");
    for (int i = 0; i < metrics->nodes; i++) {
        char address[LABEL_MAX + 1];
        escape(metrics->node_addresses[i], address);
        print(out, "redlockd_node_info{node=\"%s\",address=\"%s\"} 1\n",
              names[i], address);
    }
    head(out, "node_voting", "gauge", "1 if the node may vote now.");
    for (int i = 0; i < metrics->nodes; i++) {
        voting += metrics->node_is_voting[i];
        print_of_node(out, "node_voting", names[i], metrics->node_is_voting[i]);
    }
    head(out, "quorum_margin", "gauge",
         "Voting nodes above the quorum; below 0 nothing is granted.");
    print(out, "redlockd_quorum_margin %d\n", voting - metrics->quorum);
    head(out, "votes_total", "counter", "Replies by node and vote.");
    for (int i = 0; i < metrics->nodes; i++)
        print_votes(metrics, i, names[i], out);
    head(out, "node_reconnects_total", "counter",
         "Connections that broke, and attempts that failed.");
    for (int i = 0; i < metrics->nodes; i++)
        print_of_node(out, "node_reconnects_total", names[i],
                      (int64_t)metrics->reconnects[i]);
    head(out, "node_quarantine_seconds", "gauge",
         "Until a node that may have forgotten locks votes; 0: no quarantine.");
    for (int i = 0; i < metrics->nodes; i++)
        print(out, "redlockd_node_quarantine_seconds{node=\"%s\"} %.3f\n",
              names[i], (double)metrics->quarantine_us[i] / 1e6);
    head(out, "node_restarted", "gauge",
         "1 if a node that does not vote yet was restarted, and has the memory "
         "from before.");
    for (int i = 0; i < metrics->nodes; i++)
        print_of_node(out, "node_restarted", names[i],
                      metrics->node_is_restarted[i]);
    head(out, "node_new", "gauge",
         "1 if a node that does not vote yet never did, as far as it and this "
         "server know.");
    for (int i = 0; i < metrics->nodes; i++)
        print_of_node(out, "node_new", names[i], metrics->node_is_new[i]);
    head(out, "node_durable", "gauge",
         "1 if the node said last that it keeps its memory across a restart.");
    for (int i = 0; i < metrics->nodes; i++)
        if (metrics->node_is_known[i])
            print_of_node(out, "node_durable", names[i],
                          metrics->node_is_durable[i]);
    print_clocks(metrics, names, out);
    head(out, "node_round_trip_seconds", "histogram",
         "From the queueing of a command to its reply.");
    for (int i = 0; i < metrics->nodes; i++)
        print_histogram(out, "node_round_trip_seconds", "node", names[i],
                        &metrics->node_rtt[i]);
}

/* Resident pages of this process; 0 if the kernel does not report it. */
static uint64_t resident_pages(void)
{
    uint64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL)
        return 0;
    /* NOLINTNEXTLINE(cert-err34-c): a number of pages fits */
    if (fscanf(file, "%*u %" SCNu64, &pages) != 1)
        pages = 0;
    (void)fclose(file); /* only read */
    return pages;
}

static void print_descriptors(struct text *out)
{
    struct rlimit limit;
    struct stat status;
    /* Reading the folder would hold up the loop while there are thousands.
     * Before Linux 6.2 the size is 0. */
    int64_t open =
        stat("/proc/self/fd", &status) == 0 ? (int64_t)status.st_size : 0;
    if (open > 0)
        print(out,
              "# HELP process_open_fds Open file descriptors.\n"
              "# TYPE process_open_fds gauge\n"
              "process_open_fds %" PRId64 "\n",
              open);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        print(out,
              "# HELP process_max_fds Most open file descriptors.\n"
              "# TYPE process_max_fds gauge\n"
              "process_max_fds %" PRIu64 "\n",
              (uint64_t)limit.rlim_cur);
}

static void print_process(const struct metrics *metrics, struct text *out)
{
    struct rusage usage;
    head(out, "build_info", "gauge", "The running version.");
    print(out, "redlockd_build_info{version=\"%s\"} 1\n", REDLOCKD_VERSION);
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        int64_t s = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
        int64_t us = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
        print(out,
              "# HELP process_cpu_seconds_total CPU time, user and system.\n"
              "# TYPE process_cpu_seconds_total counter\n"
              "process_cpu_seconds_total %.6f\n",
              (double)(s * US_PER_S + us) / 1e6);
    }
    print(out,
          "# HELP process_start_time_seconds When it started, since 1970.\n"
          "# TYPE process_start_time_seconds gauge\n"
          "process_start_time_seconds %.3f\n",
          (double)metrics->started_us / 1e6);
    print_descriptors(out);
    print(out,
          "# HELP process_resident_memory_bytes Resident memory size.\n"
          "# TYPE process_resident_memory_bytes gauge\n"
          "process_resident_memory_bytes %" PRIu64 "\n",
          resident_pages() * (uint64_t)sysconf(_SC_PAGESIZE));
}

bool metrics_print(const struct metrics *metrics, FILE *stream)
{
    struct text out = {stream, true};
    print_plains(metrics, &out);
    metrics_print_requests(metrics, &out);
    print_files(metrics, &out);
    print_tls(metrics, &out);
    print_operations(metrics, &out);
    print_waiting(metrics, &out);
    metrics_print_nodes(metrics, &out);
    print_process(metrics, &out);
    return out.is_whole;
}
