/* SPDX-License-Identifier: MIT */
#include "tcp.h"

#include <arpa/inet.h>
#include <check.h>
#include <sys/socket.h>
#include <unistd.h>

int tcp_bind(struct sockaddr_in *at)
{
    socklen_t len = sizeof *at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    *at = (struct sockaddr_in){.sin_family = AF_INET,
                               .sin_addr = {htonl(INADDR_LOOPBACK)}};
    ck_assert_int_eq(bind(fd, (struct sockaddr *)at, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)at, &len), 0);
    return fd;
}

struct tcp tcp_connect(void)
{
    struct sockaddr_in at;
    struct tcp it;
    int listener = tcp_bind(&at);
    ck_assert_int_eq(listen(listener, 1), 0);
    it.client = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(connect(it.client, (struct sockaddr *)&at, sizeof at), 0);
    it.server = accept(listener, NULL, NULL);
    ck_assert_int_ge(it.server, 0);
    close(listener);
    return it;
}

int tcp_reset(int fd)
{
    const struct linger at_once = {.l_onoff = 1};
    ck_assert_int_eq(
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    return close(fd);
}
