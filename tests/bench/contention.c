/* SPDX-License-Identifier: MIT */
/* Clients that want the same locks, on one or more servers, each as soon as it
 * has released: client i asks the server i modulo their number for the resource
 * (i / servers) modulo RESOURCES, on a connection of its own.
 *
 *   contention wait CLIENTS RESOURCES HOLD_US SECONDS HOST:PORT…
 *   contention LEAST-MOST CLIENTS RESOURCES HOLD_US SECONDS HOST:PORT…
 *
 * wait: acquires say wait_ms. LEAST-MOST: they do not, and whoever is refused
 * asks again after a random delay of so many milliseconds. With pool:10 for
 * RESOURCES, all want a permit of one pool, whose ten slots count as resources.
 * One process and one thread for all, so that a hand-over from one server to
 * another is measured by one clock.
 */
#include "http.h"
#include "sample.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

enum { EVENTS = 64, SERVERS_MAX = 8, WARM_UP_US = 500000, WAIT_MS = 30000 };

struct contender;

struct resource {
    char name[64];
    const struct contender *last; /* who had it */
    int64_t released_us;          /* when the DELETE was sent */
};

enum state { ASKS, HOLDS, RELEASES, PAUSES };

struct contender {
    struct http http;
    struct resource *resource;
    int server;
    enum state state;
    int64_t wanted_us; /* since it has wanted the lock */
    int64_t asked_us;  /* the request under way was sent */
    uint64_t grants;   /* of those that count */
    char id[256], token[256];
};

static struct contention {
    struct contender *clients;
    int64_t *due_us; /* of each that holds or pauses; otherwise 0. Apart, as all
                        are looked at in each turn */
    struct resource *resources;
    struct sockaddr_in servers[SERVERS_MAX];
    int count, resource_count, server_count;
    bool waits, is_pool;
    unsigned least_ms, most_ms; /* the delays of those that do not */
    int64_t hold_us;
    double seconds;
    int64_t begin_us, end_us; /* grants from begin to end count */
    uint64_t grants, failures;
    struct sample wait;        /* of those granted, from when they wanted it */
    struct sample release;     /* from a DELETE to its answer */
    struct sample same, cross; /* from a DELETE sent to the grant of another
                                  client, of that server and of others */
    int epoll, timer;
} all;

static int64_t *due_of(const struct contender *client)
{
    return &all.due_us[client - all.clients];
}

static bool counts(int64_t now_us)
{
    return now_us >= all.begin_us && now_us < all.end_us;
}

static void watch(int fd, struct contender *client)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(all.epoll, EPOLL_CTL_ADD, fd, &event))
        err(1, "epoll");
}

/* ---- what a client does ------------------------------------------------- */

static void pause_until(struct contender *client, int64_t at_us)
{
    client->state = PAUSES;
    *due_of(client) = at_us;
}

static void fail(struct contender *client, const char *what)
{
    if (all.failures++ < 10)
        warnx("%s: %s: %.*s", client->state == ASKS ? "acquire" : "release",
              what, (int)client->http.received, client->http.response);
    http_reopen(&client->http);
    watch(client->http.fd, client);
    client->wanted_us = 0;
    pause_until(client, sample_now_us() + 100000);
}

static void ask(struct contender *client)
{
    char body[192], wait[32] = "", limit[32] = "";
    int64_t now_us = sample_now_us();
    if (all.waits)
        snprintf(wait, sizeof wait, ",\"wait_ms\":%d", WAIT_MS);
    if (all.is_pool)
        snprintf(limit, sizeof limit, ",\"limit\":%d", all.resource_count);
    snprintf(body, sizeof body, "{\"resource\":\"%s\",\"ttl_ms\":30000%s%s}",
             client->resource->name, wait, limit);
    client->state = ASKS;
    *due_of(client) = 0;
    client->asked_us = now_us;
    if (client->wanted_us == 0)
        client->wanted_us = now_us;
    const char *error = http_post(&client->http, "/locks", body);
    if (error)
        fail(client, error);
}

