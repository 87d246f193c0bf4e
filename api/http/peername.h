/*
 * The names in a certificate by which an identity may be known.
 */
#ifndef REDLOCKD_PEERNAME_H
#define REDLOCKD_PEERNAME_H

#include <gnutls/gnutls.h>
#include <stddef.h>

enum { PEERNAMES_MAX = 16 };

/*
 * The DNS names, URIs and email addresses among the alternative names; if it
 * has no alternative name of any kind, the common names. Each with its kind,
 * as in "dns:a.example", joined by U+000A as in names.h. Constraints on the
 * names of an authority say nothing of its common names, and something else of
 * each kind: so what is said of one kind must never count as another.
 *
 * Names with other than printable ASCII characters are left out. "": there are
 * none, or more than PEERNAMES_MAX, or they do not fit. der is the encoded
 * certificate.
 */
void peername_read(const gnutls_datum_t *der, char *names, size_t size);

#endif
