/* SPDX-License-Identifier: MIT */
/*
 * The names in a client's certificate.
 */
#include <gnutls/x509.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "../../../api/http/tls.h"
#include "../../lib/suite/suite.h"

enum { SIZE = 36 };

/* Alternative names, in this order; and the common names. NULL: none. */
struct names {
    const char *email, *uri, *dns, *second_dns, *common, *second_common;
    const char *want;
    bool has_address; /* an alternative name of a kind that is not read */
    int many;         /* more DNS names */
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

static void add_common(gnutls_x509_crt_t it, const char *name)
{
    if (name != NULL)
        ck_assert_int_ge(
            gnutls_x509_crt_set_dn_by_oid(it, GNUTLS_OID_X520_COMMON_NAME, 0,
                                          name, (unsigned)strlen(name)),
            0);
}

static void fill(gnutls_x509_crt_t it, const struct names *names)
{
    add(it, GNUTLS_SAN_RFC822NAME, names->email);
    add(it, GNUTLS_SAN_URI, names->uri);
    add(it, GNUTLS_SAN_DNSNAME, names->dns);
    add(it, GNUTLS_SAN_DNSNAME, names->second_dns);
    for (int i = 0; i < names->many; i++)
        add(it, GNUTLS_SAN_DNSNAME, "d");
    add(it, GNUTLS_SAN_IPADDRESS, names->has_address ? "1234" : NULL);
    add_common(it, names->common);
    add_common(it, names->second_common);
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
    {.common = "a", .want = "cn:a"},
    {.common = "a", .second_common = "b", .want = "cn:a\ncn:b"},
    {.dns = "d.example", .want = "dns:d.example"},
    {.dns = "first", .second_dns = "second", .want = "dns:first\ndns:second"},
    {.email = "e@x",
     .uri = "u://x",
     .dns = "d",
     .want = "email:e@x\nuri:u://x\ndns:d"},
    {.email = "e@x",
     .uri = "spiffe://x/y",
     .want = "email:e@x\nuri:spiffe://x/y"},
    /* beside alternative names of any kind, no common name counts */
    {.dns = "d.example", .common = "a", .want = "dns:d.example"},
    {.uri = "u://x", .common = "a", .want = "uri:u://x"},
    {.email = "e@x", .common = "a", .want = "email:e@x"},
    {.common = "a", .has_address = true, .want = ""},
    {.dns = "two words", .common = "a", .want = ""},
    {.want = ""},
    /* what is not printable is left out */
    {.common = "two words", .want = ""},
    {.common = "line\nfeed", .want = ""},
    {.common = "a\ndns:d", .want = ""},
    {.dns = "two words", .second_dns = "d", .want = "dns:d"},
    /* up to 35 characters; one more, and none counts */
    {.dns = "0123456789012345678901234567890",
     .want = "dns:0123456789012345678901234567890"},
    {.dns = "01234567890123456789012345678901", .want = ""},
    {.dns = "d",
     .second_dns = "0123456789012345678901234",
     .want = "dns:d\ndns:0123456789012345678901234"},
    {.dns = "d", .second_dns = "01234567890123456789012345", .want = ""},
    {.common = "01234567890123456789012345678901234567890", .want = ""},
};

/* Those of a certificate that has these, with room for size bytes. */
static const char *read_names(const struct names *names, size_t size)
{
    static char text[1024];
    gnutls_datum_t der;
    make(names, &der);
    memset(text, '!', sizeof text);
    tls_read_names((struct span){(const char *)der.data, der.size}, text, size);
    gnutls_free(der.data);
    return text;
}

SUITE(peername);

TEST_EACH(all_names_are_taken_with_their_kinds, cases)
{
    ck_assert_str_eq(read_names(&cases[_i], SIZE), cases[_i].want);
}

TEST(sixteen_names_and_no_more)
{
    struct names names = {.many = TLS_PEER_NAMES_MAX};
    ck_assert_uint_eq(strlen(read_names(&names, 1024)),
                      TLS_PEER_NAMES_MAX * strlen("dns:d\n") - 1);
    names.many++;
    ck_assert_str_eq(read_names(&names, 1024), "");
}

TEST(a_common_name_may_be_longer_than_it_should)
{
    char name[257] = "";
    const struct names names = {.common = name};
    memset(name, 'a', 255);
    ck_assert_uint_eq(strlen(read_names(&names, 1024)), 3 + 255);
    name[255] = 'a';
    ck_assert_str_eq(read_names(&names, 1024), "");
}

TEST(what_is_no_certificate_has_no_name)
{
    char names[SIZE] = "not touched";
    tls_read_names(span_of("\x30\x03nop"), names, sizeof names);
    ck_assert_str_eq(names, "");
}
