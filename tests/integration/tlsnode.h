/* SPDX-License-Identifier: MIT */
/*
 * Nodes that speak TLS and nothing else, and the certificates that they need.
 * Tests look at such a node through a Unix socket.
 */
#ifndef REDLOCKD_TEST_TLSNODE_H
#define REDLOCKD_TEST_TLSNODE_H

#include "../lib/certs/certs.h"
#include "harness.h"

/* Files of a folder: ca, cert and key of a node, as PEM. */
#define TLSNODE_CA "ca.pem"
#define TLSNODE_CERT "cert.pem"
#define TLSNODE_KEY "key.pem"

/* A new folder with a CA and what it signs for 127.0.0.1. */
void tlsnode_make_dir(char dir[PATH_SIZE]);

/* The one that all nodes share by default. */
const char *tlsnode_dir(void);

/* Whether NODES_TLS is set: every node of every world speaks TLS. */
bool tlsnode_is_usual(void);

/* Writes these as cert and key into a folder. */
void tlsnode_replace(const char *dir, const struct certs *certs);

/* The CA of a folder made by this process. */
const struct certs *tlsnode_ca(void);

#endif
