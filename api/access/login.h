/*
 * Whose a request is: the identity of its token, or else of its certificate.
 */
#ifndef REDLOCKD_LOGIN_H
#define REDLOCKD_LOGIN_H

#include "caller.h"
#include "identities.h"

/*
 * The number of the identity. file: which reading of the auth file this is.
 * -1: there is none, and request->caller->refusal tells why.
 */
int login_find(const struct identities *identities, uint32_t file,
               struct http_request *request, struct span authorization);

/* The refusal of a token that was good before. */
void login_revoke(struct refusal *refusal, const char *detail);

#endif
