/* SPDX-License-Identifier: MIT */
#include "session.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "../base/certificates.h"

enum {
    IN_BYTES = 16 * 1024, /* with one recv(2) */
    CHECKS = 2,           /* of the node's certificate: its name, its purpose */
    /* types of records; nothing else is TLS */
    RECORD_FIRST = 20,
    RECORD_LAST = 23,
};

/* ---- trust --------------------------------------------------------------- */

struct trust {
    struct certificate_files files;
    struct certificates *now;   /* sessions hold what they begin with */
    gnutls_priority_t priority; /* protocols and ciphers */
};

/* The distribution's ciphers, but no protocol before TLS 1.2. */
static const char protocols[] = "-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

bool trust_make(struct trust **trust, const struct config *config,
                char error[TRUST_TEXT_MAX])
{
    *trust = NULL;
    if (!config_has_tls_nodes(config))
        return true;
    struct trust *made = calloc(1, sizeof *made);
    (void)snprintf(error, TRUST_TEXT_MAX, "out of memory for TLS to the nodes");
    if (made == NULL)
        return false;
    made->files = (struct certificate_files){
        .chain = {"node-cert", config->node_cert},
        .key = {"node-key", config->node_key},
        .ca = {"node-ca", config->node_ca},
        .crl = {"", ""},
        .has_system_ca = true,
    };
    if (gnutls_priority_init2(&made->priority, protocols, NULL,
                              GNUTLS_PRIORITY_INIT_DEF_APPEND) < 0 ||
        !trust_reload(made, error)) {
        trust_free(made);
        return false;
    }
    *trust = made;
    return true;
}

void trust_free(struct trust *trust)
{
    if (trust == NULL)
        return;
    certificates_drop(trust->now);
    if (trust->priority != NULL)
        gnutls_priority_deinit(trust->priority);
    free(trust);
}

bool trust_reload(struct trust *trust, char error[TRUST_TEXT_MAX])
{
    struct certificates *made =
        certificates_load(&trust->files, error, TRUST_TEXT_MAX);
    if (made == NULL)
        return false;
    certificates_drop(trust->now);
    trust->now = made;
    return true;
}

const char *trust_warning(const struct trust *trust, int64_t now_s)
{
    if (!trust->now->has_own)
        return NULL;
    if (now_s >= trust->now->until_s)
        return "--node-cert has expired: nodes that require it will refuse it";
    if (now_s < trust->now->since_s)
        return "--node-cert is not yet valid: nodes that require it will "
               "refuse it";
    return NULL;
}

/* ---- one connection ------------------------------------------------------ */

/*
 * GnuTLS asks the socket for the head of a record, and then for the rest: so
 * what is there is read at once, and kept until it asks.
 *
 * It keeps what it could not write, too, and must then be told to go on, and
 * nothing else: owed bytes of the caller's are with it.
 */
struct session {
    gnutls_session_t tls;
    struct certificates *certificates;
    gnutls_typed_vdata_st checks[CHECKS];
    int fd;
    int fault; /* errno of the socket */
    bool is_ready;
    bool has_received; /* of the node */
    bool is_plain;     /* it answered without TLS */
    bool is_dry;       /* the socket had less than was asked for */
    bool is_waiting;   /* GnuTLS was told to come back */
    size_t owed;
    size_t turn_len; /* bytes since the socket was last said to have no more */
    size_t in_at, in_len;
    unsigned char in[IN_BYTES];
    char host[ADDRESS_HOST_MAX + 1];
    enum node_state reason;
    char error[NODE_DETAIL_MAX]; /* "": none */
};

/* ---- the socket, for GnuTLS ---------------------------------------------- */

static ssize_t set_io_error(struct session *session, int error)
{
    session->is_waiting = error == EAGAIN || error == EINTR;
    if (!session->is_waiting)
        session->fault = error;
    gnutls_transport_set_errno(session->tls, error);
    return -1;
}

