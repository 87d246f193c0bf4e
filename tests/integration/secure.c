/* SPDX-License-Identifier: MIT */
#include "secure.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { DESCRIPTORS = 32768 };

static gnutls_session_t sessions[DESCRIPTORS];
static gnutls_certificate_credentials_t credentials;
static struct secure_client current;

void secure_set_client(const struct secure_client *client)
{
    gnutls_certificate_credentials_t old = credentials;
    current = *client;
    ck_assert_int_eq(gnutls_certificate_allocate_credentials(&credentials), 0);
    if (client->authority)
        ck_assert_int_gt(
            gnutls_certificate_set_x509_trust_file(
                credentials, client->authority, GNUTLS_X509_FMT_PEM),
            0);
    if (client->pair)
        ck_assert_int_eq(gnutls_certificate_set_x509_key_file(
                             credentials, client->pair->certificate,
                             client->pair->key, GNUTLS_X509_FMT_PEM),
                         0);
    if (old)
        gnutls_certificate_free_credentials(old);
}

const struct secure_client *secure_client(void)
{
    return &current;
}

bool secure_is_wanted(void)
{
    const char *value = getenv("HTTP_TLS");
    return value && strcmp(value, "1") == 0;
}

void secure_options(char *options, size_t size)
{
    static struct authority authority;
    static struct pair pair;
    static const struct subject subject = {.common = "localhost"};
    if (!authority.key) {
        authority_make(&authority, "the run");
        pair = authority_issue(&authority, &subject);
    }
    secure_set_client(&(struct secure_client){.authority = authority.path});
    snprintf(options, size, "--tls-cert %s --tls-key %s", pair.certificate,
             pair.key);
}

bool secure_is(int fd)
{
    return fd < DESCRIPTORS && sessions[fd] != NULL;
}

void secure_forget(int fd)
{
    if (!secure_is(fd))
        return;
    gnutls_deinit(sessions[fd]);
    sessions[fd] = NULL;
}

int secure_shake(int fd)
{
    gnutls_session_t it;
    int rc, on = 1;
    /* as most clients do: what is said must not wait for what was said before
     */
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ck_assert_int_lt(fd, DESCRIPTORS);
    ck_assert_int_eq(gnutls_init(&it, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL), 0);
    if (current.priorities)
        ck_assert_int_eq(
            gnutls_priority_set_direct(it, current.priorities, NULL), 0);
    else
        ck_assert_int_eq(gnutls_set_default_priority(it), 0);
    gnutls_credentials_set(it, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_server_name_set(it, GNUTLS_NAME_DNS, "localhost", 9);
    if (current.authority)
        gnutls_session_set_verify_cert(it, "localhost", 0);
    gnutls_transport_set_int(it, fd);
    do
        rc = gnutls_handshake(it);
    while (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED);
    sessions[fd] = it;
    return rc;
}

static ssize_t as_errno(ssize_t rc)
{
    if (rc >= 0)
        return rc;
    errno = rc == GNUTLS_E_AGAIN         ? EAGAIN
            : rc == GNUTLS_E_INTERRUPTED ? EINTR
                                         : ECONNRESET;
    return -1;
}

ssize_t secure_send(int fd, const char *text, size_t len)
{
    return as_errno(gnutls_record_send(sessions[fd], text, len));
}

ssize_t secure_recv(int fd, char *out, size_t size)
{
    return as_errno(gnutls_record_recv(sessions[fd], out, size));
}

bool secure_has_more(int fd)
{
    return gnutls_record_check_pending(sessions[fd]) > 0;
}

void secure_say_goodbye(int fd)
{
    ck_assert_int_eq(gnutls_bye(sessions[fd], GNUTLS_SHUT_WR), 0);
}
