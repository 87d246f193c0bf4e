/*
 * One HTTP request and its response, in plain data: what the front hands to
 * the handlers and gets back. No HTTP library here.
 */
#ifndef REDLOCKD_HTTP_H
#define REDLOCKD_HTTP_H

#include "../../server/base/networks.h"
#include "../../server/base/types.h"
#include "../../server/engine/engine.h"
#include "../../server/lock/lock.h"
#include "../../server/lock/metrics.h"
#include "query.h"
#include "requestid.h"
#include "route.h"
#include "trace.h"

#define HTTP_JSON "application/json"
#define HTTP_LOCKS_PATH "/locks/" /* and the id */

enum {
    HTTP_IDENTITY_MAX = 64,
    HTTP_LOGIN_MAX = 128,
    HTTP_BODY_MAX = 16 * 1024,
    HTTP_LOCATION_MAX = sizeof HTTP_LOCKS_PATH - 1 + ID_MAX,
};

struct holding;

/* Why a request is refused before anything of it is done. */
struct http_refusal {
    int code;              /* enum problem_code */
    const char *detail;    /* static; NULL: it is not refused */
    const char *challenge; /* static: WWW-Authenticate; NULL: none */
    int64_t retry_after_ms;
    bool is_late; /* one of too many: it is answered after a while */
};

/*
 * Who asked last on a connection. Clients that keep one send their token with
 * each request; to hash and to look it up costs more than to compare it.
 */
struct http_login {
    uint32_t file; /* the auth file that it was looked up in; 0: nobody did */
    int number;    /* of the identity */
    size_t len;    /* of the token; one that is longer is not kept */
    char token[HTTP_LOGIN_MAX];
};

/* The request as the front read it. All of it lives until the answer. */
struct http_request {
    const char *method;
    const char *target;          /* as sent, undecoded, without the query */
    struct span content_type;    /* ptr NULL: not there; … */
    struct span lock_token;      /* … X-Lock-Token; … */
    struct span idempotency_key; /* … likewise */
    struct query query;          /* of the target */
    struct route_match match;    /* what it asks */
    bool body_is_too_large;
    bool is_chunked; /* the body */
    struct span body;
    char id[REQUESTID_MAX + 1];           /* X-Request-Id of the answer */
    char identity[HTTP_IDENTITY_MAX + 1]; /* who asks; "": anybody */
    const char *peer_name;    /* of the client's certificate; NULL, "": none */
    struct trace trace;       /* that it belongs to */
    struct http_login *login; /* of the connection; NULL: none is kept */
    struct http_refusal refusal; /* set by access_admit */
    struct holding *claim; /* an acquire: counts for its identity; NULL: not */
    bool claim_is_granted; /* … and is undone if the answer gets lost */
    int access_result;     /* 1 + enum account_result; 0: nobody's */
    uint32_t auth_file;    /* which it was judged by; 0: none */
    int64_t expires_s;     /* its identity, by that file; 0: never */
    int place;             /* 1 + enum place; 0: it has none */
    int64_t head_read_us;  /* when its head was read */
    int counted_as;        /* enum lock_call, or metrics_call */
    engine_op op;          /* waited for, or being answered; 0 none */
    int64_t wait_ms;       /* acquire: how long it may wait; 0: not */
    int64_t waited_ms;     /* … and how long it did; set by locks_answer */

    /* for the audit log */
    const char *client; /* address:port, or what a trusted proxy says;
                           NULL, "": unknown */
    char forwarded[NETWORKS_ADDRESS_MAX]; /* what it says; "": nothing */
    char owner[OWNER_MAX + 1]; /* of an acquire, or of the token; "": none */
    int64_t number;            /* of the token, or to force; 0 none */
    bool is_audited;           /* it tells what came of the request */
};

/* The answer. */
struct http_response {
    int status;
    const char *content_type; /* static; NULL: there is no body */
    char *body;               /* malloc'ed, the front's to free; or NULL */
    size_t body_len;
    bool is_static;                       /* the body is not to be freed */
    bool is_page;                         /* may be shown by a browser */
    const char *code;                     /* static: of a problem; NULL: none */
    const char *allow;                    /* static; NULL: none */
    const char *challenge;                /* static; NULL: none */
    int64_t retry_after_ms;               /* 0: none */
    bool close;                           /* close the connection after it */
    char location[HTTP_LOCATION_MAX + 1]; /* "": none */
};

/* NULL: it was not asked to wait. */
static inline const int64_t *http_waited_ms(const struct http_request *request)
{
    return request->wait_ms > 0 ? &request->waited_ms : NULL;
}

/* Spares the clearing of location for every answer. */
static inline void http_response_init(struct http_response *response)
{
    memset(response, 0, offsetof(struct http_response, location) + 1);
}

#endif
