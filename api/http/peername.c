#include "peername.h"

#include <ctype.h>
#include <gnutls/x509.h>
#include <stdbool.h>
#include <string.h>

/* Nothing that a log line or a file of identities could take for another. */
static bool is_plain(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!isgraph((unsigned char)name[i]))
            return false;
    return len > 0;
}

enum found { NOT_THERE, UNUSABLE, FOUND };

/* The first alternative name of this kind. */
static enum found read_alternative(gnutls_x509_crt_t certificate,
                                   gnutls_x509_subject_alt_name_t kind,
                                   char *name, size_t size)
{
    for (unsigned i = 0;; i++) {
        unsigned type = 0;
        size_t len = size; /* with its NUL */
        int rc = gnutls_x509_crt_get_subject_alt_name2(certificate, i, name,
                                                       &len, &type, NULL);
        if (rc == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
            return NOT_THERE;
        bool is_whole = rc >= 0 && len < size && is_plain(name, len);
        name[is_whole ? len : 0] = '\0';
        if (rc < 0 && rc != GNUTLS_E_SHORT_MEMORY_BUFFER)
            return UNUSABLE;
        if (type == (unsigned)kind)
            return is_whole ? FOUND : UNUSABLE;
    }
}

static bool read_name(gnutls_x509_crt_t certificate, char *name, size_t size)
{
    static const gnutls_x509_subject_alt_name_t kinds[] = {
        GNUTLS_SAN_DNSNAME, GNUTLS_SAN_URI, GNUTLS_SAN_RFC822NAME};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        enum found found = read_alternative(certificate, kinds[i], name, size);
        if (found != NOT_THERE)
            return found == FOUND;
    }
    size_t len = size; /* with its NUL */
    int rc = gnutls_x509_crt_get_dn_by_oid(
        certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &len);
    if (rc < 0 || len >= size || !is_plain(name, len))
        return false;
    name[len] = '\0';
    return true;
}

void peername_read(const gnutls_datum_t *der, char *name, size_t size)
{
    gnutls_x509_crt_t certificate = NULL;
    bool is_read =
        gnutls_x509_crt_init(&certificate) >= 0 &&
        gnutls_x509_crt_import(certificate, der, GNUTLS_X509_FMT_DER) >= 0 &&
        read_name(certificate, name, size);
    if (!is_read)
        name[0] = '\0';
    if (certificate != NULL)
        gnutls_x509_crt_deinit(certificate);
}
