/* SPDX-License-Identifier: MIT */
#include "certs.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HOUR_S = 3600, VERSION = 3 };

struct certs {
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
    gnutls_datum_t pem, key_pem;
};

/* code: of GnuTLS. */
static void must(int code)
{
    if (code >= 0)
        return;
    fprintf(stderr, "certs: %s\n", gnutls_strerror(code));
    abort();
}

static void set_names(gnutls_x509_crt_t crt, const struct certs_wish *wish)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    const char *common = wish->name ? wish->name : "test";
    must(gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0,
                                       common, (unsigned)strlen(common)));
    if (wish->name != NULL)
        must(gnutls_x509_crt_set_subject_alt_name(
            crt, GNUTLS_SAN_DNSNAME, wish->name, (unsigned)strlen(wish->name),
            GNUTLS_FSAN_APPEND));
    if (wish->address == NULL)
        return;
    bool is_six = strchr(wish->address, ':') != NULL;
    if (inet_pton(is_six ? AF_INET6 : AF_INET, wish->address, bytes) != 1)
        abort();
    must(gnutls_x509_crt_set_subject_alt_name(
        crt, GNUTLS_SAN_IPADDRESS, bytes, is_six ? 16 : 4, GNUTLS_FSAN_APPEND));
}

static void set_times(gnutls_x509_crt_t crt, const struct certs_wish *wish)
{
    time_t now = time(NULL);
    must(gnutls_x509_crt_set_activation_time(
        crt, now + (wish->begins_s ? wish->begins_s : -HOUR_S)));
    must(gnutls_x509_crt_set_expiration_time(
        crt, now + (wish->ends_s ? wish->ends_s : HOUR_S)));
}

static void set_uses(gnutls_x509_crt_t crt, const struct certs_wish *wish)
{
    must(gnutls_x509_crt_set_basic_constraints(crt, wish->is_ca, -1));
    must(gnutls_x509_crt_set_key_usage(
        crt,
        wish->is_ca ? GNUTLS_KEY_KEY_CERT_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE));
    if (wish->purpose != NULL)
        must(gnutls_x509_crt_set_key_purpose_oid(crt, wish->purpose, 0));
}

struct certs *certs_new(const struct certs_wish *wish)
{
    struct certs *certs = calloc(1, sizeof *certs);
    unsigned char serial[8];
    if (certs == NULL)
        abort();
    const struct certs *issuer = wish->issuer ? wish->issuer : certs;
    must(gnutls_x509_privkey_init(&certs->key));
    must(gnutls_x509_privkey_generate(
        certs->key, GNUTLS_PK_ECDSA,
        (unsigned)GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
    must(gnutls_x509_crt_init(&certs->crt));
    must(gnutls_x509_crt_set_version(certs->crt, VERSION));
    must(gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial));
    serial[0] = 1; /* a positive number */
    must(gnutls_x509_crt_set_serial(certs->crt, serial, sizeof serial));
    must(gnutls_x509_crt_set_key(certs->crt, certs->key));
    set_names(certs->crt, wish);
    set_times(certs->crt, wish);
    set_uses(certs->crt, wish);
    must(gnutls_x509_crt_sign2(certs->crt, issuer->crt, issuer->key,
                               GNUTLS_DIG_SHA256, 0));
    must(gnutls_x509_crt_export2(certs->crt, GNUTLS_X509_FMT_PEM, &certs->pem));
    must(gnutls_x509_privkey_export2(certs->key, GNUTLS_X509_FMT_PEM,
                                     &certs->key_pem));
    return certs;
}

void certs_free(struct certs *certs)
{
    if (certs == NULL)
        return;
    gnutls_x509_crt_deinit(certs->crt);
    gnutls_x509_privkey_deinit(certs->key);
    gnutls_free(certs->pem.data);
    gnutls_free(certs->key_pem.data);
    free(certs);
}

const char *certs_pem(const struct certs *certs)
{
    return (const char *)certs->pem.data;
}

const char *certs_key_pem(const struct certs *certs)
{
    return (const char *)certs->key_pem.data;
}

/* Whole: who reads it meanwhile gets the old or the new one. */
static void write_file(const char *path, const gnutls_datum_t *bytes)
{
    char part[4096];
    snprintf(part, sizeof part, "%s.new", path);
    FILE *file = fopen(part, "w");
    if (file == NULL || fwrite(bytes->data, bytes->size, 1, file) != 1 ||
        fclose(file) != 0 || rename(part, path) != 0) {
        perror(path);
        abort();
    }
}

void certs_write(const struct certs *certs, const char *path)
{
    write_file(path, &certs->pem);
}

void certs_write_key(const struct certs *certs, const char *path)
{
    write_file(path, &certs->key_pem);
}

struct certs *certs_new_ca(void)
{
    const struct certs_wish wish = {.name = "ca.test", .is_ca = true};
    return certs_new(&wish);
}

struct certs *certs_new_node(const struct certs *ca)
{
    const struct certs_wish wish = {
        .name = "localhost", .address = "127.0.0.1", .issuer = ca};
    return certs_new(&wish);
}
