/* SPDX-License-Identifier: MIT */
#include "certificates.h"

#include <errno.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "process.h"

enum { FILE_MAX = 1024 * 1024 };

struct reader {
    const struct certificate_files *files;
    char *error;
    size_t error_size;
};

/* "--option file: reason" */
static bool certificates_fail(const struct reader *reader,
                              const struct certificate_file *file,
                              const char *reason)
{
    (void)snprintf(reader->error, reader->error_size, "--%s \"%.200s\": %s",
                   file->option, file->path, reason);
    return false;
}

static bool certificates_read_file(const struct reader *reader,
                                   const struct certificate_file *named,
                                   gnutls_datum_t *out, mode_t *mode)
{
    size_t len;
    char *text = process_read_file(named->path, 0, FILE_MAX, &len, mode);
    if (text == NULL)
        return certificates_fail(reader, named, strerror(errno));
    out->data = (unsigned char *)text;
    out->size = (unsigned)len;
    return true;
}

/* ---- what they hold ----------------------------------------------------- */

/* In the order of their file. */
struct parsed {
    gnutls_x509_crt_t *list;
    unsigned count;
};

/* Of PEM. False: there is none, or no memory. */
static bool certificates_parse(struct parsed *it, const gnutls_datum_t *text)
{
    *it = (struct parsed){NULL, 0};
    return gnutls_x509_crt_list_import2(&it->list, &it->count, text,
                                        GNUTLS_X509_FMT_PEM, 0) >= 0 &&
           it->count > 0;
}

static void drop(struct parsed *it)
{
    for (unsigned i = 0; i < it->count; i++)
        gnutls_x509_crt_deinit(it->list[i]);
    gnutls_free(it->list);
}

static const char *key_reason(int rc)
{
    switch (rc) {
    case GNUTLS_E_CERTIFICATE_KEY_MISMATCH:
        return "does not belong to the first certificate of the chain; give "
               "the key of that certificate";
    case GNUTLS_E_DECRYPTION_FAILED:
        return "is encrypted; give it without a passphrase, and readable only "
               "by redlockd";
    case GNUTLS_E_MEMORY_ERROR:
        return "out of memory";
    default:
        return "contains no private key in PEM";
    }
}

