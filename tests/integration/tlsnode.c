/* SPDX-License-Identifier: MIT */
#include "tlsnode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct certs *ca;
static char usual[PATH_SIZE];

const struct certs *tlsnode_ca(void)
{
    if (ca == NULL)
        ca = certs_new_ca();
    return ca;
}

static void join(char file[PATH_SIZE + 16], const char *dir, const char *name)
{
    snprintf(file, PATH_SIZE + 16, "%s/%s", dir, name);
}

void tlsnode_replace(const char *dir, const struct certs *certs)
{
    char path[PATH_SIZE + 16];
    join(path, dir, TLSNODE_CERT);
    certs_write(certs, path);
    join(path, dir, TLSNODE_KEY);
    certs_write_key(certs, path);
}

void tlsnode_make_dir(char dir[PATH_SIZE])
{
    char file[PATH_SIZE + 16];
    struct certs *certs = certs_new_node(tlsnode_ca());
    harness_make_dir(dir);
    join(file, dir, TLSNODE_CA);
    certs_write(tlsnode_ca(), file);
    tlsnode_replace(dir, certs);
    certs_free(certs);
}

const char *tlsnode_dir(void)
{
    if (!*usual)
        tlsnode_make_dir(usual);
    return usual;
}

bool tlsnode_is_usual(void)
{
    const char *value = getenv("NODES_TLS");
    return value && *value && strcmp(value, "0") != 0;
}
