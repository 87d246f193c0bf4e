/*
 * The name in a client's certificate.
 */
#include <gnutls/x509.h>
#include <string.h>
#include <time.h>

#include "../../../api/http/peername.h"
#include "../../lib/suite/suite.h"

enum { SIZE = 32 };

/* Alternative names, in this order; and the common name. NULL: none. */
struct names {
    const char *email, *uri, *dns, *second_dns, *common;
    const char *want;
};

static void add(gnutls_x509_crt_t it, gnutls_x509_subject_alt_name_t kind,
                const char *name)
{
    if (name != NULL)
        ck_assert_int_ge(
            gnutls_x509_crt_set_subject_alt_name(
                it, kind, name, (unsigned)strlen(name), GNUTLS_FSAN_APPEND),
            0);
}

static void fill(gnutls_x509_crt_t it, const struct names *names)
{
    add(it, GNUTLS_SAN_RFC822NAME, names->email);
    add(it, GNUTLS_SAN_URI, names->uri);
    add(it, GNUTLS_SAN_DNSNAME, names->dns);
    add(it, GNUTLS_SAN_DNSNAME, names->second_dns);
    if (names->common != NULL)
        ck_assert_int_ge(gnutls_x509_crt_set_dn_by_oid(
                             it, GNUTLS_OID_X520_COMMON_NAME, 0, names->common,
                             (unsigned)strlen(names->common)),
                         0);
}

static void make(const struct names *names, gnutls_datum_t *der)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t it;
    ck_assert_int_ge(gnutls_x509_privkey_init(&key), 0);
    ck_assert_int_ge(gnutls_x509_privkey_generate(
                         key, GNUTLS_PK_ECDSA,
                         GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
                     0);
    ck_assert_int_ge(gnutls_x509_crt_init(&it), 0);
    ck_assert_int_ge(gnutls_x509_crt_set_version(it, 3), 0);
    ck_assert_int_ge(gnutls_x509_crt_set_serial(it, "\1", 1), 0);
    ck_assert_int_ge(gnutls_x509_crt_set_activation_time(it, time(NULL)), 0);
    ck_assert_int_ge(gnutls_x509_crt_set_expiration_time(it, time(NULL) + 60),
                     0);
    ck_assert_int_ge(gnutls_x509_crt_set_key(it, key), 0);
    fill(it, names);
    ck_assert_int_ge(gnutls_x509_crt_sign2(it, it, key, GNUTLS_DIG_SHA256, 0),
                     0);
    ck_assert_int_ge(gnutls_x509_crt_export2(it, GNUTLS_X509_FMT_DER, der), 0);
    gnutls_x509_crt_deinit(it);
    gnutls_x509_privkey_deinit(key);
}

static const struct names cases[] = {
    {.common = "a", .want = "a"},
    {.dns = "d.example", .common = "a", .want = "d.example"},
    {.email = "e@x", .uri = "spiffe://x/y", .dns = "d", .want = "d"},
    {.dns = "first", .second_dns = "second", .want = "first"},
    {.email = "e@x", .uri = "spiffe://x/y", .want = "spiffe://x/y"},
    {.email = "e@x", .common = "a", .want = "e@x"},
    {.want = ""},
    {.common = "two words", .want = ""},
    {.common = "line\nfeed", .want = ""},
    /* one that cannot be used does not make way for a weaker one */
    {.dns = "two words", .common = "a", .want = ""},
    {.dns = "0123456789012345678901234567890",
     .want = "012345678901234567890123"
             "4567890"},
    {.dns = "01234567890123456789012345678901", .common = "a", .want = ""},
    {.email = "a@0123456789012345678901234567890", .dns = "d", .want = "d"},
    {.common = "01234567890123456789012345678901", .want = ""},
};

SUITE(peername);

TEST_EACH(the_strongest_name_is_taken, cases)
{
    char name[SIZE] = "not touched";
    gnutls_datum_t der;
    make(&cases[_i], &der);
    peername_read(&der, name, sizeof name);
    ck_assert_str_eq(name, cases[_i].want);
    gnutls_free(der.data);
}

TEST(what_is_no_certificate_has_no_name)
{
    char name[SIZE] = "not touched";
    const gnutls_datum_t der = {(unsigned char *)"\x30\x03nop", 5};
    peername_read(&der, name, sizeof name);
    ck_assert_str_eq(name, "");
}