static ssize_t session_pull(gnutls_transport_ptr_t arg, void *bytes,
                            size_t size)
{
    struct session *session = arg;
    if (session->in_at == session->in_len) {
        if (session->is_dry || session->turn_len >= SESSION_TURN_MAX)
            return set_io_error(session, EAGAIN);
        ssize_t got = recv(session->fd, session->in, IN_BYTES, 0);
        if (got <= 0)
            return got == 0 ? 0 : set_io_error(session, errno);
        if (!session->has_received) /* without TLS: "-ERR", "HTTP/1.1" */
            session->is_plain =
                session->in[0] < RECORD_FIRST || session->in[0] > RECORD_LAST;
        session->has_received = true;
        session->is_dry = got < IN_BYTES;
        session->turn_len += (size_t)got;
        session->in_at = 0;
        session->in_len = (size_t)got;
        if (session->is_plain)
            return set_io_error(session, EPROTO);
    }
    size_t left = session->in_len - session->in_at;
    size_t len = left < size ? left : size;
    memcpy(bytes, session->in + session->in_at, len);
    session->in_at += len;
    return (ssize_t)len;
}

static ssize_t session_push(gnutls_transport_ptr_t arg, const void *bytes,
                            size_t size)
{
    struct session *session = arg;
    ssize_t sent = send(session->fd, bytes, size, MSG_NOSIGNAL);
    return sent >= 0 ? sent : set_io_error(session, errno);
}

/* The socket may be asked again. */
static void begin_turn(struct session *session)
{
    session->is_dry = false;
    session->turn_len = 0;
}

/* ---- why it broke -------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void
say(struct session *session, enum node_state reason, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    session->reason = reason;
    vsnprintf(session->error, sizeof session->error, format, args);
    va_end(args);
}

static bool is_self_signed(const struct session *session)
{
    unsigned count = 0;
    gnutls_x509_crt_t crt;
    const gnutls_datum_t *chain =
        gnutls_certificate_get_peers(session->tls, &count);
    if (count != 1 || gnutls_x509_crt_init(&crt) < 0)
        return false;
    bool is_own =
        gnutls_x509_crt_import(crt, chain, GNUTLS_X509_FMT_DER) >= 0 &&
        gnutls_x509_crt_check_issuer(crt, crt) != 0;
    gnutls_x509_crt_deinit(crt);
    return is_own;
}

/* Names the gravest fault of the node's certificate. */
static void explain_certificate(struct session *session)
{
    unsigned status = gnutls_session_get_verify_cert_status(session->tls);
    const char *text = "its certificate cannot be verified";
    /* a signature fails if another issuer has the name of a trusted one */
    if (status & (GNUTLS_CERT_SIGNER_NOT_FOUND | GNUTLS_CERT_SIGNATURE_FAILURE))
        text = is_self_signed(session)
                   ? "its certificate is self-signed, and not in --node-ca"
                   : "its certificate is signed by an issuer that --node-ca "
                     "(or the system) does not trust";
    else if (status & GNUTLS_CERT_SIGNER_NOT_CA)
        text = "its certificate is signed by a certificate that is not a CA's";
    else if (status & GNUTLS_CERT_NOT_ACTIVATED)
        text = "its certificate, or its issuer's, is not yet valid: check the "
               "clocks";
    else if (status & GNUTLS_CERT_EXPIRED)
        text = "its certificate, or its issuer's, has expired";
    else if (status & GNUTLS_CERT_PURPOSE_MISMATCH)
        text = "its certificate is not for servers (extended key usage)";
    else if (status & GNUTLS_CERT_INSECURE_ALGORITHM)
        text = "its certificate is signed with too weak an algorithm";
    else if (status & GNUTLS_CERT_UNEXPECTED_OWNER) {
        say(session, STATE_TLS_FAILED,
            "its certificate is not for the name in --nodes: %.120s",
            session->host);
        return;
    }
    say(session, STATE_TLS_FAILED, "%s", text);
}

/* Whether the node asked for a certificate, and we have none. */
static bool lacks_own(const struct session *session)
{
    return gnutls_certificate_client_get_request_status(session->tls) != 0 &&
           !session->certificates->has_own;
}

static const char too_old[] = "the node supports neither TLS 1.2 nor 1.3";
static const char lacking[] =
    "the node requires a client certificate: give --node-cert and --node-key";

