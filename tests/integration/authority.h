/* SPDX-License-Identifier: MIT */
/*
 * A certificate authority of the tests, and what it signs. Keys are ECDSA on
 * P-256: they are made at once.
 */
#ifndef REDLOCKD_TEST_AUTHORITY_H
#define REDLOCKD_TEST_AUTHORITY_H

#include <stdbool.h>

#include "harness.h"

struct gnutls_x509_crt_int;
struct gnutls_x509_privkey_int;

struct authority {
    struct gnutls_x509_crt_int *certificate;
    struct gnutls_x509_privkey_int *key;
    char path[PATH_SIZE]; /* of its certificate */
    bool is_delegated;    /* another one signed it: it is shown as well */
};

/* A certificate and its key, as files. */
struct pair {
    char certificate[PATH_SIZE];
    char key[PATH_SIZE];
};

/* What a certificate says; NULL: nothing of the kind. */
struct subject {
    const char *common;
    const char *dns, *uri, *email;
    int since_s, until_s; /* from now; 0, 0: from yesterday to tomorrow */
    bool is_client;       /* else a server, localhost and 127.0.0.1 too */
    bool is_rsa;          /* of 2048 bits */
};

/* Writes its files into a new directory of the run. */
void authority_make(struct authority *authority, const char *name);
void authority_free(struct authority *authority);

/*
 * One that parent has signed, with constraints on its names: on DNS names and
 * email addresses those that permitted has, on URIs what excluded has. NULL:
 * none of the kind.
 */
void authority_delegate(struct authority *authority,
                        const struct authority *parent,
                        const struct subject *permitted,
                        const struct subject *excluded);

struct pair authority_issue(const struct authority *authority,
                            const struct subject *subject);

/*
 * Writes a list of those that the authority has revoked, in PEM. until_s: from
 * now on it is outdated; 0: tomorrow.
 */
void authority_revoke(const struct authority *authority, const char *path,
                      const struct pair *const revoked[], int count,
                      int until_s);

/* The pair takes the place of another one, under its names. */
void authority_replace(const struct pair *old, const struct pair *pair);

#endif
