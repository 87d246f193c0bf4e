#include "trust.h"

#include <stdio.h>
#include <stdlib.h>

/* The distribution's ciphers, but no protocol before TLS 1.2. */
static const char protocols[] = "-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

bool trust_make(struct trust **trust, const struct config *config,
                char error[TRUST_TEXT_MAX])
{
    *trust = NULL;
    if (!config_has_tls_nodes(config))
        return true;
    struct trust *made = calloc(1, sizeof *made);
    (void)snprintf(error, TRUST_TEXT_MAX, "no memory for TLS to the nodes");
    if (made == NULL)
        return false;
    made->files = (struct certificate_files){
        .chain = {"node-cert", config->node_cert},
        .key = {"node-key", config->node_key},
        .ca = {"node-ca", config->node_ca},
        .crl = {"", ""},
        .has_system_ca = true,
    };
    if (gnutls_priority_init2(&made->priority, protocols, NULL,
                              GNUTLS_PRIORITY_INIT_DEF_APPEND) < 0 ||
        !trust_reload(made, error)) {
        trust_free(made);
        return false;
    }
    *trust = made;
    return true;
}

void trust_free(struct trust *trust)
{
    if (trust == NULL)
        return;
    certificates_drop(trust->now);
    if (trust->priority != NULL)
        gnutls_priority_deinit(trust->priority);
    free(trust);
}

bool trust_reload(struct trust *trust, char error[TRUST_TEXT_MAX])
{
    struct certificates *made =
        certificates_load(&trust->files, error, TRUST_TEXT_MAX);
    if (made == NULL)
        return false;
    certificates_drop(trust->now);
    trust->now = made;
    return true;
}

const char *trust_warning(const struct trust *trust, int64_t now_s)
{
    if (!trust->now->has_own)
        return NULL;
    if (now_s >= trust->now->until_s)
        return "--node-cert has expired: nodes that ask for it will refuse it";
    if (now_s < trust->now->since_s)
        return "--node-cert is not yet valid: nodes that ask for it will "
               "refuse it";
    return NULL;
}
