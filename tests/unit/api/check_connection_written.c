/*
 * What was written to a socket, over real ones.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "../../../api/http/connection.h"
#include "../../lib/suite/suite.h"
#include "../tcp.h"

static int server, client;

static void set_up(void)
{
    struct tcp tcp = tcp_connect();
    char request[7];
    server = tcp.server;
    client = tcp.client;
    ck_assert_int_eq(send(client, "request", sizeof request, 0), 7);
    ck_assert_int_eq(recv(server, request, sizeof request, MSG_WAITALL), 7);
}

static void tear_down(void)
{
    close(server);
    if (client >= 0)
        close(client);
}

static void answer(size_t size)
{
    static char bytes[100000];
    ck_assert_int_eq(send(server, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
}

static void reset(void)
{
    char byte;
    tcp_reset(client);
    client = -1;
    ck_assert_int_eq(recv(server, &byte, 1, 0), -1); /* it has come */
}

SUITE(connection_written, .set_up = set_up, .tear_down = tear_down);

TEST(what_was_written_is_counted)
{
    ck_assert_int_eq(connection_written_bytes(server), 0);
    answer(300);
    ck_assert_int_eq(connection_written_bytes(server), 300);
    answer(200);
    ck_assert_int_eq(connection_written_bytes(server), 500);
}

TEST(a_reset_changes_nothing)
{
    answer(300);
    reset();
    ck_assert_int_eq(connection_written_bytes(server), 300);
    ck_assert_int_eq(send(server, "more", 4, MSG_NOSIGNAL), -1);
    ck_assert_int_eq(connection_written_bytes(server), 300);
}

TEST(what_has_not_left_yet_counts)
{
    int room = 1;
    ck_assert_int_eq(
        setsockopt(client, SOL_SOCKET, SO_RCVBUF, &room, sizeof room), 0);
    answer(100000);
    ck_assert_int_eq(connection_written_bytes(server), 100000);
    reset();
    ck_assert_int_eq(connection_written_bytes(server), 100000);
}

TEST(where_nobody_counts_it_is_unknown)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ck_assert_int_eq(connection_written_bytes(ends[0]), -1);
    close(ends[0]);
    close(ends[1]);
}
