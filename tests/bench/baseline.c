/* SPDX-License-Identifier: MIT */
/* The Redlock page done literally, to measure against: a thread a client, each
 * with a blocking connection to every node (hiredis sets TCP_NODELAY), one node
 * after the other. Acquire is SET key random NX PX ttl, release the script of
 * the page. What the page leaves open is done in the way that is faster: the
 * script is called by its digest, the random value is 20 bytes from a generator
 * that is seeded once, and no connection is looked after.
 *
 *   baseline CLIENTS SECONDS HOST:PORT…     cycles of acquire and release
 *   baseline trips SECONDS HOST:PORT…       ten blocking round trips in a row
 *   baseline rows:CYCLES SECONDS HOST:PORT…
 *
 * rows: the least that a node can do for cycles that come in rows. So many
 * locks are set, and those set before are released, in one write to each node
 * and one read from it. All nodes work at the same time. -c NAME=PID,PID…
 * prints the CPU time that these processes used meanwhile.
 */
#include "sample.h"

#include <err.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { NODES_MAX = 9, TTL_MS = 30000, WARM_UP_US = 500000, TRIPS = 10 };

static const char release_script[] =
    "if redis.call(\"get\",KEYS[1]) == ARGV[1] then "
    "return redis.call(\"del\",KEYS[1]) else return 0 end";

static struct {
    char host[NODES_MAX][64];
    int port[NODES_MAX];
    int count;
    int64_t begin_us, end_us; /* cycles that end in between count */
    unsigned long run;
} bench;

struct client {
    pthread_t thread;
    int number;
    redisContext *nodes[NODES_MAX];
    char script[41];
    uint64_t seed;
    struct sample sample;
    uint64_t cycles, failures;
};

static redisReply *must(const redisContext *node, redisReply *reply)
{
    if (!reply || reply->type == REDIS_REPLY_ERROR)
        errx(1, "baseline: %s", reply ? reply->str : node->errstr);
    return reply;
}

static void client_connect(struct client *client)
{
    for (int n = 0; n < bench.count; n++) {
        redisContext *node = redisConnect(bench.host[n], bench.port[n]);
        if (!node || node->err)
            errx(1, "baseline: %s", node ? node->errstr : "out of memory");
        redisReply *digest =
            must(node, redisCommand(node, "SCRIPT LOAD %s", release_script));
        snprintf(client->script, sizeof client->script, "%s", digest->str);
        freeReplyObject(digest);
        client->nodes[n] = node;
    }
    if (getrandom(&client->seed, sizeof client->seed, 0) < 0)
        err(1, "baseline");
}

static void client_close(struct client *client)
{
    for (int n = 0; n < bench.count; n++)
        redisFree(client->nodes[n]);
}

/* xorshift64: a value that no other client draws is all that is wanted. */
static uint64_t draw(struct client *client)
{
    client->seed ^= client->seed << 13;
    client->seed ^= client->seed >> 7;
    client->seed ^= client->seed << 17;
    return client->seed;
}

static void release(struct client *client, const char *key, const char *value)
{
    for (int n = 0; n < bench.count; n++)
        freeReplyObject(
            must(client->nodes[n],
                 redisCommand(client->nodes[n], "EVALSHA %s 1 %s %s",
                              client->script, key, value)));
}

/* One cycle; false if the lock was not granted. */
static bool cycle(struct client *client, uint64_t round)
{
    char key[64], value[41];
    snprintf(key, sizeof key, "bench:%lx:%d:%" PRIu64, bench.run,
             client->number, round);
    snprintf(value, sizeof value, "%016" PRIx64 "%016" PRIx64 "%08" PRIx32,
             draw(client), draw(client), (uint32_t)draw(client));
    int granted = 0;
    int64_t start_us = sample_now_us();
    for (int n = 0; n < bench.count; n++) {
        redisReply *reply =
            must(client->nodes[n],
                 redisCommand(client->nodes[n], "SET %s %s NX PX %d", key,
                              value, (int)TTL_MS));
        granted += reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    double validity_ms = (double)TTL_MS -
                         (double)(sample_now_us() - start_us) / 1000 -
                         ((double)TTL_MS * 0.01 + 2);
    release(client, key, value);
    return granted >= bench.count / 2 + 1 && validity_ms > 0;
}

static void *client_main(void *data)
{
    struct client *client = data;
    int64_t start_us;
    for (uint64_t round = 0; (start_us = sample_now_us()) < bench.end_us;
         round++) {
        bool granted = cycle(client, round);
        int64_t now_us = sample_now_us();
        client->cycles++;
        if (!granted)
            client->failures++;
        else if (now_us >= bench.begin_us && now_us < bench.end_us)
            sample_add(&client->sample, now_us - start_us);
    }
    return NULL;
}

static void measure_cycles(int count, double seconds)
{
    struct client *clients = calloc((size_t)count, sizeof *clients);
    if (!clients)
        err(1, "baseline");
    for (int i = 0; i < count; i++) {
        clients[i].number = i;
        client_connect(&clients[i]);
    }
    bench.begin_us = sample_now_us() + WARM_UP_US;
    bench.end_us = bench.begin_us + (int64_t)(seconds * 1e6);
    for (int i = 0; i < count; i++)
        if (pthread_create(&clients[i].thread, NULL, client_main, &clients[i]))
            errx(1, "baseline: no thread");
    struct sample all = {0};
    uint64_t cycles = 0, failures = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(clients[i].thread, NULL);
        client_close(&clients[i]);
        sample_merge(&all, &clients[i].sample);
        cycles += clients[i].cycles;
        failures += clients[i].failures;
    }
    sample_report(&all, seconds, cycles, failures);
    sample_fini(&all);
    free(clients);
}

