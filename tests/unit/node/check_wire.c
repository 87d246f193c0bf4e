/* SPDX-License-Identifier: MIT */
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../server/node/wire.h"
#include "../../lib/suite/suite.h"
#include "../growth.h"
#include "../starve.h"
#include "../tcp.h"

enum { BIG = 1024 * 1024, BIGS = 8 };

static int listener, peer;
static struct wire *wire;

static void setup(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof address;
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    /* without a path the system chooses a name */
    ck_assert_int_eq(
        bind(listener, (struct sockaddr *)&address, sizeof address.sun_family),
        0);
    ck_assert_int_eq(listen(listener, 1), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len),
                     0);
    wire = wire_new((struct sockaddr *)&address, len);
    ck_assert_ptr_nonnull(wire);
    ck_assert_ptr_null(wire_error(wire));
    peer = accept(listener, NULL, NULL);
    ck_assert_int_ge(peer, 0);
}

static void teardown(void)
{
    wire_free(wire);
    close(peer);
    close(listener);
}

/* What the other side has got so far, no more than size - 1 bytes. */
static size_t receive(char *bytes, size_t size)
{
    ssize_t got = recv(peer, bytes, size - 1, MSG_DONTWAIT);
    bytes[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

SUITE(wire, .set_up = setup, .tear_down = teardown);

TEST(commands_are_arrays_of_bulk_strings)
{
    char bytes[256];
    const struct span set[] = {span_of("SET"), span_of("a key"), {NULL, 0}};
    const struct span ping = span_of("PING");
    ck_assert(wire_append(wire, set, 3));
    ck_assert(wire_append(wire, &ping, 1));
    ck_assert_uint_gt(wire_unsent(wire), 0);
    ck_assert_uint_eq(receive(bytes, sizeof bytes), 0);
    ck_assert(wire_write(wire));
    ck_assert_uint_eq(wire_unsent(wire), 0);
    receive(bytes, sizeof bytes);
    ck_assert_str_eq(bytes, "*3\r\n$3\r\nSET\r\n$5\r\na key\r\n$0\r\n\r\n"
                            "*1\r\n$4\r\nPING\r\n");
}

/* The same byte all over would not show what was left out or sent twice. */
static void fill(char *bytes, int which)
{
    for (int i = 0; i < BIG; i++)
        bytes[i] = (char)(i * 7 + i / 251 + which);
}

TEST(what_the_socket_does_not_take_is_sent_later)
{
    static char sent[BIG], got[BIGS * (BIG + 64)], wanted[BIGS * (BIG + 64)];
    size_t got_len = 0, wanted_len = 0;
    for (int i = 0; i < BIGS; i++) {
        const struct span arg = {sent, BIG};
        fill(sent, i);
        ck_assert(wire_append(wire, &arg, 1));
        ck_assert(wire_write(wire));
        wanted_len +=
            (size_t)sprintf(wanted + wanted_len, "*1\r\n$%d\r\n", BIG);
        wanted_len += span_copy(wanted + wanted_len, arg);
        wanted_len += span_copy(wanted + wanted_len, span_of("\r\n"));
    }
    ck_assert_uint_gt(wire_unsent(wire), 0);
    do {
        ck_assert(wire_write(wire));
        got_len += receive(got + got_len, sizeof got - got_len);
    } while (wire_unsent(wire) > 0);
    for (size_t more = 1; more > 0; got_len += more)
        more = receive(got + got_len, sizeof got - got_len);
    ck_assert_uint_eq(got_len, wanted_len);
    ck_assert_int_eq(memcmp(got, wanted, wanted_len), 0);
}

TEST(a_large_buffer_is_given_back_when_it_is_sent)
{
    static char bytes[BIG];
    const struct span small = span_of("PING"), large = {bytes, sizeof bytes};
    ck_assert(wire_append(wire, &small, 1));
    ck_assert(wire_write(wire));
    size_t before = growth_bytes_in_use();
    ck_assert(wire_append(wire, &large, 1));
    do {
        ck_assert(wire_write(wire));
        (void)receive(bytes, sizeof bytes);
    } while (wire_unsent(wire) > 0);
    ck_assert_uint_le(growth_bytes_in_use(), before);
    ck_assert(wire_append(wire, &small, 1));
    ck_assert(wire_write(wire));
}

TEST(an_error_is_told_and_what_came_before_can_be_read)
{
    const struct span ping = span_of("PING");
    const struct wire_reply *reply;
    bool has_read;
    ck_assert_int_eq(send(peer, "+PONG\r\n", 7, 0), 7);
    close(peer);
    ck_assert(wire_append(wire, &ping, 1));
    ck_assert(!wire_write(wire));
    ck_assert_ptr_nonnull(wire_error(wire));
    ck_assert(wire_read(wire, &has_read));
    ck_assert(has_read);
    ck_assert_int_eq(wire_next(wire, &reply), WIRE_REPLY);
    ck_assert_int_eq(reply->fields[0].type, SCRIPT_FIELD_STRING);
}

/* However the bytes fall into pieces; of so many bits. */
TEST_RANGE(all_replies_come_before_the_end_of_the_connection, 10, 17)
{
    static const char one[] = {':', '1', '\r', '\n'};
    static char bytes[1 << 16];
    const struct wire_reply *reply;
    size_t len = (size_t)1 << _i;
    int replies = 0;
    bool has_read = true;
    for (size_t at = 0; at < len; at += sizeof one)
        memcpy(bytes + at, one, sizeof one);
    ck_assert_int_eq(send(peer, bytes, len, 0), (ssize_t)len);
    close(peer);
    while (wire_read(wire, &has_read)) {
        ck_assert(has_read);
        while (wire_next(wire, &reply) == WIRE_REPLY)
            replies++;
    }
    ck_assert_int_eq(replies, (int)(len / sizeof one));
    ck_assert_has(wire_error(wire), "closed the connection");
}

/* ---- sockets ------------------------------------------------------------- */

static int option_of(int level, int option)
{
    int value = -1;
    socklen_t len = sizeof value;
    ck_assert_int_eq(getsockopt(wire_fd(wire), level, option, &value, &len), 0);
    return value;
}

static void await_connected(void)
{
    struct pollfd out = {.fd = wire_fd(wire), .events = POLLOUT};
    ck_assert_int_eq(poll(&out, 1, 10000), 1);
}

/* No small command waits for another, and a node that is gone is noticed. */
TEST(a_tcp_connection_is_quick_and_is_watched)
{
    struct sockaddr_in address;
    int fd = tcp_bind(&address);
    ck_assert_int_eq(listen(fd, 1), 0);
    wire_free(wire);
    wire = wire_new((struct sockaddr *)&address, sizeof address);
    await_connected();
    ck_assert(wire_finish_connect(wire));
    ck_assert_int_eq(option_of(IPPROTO_TCP, TCP_NODELAY), 1);
    ck_assert_int_eq(option_of(SOL_SOCKET, SO_KEEPALIVE), 1);
    int noticed_s = option_of(IPPROTO_TCP, TCP_KEEPIDLE) +
                    option_of(IPPROTO_TCP, TCP_KEEPCNT) *
                        option_of(IPPROTO_TCP, TCP_KEEPINTVL);
    ck_assert_int_le(noticed_s, 60);
    close(fd);
}

TEST(without_memory_there_is_neither_connection_nor_command)
{
    static char bytes[BIG];
    const struct span large = {bytes, sizeof bytes};
    const struct sockaddr_un address = {.sun_family = AF_UNIX};
    starve = (struct starve){.is_on = true, .left = 1};
    struct wire *other =
        wire_new((const struct sockaddr *)&address, sizeof address);
    starve.left = 1;
    bool is_appended = wire_append(wire, &large, 1);
    starve.is_on = false;
    ck_assert_ptr_null(other);
    ck_assert(!is_appended);
    ck_assert_uint_eq(wire_unsent(wire), 0);
    ck_assert(wire_append(wire, &large, 1));
}

TEST(where_nobody_listens_there_is_no_connection)
{
    struct sockaddr_in address;
    int fd = tcp_bind(&address);
    wire_free(wire);
    wire = wire_new((struct sockaddr *)&address, sizeof address);
    ck_assert_ptr_nonnull(wire);
    if (wire_error(wire) == NULL) {
        await_connected();
        ck_assert(!wire_finish_connect(wire));
    }
    ck_assert_str_eq(wire_error(wire), "Connection refused");
    close(fd);
}
