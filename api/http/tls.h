/* SPDX-License-Identifier: MIT */
/*
 * TLS for clients, as far as GnuTLS does it: what the listener shows, one
 * session of a connection, and who its client is. The HTTP library makes the
 * session, and reads and writes through it; we tell it what to accept, and give
 * it the bytes.
 *
 * A session:
 *
 *             bytes may be read          the client's last flight was read
 *   WAITING ⇄ SHAKING ─────────────────────────→ LAST ─────→ OPEN
 *
 * The library tries again and again while a handshake waits for its client. So
 * the connection is paused instead, whenever there is nothing to read: it costs
 * nothing until its socket is readable, and its owner decides how many go on in
 * one turn. To sign takes up to a millisecond, and nodes must be read
 * meanwhile.
 *
 * There are no session tickets: each session proves its certificate, and what
 * is written belongs to the handshake, to an answer, or says goodbye.
 */
#ifndef REDLOCKD_TLS_H
#define REDLOCKD_TLS_H

#include "../../server/base/types.h"
#include "../../server/config/config.h"
#include "../../server/lock/metrics.h"

/* What GnuTLS is to offer and accept: forward secrecy and AEAD, no SHA-1. */
#define TLS_PRIORITIES                                                         \
    "NONE:+VERS-TLS1.3:+VERS-TLS1.2:+ECDHE-ECDSA:+ECDHE-RSA:+AEAD:+COMP-NULL:" \
    "+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305:"                            \
    "+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1:"                         \
    "+SIGN-ECDSA-SECP256R1-SHA256:+SIGN-ECDSA-SECP384R1-SHA384:"               \
    "+SIGN-ECDSA-SHA256:+SIGN-ECDSA-SHA384:+SIGN-ECDSA-SHA512:"                \
    "+SIGN-EDDSA-ED25519:"                                                     \
    "+SIGN-RSA-PSS-RSAE-SHA256:+SIGN-RSA-PSS-RSAE-SHA384:"                     \
    "+SIGN-RSA-PSS-RSAE-SHA512:+SIGN-RSA-SHA256:+SIGN-RSA-SHA384:"             \
    "+SIGN-RSA-SHA512:+CTYPE-X509"

enum { TLS_NAMES_MAX = 1024, TLS_PEER_NAMES_MAX = 16 };

struct gnutls_session_int;

/* ---- the listener ------------------------------------------------------- */

struct tls;

/*
 * Reads the files that config names. NULL: error holds one line for people.
 * config and metrics are borrowed. What is unwise, but works, is logged.
 */
struct tls *tls_new(const struct config *config, struct metrics *metrics,
                    char *error, size_t error_size);

/* Reads the files again. False: they are wrong, the log says so, and all stays
 * as it was. Connections that are open go on. */
bool tls_reload(struct tls *tls);

/* All sessions must have been freed. NULL is ignored. */
void tls_free(struct tls *tls);

/* ---- a session ---------------------------------------------------------- */

struct tls_session;

/*
 * Before the handshake; fd is the connection's. NULL: no memory. wait is called
 * from within the library when the handshake can go on only after
 * tls_session_go_on; false: it cannot be waited for, and the handshake fails.
 */
struct tls_session *tls_session_new(struct tls *tls,
                                    struct gnutls_session_int *library, int fd,
                                    bool (*wait)(void *ctx), void *ctx);

/* Counts what became of the handshake. NULL is ignored. */
void tls_session_free(struct tls_session *it);

/* The handshake may read again · fails when it goes on. */
void tls_session_go_on(struct tls_session *it);
void tls_session_abort(struct tls_session *it);

/*
 * Whether its client may ask for target now. False: close the connection. After
 * a reload the client's certificate must satisfy the new --tls-client-ca, and
 * it must not have expired. Without a certificate only a client on this machine
 * comes so far: it may ask whether the server is alive and ready.
 */
bool tls_session_may_ask(struct tls_session *it, const char *target);

/* The names in the client's certificate, as tls_read_names writes them; "":
 * there is no certificate, or it has none that fit. */
const char *tls_session_peer_names(const struct tls_session *it);

/*
 * Whether the next that the client has sent is an alert: it says goodbye, as a
 * FIN does. To be asked between a request and its answer, when nobody reads.
 *
 * TLS 1.2 shows the kind of a record. TLS 1.3 shows only its length: two
 * encrypted bytes are taken for an alert. A client that sends two bytes of its
 * next request, and no more, while it waits for an answer, does not exist.
 */
bool tls_session_has_ended(const struct tls_session *it);

/* ---- the names in a certificate ----------------------------------------- */

/*
 * The names by which an identity may be known: the DNS names, URIs and email
 * addresses among the alternative names; if it has no alternative name of any
 * kind, the common names. Each with its kind, as in "dns:a.example", joined by
 * U+000A as in names.h. Constraints on the names of an authority say nothing of
 * its common names, and something else of each kind: so what is said of one
 * kind must never count as another.
 *
 * Names with other than printable ASCII characters are left out. "": there are
 * none, or more than TLS_PEER_NAMES_MAX, or they do not fit. der is the encoded
 * certificate.
 */
void tls_read_names(struct span der, char *names, size_t size);

#endif
