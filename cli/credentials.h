/*
 * Who redlockctl is to the service, and whom it trusts.
 *
 * The bearer token is a secret: it comes from a file or from the environment,
 * never from an argument, and no message and no command that redlockctl starts
 * gets it.
 */
#ifndef REDLOCKCTL_CREDENTIALS_H
#define REDLOCKCTL_CREDENTIALS_H

#include "http.h"
#include "options.h"

enum { BEARER_MAX = 4096 };

struct credentials {
    struct http_trust trust;
    const char *bearer_file;     /* NULL: none */
    char bearer[BEARER_MAX + 1]; /* "": none */
};

/*
 * Takes what the options name, and the environment for what they do not; takes
 * the token itself out of the environment. False: something is wrong, and was
 * told.
 */
bool credentials_take(struct credentials *credentials,
                      const struct options *options);

/*
 * Reads the file of the token again. True: it has another token now. A file
 * that cannot be read, or is half written, changes nothing.
 */
bool credentials_refresh(struct credentials *credentials);

#endif
