/* SPDX-License-Identifier: MIT */
/*
 * TLS over the raw sockets of http.h, by GnuTLS. A socket that speaks it is
 * known by its descriptor, until that is connected again.
 */
#ifndef REDLOCKD_TEST_SECURE_H
#define REDLOCKD_TEST_SECURE_H

#include <sys/types.h>

#include "authority.h"

/* Who connects, and how; later connections, and libcurl, do so too. */
struct secure_client {
    const char *authority;   /* who must have signed the server's, a file */
    const struct pair *pair; /* what is shown; NULL: no certificate */
    const char *priorities;  /* of GnuTLS; NULL: its own */
};

void secure_set_client(const struct secure_client *client);
const struct secure_client *secure_client(void);

/*
 * Whether all servers of the run are to speak TLS: HTTP_TLS=1. Then their
 * options are made here, and the client is set.
 */
bool secure_is_wanted(void);
void secure_options(char *options, size_t size);

/* Shakes hands; a GnuTLS error, or 0. From then on fd speaks TLS. */
int secure_shake(int fd);

/* Whether it does; connecting forgets it. */
bool secure_is(int fd);
void secure_forget(int fd);

/* As send and recv; -1, EAGAIN as well. */
ssize_t secure_send(int fd, const char *text, size_t len);
ssize_t secure_recv(int fd, char *out, size_t size);
bool secure_has_more(int fd); /* decrypted, to be read without waiting */

/* Sends a close_notify, and keeps the connection. */
void secure_say_goodbye(int fd);

#endif
