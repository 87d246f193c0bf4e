/* SPDX-License-Identifier: MIT */
#include "tls.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <gnutls/x509-ext.h>
#include <gnutls/x509.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "../../server/base/address.h"
#include "../../server/base/certificates.h"
#include "../../server/base/clock.h"
#include "../../server/base/log.h"

#define ALTERNATIVE_NAMES_OID "2.5.29.17" /* RFC 5280 §4.2.1.6 */

enum {
    REASON_MAX = 400,
    HANDSHAKE_RECORD = 22,
    ALERT_RECORD = 21,
    DATA_RECORD = 23,
    HEADER_SIZE = 5,   /* of a record: kind, version, length */
    CLOCK_GRAIN_S = 1, /* by so much the library's may be behind ours */
    ALERT_SIZE = 19,   /* of an encrypted alert in TLS 1.3: 2 + 1 + 16 */
};

struct tls {
    struct certificate_files files;
    struct certificates *current;
    struct metrics *metrics;
};

enum tls_state { TLS_WAITING, TLS_SHAKING, TLS_LAST, TLS_OPEN };

struct tls_session {
    struct tls *tls;
    struct certificates *certificates;
    gnutls_session_t library;
    int fd;
    enum tls_state state;
    enum metrics_handshake result;
    bool is_aborted;
    bool is_local;   /* the client is on this machine */
    bool is_trusted; /* it has shown a certificate that we trust */
    int64_t until_s; /* the first end of a certificate of its chain */
    bool (*wait)(void *ctx);
    void *ctx;
    char peer_names[TLS_NAMES_MAX + 1];
};

/* ---- the listener ------------------------------------------------------- */

static int64_t now_s(void)
{
    return clock_wall_us() / US_PER_S;
}

static void tls_warn(const char *event, const char *path, const char *detail)
{
    log_write(LOG_WARN, event,
              (struct log_field[]){LOG_S("file", path), LOG_S("detail", detail),
                                   LOG_END});
}

/*
 * Takes what was loaded, and lets go of what was served before. What is unwise,
 * but works, is logged.
 */
static void tls_serve(struct tls *tls, struct certificates *loaded)
{
    certificates_drop(tls->current);
    tls->current = loaded;
    tls->metrics->tls_until_s = loaded->until_s;
    tls->metrics->crl_until_s = loaded->crl_until_s;
    if (loaded->is_key_open)
        tls_warn("tls_key_is_open", tls->files.key.path,
                 "others can read this private key; chmod 600 it");
    if (loaded->crl_until_s != 0 && now_s() >= loaded->crl_until_s)
        tls_warn(
            "tls_client_crl_outdated", tls->files.crl.path,
            "certificates revoked since then are accepted; get a newer list "
            "and reload (SIGHUP)");
    if (now_s() >= loaded->until_s)
        tls_warn("tls_certificate_expired", tls->files.chain.path,
                 "clients that verify it will not connect; renew it and reload "
                 "(SIGHUP)");
    else if (now_s() < loaded->since_s)
        tls_warn("tls_certificate_not_yet_valid", tls->files.chain.path,
                 "clients that verify it will not connect; check the clocks");
}

struct tls *tls_new(const struct config *config, struct metrics *metrics,
                    char *error, size_t error_size)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL) {
        (void)snprintf(error, error_size, "out of memory for TLS");
        return NULL;
    }
    tls->files = (struct certificate_files){
        .chain = {"tls-cert", config->tls_cert},
        .key = {"tls-key", config->tls_key},
        .ca = {"tls-client-ca", config->tls_client_ca},
        .crl = {"tls-client-crl", config->tls_client_crl},
    };
    tls->metrics = metrics;
    struct certificates *loaded =
        certificates_load(&tls->files, error, error_size);
    if (loaded == NULL) {
        free(tls);
        return NULL;
    }
    tls_serve(tls, loaded);
    return tls;
}

bool tls_reload(struct tls *tls)
{
    char error[REASON_MAX];
    struct certificates *loaded =
        certificates_load(&tls->files, error, sizeof error);
    if (loaded == NULL) {
        log_write(LOG_WARN, "tls_reload_failed",
                  (struct log_field[]){
                      LOG_S("reason", error),
                      LOG_S("detail", "the previous certificates stay in use; "
                                      "correct the files and reload (SIGHUP)"),
                      LOG_N("valid_for_s", tls->current->until_s - now_s()),
                      LOG_END});
        return false;
    }
    tls_serve(tls, loaded);
    log_write(LOG_INFO, "tls_reloaded",
              (struct log_field[]){
                  LOG_S("file", tls->files.chain.path),
                  LOG_N("valid_for_s", loaded->until_s - now_s()), LOG_END});
    return true;
}

