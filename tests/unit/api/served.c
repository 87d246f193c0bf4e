/* SPDX-License-Identifier: MIT */
#include "served.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/exchange.h"
#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"

enum { DESCRIPTORS = 64, FEW_TURNS = 5 };

struct served served;

static void serve(void *arg)
{
    (void)arg;
    served.turns++;
    play.now_us = clock_now_us();
    starve.is_on = true;
    if (served.front != NULL)
        front_serve(served.front);
    starve.is_on = false;
}

/* The only listener of this process. */
static int find_port(void)
{
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        int is_listener = 0;
        socklen_t len = sizeof is_listener;
        struct sockaddr_in at = {0};
        socklen_t at_len = sizeof at;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &len) ==
                0 &&
            is_listener &&
            getsockname(fd, (struct sockaddr *)&at, &at_len) == 0)
            return ntohs(at.sin_port);
    }
    ck_abort_msg("nothing listens");
}

struct front_setup served_setup(void)
{
    return (struct front_setup){
        .loop = served.loop,
        .engine = play.engine,
        .config = &served.config,
        .metrics = &play.metrics,
        .connections_max = SERVED_CONNECTIONS,
    };
}

void served_begin(void)
{
    char error[FRONT_ERROR_MAX];
    play_begin_with(&play_settings);
    play.on_answer = exchange_on_answer;
    play.now_us = play.confirmed_us = clock_now_us();
    for (int i = 0; i < PLAY_NODES; i++)
        play_node_up(i);
    play.sent_count = 0;
    served = (struct served){
        .loop = loop_new(),
        .config = {.listen_host = "127.0.0.1",
                   .nodes_count = PLAY_NODES,
                   .default_ttl_ms = 12000,
                   .max_ttl_ms = 60000},
    };
    ck_assert_ptr_nonnull(served.loop);
    const struct front_setup setup = served_setup();
    served.front = front_new(&setup, error);
    ck_assert_msg(served.front != NULL, "%s", error);
    served.port = find_port();
    loop_set_stage(served.loop, LOOP_SERVE, serve, NULL);
}

void served_end(void)
{
    front_free(served.front);
    ck_assert_uint_eq(play.metrics.connections, 0);
    ck_assert_uint_eq(play.metrics.requests_accepted,
                      play.metrics.requests_answered +
                          play.metrics.requests_abandoned);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
    loop_free(served.loop);
    play_end();
}

int served_connect(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)served.port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

void served_send(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL),
                     (ssize_t)strlen(text));
}

int served_ask(const char *text)
{
    int fd = served_connect();
    served_send(fd, text);
    return fd;
}

struct reading {
    int fd;
    const char *until;
    size_t len;
    bool is_closed;
    char text[65536];
};

static bool has_read(void *arg)
{
    struct reading *it = arg;
    ssize_t got = recv(it->fd, it->text + it->len,
                       sizeof it->text - 1 - it->len, MSG_DONTWAIT);
    if (got > 0)
        it->len += (size_t)got;
    it->text[it->len] = '\0';
    it->is_closed = got == 0 || (got < 0 && errno == ECONNRESET);
    if (it->until == NULL)
        return it->is_closed;
    bool has_it = strstr(it->text, it->until) != NULL;
    ck_assert_msg(has_it || !it->is_closed, "closed after: %s", it->text);
    return has_it;
}

const char *served_read(int fd, const char *until)
{
    static struct reading reading;
    reading.fd = fd;
    reading.until = until;
    reading.len = 0;
    turns_until(served.loop, has_read, &reading);
    return reading.text;
}

void served_expect(int fd, const char *part)
{
    const char *answer = served_read(fd, "}\n");
    ck_assert_has(answer, part);
}

void served_expect_last(int fd, const char *part)
{
    const char *answer = served_read(fd, NULL);
    if (part == NULL)
        ck_assert_str_eq(answer, "");
    else
        ck_assert_has(answer, part);
    close(fd);
}

static bool has_no_connection(void *arg)
{
    (void)arg;
    return play.metrics.connections == 0;
}

void served_await_leave(void)
{
    turns_until(served.loop, has_no_connection, NULL);
}

static bool has_asked(void *arg)
{
    const int *count = arg;
    return play_count(CALL_ACQUIRE) >= *count * PLAY_NODES;
}

void served_await_acquires(int count)
{
    turns_until(served.loop, has_asked, &count);
}

void served_pass(void)
{
    turns_until_count(served.loop, &served.turns, served.turns + FEW_TURNS);
}

void served_grant(void)
{
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
}
