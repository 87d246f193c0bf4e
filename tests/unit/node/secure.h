/* SPDX-License-Identifier: MIT */
/*
 * The other end of a session: a server that speaks TLS, in the same process and
 * without waiting, so that a test drives both ends step by step.
 */
#ifndef REDLOCKD_TEST_SECURE_H
#define REDLOCKD_TEST_SECURE_H

#include <gnutls/gnutls.h>

#include "../../../server/node/session.h"
#include "../../lib/certs/certs.h"

struct secure {
    struct config config; /* its node_ca is the CA's file */
    struct trust *trust;
    struct certs *ca;
    struct session *session; /* the client */
    int fds[2];              /* the client's, the server's */
    gnutls_session_t server;
    gnutls_certificate_credentials_t credentials;
    gnutls_datum_t ticket_key;
    char dir[64];
    char path[3][96]; /* of the CA, our certificate, its key */
};

extern struct secure secure;

/* What the server does; all zero: TLS 1.3, or what both know. */
struct secure_server {
    const struct certs *certs;
    const char *priority;     /* NULL: the usual */
    const struct certs *asks; /* for a client certificate of this CA; or NULL */
};

/* As a fixture: a CA, and trust in it. */
void secure_setup(void);
void secure_teardown(void);

/* Reads trust again, by the present config. */
void secure_trust(void);

/* A server, and a client that wants to talk to this host. */
void secure_connect(const struct secure_server *server, const char *host);

/* The same with a certificate of our CA: by this wish · for localhost. */
void secure_connect_as(struct certs_wish wish, const char *host);
void secure_connect_usual(void);

/* Our side is to have this certificate and key from the next secure_trust on.
 */
void secure_give(const struct certs *certs, const struct certs *key);

/* Drops both. */
void secure_disconnect(void);

/* Shakes hands, as far as it gets. True: both are ready. */
bool secure_shake(void);

/* One step of the server's handshake; GnuTLS' code. */
int secure_step(void);

/* Until both are ready, and with the usual certificate. */
void secure_start(void);

/* The session must break, with this reason and text; or never get ready. */
void secure_expect_broken(enum node_state reason, const char *text);

/* The server sends all of it; the client must not need to read meanwhile. */
void secure_say(const char *bytes, size_t len);

#endif