/* The node says what it does not like. */
static void explain_alert(struct session *session)
{
    gnutls_alert_description_t alert = gnutls_alert_get(session->tls);
    const char *name = gnutls_alert_get_name(alert);
    bool is_about_certificates = (alert >= GNUTLS_A_BAD_CERTIFICATE &&
                                  alert <= GNUTLS_A_CERTIFICATE_UNKNOWN) ||
                                 alert == GNUTLS_A_UNKNOWN_CA ||
                                 alert == GNUTLS_A_ACCESS_DENIED ||
                                 alert == GNUTLS_A_DECRYPT_ERROR;
    if (name == NULL)
        name = "unknown alert";
    if (alert == GNUTLS_A_PROTOCOL_VERSION)
        say(session, STATE_TLS_FAILED, "%s", too_old);
    else if (lacks_own(session))
        say(session, STATE_TLS_FAILED, "%s", lacking);
    else if (is_about_certificates && session->certificates->has_own)
        say(session, STATE_TLS_FAILED, "the node refuses --node-cert: %.80s",
            name);
    else
        say(session, STATE_TLS_FAILED, "the node ended the TLS session: %.80s",
            name);
}

/* The connection below is lost. A node that TLS displeases may just close. */
static void explain_end(struct session *session, bool is_cut)
{
    const char *text = "the node closed the connection";
    if (lacks_own(session)) {
        say(session, STATE_TLS_FAILED, "%s", lacking);
        return;
    }
    if (session->fault != 0)
        text = strerror(session->fault);
    else if (!session->is_ready)
        text = "the node closed the connection in the TLS handshake";
    else if (is_cut)
        text =
            "the connection was cut off: the node did not end the TLS session";
    say(session, STATE_UNREACHABLE, "%s", text);
}

/* code: an error of GnuTLS after which nothing works. */
static void session_explain(struct session *session, int code)
{
    if (session->error[0] != '\0')
        return; /* what came first is the cause */
    if (session->is_plain)
        say(session, STATE_TLS_FAILED,
            "the node does not speak TLS: write redis:// instead of rediss://");
    else if (code == GNUTLS_E_MEMORY_ERROR)
        say(session, STATE_UNREACHABLE, "out of memory for TLS");
    else if (code == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR)
        explain_certificate(session);
    else if (code == GNUTLS_E_FATAL_ALERT_RECEIVED)
        explain_alert(session);
    else if (code == GNUTLS_E_UNSUPPORTED_VERSION_PACKET)
        say(session, STATE_TLS_FAILED, "%s", too_old);
    else if (code == GNUTLS_E_PREMATURE_TERMINATION || session->fault != 0)
        explain_end(session, true);
    else
        say(session, STATE_TLS_FAILED, "TLS failed: %.150s",
            gnutls_strerror(code));
}

const char *session_error(const struct session *session)
{
    return session->error[0] != '\0' ? session->error : NULL;
}

enum node_state session_reason(const struct session *session)
{
    return session->reason;
}

/* ---- the handshake ------------------------------------------------------- */

/* A warning of the node's counts as nothing. */
static bool is_temporary(int code)
{
    return code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED ||
           code == GNUTLS_E_WARNING_ALERT_RECEIVED;
}

enum session_shake session_shake(struct session *session)
{
    if (session->is_ready)
        return SESSION_READY;
    int code;
    begin_turn(session);
    session->is_waiting = false;
    do
        code = gnutls_handshake(session->tls);
    while (is_temporary(code) && !session->is_waiting);
    if (code == GNUTLS_E_SUCCESS) {
        session->is_ready = true;
        begin_turn(session);
        return SESSION_READY;
    }
    if (is_temporary(code))
        return gnutls_record_get_direction(session->tls) == 1
                   ? SESSION_WANTS_WRITE
                   : SESSION_WANTS_READ;
    session_explain(session, code);
    return SESSION_BROKEN;
}

int64_t session_until_s(const struct session *session)
{
    unsigned count = 0;
    const gnutls_datum_t *chain =
        gnutls_certificate_get_peers(session->tls, &count);
    int64_t until_s = certificates_next_end_s(chain, count, 0);
    return until_s != INT64_MAX ? until_s : 0;
}

/* ---- bytes --------------------------------------------------------------- */

/* 0: not now; -1: an error. */
static ssize_t write_once(struct session *session, const char *bytes,
                          size_t len)
{
    size_t owed = session->owed;
    ssize_t sent = owed > 0 ? gnutls_record_send(session->tls, NULL, 0)
                            : gnutls_record_send(session->tls, bytes, len);
    if (sent > 0 && (owed == 0 || (size_t)sent == owed)) {
        session->owed = 0;
        return sent;
    }
    if (sent < 0 && is_temporary((int)sent)) {
        size_t most = gnutls_record_get_max_size(session->tls);
        if (owed == 0)
            session->owed = len < most ? len : most;
        return 0;
    }
    /* Were other bytes sent than it was given, commands would be torn. */
    session_explain(session, sent < 0 ? (int)sent : GNUTLS_E_INTERNAL_ERROR);
    return -1;
}

