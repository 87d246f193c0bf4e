/* Somebody who asks far more than it may, whatever the answers are:
 *
 *   flood HOST:PORT CONNECTIONS SECONDS RATE TOKEN
 *
 * RATE acquires a second are due by the clock; each is sent as soon as one of
 * the connections is idle. Prints how many were sent, and what was answered.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include "http.h"
#include "sample.h"

enum { EVENTS = 256 };

static struct flood {
    struct http *list;
    struct http **idle; /* a stack */
    int count, idle_count;
    int epoll;
    long sent, limited, other, lost;
} flood;

static void watch(struct http *http)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = http};
    if (epoll_ctl(flood.epoll, EPOLL_CTL_ADD, http->fd, &event))
        err(1, "flood: epoll");
}

static void open_all(const struct sockaddr_in *server)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* else connecting will fail */
    }
    flood.list = calloc((size_t)flood.count, sizeof *flood.list);
    flood.idle = calloc((size_t)flood.count, sizeof(struct http *));
    flood.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (flood.list == NULL || flood.idle == NULL || flood.epoll < 0)
        err(1, "flood");
    for (int i = 0; i < flood.count; i++) {
        http_open(&flood.list[i], server);
        watch(&flood.list[i]);
        flood.idle[flood.idle_count++] = &flood.list[i];
    }
}

static void take(struct http *http)
{
    struct http_answer answer;
    if (!http_read(http, &answer))
        return;
    if (answer.error != NULL) {
        flood.lost++;
        http_reopen(http);
        watch(http);
    } else if (answer.status == 429) {
        flood.limited++;
    } else {
        flood.other++;
    }
    flood.idle[flood.idle_count++] = http;
}

static void turn(void)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(flood.epoll, events, EVENTS, 1);
    for (int i = 0; i < count; i++)
        take(events[i].data.ptr);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        errx(2, "usage: flood HOST:PORT CONNECTIONS SECONDS RATE TOKEN");
    struct sockaddr_in server = http_address(argv[1]);
    flood.count = atoi(argv[2]);
    double seconds = atof(argv[3]), rate = atof(argv[4]);
    http_set_token(argv[5]);
    open_all(&server);
    int64_t start_us = sample_now_us(), passed_us;
    while ((passed_us = sample_now_us() - start_us) <
           (int64_t)(seconds * 1e6)) {
        double due = (double)passed_us * rate / 1e6;
        while (flood.idle_count > 0 && (double)flood.sent < due) {
            struct http *http = flood.idle[--flood.idle_count];
            flood.sent++;
            (void)http_post(http, "/locks", "{\"resource\":\"flood\"}");
        }
        turn();
    }
    printf("sent %ld limited %ld other %ld lost %ld\n", flood.sent,
           flood.limited, flood.other, flood.lost);
    return 0;
}
