/* Load on redlockd: cycles of acquire and release by keep-alive clients.
 *
 *   load HOST:PORT CLIENTS SECONDS           each client as fast as it can
 *   load HOST:PORT CLIENTS SECONDS RATE      RATE cycles a second in all, begun
 *                                            by the clock: a cycle that had to
 *                                            wait counts from when it was due
 */
#include "client.h"
#include "sample.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 64, WARM_UP_US = 500000, ANSWER_US = 2000000 };

static struct load {
    struct client *clients;
    struct client **idle; /* a stack of those that wait for a cycle */
    int count, idle_count;
    double seconds;
    double rate; /* cycles/s; 0: as fast as they can */
    uint64_t begun, done, failures;
    int64_t start_us, begin_us, end_us; /* cycles from begin to end count */
    int epoll, timer;
    struct sample sample;
} load;

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

static void take(struct client *client, enum client_event event)
{
    if (event == CLIENT_WAITS)
        return;
    int64_t now_us = sample_now_us();
    if (event == CLIENT_FAILED) {
        load.failures++;
        watch(client->http.fd, client);
    } else {
        load.done++;
        if (now_us >= load.begin_us && now_us < load.end_us)
            sample_add(&load.sample, now_us - client->start_us);
    }
    load.idle[load.idle_count++] = client;
}

/* Begins what is due, as far as clients are idle, and sets the timer for the
 * next one. */
static void begin_due(void)
{
    int64_t now_us = sample_now_us();
    int64_t next_us;
    while ((next_us = due_us(now_us)) <= now_us && load.idle_count > 0) {
        struct client *client = load.idle[--load.idle_count];
        load.begun++;
        take(client, client_begin(client, next_us));
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
    int count = epoll_wait(load.epoll, events, EVENTS, 1000);
    for (int i = 0; i < count; i++) {
        struct client *client = events[i].data.ptr;
        uint64_t expirations;
        if (client)
            take(client, client_read(client));
        else if (read(load.timer, &expirations, sizeof expirations) < 0)
            err(1, "load: timer");
    }
}

static void parse(int argc, char **argv, struct sockaddr_in *server)
{
    if (argc < 4 || argc > 5)
        errx(2, "usage: load HOST:PORT CLIENTS SECONDS [RATE]");
    *server = http_address(argv[1]);
    load.count = atoi(argv[2]);
    load.seconds = atof(argv[3]);
    load.rate = argc > 4 ? atof(argv[4]) : 0;
    if (load.count < 1 || load.seconds <= 0)
        errx(2, "load: CLIENTS and SECONDS must be above 0");
}

int main(int argc, char **argv)
{
    struct sockaddr_in server;
    parse(argc, argv, &server);
    load.clients = calloc((size_t)load.count, sizeof *load.clients);
    load.idle = calloc((size_t)load.count, sizeof(struct client *));
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (!load.clients || !load.idle || load.epoll < 0 || load.timer < 0)
        err(1, "load");
    watch(load.timer, NULL);
    for (int i = 0; i < load.count; i++) {
        client_open(&load.clients[i], i, &server);
        watch(load.clients[i].http.fd, &load.clients[i]);
        load.idle[load.idle_count++] = &load.clients[i];
    }
    load.start_us = sample_now_us();
    load.begin_us = load.start_us + WARM_UP_US;
    load.end_us = load.begin_us + (int64_t)(load.seconds * 1e6);
    while (sample_now_us() < load.end_us) {
        begin_due();
        turn();
    }
    while (load.idle_count < load.count &&
           sample_now_us() < load.end_us + ANSWER_US)
        turn();
    for (int i = load.idle_count; i < load.count; i++)
        load.failures++; /* never answered */
    sample_report(&load.sample, load.seconds, load.done, load.failures);
    return 0;
}