ssize_t session_write(struct session *session, const char *bytes, size_t len)
{
    size_t done = 0;
    ssize_t sent = 1;
    assert(session->is_ready && len >= session->owed);
    if (session->error[0] != '\0')
        return -1;
    for (; done < len && sent > 0; done += (size_t)sent) {
        sent = write_once(session, bytes + done, len - done);
        if (sent < 0)
            return -1;
    }
    return (ssize_t)done;
}

/*
 * GnuTLS comes back after each message that is no data (a ticket, new keys),
 * though more may lie here that the socket does not show any more.
 */
static ssize_t session_read_once(struct session *session, char *bytes,
                                 size_t size)
{
    ssize_t got;
    session->is_waiting = false;
    do
        got = gnutls_record_recv(session->tls, bytes, size);
    while (got < 0 && is_temporary((int)got) && !session->is_waiting);
    if (got > 0 || (got < 0 && is_temporary((int)got)))
        return got > 0 ? got : 0;
    if (got == 0)
        explain_end(session, false);
    else
        session_explain(session, (int)got);
    return -1;
}

ssize_t session_read(struct session *session, char *bytes, size_t size)
{
    size_t done = 0;
    ssize_t got = 1;
    assert(session->is_ready);
    for (; done < size && got > 0 && session->error[0] == '\0';
         done += got > 0 ? (size_t)got : 0)
        got = session_read_once(session, bytes + done, size - done);
    if (done < size)
        begin_turn(session);
    if (done > 0)
        return (ssize_t)done;
    return session->error[0] == '\0' ? 0 : -1;
}

/* ---- begin and end ------------------------------------------------------- */

static bool set_up(struct session *session, const struct trust *trust)
{
    static char purpose[] = GNUTLS_KP_TLS_WWW_SERVER;
    const char *host = session->host;
    struct in_addr four;
    gnutls_session_t tls = session->tls;
    session->checks[0] = (gnutls_typed_vdata_st){
        .type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *)session->host};
    session->checks[1] = (gnutls_typed_vdata_st){
        .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)purpose};
    gnutls_session_set_verify_cert2(tls, session->checks, CHECKS, 0);
    gnutls_transport_set_ptr(tls, session);
    gnutls_transport_set_pull_function(tls, session_pull);
    gnutls_transport_set_push_function(tls, session_push);
    return gnutls_priority_set(tls, trust->priority) >= 0 &&
           gnutls_credentials_set(tls, GNUTLS_CRD_CERTIFICATE,
                                  session->certificates->credentials) >= 0 &&
           /* an address is not sent as a name (RFC 6066 §3) */
           (strchr(host, ':') != NULL || inet_pton(AF_INET, host, &four) == 1 ||
            gnutls_server_name_set(tls, GNUTLS_NAME_DNS, host, strlen(host)) >=
                0);
}

struct session *session_new(struct trust *trust, const char *host, int fd)
{
    struct session *session = calloc(1, sizeof *session);
    if (session == NULL)
        return NULL;
    session->fd = fd;
    /*
     * As certificates have it: without the dot of the root, and an address
     * without its zone.
     */
    snprintf(session->host, sizeof session->host, "%s", host);
    session->host[strcspn(session->host, "%")] = '\0';
    size_t len = strlen(session->host);
    if (len > 1 && session->host[len - 1] == '.')
        session->host[len - 1] = '\0';
    session->certificates = certificates_hold(trust->now);
    if (gnutls_init(&session->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK |
                                       GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) <
            0 ||
        !set_up(session, trust)) {
        session_free(session);
        return NULL;
    }
    return session;
}

void session_free(struct session *session)
{
    if (session == NULL)
        return;
    /* Once, without waiting: the node does not need it. */
    if (session->is_ready && session->error[0] == '\0' && session->owed == 0)
        (void)gnutls_bye(session->tls, GNUTLS_SHUT_WR);
    if (session->tls != NULL)
        gnutls_deinit(session->tls);
    certificates_drop(session->certificates);
    free(session);
}
