/* SPDX-License-Identifier: MIT */
/* Load on a lock service: cycles of acquire and release by keep-alive clients.
 *
 *   load HOST:PORT CLIENTS SECONDS           each client as fast as it can
 *   load HOST:PORT CLIENTS SECONDS RATE      RATE cycles a second in all, begun
 *                                            by the clock: a cycle that had to
 *                                            wait counts from when it was due
 *
 * -b LINES: all clients share so many connections. What they ask for while
 * each of these waits for its answer is collected, and goes with one request as
 * soon as there is one, as the packages do it. But a request takes no more than
 * its line's part of all that is asked: a request costs this program less than
 * the packages, so that two smaller ones at a time are faster.
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
    MOST = 100,     /* clients of a request */
    PART_LEAST = 8, /* of them, however small the part */
    COSTS = 8,
    GROUP = 256,         /* of clients that connect at once */
    WARM_UP_US = 500000, /* and for each client: */
    WARM_UP_CLIENT_US = 200,
    JOIN_US = 100, /* until the next client joins in */
    ANSWER_US = 10000000,
};

/* A connection, and who waits for an answer on it. */
struct line {
    struct http http;
    struct client **asked; /* in the order of the operations */
    int count;
};

/* Clients, the first one first. Each is in at most one. */
struct queue {
    struct client **clients;
    int head, count;
};

static struct load {
    unsigned run;         /* differs from process to process */
    const char *resource; /* what all clients acquire; NULL: each its own */
    bool is_flood;
    uint64_t limited; /* of a flood: answers that said 429 */
    struct client *clients;
    struct client **idle; /* a stack of those that wait for a cycle */
    int count, joined, idle_count;
    struct queue queue;    /* of those that wait for a line */
    struct line *lines;    /* as many as clients, unless they share some */
    struct client **asked; /* those of all lines */
    struct line **ready;   /* a stack of those that nobody waits for */
    int lines_count, ready_count;
    int most; /* clients of a request */
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

static void watch(int fd, struct line *line)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = line};
    if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, fd, &event))
        err(1, "load: epoll");
}

/* ---- one client -----------------------------------------------------------
 */

static void queue_put(struct queue *queue, struct client *client)
{
    int at = (queue->head + queue->count++) % load.count;
    queue->clients[at] = client;
}

static struct client *queue_take(struct queue *queue)
{
    struct client *client = queue->clients[queue->head];
    queue->head = (queue->head + 1) % load.count;
    queue->count--;
    return client;
}

/* Begins a cycle that was due at `start_us`; the client must be idle. */
static void begin_cycle(struct client *client, int64_t start_us)
{
    if (load.resource)
        snprintf(client->resource, sizeof client->resource, "%s",
                 load.resource);
    else
        snprintf(client->resource, sizeof client->resource,
                 "bench:%x:%d:%" PRIu64, load.run, client->number,
                 client->round++);
    client->holds = false;
    client->start_us = start_us;
    queue_put(&load.queue, client);
}

static void rest(struct client *client)
{
    load.idle[load.idle_count++] = client;
}

static void end_cycle(struct client *client)
{
    int64_t now_us = sample_now_us();
    load.done++;
    if (now_us >= load.begin_us && now_us < load.end_us)
        sample_add(&load.sample, now_us - client->start_us);
    rest(client);
}

static void failed(struct client *client, const char *what, const char *got)
{
    static int told;
    if (told++ < 10)
        warnx("%s: %s: %s", client->holds ? "release" : "acquire", what, got);
    load.failures++;
    rest(client);
}

static void take(struct client *client, const struct http_answer *answer)
{
    const char *error = load.is_flood ? NULL : service_answered(client, answer);
    load.limited += load.is_flood && answer->status == 429;
    if (error) {
        failed(client, error, answer->body);
    } else if (load.is_flood || client->holds) {
        end_cycle(client);
    } else {
        client->holds = true;
        queue_put(&load.queue, client);
    }
}

/* ---- one line -------------------------------------------------------------
 */

static void ready(struct line *line)
{
    line->count = 0;
    load.ready[load.ready_count++] = line;
}

/* All of its requests failed; it is connected anew. */
static void line_failed(struct line *line, const char *what)
{
    for (int i = 0; i < line->count; i++)
        failed(line->asked[i], what, line->http.response);
    http_reopen(&line->http);
    watch(line->http.fd, line);
    ready(line);
}

/* When the connection is readable. */
static void read_answer(struct line *line)
{
    struct http_answer answer, each[MOST];
    if (!http_read(&line->http, &answer))
        return;
    if (line->count == 0)
        errx(1, "nothing was asked: %s",
             answer.error ? answer.error : line->http.response);
    const char *error =
        answer.error ? answer.error
                     : service_split(&answer, line->asked, line->count, each);
    if (error) {
        line_failed(line, error);
        return;
    }
    for (int i = 0; i < line->count; i++)
        take(line->asked[i], &each[i]);
    ready(line);
}

