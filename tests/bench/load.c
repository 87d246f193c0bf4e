/* Load on a lock service: cycles of acquire and release by keep-alive clients.
 *
 *   load HOST:PORT CLIENTS SECONDS           each client as fast as it can
 *   load HOST:PORT CLIENTS SECONDS RATE      RATE cycles a second in all, begun
 *                                            by the clock: a cycle that had to
 *                                            wait counts from when it was due
 *
 * -s asks for shared locks; -r NAME: all clients for this one. -t speaks TLS.
 * -a TOKEN sends this bearer token. Locks last -l MS, 30000. -f floods: a cycle
 * is an acquire, whatever its answer is; it also prints how many got 429.
 * -c NAME=PID,PID… also prints the CPU time that these processes used while
 * cycles counted; PID 0 is this one.
 */
#include "sample.h"
#include "service.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    EVENTS = 256,
    COSTS = 8,
    GROUP = 256,         /* of clients that connect at once */
    WARM_UP_US = 500000, /* and for each client: */
    WARM_UP_CLIENT_US = 200,
    JOIN_US = 100, /* until the next client joins in */
    ANSWER_US = 10000000,
};

enum event {
    WAITS, /* for the rest of a response */
    DONE,  /* with a cycle, and idle */
    FAILED /* told on stderr; the client is connected anew and idle */
};

static struct load {
    unsigned run;         /* differs from process to process */
    const char *resource; /* what all clients acquire; NULL: each its own */
    bool is_flood;
    uint64_t limited; /* of a flood: answers that said 429 */
    struct client *clients;
    struct client **idle; /* a stack of those that wait for a cycle */
    int count, joined, idle_count;
    double seconds;
    double rate; /* cycles/s; 0: as fast as they can */
    uint64_t begun, done, failures;
    int64_t start_us, begin_us, end_us; /* cycles from begin to end count */
    int epoll, timer;
    struct sample sample;
    struct cost costs[COSTS];
    int costs_count;
} load;

int service_ttl_ms = 30000;
bool service_is_shared;

/* ---- one client -----------------------------------------------------------
 */

static void open_client(struct client *client, int number,
                        const struct sockaddr_in *server)
{
    *client = (struct client){.number = number};
    http_open(&client->http, server);
    service_greet(client);
}

/* Waits until the server answers an idle client. */
static void greet(struct client *client)
{
    struct http_answer answer;
    const char *error = http_get(&client->http, "/livez");
    while (!error && !http_read(&client->http, &answer))
        ;
    if (error || answer.error)
        errx(1, "GET /livez: %s", error ? error : answer.error);
}

static enum event failed(struct client *client, const char *what)
{
    static int told;
    if (told++ < 10)
        warnx("%s: %s: %.*s", client->holds ? "release" : "acquire", what,
              (int)client->http.received, client->http.response);
    http_reopen(&client->http);
    client->busy = false;
    return FAILED;
}

static enum event asked(struct client *client, const char *error)
{
    return error ? failed(client, error) : WAITS;
}

/* Begins a cycle that was due at `start_us`; the client must be idle. */
static enum event begin_cycle(struct client *client, int64_t start_us)
{
    if (load.resource)
        snprintf(client->resource, sizeof client->resource, "%s",
                 load.resource);
    else
        snprintf(client->resource, sizeof client->resource,
                 "bench:%x:%d:%" PRIu64, load.run, client->number,
                 client->round++);
    client->busy = true;
    client->holds = false;
    client->start_us = start_us;
    return asked(client, service_acquire(client));
}

static enum event end_cycle(struct client *client)
{
    client->busy = false;
    return DONE;
}

/* When the connection is readable. */
static enum event read_answer(struct client *client)
{
    struct http_answer answer;
    if (!http_read(&client->http, &answer))
        return WAITS;
    if (answer.error)
        return failed(client, answer.error);
    if (!client->busy)
        return failed(client, "not asked");
    if (load.is_flood) {
        load.limited += answer.status == 429;
        return end_cycle(client);
    }
    const char *error = client->holds ? service_released(&answer)
                                      : service_granted(client, &answer);
    if (error)
        return failed(client, error);
    if (client->holds)
        return end_cycle(client);
    client->holds = true;
    return asked(client, service_release(client));
}

/* ---- all of them ----------------------------------------------------------
 */

static void watch(int fd, struct client *client)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, fd, &event))
        err(1, "load: epoll");
}

static int64_t due_us(int64_t now_us)
{
    return load.rate > 0
               ? load.start_us + (int64_t)((double)load.begun * 1e6 / load.rate)
               : now_us;
}

static void take(struct client *client, enum event event)
{
    if (event == WAITS)
        return;
    int64_t now_us = sample_now_us();
    if (event == FAILED) {
        load.failures++;
        watch(client->http.fd, client);
    } else {
        load.done++;
        if (now_us >= load.begin_us && now_us < load.end_us)
            sample_add(&load.sample, now_us - client->start_us);
    }
    load.idle[load.idle_count++] = client;
}

