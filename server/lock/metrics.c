/* SPDX-License-Identifier: MIT */
#include "metrics.h"

#include <assert.h>
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

enum { LABEL_MAX = 2 * 512 };

/* What is written. A memory stream does not remember that there was no room for
 * a piece. */
struct text {
    FILE *stream;
    bool is_whole;
    const struct metrics *metrics;
    char nodes[NODES_MAX]
              [LABEL_MAX + 1]; /* their names, as values of a label */
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

/* An array of struct metrics, or one member of it. */
struct field {
    size_t offset; /* 0: none */
    size_t size;   /* of an item: a flag, a 64-bit number or a histogram */
};

/*
 * A metric. Without a function of its own it has a sample for each item of its
 * field: for each node, for each value of the label, or only one.
 */
struct family {
    const char *name; /* behind redlockd_ */
    const char *type;
    const char *help;
    struct field field;
    struct field shown; /* has a 0 where there is no sample; none: all are */
    const char *label;
    const char *const *values; /* of the label; NULL: the nodes */
    int count;                 /* of them; 0: there is no label */
    int decimals; /* the numbers are µs, and these told of the s */
    const struct bound *bounds; /* of histograms */
    void (*print)(struct text *out, const struct family *it);
};

static const void *field_at(const struct text *out, struct field field, int i)
{
    return (const char *)out->metrics + field.offset + (size_t)i * field.size;
}

static int64_t field_number(const struct text *out, struct field field, int i)
{
    const void *at = field_at(out, field, i);
    int64_t number;
    if (field.size == sizeof(bool))
        return *(const bool *)at;
    assert(field.size == sizeof number);
    memcpy(&number, at, sizeof number); /* of either sign */
    return number;
}

/* A sample's name and labels. value: of the label; le: the bucket's bound,
 * NULL: it is no bucket. */
static void print_name(struct text *out, const struct family *it,
                       const char *suffix, const char *value, const char *le)
{
    print(out, "redlockd_%s%s", it->name, suffix);
    if (value != NULL)
        print(out, "{%s=\"%s\"%s", it->label, value, le != NULL ? "," : "}");
    if (le != NULL)
        print(out, "%sle=\"%s\"}", value != NULL ? "" : "{", le);
}

static void print_histogram(struct text *out, const struct family *it,
                            const char *value,
                            const struct metrics_histogram *histogram)
{
    uint64_t below = 0;
    for (int i = 0; i < METRICS_BUCKETS; i++) {
        below += histogram->buckets[i];
        print_name(out, it, "_bucket", value, it->bounds[i].seconds);
        print(out, " %" PRIu64 "\n", below);
    }
    print_name(out, it, "_bucket", value, "+Inf");
    print(out, " %" PRIu64 "\n", histogram->count);
    print_name(out, it, "_sum", value, NULL);
    print(out, " %.6f\n", (double)histogram->sum_us / 1e6);
    print_name(out, it, "_count", value, NULL);
    print(out, " %" PRIu64 "\n", histogram->count);
}

static void print_item(struct text *out, const struct family *it,
                       const char *value, int i)
{
    if (it->shown.offset != 0 && field_number(out, it->shown, i) == 0)
        return;
    if (it->bounds != NULL) {
        print_histogram(out, it, value, field_at(out, it->field, i));
        return;
    }
    int64_t number = field_number(out, it->field, i);
    print_name(out, it, "", value, NULL);
    if (it->decimals > 0)
        print(out, " %.*f\n", it->decimals, (double)number / 1e6);
    else
        print(out, " %" PRId64 "\n", number);
}

static void print_items(struct text *out, const struct family *it)
{
    bool is_of_nodes = it->label != NULL && it->values == NULL;
    int count = is_of_nodes ? out->metrics->nodes : it->count;
    if (it->label == NULL)
        print_item(out, it, NULL, 0);
    for (int i = 0; i < count; i++)
        print_item(out, it, is_of_nodes ? out->nodes[i] : it->values[i], i);
}

/* ---- metrics of another shape -------------------------------------------- */

static void print_requests(struct text *out, const struct family *it)
{
    for (int call = 0; call < METRICS_CALLS; call++)
        for (int status = 0; status < METRICS_STATUSES; status++) {
            uint64_t count = out->metrics->responses[call][status];
            if (count > 0)
                print(out,
                      "redlockd_%s{call=\"%s\",status=\"%d\"} %" PRIu64 "\n",
                      it->name, metrics_call_names[call], status, count);
        }
}

/* Outcomes start at 0: a rate needs a value from before the first event. */
static void print_operations(struct text *out, const struct family *it)
{
    const struct metrics *metrics = out->metrics;
    for (int call = 0; call < LOCK_CALLS; call++)
        for (int i = 0; i < METRICS_OUTCOMES; i++) {
            const char *name = metrics->names->outcome((enum lock_call)call, i);
            if (name != NULL)
                print(out,
                      "redlockd_%s{operation=\"%s\",outcome=\"%s\"} %" PRIu64
                      "\n",
                      it->name, metrics_call_names[call], name,
                      metrics->outcomes[call][i]);
        }
}

static void print_votes(struct text *out, const struct family *it)
{
    const struct metrics *metrics = out->metrics;
    for (int i = 0; i < metrics->nodes; i++)
        for (int vote = 0; vote < METRICS_VOTES; vote++)
            if (metrics->votes[i][vote] > 0)
                print(out, "redlockd_%s{node=\"%s\",vote=\"%s\"} %" PRIu64 "\n",
                      it->name, out->nodes[i], metrics->names->vote(vote),
                      metrics->votes[i][vote]);
}

static void print_addresses(struct text *out, const struct family *it)
{
    for (int i = 0; i < out->metrics->nodes; i++) {
        char address[LABEL_MAX + 1];
        escape(out->metrics->node_addresses[i], address);
        print(out, "redlockd_%s{node=\"%s\",address=\"%s\"} 1\n", it->name,
              out->nodes[i], address);
    }
}

static void print_margin(struct text *out, const struct family *it)
{
    int voting = 0;
    for (int i = 0; i < out->metrics->nodes; i++)
        voting += out->metrics->node_is_voting[i];
    print(out, "redlockd_%s %d\n", it->name, voting - out->metrics->quorum);
}

uint64_t metrics_waiters(const struct metrics *metrics)
{
    uint64_t count = 0;
    for (int i = 0; i < WAITING_KINDS; i++)
        count += metrics->waiting[i];
    return count;
}

static void print_waiters(struct text *out, const struct family *it)
{
    print(out, "redlockd_%s %" PRIu64 "\n", it->name,
          metrics_waiters(out->metrics));
}

static void print_version(struct text *out, const struct family *it)
{
    print(out, "redlockd_%s{version=\"%s\"} 1\n", it->name, REDLOCKD_VERSION);
}

/* ---- the table ----------------------------------------------------------- */

#define FIELD(member)                                                          \
    {                                                                          \
        offsetof(struct metrics, member),                                      \
            sizeof((struct metrics *)NULL)->member                             \
    }
/* Of each item. */
#define LIST(member)                                                           \
    {                                                                          \
        offsetof(struct metrics, member),                                      \
            sizeof *((struct metrics *)NULL)->member                           \
    }
#define ONE(member) .field = FIELD(member)
/* With the values of the label, in the order of their enum. */
#define EACH(member, of, ...)                                                  \
    .field = LIST(member), .label = (of),                                      \
    .values = (const char *const[]){__VA_ARGS__},                              \
    .count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)
