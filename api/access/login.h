/*
 * Who asks: the identity of the request's token, or else of its certificate;
 * and what this service keeps of that while the request lasts, which only
 * access sets.
 */
#ifndef REDLOCKD_LOGIN_H
#define REDLOCKD_LOGIN_H

#include "../message/http.h"
#include "../message/problem.h"
#include "accounts.h"

enum { LOGIN_TOKEN_MAX = 128 };

struct holding;

/* Why a request is refused before anything of it is done. */
struct refusal {
    enum problem_code code;
    const char *detail;    /* static; NULL: it is not refused */
    const char *challenge; /* static: WWW-Authenticate; NULL: none */
    int64_t retry_after_ms;
    bool is_late; /* one of too many: it is answered after a while */
};

/*
 * Who asked last on a connection. Clients that keep one send their token with
 * each request; to hash and to look it up costs more than to compare it.
 */
struct login {
    uint32_t file; /* the auth file that it was looked up in; 0: nobody did */
    int number;    /* of the identity */
    size_t len;    /* of the token; one that is longer is not kept */
    char token[LOGIN_TOKEN_MAX];
};

struct caller {
    struct login *login; /* of the connection; NULL: none is kept */
    char identity[HTTP_IDENTITY_MAX + 1]; /* "": anybody */
    struct refusal refusal;
    struct holding *claim; /* the lock that counts for it; NULL: none */
    bool claim_is_granted; /* it is undone if the answer gets lost */
    bool claims_late; /* a permit beyond its account's limit: only if it turns
                         out to be a repeat of one that counts */
    bool has_result;  /* its account counts the request */
    enum account_result result;
    bool has_place; /* of its account's share of waits or lists */
    enum place place;
    uint32_t auth_file; /* which the request was judged by; 0: none */
    int64_t expires_s;  /* the identity, by that file; 0: never */
};

/*
 * The number of the identity. file: which reading of the auth file this is.
 * -1: there is none, and request->caller->refusal tells why.
 */
int login_find(const struct identities *identities, uint32_t file,
               struct http_request *request, struct span authorization);

/* Answers with the refusal of its caller. */
void login_respond_refusal(const struct http_request *request,
                           struct http_response *response);

/* The refusal of a token that was good before. */
void login_revoke(struct refusal *refusal, const char *detail);

#endif
