#include "trust.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>

enum { OWN_CHAIN_MAX = 16 };

/* The distribution's ciphers, but no protocol before TLS 1.2. */
static const char protocols[] = "-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

struct trust {
    const struct config *config;
    struct credentials *now;
};

/* Where errors go, and what is being read. */
struct reader {
    const struct config *config;
    struct credentials *credentials;
    char *error;
};

/* ---- errors -------------------------------------------------------------- */

/* Always returns false. */
static bool report_file(const struct reader *reader, const char *option,
                        const char *path, const char *reason)
{
    snprintf(reader->error, TRUST_TEXT_MAX, "--%s: %.*s: %.300s", option,
             CONFIG_PATH_MAX, path, reason);
    return false;
}

static bool report_no_memory(const struct reader *reader)
{
    snprintf(reader->error, TRUST_TEXT_MAX, "no memory for TLS to the nodes");
    return false;
}

/* code: of GnuTLS. */
static bool report_code(const struct reader *reader, const char *option,
                        const char *path, int code)
{
    switch (code) {
    case GNUTLS_E_MEMORY_ERROR:
        return report_no_memory(reader);
    case GNUTLS_E_NO_CERTIFICATE_FOUND:
    case GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE:
    case GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR:
    case GNUTLS_E_BASE64_DECODING_ERROR:
        return report_file(reader, option, path,
                           "it has no certificate or key in PEM form "
                           "(-----BEGIN …-----)");
    case GNUTLS_E_DECRYPTION_FAILED:
        return report_file(reader, option, path,
                           "the key has a passphrase; give one without");
    case GNUTLS_E_CERTIFICATE_KEY_MISMATCH:
        return report_file(reader, option, path,
                           "the key does not belong to the certificate in "
                           "--node-cert");
    default:
        return report_file(reader, option, path, gnutls_strerror(code));
    }
}

/* ---- files --------------------------------------------------------------- */

/* False: error says why; otherwise the caller frees bytes by forget. */
static bool load_file(const struct reader *reader, const char *option,
                      const char *path, gnutls_datum_t *bytes)
{
    errno = 0;
    int code = gnutls_load_file(path, bytes);
    if (code >= 0)
        return true;
    if (errno == ENOMEM || code != GNUTLS_E_FILE_ERROR)
        return report_no_memory(reader);
    return report_file(reader, option, path,
                       errno != 0 ? strerror(errno) : "cannot be read");
}

/* It may be a key. */
static void forget(gnutls_datum_t *bytes)
{
    gnutls_memset(bytes->data, 0, bytes->size);
    gnutls_free(bytes->data);
}

static bool read_system(const struct reader *reader)
{
    int count = gnutls_certificate_set_x509_system_trust(
        reader->credentials->certificates);
    if (count > 0)
        return true;
    if (count == GNUTLS_E_MEMORY_ERROR)
        return report_no_memory(reader);
    snprintf(reader->error, TRUST_TEXT_MAX,
             "--node-ca is not given, and the system has no CAs: install "
             "ca-certificates, or name the PEM file of your CA");
    return false;
}

static bool read_ca(const struct reader *reader)
{
    static const char option[] = "node-ca";
    const char *path = reader->config->node_ca;
    gnutls_datum_t bytes;
    if (*path == '\0')
        return read_system(reader);
    if (!load_file(reader, option, path, &bytes))
        return false;
    int count = gnutls_certificate_set_x509_trust_mem(
        reader->credentials->certificates, &bytes, GNUTLS_X509_FMT_PEM);
    forget(&bytes);
    if (count == 0)
        count = GNUTLS_E_NO_CERTIFICATE_FOUND;
    return count > 0 || report_code(reader, option, path, count);
}

/* ---- our certificate ----------------------------------------------------- */

struct chain {
    unsigned count;
    gnutls_x509_crt_t list[OWN_CHAIN_MAX];
};

/* The caller frees the chain. */
static bool read_chain(const struct reader *reader, struct chain *chain)
{
    static const char option[] = "node-cert";
    const char *path = reader->config->node_cert;
    gnutls_datum_t bytes;
    if (!load_file(reader, option, path, &bytes))
        return false;
    chain->count = OWN_CHAIN_MAX;
    int count = gnutls_x509_crt_list_import(
        chain->list, &chain->count, &bytes, GNUTLS_X509_FMT_PEM,
        GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED);
    forget(&bytes);
    if (count > 0)
        return true;
    chain->count = 0;
    if (count == 0)
        count = GNUTLS_E_NO_CERTIFICATE_FOUND;
    return report_code(reader, option, path, count);
}

