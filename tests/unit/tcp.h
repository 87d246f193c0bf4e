/* SPDX-License-Identifier: MIT */
/*
 * Sockets of loopback. Of a connection the kernel counts what it does not of a
 * pair of sockets.
 */
#ifndef REDLOCKD_TEST_TCP_H
#define REDLOCKD_TEST_TCP_H

#include <netinet/in.h>

/* A socket on a free port of 127.0.0.1, where nobody listens yet. */
int tcp_bind(struct sockaddr_in *at);

struct tcp {
    int server, client;
};

struct tcp tcp_connect(void);

/* Closes this end so that the other one is reset; as close. */
int tcp_reset(int fd);

#endif
