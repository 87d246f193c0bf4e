/* SPDX-License-Identifier: MIT */
/*
 * TLS on the socket of one connection to a node, and what is trusted there.
 * Only session.c includes <gnutls/…>.
 *
 * The node must prove that it is the one whose name the configuration has.
 * Nothing is resumed, as that would skip the proof.
 *
 * Nothing here calls back or waits.
 */
#ifndef REDLOCKD_SESSION_H
#define REDLOCKD_SESSION_H

#include <sys/types.h>

#include "../config/config.h"
#include "../engine/port/call.h"

/* ---- trust --------------------------------------------------------------- */

enum { TRUST_TEXT_MAX = CONFIG_ERROR_MAX + CONFIG_PATH_MAX };

/*
 * The CAs that may sign the nodes' certificates, and our certificate for nodes
 * that ask for one. Read from files, and read again while the service runs.
 */
struct trust;

/*
 * Reads the files of config, which is borrowed until trust_free, if a node of
 * it speaks TLS; else *trust is NULL. False: error is one line that names the
 * option, the file and the reason.
 */
bool trust_make(struct trust **trust, const struct config *config,
                char error[TRUST_TEXT_MAX]);

/* Sessions that began before go on. NULL is ignored. */
void trust_free(struct trust *trust);

/*
 * Reads the files again, for sessions that begin from now on. False: nothing
 * has changed; error as above.
 */
bool trust_reload(struct trust *trust, char error[TRUST_TEXT_MAX]);

/* The fault of our certificate at now_s since 1970; NULL: none. */
const char *trust_warning(const struct trust *trust, int64_t now_s);

/* ---- one connection ------------------------------------------------------ */

struct session;

/*
 * For a socket that does not block and stays the caller's. host: the name to be
 * proved, or an IP address. It goes by what trust has now. NULL: no memory.
 */
struct session *session_new(struct trust *trust, const char *host, int fd);

/* Says goodbye, if the socket takes it. NULL is ignored. */
void session_free(struct session *session);

enum session_shake {
    SESSION_READY,
    SESSION_WANTS_READ,  /* call it again when the socket is readable */
    SESSION_WANTS_WRITE, /* call it again when the socket is writable */
    SESSION_BROKEN,
};

/* Goes on shaking hands. Once it is ready, it remains so. */
enum session_shake session_shake(struct session *session);

/*
 * Writes as much as the socket takes now; returns how much, -1: an error. What
 * was not written must come first in the next call.
 */
ssize_t session_write(struct session *session, const char *bytes, size_t len);

/*
 * Reads what is there; returns how much, 0: nothing now, -1: an error or the
 * end. Takes at most SESSION_TURN_MAX bytes from the socket before it says that
 * there is no more for now. Less than size: there is no more that the
 * descriptor would not show.
 */
ssize_t session_read(struct session *session, char *bytes, size_t size);

enum { SESSION_TURN_MAX = 256 * 1024 };

/*
 * When the node's certificate ends, or one that signed it and that the node
 * sent, in Unix time: the first of them. Once it is ready.
 */
int64_t session_until_s(const struct session *session);

/*
 * Why it is dead: a sentence without secrets; NULL: it is not. The reason is
 * STATE_TLS_FAILED, or that of the connection below.
 */
const char *session_error(const struct session *session);
enum node_state session_reason(const struct session *session);

#endif
