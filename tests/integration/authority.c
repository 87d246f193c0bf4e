/* SPDX-License-Identifier: MIT */
#include "authority.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { DAY_S = 24 * 60 * 60, RSA_BITS = 2048 };

#define MUST(call) ck_assert_int_ge((call), 0)

static void write_file(const char *path, const gnutls_datum_t *text)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text->data, 1, text->size, file), text->size);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(path, 0600), 0);
}

static void append_file(const char *path, const char *other)
{
    char *text = harness_read_file(other);
    FILE *file = fopen(path, "a");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    free(text);
}

static void write_certificate(const char *path, gnutls_x509_crt_t certificate)
{
    gnutls_datum_t text;
    MUST(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &text));
    write_file(path, &text);
    gnutls_free(text.data);
}

static void write_key(const char *path, gnutls_x509_privkey_t key)
{
    gnutls_datum_t text;
    MUST(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text));
    write_file(path, &text);
    gnutls_free(text.data);
}

static gnutls_x509_privkey_t make_key(bool is_rsa)
{
    gnutls_x509_privkey_t key;
    MUST(gnutls_x509_privkey_init(&key));
    if (is_rsa)
        MUST(gnutls_x509_privkey_generate(key, GNUTLS_PK_RSA, RSA_BITS, 0));
    else
        MUST(gnutls_x509_privkey_generate(
            key, GNUTLS_PK_ECDSA,
            GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    return key;
}

/* With what every certificate needs. */
static gnutls_x509_crt_t make_certificate(gnutls_x509_privkey_t key,
                                          const struct subject *subject)
{
    gnutls_x509_crt_t it;
    unsigned char serial[8];
    bool has_times = subject->since_s != 0 || subject->until_s != 0;
    time_t now = time(NULL);
    MUST(gnutls_x509_crt_init(&it));
    MUST(gnutls_x509_crt_set_version(it, 3));
    MUST(gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial));
    serial[0] = 1;
    MUST(gnutls_x509_crt_set_serial(it, serial, sizeof serial));
    MUST(gnutls_x509_crt_set_activation_time(
        it, now + (has_times ? subject->since_s : -DAY_S)));
    MUST(gnutls_x509_crt_set_expiration_time(
        it, now + (has_times ? subject->until_s : DAY_S)));
    MUST(gnutls_x509_crt_set_key(it, key));
    if (subject->common)
        MUST(gnutls_x509_crt_set_dn_by_oid(it, GNUTLS_OID_X520_COMMON_NAME, 0,
                                           subject->common,
                                           (unsigned)strlen(subject->common)));
    return it;
}

static void add_name(gnutls_x509_crt_t it, gnutls_x509_subject_alt_name_t kind,
                     const void *name, size_t len)
{
    MUST(gnutls_x509_crt_set_subject_alt_name(it, kind, name, (unsigned)len,
                                              GNUTLS_FSAN_APPEND));
}

static void add_names(gnutls_x509_crt_t it, const struct subject *subject)
{
    const struct in_addr loopback = {htonl(INADDR_LOOPBACK)};
    if (!subject->is_client) {
        add_name(it, GNUTLS_SAN_DNSNAME, "localhost", 9);
        add_name(it, GNUTLS_SAN_IPADDRESS, &loopback, sizeof loopback);
    }
    if (subject->email)
        add_name(it, GNUTLS_SAN_RFC822NAME, subject->email,
                 strlen(subject->email));
    if (subject->uri)
        add_name(it, GNUTLS_SAN_URI, subject->uri, strlen(subject->uri));
    if (subject->dns)
        add_name(it, GNUTLS_SAN_DNSNAME, subject->dns, strlen(subject->dns));
}

static void begin_authority(struct authority *authority, const char *name)
{
    const struct subject subject = {.common = name};
    char dir[PATH_SIZE];
    harness_make_dir(dir);
    snprintf(authority->path, PATH_SIZE, "%.200s/ca.pem", dir);
    authority->key = make_key(false);
    authority->certificate = make_certificate(authority->key, &subject);
    MUST(gnutls_x509_crt_set_basic_constraints(authority->certificate, 1, -1));
    MUST(gnutls_x509_crt_set_key_usage(authority->certificate,
                                       GNUTLS_KEY_KEY_CERT_SIGN |
                                           GNUTLS_KEY_CRL_SIGN));
}

static void end_authority(const struct authority *authority,
                          const struct authority *signer)
{
    MUST(gnutls_x509_crt_sign2(authority->certificate, signer->certificate,
                               signer->key, GNUTLS_DIG_SHA256, 0));
    write_certificate(authority->path, authority->certificate);
}

void authority_make(struct authority *authority, const char *name)
{
    *authority = (struct authority){.is_delegated = false};
    begin_authority(authority, name);
    end_authority(authority, authority);
}

static gnutls_datum_t datum_of(const char *name)
{
    return (gnutls_datum_t){(unsigned char *)name, (unsigned)strlen(name)};
}

static void constrain(gnutls_x509_name_constraints_t all,
                      const struct subject *permitted,
                      const struct subject *excluded)
{
    gnutls_datum_t text;
    if (permitted->dns != NULL) {
        text = datum_of(permitted->dns);
        MUST(gnutls_x509_name_constraints_add_permitted(all, GNUTLS_SAN_DNSNAME,
                                                        &text));
    }
    if (permitted->email != NULL) {
        text = datum_of(permitted->email);
        MUST(gnutls_x509_name_constraints_add_permitted(
            all, GNUTLS_SAN_RFC822NAME, &text));
    }
    if (excluded->uri != NULL) {
        text = datum_of(excluded->uri);
        MUST(gnutls_x509_name_constraints_add_excluded(all, GNUTLS_SAN_URI,
                                                       &text));
    }
}

void authority_delegate(struct authority *authority,
                        const struct authority *parent,
                        const struct subject *permitted,
                        const struct subject *excluded)
{
    gnutls_x509_name_constraints_t all;
    *authority = (struct authority){.is_delegated = true};
    begin_authority(authority, "delegated");
    MUST(gnutls_x509_name_constraints_init(&all));
    constrain(all, permitted, excluded);
    MUST(gnutls_x509_crt_set_name_constraints(authority->certificate, all, 1));
    gnutls_x509_name_constraints_deinit(all);
    end_authority(authority, parent);
}

void authority_free(struct authority *authority)
{
    gnutls_x509_crt_deinit(authority->certificate);
    gnutls_x509_privkey_deinit(authority->key);
}

struct pair authority_issue(const struct authority *authority,
                            const struct subject *subject)
{
    struct pair pair;
    char dir[PATH_SIZE];
    gnutls_x509_privkey_t key = make_key(subject->is_rsa);
    gnutls_x509_crt_t it = make_certificate(key, subject);
    add_names(it, subject);
    MUST(gnutls_x509_crt_set_key_purpose_oid(it,
                                             subject->is_client
                                                 ? GNUTLS_KP_TLS_WWW_CLIENT
                                                 : GNUTLS_KP_TLS_WWW_SERVER,
                                             0));
    MUST(gnutls_x509_crt_sign2(it, authority->certificate, authority->key,
                               GNUTLS_DIG_SHA256, 0));
    harness_make_dir(dir);
    snprintf(pair.certificate, PATH_SIZE, "%.200s/cert.pem", dir);
    snprintf(pair.key, PATH_SIZE, "%.200s/key.pem", dir);
    write_certificate(pair.certificate, it);
    if (authority->is_delegated)
        append_file(pair.certificate, authority->path);
    write_key(pair.key, key);
    gnutls_x509_crt_deinit(it);
    gnutls_x509_privkey_deinit(key);
    return pair;
}

static gnutls_x509_crt_t read_certificate(const char *path)
{
    gnutls_x509_crt_t it;
    gnutls_datum_t text;
    MUST(gnutls_load_file(path, &text));
    MUST(gnutls_x509_crt_init(&it));
    MUST(gnutls_x509_crt_import(it, &text, GNUTLS_X509_FMT_PEM));
    gnutls_free(text.data);
    return it;
}

void authority_revoke(const struct authority *authority, const char *path,
                      const struct pair *const revoked[], int count,
                      int until_s)
{
    static unsigned char number;
    gnutls_x509_crl_t list;
    gnutls_datum_t text;
    time_t now = time(NULL);
    number++;
    MUST(gnutls_x509_crl_init(&list));
    MUST(gnutls_x509_crl_set_version(list, 2));
    MUST(gnutls_x509_crl_set_number(list, &number, sizeof number));
    MUST(gnutls_x509_crl_set_this_update(list, now - DAY_S));
    MUST(gnutls_x509_crl_set_next_update(
        list, now + (until_s != 0 ? until_s : DAY_S)));
    for (int i = 0; i < count; i++) {
        gnutls_x509_crt_t it = read_certificate(revoked[i]->certificate);
        MUST(gnutls_x509_crl_set_crt(list, it, now - 1));
        gnutls_x509_crt_deinit(it);
    }
    MUST(gnutls_x509_crl_sign2(list, authority->certificate, authority->key,
                               GNUTLS_DIG_SHA256, 0));
    MUST(gnutls_x509_crl_export2(list, GNUTLS_X509_FMT_PEM, &text));
    write_file(path, &text);
    gnutls_free(text.data);
    gnutls_x509_crl_deinit(list);
}

void authority_replace(const struct pair *old, const struct pair *pair)
{
    ck_assert_int_eq(rename(pair->certificate, old->certificate), 0);
    ck_assert_int_eq(rename(pair->key, old->key), 0);
}