#define NODES(member) .field = LIST(member), .label = "node"

static const struct family families[] = {
    {"http_requests_accepted_total", "counter",
     "Requests whose header fields were read.", ONE(requests_accepted)},
    {"http_requests_answered_total", "counter", "Requests that got a response.",
     ONE(requests_answered)},
    {"http_requests_abandoned_total", "counter",
     "Requests whose client disconnected before the response.",
     ONE(requests_abandoned)},
    {"connections", "gauge", "Open client connections.", ONE(connections)},
    {"connections_max", "gauge", "Maximum number of open client connections.",
     ONE(connections_max)},
    {"connections_cut_total", "counter",
     "Client connections that were closed by a timeout.", ONE(connections_cut)},
    {"audit_lost_total", "counter",
     "Lines that could not be written to the audit log.", ONE(audit_lost)},
    {"undelivered_grants_total", "counter",
     "Grants that were released because the client had disconnected, or lost "
     "its right to them.",
     ONE(undelivered_grants)},
    {"early_replications_total", "counter",
     "Locks that were replicated early: still held when the nodes that their "
     "acquires had left out got them.",
     ONE(early_replications)},
    {"locks_thin_total", "counter",
     "Locks that were not replicated: their validity expired while a voting "
     "node lacked them, or too many locks had to be replicated.",
     ONE(locks_thin)},
    {"releases_pending", "gauge",
     "Releases under way, and those that a node has yet to receive.",
     ONE(releases_pending)},
    {"releases_dropped_total", "counter",
     "Releases that were dropped for lack of memory: a node keeps the key "
     "until it expires.",
     ONE(releases_dropped)},
    {"releases_forgone_total", "counter",
     "Releases that were dropped for lack of memory, for a node that was "
     "unreachable when the lock was acquired: it has the key only if another "
     "server reached it.",
     ONE(releases_forgone)},
    {"waiters_max", "gauge", "Maximum number of clients that wait.",
     ONE(waiters_max)},
    {"permit_grants_total", "counter",
     "Permits granted: acquires with a limit.", ONE(permit_grants)},
    {"permit_tries_total", "counter",
     "Acquires of slots for permits: a round or more each.", ONE(permit_tries)},
    {"permit_queries_total", "counter",
     "Availability queries: rounds that ask the nodes which slots of a pool "
     "are free.",
     ONE(permit_queries)},
    {"permit_refusals_total", "counter",
     "Acquires with a limit that found no slot free.", ONE(permit_refusals)},
    {"http_requests_total", "counter",
     "Responses, and the operations of batches, by call and status.",
     .print = print_requests},
    {"http_request_duration_seconds", "histogram",
     "Time from the header fields of a request to its response, except "
     "acquires that may wait; also of each operation in a batch.",
     .bounds = usual_bounds, .field = LIST(request_duration), .label = "call",
     .values = metrics_call_names, .count = METRICS_CALLS},
    {"file_read_timestamp_seconds", "gauge",
     "When a file of the configuration was last read successfully, in Unix "
     "time.",
     .shown = LIST(file_read_s),
     EACH(file_read_s, "file", "auth", "certificates", "crl")},
    {"file_refused", "gauge",
     "1 if a file was invalid when it was last read: its previous content "
     "stays in effect.",
     .shown = LIST(file_read_s),
     EACH(file_is_refused, "file", "auth", "certificates", "crl")},
    {"tls_handshakes_total", "counter",
     "TLS handshakes of clients by their result.",
     EACH(tls_handshakes, "result", "done", "closed", "not_tls",
          "bad_certificate", "failed")},
    {"tls_certificate_expiry_timestamp_seconds", "gauge",
     "When the certificate of --tls-cert expires, in Unix time.",
     .shown = FIELD(tls_until_s), ONE(tls_until_s)},
    {"tls_client_crl_next_update_timestamp_seconds", "gauge",
     "When the list of --tls-client-crl becomes outdated, in Unix time.",
     .shown = FIELD(crl_until_s), ONE(crl_until_s)},
    {"operations_total", "counter", "Finished operations by their outcome.",
     .print = print_operations},
    {"round_duration_seconds", "histogram",
     "Time from sending a round to its verdict.", .bounds = usual_bounds,
     .field = LIST(round_duration), .label = "operation",
     .values = metrics_call_names, .count = LOCK_CALLS},
    {"rounds_widened_total", "counter",
     "Acquire rounds that were sent to more nodes than a quorum, by the "
     "reason.",
     EACH(widenings, "cause", "split", "no_answer", "slow")},
    {"waiters", "gauge", "Clients that are waiting.", .print = print_waiters},
    {"waiters_by_kind", "gauge",
     "Clients that are waiting, by what they wait for.",
     EACH(waiting, "kind", "lock", "permit", "watch")},
    {"wait_duration_seconds", "histogram",
     "Time from an acquire that may wait to its outcome.",
     .bounds = wait_bounds, ONE(wait_duration)},
    {"handovers_total", "counter",
     "Grants to waiting acquires, by how they learned that the lock was free.",
     EACH(handovers, "cause", "release", "announcement", "expiry", "retry")},
    {"node_info", "gauge",
     "Always 1; the labels are each node and its address.",
     .print = print_addresses},
    {"node_voting", "gauge", "1 if the node may vote now.",
     NODES(node_is_voting)},
    {"quorum_margin", "gauge",
     "Voting nodes beyond the quorum; below 0, nothing is granted.",
     .print = print_margin},
    {"votes_total", "counter", "Replies by node and vote.",
     .print = print_votes},
    {"node_reconnects_total", "counter",
     "Connections that broke, and attempts that failed.", NODES(reconnects)},
    {"node_quarantine_seconds", "gauge",
     "Time until a node that may have lost locks votes again; 0: it is not in "
     "quarantine.",
     NODES(quarantine_us), .decimals = 3},
    {"node_restarted", "gauge",
     "1 if a node that does not vote yet was restarted, and has the data "
     "from before.",
     NODES(node_is_restarted)},
    {"node_new", "gauge",
     "1 if a node that does not vote yet has never voted, as far as it and "
     "this server know.",
     NODES(node_is_new)},
    {"node_durable", "gauge",
     "1 if the node reported last that it keeps its data across a restart.",
     NODES(node_is_durable), .shown = LIST(node_is_known)},
    {"node_clock_lead_seconds", "gauge",
     "How far a node's clock is ahead of the median of all.",
     NODES(clock_offset_us), .decimals = 6},
    {"node_clock_steps_total", "counter",
     "Steps of a node's clock; after each, the node does not vote for a while.",
     NODES(clock_steps)},
    {"node_tls_certificate_expiry_timestamp_seconds", "gauge",
     "When the certificate that a node presents expires, in Unix time.",
     NODES(node_certificate_until_s), .shown = LIST(node_certificate_until_s)},
    {"node_round_trip_seconds", "histogram",
     "Time from queueing a command to its reply.", .bounds = usual_bounds,
     NODES(node_rtt)},
    {"build_info", "gauge", "The running version.", .print = print_version},
};