/* One by one, or thousands would acquire all at once, then release all at once,
 * and so on. */
static void join(int64_t now_us)
{
    while (load.joined < load.count &&
           load.start_us + load.joined * (int64_t)JOIN_US <= now_us)
        load.idle[load.idle_count++] = &load.clients[load.joined++];
}

/* Begins what is due, as far as clients are idle, and sets the timer for the
 * next one. */
static void begin_due(void)
{
    int64_t now_us = sample_now_us();
    int64_t next_us;
    join(now_us);
    while ((next_us = due_us(now_us)) <= now_us && load.idle_count > 0) {
        struct client *client = load.idle[--load.idle_count];
        load.begun++;
        take(client, begin_cycle(client, next_us));
    }
    if (next_us <= now_us)
        return;
    struct itimerspec at = {.it_value = {.tv_sec = next_us / 1000000,
                                         .tv_nsec = next_us % 1000000 * 1000}};
    if (timerfd_settime(load.timer, TFD_TIMER_ABSTIME, &at, NULL))
        err(1, "load: timer");
}

static void turn(void)
{
    struct epoll_event events[EVENTS];
    int wait_ms = load.joined < load.count ? 1 : 100;
    int count = epoll_wait(load.epoll, events, EVENTS, wait_ms);
    for (int i = 0; i < count; i++) {
        struct client *client = events[i].data.ptr;
        uint64_t expirations;
        if (client)
            take(client, read_answer(client));
        else if (read(load.timer, &expirations, sizeof expirations) < 0)
            err(1, "load: timer");
    }
}

static void run_until(int64_t until_us)
{
    while (sample_now_us() < until_us) {
        begin_due();
        turn();
    }
}

/* A group at a time, or the server's queue of connections overflows; each group
 * waits until the server has answered the last one of it. */
static void connect_all(const struct sockaddr_in *server)
{
    for (int i = 0; i < load.count; i++) {
        struct client *client = &load.clients[i];
        open_client(client, i, server);
        if (i % GROUP == GROUP - 1)
            greet(client);
        watch(client->http.fd, client);
    }
}

static void parse(int argc, char **argv, struct sockaddr_in *server)
{
    int option;
    while ((option = getopt(argc, argv, "fsta:l:r:c:")) == 't' ||
           option == 'f' || option == 'a' || option == 's' || option == 'l' ||
           option == 'r' || (option == 'c' && load.costs_count < COSTS)) {
        if (option == 'f')
            load.is_flood = true;
        else if (option == 't')
            http_use_tls();
        else if (option == 's')
            service_is_shared = true;
        else if (option == 'a')
            http_set_token(optarg);
        else if (option == 'l')
            service_ttl_ms = atoi(optarg);
        else if (option == 'r')
            load.resource = optarg;
        else
            load.costs[load.costs_count++] = cost_of(optarg);
    }
    argc -= optind;
    argv += optind;
    if (option != -1 || argc < 3 || argc > 4)
        errx(2, "usage: load [-f] [-s] [-r NAME] [-t] [-a TOKEN] [-l MS] "
                "[-c NAME=PID,…]… HOST:PORT CLIENTS SECONDS [RATE]");
    *server = http_address(argv[0]);
    load.count = atoi(argv[1]);
    load.seconds = atof(argv[2]);
    load.rate = argc > 3 ? atof(argv[3]) : 0;
    if (load.count < 1 || load.seconds <= 0)
        errx(2, "load: CLIENTS and SECONDS must be above 0");
}

static void init(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        err(1, "load");
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* else connecting will fail */
    load.clients = calloc((size_t)load.count, sizeof *load.clients);
    load.idle = calloc((size_t)load.count, sizeof(struct client *));
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (!load.clients || !load.idle || load.epoll < 0 || load.timer < 0 ||
        getrandom(&load.run, sizeof load.run, 0) < 0)
        err(1, "load");
    watch(load.timer, NULL);
}

int main(int argc, char **argv)
{
    struct sockaddr_in server;
    parse(argc, argv, &server);
    init();
    connect_all(&server);
    load.start_us = sample_now_us();
    load.begin_us =
        load.start_us + WARM_UP_US + load.count * (int64_t)WARM_UP_CLIENT_US;
    load.end_us = load.begin_us + (int64_t)(load.seconds * 1e6);
    run_until(load.begin_us);
    for (int i = 0; i < load.costs_count; i++)
        cost_begin(&load.costs[i]);
    run_until(load.end_us);
    for (int i = 0; i < load.costs_count; i++)
        cost_report(&load.costs[i]);
    while (load.idle_count < load.joined &&
           sample_now_us() < load.end_us + ANSWER_US)
        turn();
    for (int i = load.idle_count; i < load.joined; i++)
        load.failures++; /* never answered */
    if (load.is_flood)
        printf("limited %" PRIu64 " ", load.limited);
    sample_report(&load.sample, load.seconds, load.done, load.failures);
    return 0;
}
