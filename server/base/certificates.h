/* SPDX-License-Identifier: MIT */
/*
 * What one side of TLS shows the other, and who vouches for the other side: PEM
 * files, as GnuTLS holds them.
 *
 * A reload makes new ones; connections keep those that they began with.
 */
#ifndef REDLOCKD_CERTIFICATES_H
#define REDLOCKD_CERTIFICATES_H

#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The file that an option names. Borrowed. path "": none. */
struct certificate_file {
    const char *option;
    const char *path;
};

/* Without a chain there is no key; without ca there is no crl. */
struct certificate_files {
    struct certificate_file chain; /* the own certificate, and who signed it */
    struct certificate_file key;
    struct certificate_file ca;  /* who may sign the other side's */
    struct certificate_file crl; /* which of these are revoked */
    bool has_system_ca;          /* without ca, whom the system trusts */
};

struct certificates {
    int holders;
    gnutls_certificate_credentials_t credentials;
    bool has_ca;
    bool has_own;             /* a certificate to show */
    int64_t since_s, until_s; /* when that is valid, Unix time */
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
 * When the next certificate of a chain (DER) ends behind after_s, Unix
 * time; INT64_MAX: none does.
 */
int64_t certificates_next_end_s(const gnutls_datum_t *chain, unsigned count,
                                int64_t after_s);

/* For as long as a session needs them. */
struct certificates *certificates_hold(struct certificates *it);

/* The last holder frees them. NULL is ignored. */
void certificates_drop(struct certificates *it);

#endif