void tls_free(struct tls *tls)
{
    if (tls == NULL)
        return;
    assert(tls->current->holders == 1);
    certificates_drop(tls->current);
    free(tls);
}

/* ---- the names in a certificate ----------------------------------------- */

struct name_list {
    char *text;
    size_t len, size; /* with its NUL */
    int count;
    bool is_full;
};

/* Nothing that a log line or a file of identities could take for another. */
static bool tls_is_plain(const unsigned char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isgraph(name[i]))
            return false;
    return len > 0;
}

static void add_name(struct name_list *list, const char *kind,
                     const gnutls_datum_t *name)
{
    size_t left = list->size - list->len;
    if (!tls_is_plain(name->data, name->size))
        return;
    int len = snprintf(list->text + list->len, left, "%s%s%.*s",
                       list->len > 0 ? "\n" : "", kind, (int)name->size,
                       (const char *)name->data);
    if (list->count++ == TLS_PEER_NAMES_MAX || len < 0 || (size_t)len >= left)
        list->is_full = true;
    if (!list->is_full)
        list->len += (size_t)len;
}

static const char *tls_kind_of(unsigned type)
{
    switch (type) {
    case GNUTLS_SAN_DNSNAME:
        return "dns:";
    case GNUTLS_SAN_URI:
        return "uri:";
    case GNUTLS_SAN_RFC822NAME:
        return "email:";
    default:
        return NULL;
    }
}

/* False: the extension cannot be read. */
static bool add_alternatives(struct name_list *list, const gnutls_datum_t *der)
{
    gnutls_subject_alt_names_t names = NULL;
    gnutls_datum_t name;
    unsigned type;
    bool is_read = gnutls_subject_alt_names_init(&names) >= 0 &&
                   gnutls_x509_ext_import_subject_alt_names(der, names, 0) >= 0;
    for (unsigned i = 0; is_read && gnutls_subject_alt_names_get(
                                        names, i, &type, &name, NULL) >= 0;
         i++)
        if (tls_kind_of(type) != NULL)
            add_name(list, tls_kind_of(type), &name);
    if (names != NULL)
        gnutls_subject_alt_names_deinit(names);
    return is_read;
}

/* False: one is too long. */
static bool add_common(struct name_list *list, gnutls_x509_crt_t certificate)
{
    unsigned char text[256]; /* RFC 5280 allows 64 */
    for (unsigned i = 0;; i++) {
        size_t len = sizeof text; /* with its NUL */
        int rc = gnutls_x509_crt_get_dn_by_oid(
            certificate, GNUTLS_OID_X520_COMMON_NAME, i, 0, text, &len);
        if (rc < 0)
            return rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
        add_name(list, "cn:", &(gnutls_datum_t){text, (unsigned)len});
    }
}

static bool read_names(struct name_list *list, gnutls_x509_crt_t certificate)
{
    gnutls_datum_t der = {NULL, 0};
    int rc = gnutls_x509_crt_get_extension_by_oid2(
        certificate, ALTERNATIVE_NAMES_OID, 0, &der, NULL);
    if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
        return add_common(list, certificate);
    bool is_read = rc >= 0 && add_alternatives(list, &der);
    gnutls_free(der.data);
    return is_read;
}

void tls_read_names(struct span der, char *names, size_t size)
{
    const gnutls_datum_t datum = {(unsigned char *)der.ptr, (unsigned)der.len};
    gnutls_x509_crt_t certificate = NULL;
    struct name_list list = {.text = names, .size = size};
    bool is_read =
        gnutls_x509_crt_init(&certificate) >= 0 &&
        gnutls_x509_crt_import(certificate, &datum, GNUTLS_X509_FMT_DER) >= 0 &&
        read_names(&list, certificate) && !list.is_full;
    names[is_read ? list.len : 0] = '\0';
    if (certificate != NULL)
        gnutls_x509_crt_deinit(certificate);
}

/* ---- who the client is -------------------------------------------------- */

static void tls_log_refusal(const char *reason)
{
    const struct log_field fields[] = {LOG_S("reason", reason), LOG_END};
    log_write(LOG_DEBUG, "tls_refused", fields);
}

