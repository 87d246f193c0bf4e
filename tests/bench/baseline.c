/* The Redlock page done literally, to measure against: a thread a client, each
 * with a blocking connection to every node (hiredis sets TCP_NODELAY), one node
 * after the other. Acquire is SET key random NX PX ttl, release the script of
 * the page. What the page leaves open is done in the way that is faster: the
 * script is called by its digest, the random value is 20 bytes from a generator
 * that is seeded once, and no connection is looked after.
 *
 *   baseline CLIENTS SECONDS HOST:PORT…     cycles of acquire and release
 *   baseline trips SECONDS HOST:PORT…       ten blocking round trips in a row
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

int main(int argc, char **argv)
{
    bool trips = argc > 1 && strcmp(argv[1], "trips") == 0;
    int clients = argc > 1 && !trips ? atoi(argv[1]) : 1;
    double seconds = argc > 2 ? atof(argv[2]) : 0;
    bench.count = argc - 3;
    if (clients < 1 || seconds <= 0 || bench.count < 1 ||
        bench.count > NODES_MAX)
        errx(2, "usage: baseline CLIENTS|trips SECONDS HOST:PORT…");
    for (int n = 0; n < bench.count; n++)
        if (sscanf(argv[n + 3], "%63[^:]:%d", bench.host[n], &bench.port[n]) !=
            2)
            errx(2, "baseline: %s is no HOST:PORT", argv[n + 3]);
    if (getrandom(&bench.run, sizeof bench.run, 0) < 0)
        err(1, "baseline");
    if (trips)
        measure_trips(seconds);
    else
        measure_cycles(clients, seconds);
    return 0;
}