static void release(struct contender *client)
{
    char path[300];
    snprintf(path, sizeof path, "/locks/%s", client->id);
    client->state = RELEASES;
    *due_of(client) = 0;
    client->asked_us = sample_now_us();
    client->resource->released_us = client->asked_us;
    const char *error = http_delete(&client->http, path, client->token);
    if (error)
        fail(client, error);
}

/* False: it has no slot of the pool. */
static bool take_slot(struct contender *client, const char *body)
{
    unsigned slot;
    const char *slots = strstr(body, "\"slots\":[");
    if (!slots || sscanf(slots, "\"slots\":[%u", &slot) != 1 ||
        slot >= (unsigned)all.resource_count)
        return false;
    client->resource = &all.resources[slot];
    return true;
}

static void take_grant(struct contender *client, int64_t now_us)
{
    struct resource *resource = client->resource;
    all.grants++;
    if (counts(now_us)) {
        client->grants++;
        sample_add(&all.wait, now_us - client->wanted_us);
        if (resource->last && resource->last != client)
            sample_add(resource->last->server == client->server ? &all.same
                                                                : &all.cross,
                       now_us - resource->released_us);
    }
    resource->last = client;
    client->wanted_us = 0;
    client->state = HOLDS;
    *due_of(client) = now_us + all.hold_us;
    if (all.hold_us == 0)
        release(client);
}

static void take_refusal(struct contender *client, int64_t now_us)
{
    int64_t delay_us = (int64_t)all.least_ms * 1000;
    delay_us += random() % ((int64_t)(all.most_ms - all.least_ms) * 1000 + 1);
    pause_until(client, now_us + delay_us);
}

static void take_answer(struct contender *client)
{
    struct http_answer answer;
    if (!http_read(&client->http, &answer))
        return;
    int64_t now_us = sample_now_us();
    int status = answer.status;
    if (answer.error)
        fail(client, answer.error);
    else if (client->state == RELEASES && status == 200) {
        if (counts(now_us))
            sample_add(&all.release, now_us - client->asked_us);
        ask(client);
    } else if (client->state == ASKS && status == 201 &&
               http_text(&answer, "id", client->id) &&
               http_text(&answer, "token", client->token) &&
               (!all.is_pool || take_slot(client, answer.body)))
        take_grant(client, now_us);
    else if (client->state == ASKS && !all.waits &&
             (status == 409 || status == 503)) /* 503: their votes were split */
        take_refusal(client, now_us);
    else
        fail(client, "unexpected answer");
}

/* ---- the loop ----------------------------------------------------------- */

/* Does what is due, and sets the timer for what is due next. */
static void do_due(void)
{
    int64_t next_us = all.end_us;
    for (int i = 0; i < all.count; i++) {
        struct contender *client = &all.clients[i];
        if (all.due_us[i] != 0 && all.due_us[i] <= sample_now_us()) {
            if (client->state == HOLDS)
                release(client);
            else
                ask(client);
        }
        if (all.due_us[i] != 0 && all.due_us[i] < next_us)
            next_us = all.due_us[i];
    }
    struct itimerspec at = {.it_value = {.tv_sec = next_us / 1000000,
                                         .tv_nsec = next_us % 1000000 * 1000}};
    if (timerfd_settime(all.timer, TFD_TIMER_ABSTIME, &at, NULL))
        err(1, "timer");
}

static void turn(void)
{
    struct epoll_event events[EVENTS];
    do_due();
    int count = epoll_wait(all.epoll, events, EVENTS, -1);
    for (int i = 0; i < count; i++)
        if (events[i].data.ptr)
            take_answer(events[i].data.ptr);
}

/* ---- begin and end ------------------------------------------------------ */

