/* SPDX-License-Identifier: MIT */
/*
 * Certificates and keys, made when they are needed: ECDSA on P-256, which costs
 * least. Whatever goes wrong ends the process.
 */
#ifndef REDLOCKD_TEST_CERTS_H
#define REDLOCKD_TEST_CERTS_H

#include <stdbool.h>
#include <stddef.h>

struct certs;

/* What a certificate should be like; all zero is a good one without names. */
struct certs_wish {
    const char *name;           /* DNS; NULL: none */
    const char *address;        /* IP; NULL: none */
    const char *purpose;        /* OID of an extended key usage; NULL: any */
    const struct certs *issuer; /* NULL: itself */
    bool is_ca;
    int begins_s, ends_s; /* from now on; 0: an hour ago, in an hour */
};

struct certs *certs_new(const struct certs_wish *wish);
void certs_free(struct certs *certs);

/* As PEM, until certs_free. */
const char *certs_pem(const struct certs *certs);
const char *certs_key_pem(const struct certs *certs);

/* Into a file, which is replaced. */
void certs_write(const struct certs *certs, const char *path);
void certs_write_key(const struct certs *certs, const char *path);

/* The usual ones: a CA, and what it signs for 127.0.0.1 and localhost. */
struct certs *certs_new_ca(void);
struct certs *certs_new_node(const struct certs *ca);

#endif
