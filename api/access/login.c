#include "login.h"

#include <strings.h>

#define CHALLENGE "Bearer realm=\"redlockd\""
#define INVALID_TOKEN CHALLENGE ", error=\"invalid_token\""

/* ---- tokens ------------------------------------------------------------- */

/* The token of "Bearer <token>", RFC 6750 §2.1; ptr NULL: another scheme. */
static struct span token_of(struct span authorization)
{
    static const char scheme[] = "Bearer";
    size_t len = sizeof scheme - 1;
    if (authorization.len < len ||
        strncasecmp(authorization.ptr, scheme, len) != 0)
        return (struct span){0};
    struct span token = {authorization.ptr + len, authorization.len - len};
    if (token.len > 0 && *token.ptr != ' ')
        return (struct span){0};
    while (token.len > 0 && *token.ptr == ' ') {
        token.ptr++;
        token.len--;
    }
    return token;
}

/* The number of the token's identity; -1: none has it. */
static int find_token(const struct identities *identities, uint32_t file,
                      struct login *login, struct span token)
{
    struct digest digest;
    if (token.len == 0)
        return -1;
    if (login != NULL && login->file == file &&
        digest_is_same_text((struct span){login->token, login->len}, token))
        return login->number;
    if (!digest_make(&digest, token))
        return -1;
    int number = identities_find_digest(identities, &digest);
    if (number >= 0 && login != NULL && token.len <= sizeof login->token) {
        login->file = file;
        login->number = number;
        login->len = span_copy(login->token, token);
    }
    return number;
}

/* ---- requests ----------------------------------------------------------- */

static int refuse(struct http_request *request, const char *detail)
{
    request->caller->refusal.code = PROBLEM_UNAUTHORIZED;
    request->caller->refusal.detail = detail;
    request->caller->refusal.challenge = CHALLENGE;
    return -1;
}

void login_revoke(struct refusal *refusal, const char *detail)
{
    refusal->code = PROBLEM_UNAUTHORIZED;
    refusal->detail = detail;
    refusal->challenge = INVALID_TOKEN;
}

void login_respond_refusal(const struct http_request *request,
                           struct http_response *response)
{
    const struct refusal *refusal = &request->caller->refusal;
    const struct problem problem = {.code = refusal->code,
                                    .detail = refusal->detail,
                                    .retry_after_ms = refusal->retry_after_ms};
    problem_respond(&problem, request->id, response);
    response->challenge = refusal->challenge;
}

int login_find(const struct identities *identities, uint32_t file,
               struct http_request *request, struct span authorization)
{
    if (authorization.ptr != NULL) { /* it counts more than a certificate */
        struct span token = token_of(authorization);
        if (token.ptr == NULL)
            return refuse(request, "the only supported authorization is "
                                   "Authorization: Bearer <token>");
        int number =
            find_token(identities, file, request->caller->login, token);
        if (number < 0)
            login_revoke(&request->caller->refusal,
                         "this bearer token is not known here");
        return number;
    }
    if (request->peer_names == NULL || request->peer_names[0] == '\0')
        return refuse(request, "send a token, as in Authorization: Bearer "
                               "<token>");
    int number =
        identities_find_certificate(identities, span_of(request->peer_names));
    if (number == IDENTITIES_SEVERAL)
        return refuse(request, "the client certificate has the names of "
                               "several identities; show one with the name of "
                               "one of them, or send a token");
    return number >= 0
               ? number
               : refuse(request,
                        "no name in the client certificate is known here; "
                        "send a token, as in Authorization: Bearer <token>");
}
