/*
 * What the server shows its clients, and who vouches for theirs: the files of
 * --tls-cert, --tls-key, --tls-client-ca and --tls-client-crl, as GnuTLS holds
 * them.
 *
 * A reload makes new ones; connections keep those that they began with.
 */
#ifndef REDLOCKD_CERTIFICATES_H
#define REDLOCKD_CERTIFICATES_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Borrowed. client_ca "": clients need no certificate; client_crl "": nobody is
 * revoked.
 */
struct certificate_files {
    const char *chain;
    const char *key;
    const char *client_ca;
    const char *client_crl;
};

struct certificates {
    int holders;
    gnutls_certificate_credentials_t credentials;
    bool has_client_ca;
    int64_t since_s, until_s; /* when the server's own is valid, Unix time */
    int64_t crl_until_s; /* when the list is outdated; 0: no list, or no end */
    bool is_key_open;    /* others than its owner may read the key */
};

/*
 * Reads the files; the caller holds the result. NULL: error holds one line that
 * names the option, the file, the reason and the fix.
 */
struct certificates *certificates_load(const struct certificate_files *files,
                                       char *error, size_t error_size);

/*
 * When the next certificate of a client's chain (DER) ends behind after_s, Unix
 * time; INT64_MAX: none does.
 */
int64_t certificates_next_end_s(const gnutls_datum_t *chain, unsigned count,
                                int64_t after_s);

/* For as long as a session needs them. */
struct certificates *certificates_hold(struct certificates *it);

/* The last holder frees them. NULL is ignored. */
void certificates_drop(struct certificates *it);

#endif