/* Whether the certificate was made for clients, by whom we trust. */
static bool tls_is_trusted(gnutls_session_t library)
{
    gnutls_typed_vdata_st purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT,
    };
    unsigned status = 0;
    int rc = gnutls_certificate_verify_peers(library, &purpose, 1, &status);
    if (rc >= 0 && status == 0)
        return true;
    if (rc < 0) {
        tls_log_refusal(gnutls_strerror(rc));
    } else if (log_is_enabled(LOG_DEBUG)) {
        gnutls_datum_t text = {NULL, 0};
        rc = gnutls_certificate_verification_status_print(
            status, GNUTLS_CRT_X509, &text, 0);
        tls_log_refusal(rc >= 0 ? (const char *)text.data : "out of memory");
        gnutls_free(text.data);
    }
    return false;
}

/* The library closes without a word: so the client is told here. */
static int tls_refuse(struct tls_session *it, gnutls_alert_description_t alert,
                      int reason)
{
    it->result = HANDSHAKE_BAD_CERTIFICATE;
    (void)gnutls_alert_send(it->library, GNUTLS_AL_FATAL, alert);
    return reason;
}

/* gnutls_certificate_verify_function: 0, or the handshake ends. */
static int verify_client(gnutls_session_t library)
{
    struct tls_session *it = gnutls_transport_get_ptr(library);
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(library, &count);
    if (chain == NULL || count == 0) {
        if (it->is_local)
            return 0;
        tls_log_refusal("the client sent no certificate");
        return tls_refuse(it, GNUTLS_A_CERTIFICATE_REQUIRED,
                          GNUTLS_E_CERTIFICATE_REQUIRED);
    }
    if (!tls_is_trusted(library))
        return tls_refuse(it, GNUTLS_A_BAD_CERTIFICATE,
                          GNUTLS_E_CERTIFICATE_ERROR);
    it->is_trusted = true;
    it->until_s = certificates_next_end_s(chain, count, now_s());
    tls_read_names((struct span){(const char *)chain[0].data, chain[0].size},
                   it->peer_names, sizeof it->peer_names);
    return 0;
}

bool tls_session_may_ask(struct tls_session *it, const char *target)
{
    struct certificates *current = it->tls->current;
    if (it->certificates != current) { /* reloaded since it was verified */
        bool is_set =
            gnutls_credentials_set(it->library, GNUTLS_CRD_CERTIFICATE,
                                   current->credentials) >= 0;
        it->is_trusted =
            it->is_trusted && is_set && tls_is_trusted(it->library);
        certificates_drop(it->certificates);
        it->certificates = certificates_hold(current);
    }
    while (it->is_trusted && now_s() - CLOCK_GRAIN_S > it->until_s) {
        /* a certificate of the chain has ended: its own, or one that it may do
         * without */
        unsigned count = 0;
        const gnutls_datum_t *chain =
            gnutls_certificate_get_peers(it->library, &count);
        it->is_trusted = tls_is_trusted(it->library);
        it->until_s = certificates_next_end_s(chain, count, it->until_s);
        if (!it->is_trusted)
            tls_log_refusal("the client certificate has expired");
    }
    if (!it->certificates->has_ca || it->is_trusted)
        return true;
    bool is_probe =
        strcmp(target, "/livez") == 0 || strcmp(target, "/readyz") == 0;
    if (it->is_local && is_probe)
        return true;
    tls_log_refusal("without a client certificate, only health checks from "
                    "this machine are served");
    return false;
}

const char *tls_session_peer_names(const struct tls_session *it)
{
    return it->peer_names;
}

/* ---- the handshake ------------------------------------------------------ */

/*
 * A server without tickets often has nothing to say to what it reads in a
 * handshake, and its kernel would acknowledge that 40 ms later. Until then the
 * kernel of a client that does not set TCP_NODELAY keeps back what follows.
 */
