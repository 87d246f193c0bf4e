/* SPDX-License-Identifier: MIT */
/*
 * Many requests at once, large answers, and slow ones: the nodes have their
 * turns meanwhile.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "../starve.h"
#include "served.h"

#define LARGE SERVED_GET("/openapi.yaml")

static void ask_often(int fd, const char *text, int times)
{
    for (int i = 0; i < times; i++)
        served_send(fd, text);
}

/* ---- large answers ------------------------------------------------------ */

static struct {
    int fd;
    size_t wanted, len;
    char text[100000]; /* the beginning */
} client;

static bool has_come(void *arg)
{
    static char rest[65536];
    (void)arg;
    for (;;) {
        size_t room = sizeof client.text - 1 - client.len;
        bool has_room = client.len < sizeof client.text - 1;
        ssize_t got =
            recv(client.fd, has_room ? client.text + client.len : rest,
                 has_room ? room : sizeof rest, MSG_DONTWAIT);
        if (got <= 0)
            return client.len >= client.wanted;
        client.len += (size_t)got;
    }
}

static void await(size_t bytes)
{
    client.wanted = bytes;
    turns_until(served.loop, has_come, NULL);
}

/* With its head. */
static size_t large_size(void)
{
    client.fd = served_ask(LARGE);
    await(1);
    const char *length = strstr(client.text, "\r\nContent-Length: ");
    const char *end = strstr(client.text, "\r\n\r\n");
    ck_assert(length != NULL && end != NULL);
    size_t size =
        (size_t)(end + 4 - client.text) + strtoul(length + 18, NULL, 10);
    await(size);
    ck_assert_uint_eq(client.len, size);
    return size;
}

static void set_up(void)
{
    client.len = 0;
    served_begin();
}

SUITE(front_turns, .set_up = set_up, .tear_down = served_end);

TEST(a_large_answer_takes_more_than_one_turn)
{
    enum { ANSWERS = 16 };
    size_t size = large_size();
    client.len = 0;
    int before = served.turns;
    ask_often(client.fd, LARGE, ANSWERS);
    await(ANSWERS * size);
    ck_assert_uint_eq(client.len, ANSWERS * size);
    ck_assert_int_ge(served.turns - before, ANSWERS);
    close(client.fd);
}

/* The server has no copy for each of them. */
TEST(who_does_not_read_a_large_answer_takes_little_memory)
{
    enum { ASKED = 300 }; /* more than the kernel has room for */
    int fds[SERVED_CONNECTIONS];
    size_t size = large_size();
    close(client.fd);
    served_pass();
    size_t before = growth_bytes_in_use();
    for (int i = 0; i < SERVED_CONNECTIONS; i++) {
        fds[i] = served_connect();
        ask_often(fds[i], LARGE, ASKED);
    }
    uint64_t answered;
    do {
        answered = play.metrics.requests_answered;
        served_pass();
    } while (play.metrics.requests_answered > answered);
    ck_assert_int_eq(front_in_flight(served.front), SERVED_CONNECTIONS);
    ck_assert_uint_lt(growth_bytes_in_use(), before + size);
    for (int i = 0; i < SERVED_CONNECTIONS; i++)
        close(fds[i]);
}

/* How often data came. */
static unsigned segments(void)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    ck_assert_int_eq(getsockopt(client.fd, IPPROTO_TCP, TCP_INFO, &info, &len),
                     0);
    return info.tcpi_data_segs_in;
}

/* It costs less to write than to make, and pieces would cost as much again. */
TEST(the_answer_to_a_batch_is_written_at_once)
{
    static const char body[] =
        "{\"operations\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}";
    client.fd = served_ask(textf(
        "POST /batch HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Content-Length: %zu\r\n\r\n%s",
        sizeof body - 1, body));
    await(8000);
    ck_assert_ptr_nonnull(strstr(client.text, "/operations/31"));
    ck_assert_uint_le(segments(), 2);
    close(client.fd);
}

/* ---- many, and slow ones ------------------------------------------------ */

TEST(requests_that_take_long_are_answered_one_in_a_turn)
{
    enum { REQUESTS = 16 };
    starve.takes_us = 5000; /* an answer takes several allocations */
    int before = served.turns;
    int fd = served_connect();
    ask_often(fd, SERVED_GET("/nope"), REQUESTS);
    turns_until_count(served.loop, &served.turns, before + REQUESTS / 2);
    ck_assert_uint_le(play.metrics.requests_answered, REQUESTS / 2 + 1);
    starve.takes_us = 0;
    close(fd);
}