/* ---- the process --------------------------------------------------------- */

static void print_process_value(struct text *out, const char *name,
                                const char *type, const char *help,
                                int decimals, double value)
{
    print(out, "# HELP process_%s %s\n# TYPE process_%s %s\nprocess_%s %.*f\n",
          name, help, name, type, name, decimals, value);
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

static void print_process(struct text *out)
{
    struct rusage usage;
    struct rlimit limit;
    struct stat status;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        int64_t s = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
        int64_t us = usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
        print_process_value(out, "cpu_seconds_total", "counter",
                            "User and system CPU time.", 6,
                            (double)(s * US_PER_S + us) / 1e6);
    }
    print_process_value(out, "start_time_seconds", "gauge",
                        "When the process started, in Unix time.", 3,
                        (double)out->metrics->started_us / 1e6);
    /* Reading the folder would hold up the loop while there are thousands.
     * Before Linux 6.2 the size is 0. */
    if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0)
        print_process_value(out, "open_fds", "gauge", "Open file descriptors.",
                            0, (double)status.st_size);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        print_process_value(out, "max_fds", "gauge",
                            "Maximum number of open file descriptors.", 0,
                            (double)limit.rlim_cur);
    print_process_value(
        out, "resident_memory_bytes", "gauge", "Resident memory size.", 0,
        (double)(resident_pages() * (uint64_t)sysconf(_SC_PAGESIZE)));
}

bool metrics_print(const struct metrics *metrics, FILE *stream)
{
    struct text out = {.stream = stream, .is_whole = true, .metrics = metrics};
    for (int i = 0; i < metrics->nodes; i++)
        escape(metrics->node_names[i], out.nodes[i]);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const struct family *it = &families[i];
        print(&out, "# HELP redlockd_%s %s\n# TYPE redlockd_%s %s\n", it->name,
              it->help, it->name, it->type);
        (it->print != NULL ? it->print : print_items)(&out, it);
    }
    print_process(&out);
    return out.is_whole;
}
