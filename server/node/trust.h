/*
 * The credentials of TLS to the nodes: the CAs that may sign the nodes'
 * certificates, and our certificate for nodes that ask for one. Read from
 * files, and read again while the service runs.
 */
#ifndef REDLOCKD_TRUST_H
#define REDLOCKD_TRUST_H

#include "../base/certificates.h"
#include "../config/config.h"

enum { TRUST_TEXT_MAX = CONFIG_ERROR_MAX + CONFIG_PATH_MAX };

struct trust {
    struct certificate_files files;
    struct certificates *now;   /* sessions hold what they begin with */
    gnutls_priority_t priority; /* protocols and ciphers */
};

/*
 * Reads the files of config, which is borrowed until trust_free, if a node of
 * it speaks TLS; else *trust is NULL. False: error is one line that names the
 * option, the file and the reason.
 */
bool trust_make(struct trust **trust, const struct config *config,
                char error[TRUST_TEXT_MAX]);

/* Sessions that began before go on. NULL is ignored. */
void trust_free(struct trust *trust);

/*
 * Reads the files again, for sessions that begin from now on. False: nothing
 * has changed; error as above.
 */
bool trust_reload(struct trust *trust, char error[TRUST_TEXT_MAX]);

/* The fault of our certificate at now_s since 1970; NULL: none. */
const char *trust_warning(const struct trust *trust, int64_t now_s);

#endif