static void measure_trips(double seconds)
{
    struct client client = {0};
    struct sample sample = {0};
    client_connect(&client);
    bench.begin_us = sample_now_us() + WARM_UP_US;
    bench.end_us = bench.begin_us + (int64_t)(seconds * 1e6);
    int64_t start_us;
    while ((start_us = sample_now_us()) < bench.end_us) {
        for (int trip = 0; trip < TRIPS; trip++) {
            redisContext *node = client.nodes[trip % bench.count];
            freeReplyObject(must(node, redisCommand(node, "PING")));
        }
        if (start_us >= bench.begin_us)
            sample_add(&sample, sample_now_us() - start_us);
    }
    sample_report(&sample, seconds, 0, 0);
    sample_fini(&sample);
    client_close(&client);
}

/* ---- rows --------------------------------------------------------------- */

/* What sets lock `number`, or releases it, as commands for each node. */
static void append(const struct client *client, uint64_t number,
                   bool is_release)
{
    char key[64], value[41];
    snprintf(key, sizeof key, "bench:%08" PRIx32 ":%" PRIu64,
             (uint32_t)bench.run, number);
    snprintf(value, sizeof value, "%016lx%024" PRIx64, bench.run, number);
    for (int n = 0; n < bench.count; n++) {
        redisContext *node = client->nodes[n];
        int rc = is_release ? redisAppendCommand(node, "EVALSHA %s 1 %s %s",
                                                 client->script, key, value)
                            : redisAppendCommand(node, "SET %s %s NX PX %d",
                                                 key, value, (int)TTL_MS);
        if (rc != REDIS_OK)
            errx(1, "baseline: %s", node->errstr);
    }
}

static void write_all(const struct client *client)
{
    for (int n = 0; n < bench.count; n++)
        for (int is_done = 0; !is_done;)
            if (redisBufferWrite(client->nodes[n], &is_done) != REDIS_OK)
                errx(1, "baseline: %s", client->nodes[n]->errstr);
}

static void read_replies(struct client *client, redisContext *node, int count)
{
    for (int i = 0; i < count; i++) {
        void *read = NULL;
        (void)redisGetReply(node, &read); /* NULL: it failed */
        redisReply *reply = must(node, read);
        client->failures +=
            reply->type != REDIS_REPLY_STATUS &&
            !(reply->type == REDIS_REPLY_INTEGER && reply->integer == 1);
        freeReplyObject(reply);
    }
}

/* Releases the `old` locks before those that are there, and sets `new` ones. */
static void run_row(struct client *client, int old, int new)
{
    for (int i = 0; i < old; i++)
        append(client, client->cycles - (uint64_t)(old - i), true);
    for (int i = 0; i < new; i++)
        append(client, client->cycles + (uint64_t)i, false);
    write_all(client);
    for (int n = 0; n < bench.count; n++)
        read_replies(client, client->nodes[n], old + new);
}

static void run_rows(struct client *client, int cycles)
{
    int64_t start_us;
    for (int old = 0; (start_us = sample_now_us()) < bench.end_us;
         old = cycles) {
        run_row(client, old, cycles);
        client->cycles += (uint64_t)cycles;
        for (int i = 0; i < cycles; i++)
            sample_add(&client->sample, sample_now_us() - start_us);
    }
    run_row(client, client->cycles > 0 ? cycles : 0, 0);
}

static void measure_rows(int cycles, double seconds, struct cost *cost)
{
    struct client client = {0};
    client_connect(&client);
    if (cost->name)
        cost_begin(cost);
    bench.end_us = sample_now_us() + (int64_t)(seconds * 1e6);
    run_rows(&client, cycles);
    if (cost->name)
        cost_report(cost);
    sample_report(&client.sample, seconds, client.cycles, client.failures);
    sample_fini(&client.sample);
    client_close(&client);
}

static void parse_nodes(char **addresses, int count)
{
    if (count < 1 || count > NODES_MAX)
        errx(2, "baseline: one to %d nodes", (int)NODES_MAX);
    for (int n = 0; n < count; n++)
        if (sscanf(addresses[n], "%63[^:]:%d", bench.host[n], &bench.port[n]) !=
            2)
            errx(2, "baseline: %s is no HOST:PORT", addresses[n]);
    bench.count = count;
}

int main(int argc, char **argv)
{
    struct cost cost = {0};
    int rows = 0;
    if (getopt(argc, argv, "c:") == 'c')
        cost = cost_of(optarg);
    argv += optind;
    argc -= optind;
    double seconds = argc > 2 ? atof(argv[1]) : 0;
    if (seconds <= 0)
        errx(2, "usage: baseline [-c NAME=PID,…] CLIENTS|trips|rows:CYCLES"
                " SECONDS HOST:PORT…");
    parse_nodes(argv + 2, argc - 2);
    if (getrandom(&bench.run, sizeof bench.run, 0) < 0)
        err(1, "baseline");
    if (strcmp(argv[0], "trips") == 0)
        measure_trips(seconds);
    else if (sscanf(argv[0], "rows:%d", &rows) == 1 && rows > 0)
        measure_rows(rows, seconds, &cost);
    else if (atoi(argv[0]) > 0)
        measure_cycles(atoi(argv[0]), seconds);
    else
        errx(2, "baseline: neither CLIENTS, trips nor rows: %s", argv[0]);
    return 0;
}
