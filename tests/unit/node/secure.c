/* SPDX-License-Identifier: MIT */
#include "secure.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../lib/suite/suite.h"

enum { STEPS_MAX = 1000 };

struct secure secure;

void secure_setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    memset(&secure, 0, sizeof secure);
    PRINT_TO(secure.dir, "/tmp/redlockd-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(secure.dir));
    static const char *const names[] = {"ca", "cert", "key"};
    for (int i = 0; i < 3; i++)
        PRINT_TO(secure.path[i], "%s/%s", secure.dir, names[i]);
    secure.ca = certs_new_ca();
    certs_write(secure.ca, secure.path[0]);
    secure.config.nodes_count = 1;
    secure.config.nodes[0].is_tls = true;
    PRINT_TO(secure.config.node_ca, "%s", secure.path[0]);
    secure_trust();
}

void secure_teardown(void)
{
    secure_disconnect();
    trust_free(secure.trust);
    certs_free(secure.ca);
    for (int i = 0; i < 3; i++)
        unlink(secure.path[i]);
    rmdir(secure.dir);
}

void secure_trust(void)
{
    char error[TRUST_TEXT_MAX];
    trust_free(secure.trust);
    bool is_made = trust_make(&secure.trust, &secure.config, error);
    ck_assert_msg(is_made, "%s", error);
}

static void must(int code)
{
    ck_assert_msg(code >= 0, "%s", gnutls_strerror(code));
}

static void set_certificate(const struct secure_server *how)
{
    const struct certs *certs = how->certs;
    gnutls_datum_t pem = {(void *)certs_pem(certs),
                          (unsigned)strlen(certs_pem(certs))};
    gnutls_datum_t key = {(void *)certs_key_pem(certs),
                          (unsigned)strlen(certs_key_pem(certs))};
    must(gnutls_certificate_allocate_credentials(&secure.credentials));
    must(gnutls_certificate_set_x509_key_mem(secure.credentials, &pem, &key,
                                             GNUTLS_X509_FMT_PEM));
    if (how->asks == NULL)
        return;
    gnutls_datum_t ca = {(void *)certs_pem(how->asks),
                         (unsigned)strlen(certs_pem(how->asks))};
    must(gnutls_certificate_set_x509_trust_mem(secure.credentials, &ca,
                                               GNUTLS_X509_FMT_PEM));
    gnutls_session_set_verify_cert(secure.server, NULL, 0);
    gnutls_certificate_server_set_request(secure.server, GNUTLS_CERT_REQUIRE);
}

void secure_connect(const struct secure_server *server, const char *host)
{
    secure_disconnect();
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, secure.fds), 0);
    must(gnutls_init(&secure.server, GNUTLS_SERVER | GNUTLS_NONBLOCK));
    must(gnutls_priority_set_direct(
        secure.server, server->priority ? server->priority : "NORMAL", NULL));
    must(gnutls_session_ticket_key_generate(&secure.ticket_key));
    must(
        gnutls_session_ticket_enable_server(secure.server, &secure.ticket_key));
    set_certificate(server);
    must(gnutls_credentials_set(secure.server, GNUTLS_CRD_CERTIFICATE,
                                secure.credentials));
    gnutls_transport_set_int(secure.server, secure.fds[1]);
    secure.session = session_new(secure.trust, host, secure.fds[0]);
    ck_assert_ptr_nonnull(secure.session);
}

void secure_connect_as(struct certs_wish wish, const char *host)
{
    wish.issuer = secure.ca;
    struct certs *certs = certs_new(&wish);
    secure_connect(&(struct secure_server){.certs = certs}, host);
    certs_free(certs);
}

void secure_connect_usual(void)
{
    struct certs *certs = certs_new_node(secure.ca);
    secure_connect(&(struct secure_server){.certs = certs}, "localhost");
    certs_free(certs);
}

void secure_give(const struct certs *certs, const struct certs *key)
{
    certs_write(certs, secure.path[1]);
    certs_write_key(key, secure.path[2]);
    PRINT_TO(secure.config.node_cert, "%s", secure.path[1]);
    PRINT_TO(secure.config.node_key, "%s", secure.path[2]);
}

void secure_disconnect(void)
{
    if (secure.session == NULL)
        return;
    session_free(secure.session);
    secure.session = NULL;
    gnutls_deinit(secure.server);
    gnutls_certificate_free_credentials(secure.credentials);
    gnutls_free(secure.ticket_key.data);
    close(secure.fds[0]);
    close(secure.fds[1]);
}

int secure_step(void)
{
    return gnutls_handshake(secure.server);
}

static bool is_over(int code)
{
    return code != GNUTLS_E_AGAIN && code != GNUTLS_E_INTERRUPTED;
}

bool secure_shake(void)
{
    int code = GNUTLS_E_AGAIN;
    for (int i = 0; i < STEPS_MAX; i++) {
        enum session_shake shake = session_shake(secure.session);
        if (!is_over(code))
            code = secure_step();
        if (code < 0 && is_over(code) && gnutls_error_is_fatal(code)) {
            (void)gnutls_alert_send_appropriate(secure.server, code);
            (void)shutdown(secure.fds[1], SHUT_WR);
        }
        if (shake == SESSION_BROKEN)
            return false;
        if (shake == SESSION_READY && is_over(code))
            return code == GNUTLS_E_SUCCESS;
    }
    return false;
}

void secure_start(void)
{
    secure_connect_usual();
    ck_assert(secure_shake());
}

void secure_expect_broken(enum node_state reason, const char *text)
{
    bool is_ready = secure_shake();
    ck_assert(!is_ready);
    /* what the server thinks of us comes after our handshake in TLS 1.3 */
    if (session_error(secure.session) == NULL) {
        char bytes[16];
        ck_assert_int_eq(session_read(secure.session, bytes, sizeof bytes), -1);
    }
    ck_assert_ptr_nonnull(session_error(secure.session));
    ck_assert_has(session_error(secure.session), text);
    ck_assert_str_eq(state_name(session_reason(secure.session)),
                     state_name(reason));
}

void secure_say(const char *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t sent =
            gnutls_record_send(secure.server, bytes + done, len - done);
        must((int)sent);
        done += (size_t)sent;
    }
}
