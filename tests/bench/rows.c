/* The least that a node can do for cycles that come in rows: the commands of
 * the Redlock page, SET key value NX PX ttl and its release script by digest.
 * CYCLES locks are set, and those set before are released, in one write to each
 * node and one read from it. All nodes work at the same time.
 *
 *   rows [-c NAME=PID,PID…] CYCLES SECONDS HOST:PORT…
 *
 * -c prints the CPU time that these processes used meanwhile.
 */
#include "cost.h"
#include "sample.h"

#include <err.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { NODES_MAX = 9, TTL_MS = 30000 };

static const char release_script[] =
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
    "return redis.call(\"del\",KEYS[1]) else return 0 end";

static struct {
    redisContext *nodes[NODES_MAX];
    char script[41];
    int count;
    uint64_t run;
    uint64_t failures;
} rows;

static void must(bool is_well, const redisContext *node)
{
    if (!is_well)
        errx(1, "rows: %s", node ? node->errstr : "out of memory");
}

static void dial(const char *address)
{
    char host[64];
    int port;
    if (rows.count == NODES_MAX ||
        sscanf(address, "%63[^:]:%d", host, &port) != 2)
        errx(2, "rows: %s is no HOST:PORT, or one too many", address);
    redisContext *node = redisConnect(host, port);
    must(node && !node->err, node);
    redisReply *digest = redisCommand(node, "SCRIPT LOAD %s", release_script);
    must(digest && digest->type == REDIS_REPLY_STRING, node);
    snprintf(rows.script, sizeof rows.script, "%s", digest->str);
    freeReplyObject(digest);
    rows.nodes[rows.count++] = node;
}

/* What sets lock `number`, or releases it, as commands for each node. */
static void append(uint64_t number, bool is_release)
{
    char key[64], value[41];
    snprintf(key, sizeof key, "bench:%08" PRIx32 ":%" PRIu64,
             (uint32_t)rows.run, number);
    snprintf(value, sizeof value, "%016" PRIx64 "%024" PRIx64, rows.run,
             number);
    for (int n = 0; n < rows.count; n++) {
        redisContext *node = rows.nodes[n];
        int rc = is_release ? redisAppendCommand(node, "EVALSHA %s 1 %s %s",
                                                 rows.script, key, value)
                            : redisAppendCommand(node, "SET %s %s NX PX %d",
                                                 key, value, (int)TTL_MS);
        must(rc == REDIS_OK, node);
    }
}

static void write_all(void)
{
    for (int n = 0; n < rows.count; n++)
        for (int is_done = 0; !is_done;)
            must(redisBufferWrite(rows.nodes[n], &is_done) == REDIS_OK,
                 rows.nodes[n]);
}

static void read_replies(redisContext *node, int count)
{
    for (int i = 0; i < count; i++) {
        void *read = NULL;
        must(redisGetReply(node, &read) == REDIS_OK, node);
        redisReply *reply = read;
        rows.failures +=
            reply->type != REDIS_REPLY_STATUS &&
            !(reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
        freeReplyObject(reply);
    }
}

/* Releases the `old` locks before `number`, and sets the next `new` ones. */
static void run_row(uint64_t number, int old, int new)
{
    for (int i = 0; i < old; i++)
        append(number - (uint64_t)(old - i), true);
    for (int i = 0; i < new; i++)
        append(number + (uint64_t)i, false);
    write_all();
    for (int n = 0; n < rows.count; n++)
        read_replies(rows.nodes[n], old + new);
}

static uint64_t run_until(int64_t end_us, int cycles, struct sample *sample)
{
    uint64_t number = 0;
    for (int old = 0;; old = cycles) {
        int64_t start_us = sample_now_us();
        if (start_us >= end_us)
            break;
        run_row(number, old, cycles);
        number += (uint64_t)cycles;
        for (int i = 0; i < cycles; i++)
            sample_add(sample, sample_now_us() - start_us);
    }
    run_row(number, number > 0 ? cycles : 0, 0);
    return number;
}

int main(int argc, char **argv)
{
    struct cost cost = {0};
    if (getopt(argc, argv, "c:") == 'c')
        cost = cost_of(optarg);
    argv += optind;
    argc -= optind;
    int cycles = argc > 2 ? atoi(argv[0]) : 0;
    double seconds = argc > 2 ? atof(argv[1]) : 0;
    if (cycles < 1 || seconds <= 0)
        errx(2, "usage: rows [-c NAME=PID,…] CYCLES SECONDS HOST:PORT…");
    for (int i = 2; i < argc; i++)
        dial(argv[i]);
    if (getrandom(&rows.run, sizeof rows.run, 0) < 0)
        err(1, "rows");
    struct sample sample = {0};
    if (cost.name)
        cost_begin(&cost);
    uint64_t done =
        run_until(sample_now_us() + (int64_t)(seconds * 1e6), cycles, &sample);
    if (cost.name)
        cost_report(&cost);
    sample_report(&sample, seconds, done, rows.failures);
    sample_fini(&sample);
    for (int n = 0; n < rows.count; n++)
        redisFree(rows.nodes[n]);
    return 0;
}