/* How many clients the next request may take. */
static int room(void)
{
    int asked = load.queue.count;
    if (load.most == 1)
        return 1; /* lines may be as many as clients */
    for (int i = 0; i < load.lines_count; i++)
        asked += load.lines[i].count;
    int part = (asked + load.lines_count - 1) / load.lines_count;
    part = part < PART_LEAST ? PART_LEAST : part;
    return part < load.most ? part : load.most;
}

/* Asks for what is collected, as far as lines are ready. */
static void ask(void)
{
    while (load.queue.count > 0 && load.ready_count > 0) {
        struct line *line = load.ready[--load.ready_count];
        int most = room();
        while (line->count < most && load.queue.count > 0)
            line->asked[line->count++] = queue_take(&load.queue);
        const char *error = service_ask(&line->http, line->asked, line->count);
        if (error)
            line_failed(line, error);
    }
}

/* Waits until the server answers on a line that is ready. */
static void greet(struct line *line)
{
    struct http_answer answer;
    const char *error = http_get(&line->http, "/livez");
    while (!error && !http_read(&line->http, &answer))
        ;
    if (error || answer.error)
        errx(1, "GET /livez: %s", error ? error : answer.error);
}

/* ---- all of them ----------------------------------------------------------
 */

static int64_t due_us(int64_t now_us)
{
    return load.rate > 0
               ? load.start_us + (int64_t)((double)load.begun * 1e6 / load.rate)
               : now_us;
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
        load.begun++;
        begin_cycle(load.idle[--load.idle_count], next_us);
    }
    ask();
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
        struct line *line = events[i].data.ptr;
        uint64_t expirations;
        if (line)
            read_answer(line);
        else if (read(load.timer, &expirations, sizeof expirations) < 0)
            err(1, "load: timer");
        if (load.most == 1)
            ask(); /* nothing to collect: at once */
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
    for (int i = 0; i < load.lines_count; i++) {
        struct line *line = &load.lines[i];
        http_open(&line->http, server);
        if (i % GROUP == GROUP - 1)
            greet(line);
    }
    for (int i = 0; i < load.count; i++) {
        load.clients[i].number = i;
        service_greet(&load.clients[i], &load.lines[i % load.lines_count].http);
    }
    for (int i = 0; i < load.lines_count; i++) {
        watch(load.lines[i].http.fd, &load.lines[i]);
        ready(&load.lines[i]);
    }
}

static void parse(int argc, char **argv, struct sockaddr_in *server)
{
    int option;
    while ((option = getopt(argc, argv, "fstb:a:l:r:c:")) == 't' ||
           option == 'f' || option == 'b' || option == 'a' || option == 's' ||
           option == 'l' || option == 'r' ||
           (option == 'c' && load.costs_count < COSTS)) {
        if (option == 'f')
            load.is_flood = true;
        else if (option == 't')
            http_use_tls();
        else if (option == 's')
            service_is_shared = true;
        else if (option == 'b')
            load.lines_count = atoi(optarg);
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
        errx(2, "usage: load [-f] [-s] [-r NAME] [-b LINES] [-t] [-a TOKEN] "
                "[-l MS] "
                "[-c NAME=PID,…]… HOST:PORT CLIENTS SECONDS [RATE]");
    *server = http_address(argv[0]);
    load.count = atoi(argv[1]);
    load.seconds = atof(argv[2]);
    load.rate = argc > 3 ? atof(argv[3]) : 0;
    if (load.count < 1 || load.seconds <= 0)
        errx(2, "load: CLIENTS and SECONDS must be above 0");
    load.most = load.lines_count > 0 ? service_most : 1;
    if (load.lines_count <= 0 || load.lines_count > load.count)
        load.lines_count = load.count;
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
    load.queue.clients = calloc((size_t)load.count, sizeof(struct client *));
    load.lines = calloc((size_t)load.lines_count, sizeof *load.lines);
    load.ready = calloc((size_t)load.lines_count, sizeof(struct line *));
    load.asked = calloc((size_t)load.lines_count * (size_t)load.most,
                        sizeof(struct client *));
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (!load.clients || !load.idle || !load.queue.clients || !load.lines ||
        !load.ready || !load.asked || load.epoll < 0 || load.timer < 0 ||
        getrandom(&load.run, sizeof load.run, 0) < 0)
        err(1, "load");
    for (int i = 0; i < load.lines_count; i++)
        load.lines[i].asked = &load.asked[i * load.most];
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
           sample_now_us() < load.end_us + ANSWER_US) {
        ask();
        turn();
    }
    for (int i = load.idle_count; i < load.joined; i++)
        load.failures++; /* never answered */
    if (load.is_flood)
        printf("limited %" PRIu64 " ", load.limited);
    sample_report(&load.sample, load.seconds, load.done, load.failures);
    return 0;
}
