/*
 * The name that a certificate carries, as an identity may be called.
 */
#ifndef REDLOCKD_PEERNAME_H
#define REDLOCKD_PEERNAME_H

#include <gnutls/gnutls.h>
#include <stddef.h>

/*
 * The first DNS name, URI or email address among the alternative names, in
 * this order; if there is none of them, the common name. "": none, or it does
 * not fit, or has other than printable ASCII characters. der is the encoded
 * certificate.
 */
void peername_read(const gnutls_datum_t *der, char *name, size_t size);

#endif
