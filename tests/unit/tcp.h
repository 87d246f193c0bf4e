/*
 * A connection over loopback, of which the kernel counts what it does not of
 * a pair of sockets.
 */
#ifndef REDLOCKD_TEST_TCP_H
#define REDLOCKD_TEST_TCP_H

struct tcp {
    int server, client;
};

struct tcp tcp_connect(void);

/* Closes this end so that the other one is reset; as close. */
int tcp_reset(int fd);

#endif