static void parse(int argc, char **argv)
{
    if (argc < 7 || argc > 6 + SERVERS_MAX)
        errx(2, "usage: contention wait|LEAST-MOST CLIENTS RESOURCES|pool:SLOTS"
                " HOLD_US SECONDS HOST:PORT…");
    all.waits = strcmp(argv[1], "wait") == 0;
    if (!all.waits &&
        (sscanf(argv[1], "%u-%u", &all.least_ms, &all.most_ms) != 2 ||
         all.most_ms < all.least_ms))
        errx(2, "not LEAST-MOST: %s", argv[1]);
    all.count = atoi(argv[2]);
    all.is_pool = strncmp(argv[3], "pool:", 5) == 0;
    all.resource_count = atoi(argv[3] + (all.is_pool ? 5 : 0));
    all.hold_us = atoi(argv[4]);
    all.seconds = atof(argv[5]);
    all.server_count = argc - 6;
    for (int i = 0; i < all.server_count; i++)
        all.servers[i] = http_address(argv[6 + i]);
    if (all.count < 1 || all.resource_count < 1 || all.hold_us < 0 ||
        all.seconds <= 0)
        errx(2, "CLIENTS, RESOURCES and SECONDS must be above 0");
}

static void begin(void)
{
    unsigned run;
    all.clients = calloc((size_t)all.count, sizeof *all.clients);
    all.due_us = calloc((size_t)all.count, sizeof *all.due_us);
    all.resources = calloc((size_t)all.resource_count, sizeof *all.resources);
    all.epoll = epoll_create1(EPOLL_CLOEXEC);
    all.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (!all.clients || !all.due_us || !all.resources || all.epoll < 0 ||
        all.timer < 0 || getrandom(&run, sizeof run, 0) < 0)
        err(1, "contention");
    srandom(run);
    watch(all.timer, NULL);
    for (int i = 0; i < all.resource_count; i++)
        snprintf(all.resources[i].name, sizeof all.resources[i].name,
                 "contended:%x:%d", run, all.is_pool ? 0 : i);
    for (int i = 0; i < all.count; i++) {
        struct contender *client = &all.clients[i];
        client->server = i % all.server_count;
        /* neighbours share the resource, but not the server */
        client->resource =
            &all.resources[i / all.server_count % all.resource_count];
        http_open(&client->http, &all.servers[client->server]);
        watch(client->http.fd, client);
    }
    all.begin_us = sample_now_us() + WARM_UP_US;
    all.end_us = all.begin_us + (int64_t)(all.seconds * 1e6);
    for (int i = 0; i < all.count; i++)
        ask(&all.clients[i]);
}

static void print_sample(const char *name, struct sample *sample)
{
    printf(" %s_p50_us %" PRIu32 " %s_p99_us %" PRIu32, name,
           sample_percentile(sample, 50), name, sample_percentile(sample, 99));
}

/* Names and values, for contention.py. */
static void report(void)
{
    struct rusage used;
    uint64_t counted = 0, fewest = UINT64_MAX, most = 0;
    for (int i = 0; i < all.count; i++) {
        uint64_t grants = all.clients[i].grants;
        counted += grants;
        fewest = grants < fewest ? grants : fewest;
        most = grants > most ? grants : most;
    }
    getrusage(RUSAGE_SELF, &used);
    printf("grants_per_s %.1f handovers_per_s %.1f grants %" PRIu64
           " failures %" PRIu64 " fewest %" PRIu64 " most %" PRIu64,
           (double)counted / all.seconds,
           (double)(all.same.count + all.cross.count) / all.seconds, all.grants,
           all.failures, fewest, most);
    print_sample("wait", &all.wait);
    print_sample("release", &all.release);
    print_sample("same", &all.same);
    print_sample("cross", &all.cross);
    printf(" client_cpu_us %" PRId64 "\n",
           (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
               used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    parse(argc, argv);
    begin();
    while (sample_now_us() < all.end_us)
        turn();
    report();
    return 0;
}