/* The caller frees the key, if true. */
static bool read_key(const struct reader *reader, gnutls_x509_privkey_t *key)
{
    static const char option[] = "node-key";
    const char *path = reader->config->node_key;
    gnutls_datum_t bytes;
    if (!load_file(reader, option, path, &bytes))
        return false;
    int code = gnutls_x509_privkey_init(key);
    if (code >= 0) {
        code = gnutls_x509_privkey_import2(*key, &bytes, GNUTLS_X509_FMT_PEM,
                                           NULL, 0);
        if (code < 0)
            gnutls_x509_privkey_deinit(*key);
    }
    forget(&bytes);
    return code >= 0 || report_code(reader, option, path, code);
}

static bool read_own(const struct reader *reader)
{
    struct chain chain = {0};
    struct credentials *credentials = reader->credentials;
    if (*reader->config->node_cert == '\0')
        return true;
    if (!read_chain(reader, &chain))
        return false;
    gnutls_x509_privkey_t key;
    bool is_set = read_key(reader, &key);
    if (is_set) {
        int code = gnutls_certificate_set_x509_key(
            credentials->certificates, chain.list, (int)chain.count, key);
        gnutls_x509_privkey_deinit(key); /* it was copied, as is the chain */
        is_set = code >= 0 || report_code(reader, "node-key",
                                          reader->config->node_key, code);
    }
    credentials->has_own = is_set;
    credentials->begins_s = gnutls_x509_crt_get_activation_time(chain.list[0]);
    credentials->ends_s = gnutls_x509_crt_get_expiration_time(chain.list[0]);
    for (unsigned i = 0; i < chain.count; i++)
        gnutls_x509_crt_deinit(chain.list[i]);
    return is_set;
}

/* ---- credentials --------------------------------------------------------- */

/* NULL: error says why. */
static struct credentials *read_credentials(const struct config *config,
                                            char *error)
{
    struct reader reader = {
        .config = config,
        .credentials = calloc(1, sizeof(struct credentials)),
        .error = error,
    };
    if (reader.credentials == NULL) {
        (void)report_no_memory(&reader);
        return NULL;
    }
    struct credentials *made = reader.credentials;
    made->holders = 1;
    bool is_filled =
        gnutls_certificate_allocate_credentials(&made->certificates) >= 0 &&
        gnutls_priority_init2(&made->priority, protocols, NULL,
                              GNUTLS_PRIORITY_INIT_DEF_APPEND) >= 0;
    if (!is_filled)
        (void)report_no_memory(&reader);
    else if (read_ca(&reader) && read_own(&reader))
        return made;
    credentials_let_go(made);
    return NULL;
}

struct credentials *credentials_hold(struct trust *trust)
{
    trust->now->holders++;
    return trust->now;
}

void credentials_let_go(struct credentials *credentials)
{
    if (credentials == NULL)
        return;
    assert(credentials->holders > 0);
    if (--credentials->holders > 0)
        return;
    if (credentials->certificates != NULL)
        gnutls_certificate_free_credentials(credentials->certificates);
    if (credentials->priority != NULL)
        gnutls_priority_deinit(credentials->priority);
    free(credentials);
}

/* ---- trust --------------------------------------------------------------- */

bool trust_make(struct trust **trust, const struct config *config,
                char error[TRUST_TEXT_MAX])
{
    *trust = NULL;
    if (!config_has_tls_nodes(config))
        return true;
    struct trust *made = calloc(1, sizeof *made);
    if (made == NULL)
        return report_no_memory(&(struct reader){.error = error});
    made->config = config;
    made->now = read_credentials(config, error);
    if (made->now == NULL) {
        free(made);
        return false;
    }
    *trust = made;
    return true;
}

void trust_free(struct trust *trust)
{
    if (trust == NULL)
        return;
    credentials_let_go(trust->now);
    free(trust);
}

bool trust_reload(struct trust *trust, char error[TRUST_TEXT_MAX])
{
    struct credentials *made = read_credentials(trust->config, error);
    if (made == NULL)
        return false;
    credentials_let_go(trust->now);
    trust->now = made;
    return true;
}

const char *trust_warning(const struct trust *trust, int64_t now_s)
{
    if (!trust->now->has_own)
        return NULL;
    if (now_s >= trust->now->ends_s)
        return "--node-cert has expired: nodes that ask for it will refuse it";
    if (now_s < trust->now->begins_s)
        return "--node-cert is not yet valid: nodes that ask for it will "
               "refuse it";
    return NULL;
}