static bool load_pair(const struct reader *reader, struct certificates *it)
{
    const struct certificate_files *files = reader->files;
    gnutls_datum_t chain = {NULL, 0}, key = {NULL, 0};
    struct parsed certificates;
    mode_t mode = 0;
    it->has_own = *files->chain.path != '\0';
    if (!it->has_own)
        return true;
    if (!certificates_read_file(reader, &files->chain, &chain, &mode))
        return false;
    bool is_done = certificates_parse(&certificates, &chain);
    if (is_done) { /* the first of the chain is the own one */
        it->since_s = gnutls_x509_crt_get_activation_time(certificates.list[0]);
        it->until_s = gnutls_x509_crt_get_expiration_time(certificates.list[0]);
        drop(&certificates);
    } else {
        (void)certificates_fail(reader, &files->chain,
                                "contains no certificate in PEM; give your own "
                                "certificate first, then those that signed it");
    }
    if (is_done && certificates_read_file(reader, &files->key, &key, &mode)) {
        int rc = gnutls_certificate_set_x509_key_mem2(
            it->credentials, &chain, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
        /* it must not stay in memory that others are given */
        gnutls_memset(key.data, 0, key.size);
        is_done =
            rc >= 0 || certificates_fail(reader, &files->key, key_reason(rc));
    } else {
        is_done = false;
    }
    it->is_key_open = (mode & S_IRWXO) != 0;
    free(key.data);
    free(chain.data);
    return is_done;
}

/* ---- who is revoked ----------------------------------------------------- */

static bool use_list(const struct reader *reader, struct certificates *it,
                     gnutls_x509_crl_t list, const struct parsed *authorities)
{
    /* a list that is outdated still tells who was revoked */
    const unsigned times = GNUTLS_CERT_REVOCATION_DATA_SUPERSEDED |
                           GNUTLS_CERT_REVOCATION_DATA_ISSUED_IN_FUTURE |
                           GNUTLS_CERT_INVALID; /* comes with each of them */
    const struct certificate_file *file = &reader->files->crl;
    unsigned status = 0;
    if (gnutls_x509_crl_verify(list, authorities->list, authorities->count, 0,
                               &status) < 0 ||
        (status & ~times) != 0) {
        char reason[80];
        (void)snprintf(reason, sizeof reason, "is not signed by a CA of --%s",
                       reader->files->ca.option);
        return certificates_fail(reader, file, reason);
    }
    if (gnutls_certificate_set_x509_crl(it->credentials, &list, 1) < 0)
        return certificates_fail(reader, file, "out of memory");
    int64_t until_s = gnutls_x509_crl_get_next_update(list);
    if (until_s > 0 && (it->crl_until_s == 0 || until_s < it->crl_until_s))
        it->crl_until_s = until_s;
    return true;
}

static bool load_crl(const struct reader *reader, struct certificates *it,
                     const gnutls_datum_t *ca)
{
    const struct certificate_file *file = &reader->files->crl;
    gnutls_datum_t text = {NULL, 0};
    struct parsed authorities;
    gnutls_x509_crl_t *lists = NULL;
    unsigned count = 0;
    mode_t mode;
    if (*file->path == '\0')
        return true;
    if (!certificates_read_file(reader, file, &text, &mode))
        return false;
    bool is_done = certificates_parse(&authorities, ca) ||
                   certificates_fail(reader, file, "out of memory");
    if (is_done && (gnutls_x509_crl_list_import2(&lists, &count, &text,
                                                 GNUTLS_X509_FMT_PEM, 0) < 0 ||
                    count == 0)) {
        lists = NULL;
        count = 0;
        is_done = certificates_fail(
            reader, file, "contains no list of revoked certificates in PEM");
    }
    for (unsigned i = 0; i < count; i++) {
        is_done = is_done && use_list(reader, it, lists[i], &authorities);
        gnutls_x509_crl_deinit(lists[i]);
    }
    gnutls_free(lists);
    drop(&authorities);
    free(text.data);
    return is_done;
}

static bool load_ca(const struct reader *reader, struct certificates *it)
{
    const struct certificate_file *file = &reader->files->ca;
    gnutls_datum_t text = {NULL, 0};
    mode_t mode;
    it->has_ca = *file->path != '\0';
    if (!it->has_ca && reader->files->has_system_ca) {
        int count = gnutls_certificate_set_x509_system_trust(it->credentials);
        return count > 0 ||
               certificates_fail(
                   reader, file,
                   count == GNUTLS_E_MEMORY_ERROR
                       ? "out of memory"
                       : "names no file, and the system has no CAs: install "
                         "ca-certificates, or name the PEM file of your CA");
    }
    if (!it->has_ca)
        return true;
    if (!certificates_read_file(reader, file, &text, &mode))
        return false;
    int count = gnutls_certificate_set_x509_trust_mem(it->credentials, &text,
                                                      GNUTLS_X509_FMT_PEM);
    bool is_done =
        count > 0
            ? load_crl(reader, it, &text)
            : certificates_fail(reader, file,
                                "contains no certificate in PEM; give the CAs "
                                "that signed the other side's certificates");
    free(text.data);
    return is_done;
}

struct certificates *certificates_load(const struct certificate_files *files,
                                       char *error, size_t error_size)
{
    const struct reader reader = {files, error, error_size};
    struct certificates *it = calloc(1, sizeof *it);
    (void)snprintf(error, error_size, "out of memory for certificates");
    if (it == NULL)
        return NULL;
    it->holders = 1;
    if (gnutls_certificate_allocate_credentials(&it->credentials) >= 0 &&
        load_pair(&reader, it) && load_ca(&reader, it))
        return it;
    certificates_drop(it);
    return NULL;
}

int64_t certificates_next_end_s(const gnutls_datum_t *chain, unsigned count,
                                int64_t after_s)
{
    int64_t next_s = INT64_MAX;
    for (unsigned i = 0; i < count; i++) {
        gnutls_x509_crt_t it = NULL;
        int64_t end_s = -1; /* it cannot be read, or never ends */
        if (gnutls_x509_crt_init(&it) < 0)
            continue;
        if (gnutls_x509_crt_import(it, &chain[i], GNUTLS_X509_FMT_DER) >= 0)
            end_s = gnutls_x509_crt_get_expiration_time(it);
        gnutls_x509_crt_deinit(it);
        if (end_s > after_s && end_s < next_s)
            next_s = end_s;
    }
    return next_s;
}

struct certificates *certificates_hold(struct certificates *it)
{
    it->holders++;
    return it;
}

void certificates_drop(struct certificates *it)
{
    if (it == NULL || --it->holders > 0)
        return;
    if (it->credentials != NULL)
        gnutls_certificate_free_credentials(it->credentials);
    free(it);
}
