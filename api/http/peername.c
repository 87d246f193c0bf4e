#include "peername.h"

#include <ctype.h>
#include <gnutls/x509-ext.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <stdio.h>

#define ALTERNATIVE_NAMES_OID "2.5.29.17" /* RFC 5280 §4.2.1.6 */

struct list {
    char *text;
    size_t len, size; /* with its NUL */
    int count;
    bool is_full;
};

/* Nothing that a log line or a file of identities could take for another. */
static bool is_plain(const unsigned char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isgraph(name[i]))
            return false;
    return len > 0;
}

static void add(struct list *list, const char *kind, const gnutls_datum_t *name)
{
    size_t left = list->size - list->len;
    if (!is_plain(name->data, name->size))
        return;
    int len = snprintf(list->text + list->len, left, "%s%s%.*s",
                       list->len > 0 ? "\n" : "", kind, (int)name->size,
                       (const char *)name->data);
    if (list->count++ == PEERNAMES_MAX || len < 0 || (size_t)len >= left)
        list->is_full = true;
    if (!list->is_full)
        list->len += (size_t)len;
}

static const char *kind_of(unsigned type)
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
static bool add_alternatives(struct list *list, const gnutls_datum_t *der)
{
    gnutls_subject_alt_names_t names = NULL;
    gnutls_datum_t name;
    unsigned type;
    bool is_read = gnutls_subject_alt_names_init(&names) >= 0 &&
                   gnutls_x509_ext_import_subject_alt_names(der, names, 0) >= 0;
    for (unsigned i = 0; is_read && gnutls_subject_alt_names_get(
                                        names, i, &type, &name, NULL) >= 0;
         i++)
        if (kind_of(type) != NULL)
            add(list, kind_of(type), &name);
    if (names != NULL)
        gnutls_subject_alt_names_deinit(names);
    return is_read;
}

/* False: one is too long. */
static bool add_common(struct list *list, gnutls_x509_crt_t certificate)
{
    unsigned char text[256]; /* RFC 5280 allows 64 */
    for (unsigned i = 0;; i++) {
        size_t len = sizeof text; /* with its NUL */
        int rc = gnutls_x509_crt_get_dn_by_oid(
            certificate, GNUTLS_OID_X520_COMMON_NAME, i, 0, text, &len);
        if (rc < 0)
            return rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE;
        add(list, "cn:", &(gnutls_datum_t){text, (unsigned)len});
    }
}

static bool read_names(struct list *list, gnutls_x509_crt_t certificate)
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

void peername_read(const gnutls_datum_t *der, char *names, size_t size)
{
    gnutls_x509_crt_t certificate = NULL;
    struct list list = {.text = names, .size = size};
    bool is_read =
        gnutls_x509_crt_init(&certificate) >= 0 &&
        gnutls_x509_crt_import(certificate, der, GNUTLS_X509_FMT_DER) >= 0 &&
        read_names(&list, certificate) && !list.is_full;
    names[is_read ? list.len : 0] = '\0';
    if (certificate != NULL)
        gnutls_x509_crt_deinit(certificate);
}
