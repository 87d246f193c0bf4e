/* SPDX-License-Identifier: MIT */
/*
 * Who may ask what, and how much of it: the identities of --auth-file, and what
 * they did here. In all calls but access_new, access may be NULL: then anybody
 * may ask anything. What returns false has refused: call->response tells.
 *
 * A request is judged when its head was read, and once more when it is whole;
 * an acquire also before its lock is told, and while it waits whenever the file
 * was read again. One whose identity has expired by then is granted nothing.
 */
#ifndef REDLOCKD_ACCESS_H
#define REDLOCKD_ACCESS_H

#include "../message/http.h"
#include "../message/problem.h"
#include "accounts.h"

/* ---- who asks: what is kept of that while the request lasts ------------- */

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

/* Of each call. */
struct caller {
    struct refusal refusal;
    struct holding *reservation; /* the lock that counts for it; NULL: none */
    int64_t granted;    /* the number of a grant that is released if the answer
                           gets lost; 0: none */
    bool shows_token;   /* a release: the reservation is held with its token */
    bool reserves_late; /* a permit beyond its account's limit: only if it turns
                         out to be a repeat of one that counts */
    bool has_result;    /* its account counts the request */
    enum account_result result;
    struct account *placed; /* whose share of waits or lists it has a place of;
                               NULL: nobody's */
    enum place place;
    uint32_t auth_file; /* which the request was judged by; 0: none */
    int64_t expires_s;  /* the identity, by that file; 0: never */
};

/* Answers with the refusal of its caller. */
void access_respond_refusal(const struct http_call *call);

/* ---- what it may do ----------------------------------------------------- */

struct access;

/*
 * Reads the file. NULL: error is one line for people. Warns if others may read
 * or write the file.
 */
struct access *access_new(const char *path, char error[IDENTITIES_TEXT_MAX]);

/* After the last request has ended. NULL is ignored. */
void access_free(struct access *access);

/* Reads the file again, and logs what came of it. False: it cannot be used, and
 * all stays as it is. */
bool access_reload(struct access *access);

/*
 * The head was read: sets call->request->identity, or call->caller->refusal.
 * authorization: the field's value; ptr NULL: it was not sent.
 */
void access_admit(struct access *access, struct http_request *request,
                  struct span authorization);

/*
 * Whether a request that was let in may go on, by the file as it is now. names:
 * what it asks for, as far as it is known; len 0: what its path names. False:
 * sets call->caller->refusal.
 */
bool access_stands(struct access *access, struct http_call *call,
                   struct span names);

/* The body shows that the request counts as so many more, but no more than the
 * burst. */
bool access_charge(struct access *access, struct http_call *call, int count);

/* One more request, which has no head of its own: an operation of a batch
 * beside the first. */
bool access_charge_item(struct access *access, struct http_call *call);

/* Whether the identity may name them, as in names.h. */
bool access_allows(struct access *access, struct http_call *call,
                   struct span names);

/* A list: narrows the prefix to what the identity may see, as far as one prefix
 * can. False: it may see none of it. */
bool access_narrow(struct access *access, struct http_call *call,
                   struct span *prefix);

/* The number of the identity, below ASKERS_MAX, which it keeps while it is in
 * the file; 0: it has none. */
int access_number(const struct access *access, const struct http_call *call);

/* Whether a list shows it to the identity. */
bool access_shows(const struct access *access, const struct http_call *call,
                  struct span name);

/*
 * An acquire is about to begin: its lock counts among those that the identity
 * holds, until access_end. Acquires of one exclusive lock count once, those of
 * permits and readers each, except readers with one key: key_hash, empty
 * without a key. A permit too many that has a key sets
 * call->caller->reserves_late: it may only repeat, and if it turns out not to,
 * access_refuse_reservation tells.
 */
bool access_reserve(struct access *access, struct http_call *call,
                    struct span names, struct span key_hash);
void access_refuse_reservation(struct http_call *call);

/* The same for an extend, by the token. */
bool access_reserve_token(struct access *access, struct http_call *call,
                          struct span names, struct span token);

/* A release is about to begin: its lock may count no more when it is over. */
void access_reserve_release(struct access *access, struct http_call *call,
                            struct span names, struct span token);

/* A wait or a list is about to begin: takes one of most places, until
 * access_end. False: its identity has as many as are left to the others. */
bool access_take_place(struct access *access, struct http_call *call,
                       enum place place, int most);

/* What came of a call on a lock. A grant that is released again is not noted.
 */
void access_note(struct access *access, struct http_call *call,
                 const struct engine_result *result, int64_t now_us);

/* The call is abandoned, with this result so far: no client is notified, but
 * what it did counts. */
void access_note_abandoned(struct access *access, struct http_call *call,
                           const struct engine_result *result, int64_t now_us);

/* The request is over; is_answered: the client has its answer. */
void access_end(struct access *access, struct http_call *call,
                bool is_answered);

/* How many refusals of the identity the audit log reports; NULL: it is not
 * known. */
struct log_limit *access_refusals(struct access *access,
                                  const struct http_call *call);

/* Its metrics, behind the others. False: some are missing. */
bool access_print(struct access *access, int64_t now_us, FILE *out);

#endif
