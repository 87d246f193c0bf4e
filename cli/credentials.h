/* SPDX-License-Identifier: MIT */
/*
 * How redlockctl authenticates to the service, and which CAs it trusts.
 *
 * The bearer token is a secret: it comes from a file or the environment, never
 * from an argument. It is in no message, and not in the environment of
 * commands.
 */
#ifndef REDLOCKCTL_CREDENTIALS_H
#define REDLOCKCTL_CREDENTIALS_H

#include "fetch.h"
#include "options.h"

enum { BEARER_MAX = 4096 };

struct credentials {
    struct fetch_trust trust;
    const char *bearer_file;     /* NULL: none */
    char bearer[BEARER_MAX + 1]; /* "": none */
};

/*
 * Takes what the options name, and the rest from the environment; removes the
 * token itself from it. False: it has complained.
 */
bool credentials_take(struct credentials *credentials,
                      const struct options *options);

/* Whether the service may know by them who we are. */
bool credentials_name_us(const struct credentials *credentials);

/* Puts back into the environment what credentials_take has removed. False:
 * errno says why. */
bool credentials_put_back(const struct credentials *credentials);

/*
 * Reads the file of the token again. True: it has another token now. A file
 * that cannot be read, or is half written, changes nothing.
 */
bool credentials_refresh(struct credentials *credentials);

/* What to do if they are not accepted. Static. */
const char *credentials_advice(const struct credentials *credentials);

#endif