static void acknowledge(const struct tls_session *it)
{
    const int on = 1;
    /* that this may fail costs nothing but those 40 ms */
    (void)setsockopt(it->fd, IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

/* gnutls_handshake_hook_func */
static int on_finished(gnutls_session_t library, unsigned type, unsigned when,
                       unsigned is_incoming, const gnutls_datum_t *message)
{
    struct tls_session *it = gnutls_transport_get_ptr(library);
    (void)type;
    (void)when;
    (void)message;
    if (is_incoming && it->state == TLS_SHAKING) {
        it->state = TLS_LAST;
        acknowledge(it);
    }
    return 0;
}

static ssize_t pause_handshake(struct tls_session *it)
{
    if (it->result != HANDSHAKE_CLOSED)
        acknowledge(it);
    it->state = TLS_WAITING;
    errno = it->wait(it->ctx) ? EAGAIN : ECONNABORTED;
    return -1;
}

/*
 * gnutls_pull_func: reads as recv does. libmicrohttpd (0.9.75 was looked at)
 * reads again as soon as GnuTLS has called the handshake done, and never after
 * one that failed: so a read behind the last flight tells that it was good.
 */
static ssize_t tls_pull(gnutls_transport_ptr_t ptr, void *data, size_t size)
{
    struct tls_session *it = ptr;
    if (it->is_aborted) {
        errno = ECONNABORTED;
        return -1;
    }
    if (it->state == TLS_WAITING)
        return pause_handshake(it);
    if (it->state == TLS_LAST) {
        it->state = TLS_OPEN;
        it->result = HANDSHAKE_DONE;
        it->tls->metrics->tls_handshakes[HANDSHAKE_DONE]++;
    }
    ssize_t got = recv(it->fd, data, size, 0);
    if (it->state == TLS_OPEN)
        return got;
    /* what plain HTTP, or anything else, begins with is no handshake */
    if (got > 0 && it->result == HANDSHAKE_CLOSED)
        it->result = *(const unsigned char *)data == HANDSHAKE_RECORD
                         ? HANDSHAKE_FAILED
                         : HANDSHAKE_NOT_TLS;
    return got < 0 && errno == EAGAIN ? pause_handshake(it) : got;
}

/* Whether the client is on this machine. */
static bool tls_is_local(int fd)
{
    char peer[PEER_MAX];
    struct span address;
    peer_describe(peer, fd);
    return networks_read_address(span_of(peer), &address) &&
           networks_have("127.0.0.0/8,::1", address);
}

struct tls_session *tls_session_new(struct tls *tls,
                                    struct gnutls_session_int *library, int fd,
                                    bool (*wait)(void *ctx), void *ctx)
{
    struct tls_session *it = calloc(1, sizeof *it);
    if (it == NULL)
        return NULL;
    *it = (struct tls_session){.tls = tls,
                               .library = library,
                               .fd = fd,
                               .result = HANDSHAKE_CLOSED,
                               .wait = wait,
                               .ctx = ctx};
    if (gnutls_credentials_set(library, GNUTLS_CRD_CERTIFICATE,
                               tls->current->credentials) < 0) {
        free(it);
        return NULL;
    }
    it->certificates = certificates_hold(tls->current);
    /* it writes by itself, to what it takes for a descriptor */
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the library wants it so */
    gnutls_transport_ptr_t descriptor = (void *)(intptr_t)fd;
    gnutls_transport_set_ptr2(library, it, descriptor);
    gnutls_transport_set_pull_function(library, tls_pull);
    gnutls_handshake_set_hook_function(library, GNUTLS_HANDSHAKE_FINISHED,
                                       GNUTLS_HOOK_POST, on_finished);
    if (tls->current->has_ca) {
        it->is_local = tls_is_local(fd);
        gnutls_certificate_server_set_request(library, GNUTLS_CERT_REQUEST);
        gnutls_session_set_verify_function(library, verify_client);
    }
    return it;
}

void tls_session_go_on(struct tls_session *it)
{
    if (it->state == TLS_WAITING)
        it->state = TLS_SHAKING;
}

void tls_session_abort(struct tls_session *it)
{
    it->is_aborted = true;
}

/* The library says goodbye to its session first. */
void tls_session_free(struct tls_session *it)
{
    static const char *const reasons[HANDSHAKE_RESULTS] = {
        [HANDSHAKE_CLOSED] = "closed before the handshake began",
        [HANDSHAKE_NOT_TLS] = "the client does not speak TLS",
        [HANDSHAKE_FAILED] = "nothing in common, or the client disconnected",
    };
    if (it == NULL)
        return;
    if (it->result != HANDSHAKE_DONE)
        it->tls->metrics->tls_handshakes[it->result]++;
    if (reasons[it->result] != NULL)
        tls_log_refusal(reasons[it->result]);
    certificates_drop(it->certificates);
    free(it);
}

/* ---- the end ------------------------------------------------------------ */

bool tls_session_has_ended(const struct tls_session *it)
{
    unsigned char header[HEADER_SIZE];
    ssize_t got = recv(it->fd, header, sizeof header, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0)
        return true; /* FIN */
    if (got < (ssize_t)sizeof header)
        return false;
    return header[0] == ALERT_RECORD ||
           (header[0] == DATA_RECORD && header[3] == 0 &&
            header[4] == ALERT_SIZE &&
            gnutls_protocol_get_version(it->library) == GNUTLS_TLS1_3);
}
