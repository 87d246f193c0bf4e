/* SPDX-License-Identifier: MIT */
#include "access.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "../../server/base/clock.h"
#include "../../server/base/log.h"
#include "../../server/engine/port/token.h"

static_assert((int)IDENTITIES_MAX < (int)ASKERS_MAX, "");

/* 401s at once, for all who are not known together. */
enum { STRANGERS_RATE = 100, STRANGERS_BURST = 200 };

struct access {
    const char *path;
    struct accounts accounts;
    struct holdings *holdings;
    struct bucket strangers;
    uint64_t unauthorized; /* requests */
    int places[PLACES];    /* that are taken */
    uint64_t reservations; /* of acquires: tells them apart */
};

/* ---- the file ----------------------------------------------------------- */

/* Reads the file and goes by it. False: error has the reason. */
static bool access_update(struct access *access,
                          char error[IDENTITIES_TEXT_MAX])
{
    struct identities *identities = identities_load(access->path, error);
    if (identities == NULL)
        return false;
    if (!accounts_set(&access->accounts, identities, clock_now_us())) {
        identities_free(identities);
        identities_explain(access->path, "out of memory", error);
        return false;
    }
    log_write(LOG_INFO, "auth_file_read",
              (struct log_field[]){LOG_S("file", access->path),
                                   LOG_N("identities", identities->count),
                                   LOG_END});
    return true;
}

struct access *access_new(const char *path, char error[IDENTITIES_TEXT_MAX])
{
    struct access *access = calloc(1, sizeof *access);
    identities_explain(path, "out of memory", error);
    if (access == NULL)
        return NULL;
    access->path = path;
    access->holdings = holdings_new();
    bucket_init(&access->strangers, STRANGERS_BURST, clock_now_us());
    if (access->holdings == NULL || !access_update(access, error)) {
        access_free(access);
        return NULL;
    }
    return access;
}

void access_free(struct access *access)
{
    if (access == NULL)
        return;
    holdings_free(access->holdings);
    accounts_fini(&access->accounts);
    free(access);
}

bool access_reload(struct access *access)
{
    char error[IDENTITIES_TEXT_MAX];
    if (access == NULL || access_update(access, error))
        return true;
    const struct log_field fields[] = {
        LOG_S("reason", error),
        LOG_N("identities", access->accounts.identities->count), /* as before */
        LOG_END};
    log_write(LOG_WARN, "auth_file_refused", fields);
    return false;
}

/* ---- who asks ----------------------------------------------------------- */

#define CHALLENGE "Bearer realm=\"redlockd\""
#define INVALID_TOKEN CHALLENGE ", error=\"invalid_token\""

/* The token of "Bearer <token>", RFC 6750 §2.1; ptr NULL: another scheme. */
static struct span access_token_of(struct span authorization)
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
static int access_find_token(const struct identities *identities, uint32_t file,
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

static void access_refuse(struct http_call *call, enum problem_code code,
                          const char *detail)
{
    call->caller->refusal.code = code;
    call->caller->refusal.detail = detail;
}

/* Its token is missing or not good. Returns -1. */
static int refuse_401(struct http_call *call, const char *challenge,
                      const char *detail)
{
    access_refuse(call, PROBLEM_UNAUTHORIZED, detail);
    call->caller->refusal.challenge = challenge;
    return -1;
}

void access_respond_refusal(const struct http_call *call)
{
    const struct refusal *refusal = &call->caller->refusal;
    const struct problem problem = {.code = refusal->code,
                                    .detail = refusal->detail,
                                    .retry_after_ms = refusal->retry_after_ms};
    problem_respond(call, &problem);
    call->response->challenge = refusal->challenge;
}

/* The number of the identity; -1: the call's refusal gives the reason. */
static int find_identity(const struct access *access,
                         struct http_request *request,
                         struct span authorization)
{
    const struct identities *identities = access->accounts.identities;
    const char *names = request->peer_names;
    int number;
    if (authorization.ptr != NULL) { /* it counts more than a certificate */
        struct span token = access_token_of(authorization);
        if (token.ptr == NULL)
            return refuse_401(&request->call, CHALLENGE,
                              "the only supported authorization is "
                              "Authorization: Bearer <token>");
        number = access_find_token(identities, access->accounts.reads,
                                   request->login, token);
        return number >= 0
                   ? number
                   : refuse_401(
                         &request->call, INVALID_TOKEN,
                         "no identity in this server's auth file has this "
                         "access token; send another one, or add it there");
    }
    if (names == NULL || names[0] == '\0')
        return refuse_401(&request->call, CHALLENGE,
                          "send an access token, as in Authorization: "
                          "Bearer <token>");
    number = identities_find_certificate(identities, span_of(names));
    if (number >= 0)
        return number;
    return refuse_401(
        &request->call, CHALLENGE,
        number == IDENTITIES_SEVERAL
            ? "the client certificate matches several identities; use a "
              "certificate that matches only one, or send an access token"
            : "no identity in this server's auth file has a name of this "
              "client certificate; add one, or send an access token, as in "
              "Authorization: Bearer <token>");
}

/* ---- what it may do ----------------------------------------------------- */

static const char outside[] = "this identity may not use this resource; it "
                              "needs a prefix= in the auth file that covers it";
static const char too_many_locks[] =
    "this identity holds as many locks on this server as its quota (locks=) "
    "allows; release one, or wait until one expires";
static const char removed[] = "this identity was removed from the auth file "
                              "while its request was under way";

/* What a request needs; -1: it is open to all. */
static int scope_of(const struct http_call *call)
{
    static const enum scope of_calls[LOCK_CALLS] = {
        [LOCK_ACQUIRE] = SCOPE_LOCK, [LOCK_EXTEND] = SCOPE_LOCK,
        [LOCK_RELEASE] = SCOPE_LOCK, [LOCK_INSPECT] = SCOPE_READ,
        [LOCK_FORCE] = SCOPE_ADMIN,
    };
    switch (call->request->match.route) {
    case ROUTE_LOCK:
    case ROUTE_LIST:
    case ROUTE_POOL:
    case ROUTE_BATCH:
    case ROUTE_BAD_ID:
        return (int)of_calls[call->kind];
    case ROUTE_NODES:
        return SCOPE_READ;
    case ROUTE_READYZ: /* with the nodes, or only whether they are enough */
        return query_has(&call->request->query, QUERY_VERBOSE) ? (int)SCOPE_READ
                                                               : -1;
    case ROUTE_METRICS:
        return SCOPE_METRICS;
    default:
        return -1;
    }
}

static const char *const lacks_scope[SCOPES] = {
    [SCOPE_LOCK] = "this identity lacks the scope lock, which acquire, extend "
                   "and release need",
    [SCOPE_READ] = "this identity lacks the scope read, which inspections, "
                   "lists, /nodes and /readyz?verbose need",
    [SCOPE_METRICS] = "this identity lacks the scope metrics, which /metrics "
                      "needs",
    [SCOPE_ADMIN] = "this identity lacks the scope admin, which a release by "
                    "force needs",
};

/* Of those that the identity may make. False: it has not so many left. */
static bool take_requests(struct account *account, struct http_call *call,
                          int count)
{
    const struct identity *identity = account->identity;
    int64_t now_us = call->request->head_read_us;
    int64_t wait_us, ignored;
    if (identity->rate == 0 ||
        bucket_take(&account->requests, identity->rate, identity->burst, count,
                    now_us, &wait_us))
        return true;
    access_refuse(call, PROBLEM_RATE_LIMITED,
                  "this identity exceeds its rate of requests (rate=, burst=); "
                  "wait retry_after_ms");
    call->caller->refusal.retry_after_ms =
        divide_up(wait_us, US_PER_MS) + retry_within_ms(RETRY_MAX_MS);
    call->caller->refusal.is_late =
        !bucket_take(&account->refusals, identity->rate, identity->burst, 1,
                     now_us, &ignored);
    return false;
}

static const char *const no_place[PLACES] = {
    [PLACE_WAIT] =
        "this identity already waits for as many locks on this server as one "
        "identity may; wait retry_after_ms, or use another server",
    [PLACE_LIST] = "this identity already runs as many lists on this server as "
                   "one identity may; wait retry_after_ms",
};

/*
 * Whether there is one more, of most in all. Nobody takes more of them than are
 * left, so there is always one for somebody else.
 */
static bool has_place(const struct access *access,
                      const struct account *account, enum place place, int most)
{
    return account->places[place] < most - access->places[place];
}

static void note_result(struct http_call *call, enum account_result result)
{
    call->caller->has_result = true;
    call->caller->result = result;
}

static bool access_is_over(int64_t expires_s)
{
    return expires_s != 0 && clock_wall_us() / US_PER_S >= expires_s;
}

/* names: those that are known so far; len 0: those of the path. */
static bool check_rights(const struct access *access,
                         const struct identity *identity,
                         struct http_call *call, struct span names)
{
    char of_path[NAMES_LEN_MAX];
    int scope = scope_of(call);
    assert(scope >= 0);
    struct span wanted =
        names.len > 0 ? names : route_names(&call->request->match, of_path);
    call->caller->auth_file = access->accounts.reads;
    call->caller->expires_s = identity->expires_s;
    if (access_is_over(identity->expires_s))
        (void)refuse_401(call, INVALID_TOKEN,
                         "this identity has expired: the time of expires= in "
                         "the auth file has passed");
    else if ((identity->scopes & 1u << scope) == 0)
        access_refuse(call, PROBLEM_FORBIDDEN, lacks_scope[scope]);
    else if (wanted.len > 0 && !identity_covers(identity, wanted))
        access_refuse(call, PROBLEM_FORBIDDEN, outside);
    return call->caller->refusal.detail == NULL;
}

static enum account_result access_judge(struct access *access,
                                        struct account *account,
                                        struct http_call *call)
{
    const struct route_match *match = &call->request->match;
    struct refusal *refusal = &call->caller->refusal;
    if (!take_requests(account, call, http_price(call->request)))
        return ACCOUNT_LIMITED;
    if (!check_rights(access, account->identity, call, (struct span){0}))
        return ACCOUNT_FORBIDDEN;
    /* a repeat may be of a lock that is counted already: locks_begin looks */
    if (match->route == ROUTE_LOCK && match->call == LOCK_ACQUIRE &&
        account->locks_most != 0 && call->idempotency_key.ptr == NULL &&
        holdings_is_full(access->holdings, account,
                         call->request->head_read_us))
        access_refuse(call, PROBLEM_LOCK_QUOTA_EXCEEDED, too_many_locks);
    /* list_begin looks again */
    if ((match->route == ROUTE_LIST || match->route == ROUTE_POOL) &&
        !has_place(access, account, PLACE_LIST, ENGINE_LISTS_MAX)) {
        access_refuse(call, PROBLEM_RATE_LIMITED, no_place[PLACE_LIST]);
        refusal->is_late = true;
    }
    if (refusal->detail == NULL)
        return ACCOUNT_ALLOWED;
    refusal->retry_after_ms = retry_within_ms(RETRY_MAX_MS);
    return ACCOUNT_LIMITED;
}

void access_admit(struct access *access, struct http_request *request,
                  struct span authorization)
{
    if (access == NULL || scope_of(&request->call) < 0)
        return;
    int64_t wait_us;
    int number = find_identity(access, request, authorization);
    if (number < 0) {
        access->unauthorized++;
        request->call.caller->refusal.is_late =
            !bucket_take(&access->strangers, STRANGERS_RATE, STRANGERS_BURST, 1,
                         request->head_read_us, &wait_us);
        return;
    }
    struct account *account = access->accounts.list[number];
    memcpy(request->identity, account->identity->name,
           sizeof request->identity);
    note_result(&request->call, access_judge(access, account, &request->call));
}

/* ---- once more ---------------------------------------------------------- */

/* NULL: anybody may ask, or a reload removed it. */
static struct account *account_of(const struct access *access,
                                  const struct http_call *call)
{
    int i = access != NULL ? identities_find_name(access->accounts.identities,
                                                  call->request->identity)
                           : -1;
    return i >= 0 ? access->accounts.list[i] : NULL;
}

int access_number(const struct access *access, const struct http_call *call)
{
    const struct account *account = account_of(access, call);
    return account != NULL ? account->number : 0;
}

bool access_stands(struct access *access, struct http_call *call,
                   struct span names)
{
    if (access == NULL || call->caller->auth_file == 0 ||
        (call->caller->auth_file == access->accounts.reads &&
         !access_is_over(call->caller->expires_s)))
        return true;
    const struct account *account = account_of(access, call);
    if (account == NULL || account->since > call->caller->auth_file)
        (void)refuse_401(call, INVALID_TOKEN, removed);
    else if (check_rights(access, account->identity, call, names))
        return true;
    note_result(call, ACCOUNT_FORBIDDEN);
    return false;
}

/* It was refused when its body was read, or later; false. */
static bool respond_late(struct http_call *call, enum account_result result)
{
    note_result(call, result);
    access_respond_refusal(call);
    return false;
}

/* It may not have one more of these; false. */
static bool respond_busy(struct http_call *call, enum problem_code code,
                         const char *detail)
{
    access_refuse(call, code, detail);
    call->caller->refusal.retry_after_ms = retry_within_ms(RETRY_MAX_MS);
    return respond_late(call, ACCOUNT_LIMITED);
}

/* For the second time, with the body. */
static bool refuse_now(const struct account *account, struct http_call *call)
{
    if (account != NULL)
        access_refuse(call, PROBLEM_FORBIDDEN, outside);
    else
        (void)refuse_401(call, INVALID_TOKEN, removed);
    return respond_late(call, ACCOUNT_FORBIDDEN);
}

bool access_shows(const struct access *access, const struct http_call *call,
                  struct span name)
{
    const struct account *account = account_of(access, call);
    return access == NULL ||
           (account != NULL && identity_covers(account->identity, name));
}

/* count 0: nothing more. */
static bool charge(struct account *account, struct http_call *call, int count)
{
    return count == 0 || take_requests(account, call, count) ||
           respond_late(call, ACCOUNT_LIMITED);
}

bool access_charge(struct access *access, struct http_call *call, int count)
{
    struct account *account = account_of(access, call);
    if (account == NULL || account->identity->rate == 0)
        return true;
    /* the head was one of them: a full bucket must be enough */
    int64_t most = account->identity->burst - 1;
    return charge(account, call, count < most ? count : (int)most);
}

bool access_charge_item(struct access *access, struct http_call *call)
{
    struct account *account = account_of(access, call);
    return account == NULL || charge(account, call, 1);
}

bool access_allows(struct access *access, struct http_call *call,
                   struct span names)
{
    return access_shows(access, call, names) ||
           refuse_now(account_of(access, call), call);
}

bool access_narrow(struct access *access, struct http_call *call,
                   struct span *prefix)
{
    const struct account *account = account_of(access, call);
    return access == NULL ||
           (account != NULL && identity_narrow(account->identity, prefix)) ||
           refuse_now(account, call);
}

/* ---- locks held --------------------------------------------------------- */

void access_refuse_reservation(struct http_call *call)
{
    (void)respond_busy(call, PROBLEM_LOCK_QUOTA_EXCEEDED, too_many_locks);
}

static bool access_reserve_lock(struct access *access, struct http_call *call,
                                const struct holding_lock *lock)
{
    struct account *account = account_of(access, call);
    if (account == NULL || account->locks_most == 0)
        return true;
    switch (holdings_reserve(access->holdings, account, lock,
                             call->request->head_read_us,
                             &call->caller->reservation)) {
    case HOLDINGS_RESERVED:
        return true;
    case HOLDINGS_FULL:
        return respond_busy(call, PROBLEM_LOCK_QUOTA_EXCEEDED, too_many_locks);
    default:
        problem_respond_overloaded(call,
                                   "not enough memory to count this lock; "
                                   "nothing was done; try again later");
        return false;
    }
}

bool access_reserve(struct access *access, struct http_call *call,
                    struct span names, struct span key_hash)
{
    const struct account *account = account_of(access, call);
    struct holding_lock lock = {.names = names};
    char digits[DIGITS_MAX];
    bool is_permit = call->limit > 0;
    if (account == NULL || account->locks_most == 0)
        return true;
    if (is_permit && call->idempotency_key.ptr != NULL &&
        holdings_is_full(access->holdings, account,
                         call->request->head_read_us)) {
        call->caller->reserves_late = true;
        return true;
    }
    /* a permit's slots are not known before its grant, nor a reader's token: a
     * number for this request only; no token has so few digits */
    struct span number = span_of_number(digits, ++access->reservations);
    if (is_permit || call->is_shared)
        lock.reader = is_permit || key_hash.len == 0 ? number : key_hash;
    return access_reserve_lock(access, call, &lock);
}

/* Of a token of ours. */
static struct span random_of(struct span token)
{
    static_assert((int)HOLDING_READER_MAX == 2 * TOKEN_RANDOM_BYTES, "");
    return (struct span){token.ptr + TOKEN_NUMBER_LEN + 1, HOLDING_READER_MAX};
}

/*
 * A reader is another one than those with other tokens; but a repeat replaces
 * the one with its key.
 */
static struct holding_lock access_lock_of(struct span names, struct span token)
{
    struct token_parts parts;
    bool is_ours = token_parse(token, &parts);
    assert(is_ours); /* locks looks first; and the engine made it */
    return (struct holding_lock){
        .names = names,
        .reader = parts.key_hash.len > 0 ? parts.key_hash : random_of(token),
        .may_be_either = !parts.is_shared,
        .number = parts.number,
    };
}

bool access_reserve_token(struct access *access, struct http_call *call,
                          struct span names, struct span token)
{
    const struct holding_lock lock = access_lock_of(names, token);
    return access_reserve_lock(access, call, &lock);
}

/* It reserves the lock, if that counts for its identity. */
static void reserve_known(struct access *access, struct http_call *call,
                          const struct holding_lock *lock)
{
    const struct account *account = account_of(access, call);
    if (account != NULL && account->locks > 0)
        call->caller->reservation =
            holdings_reserve_known(access->holdings, account, lock);
}

void access_reserve_release(struct access *access, struct http_call *call,
                            struct span names, struct span token)
{
    const struct holding_lock lock = access_lock_of(names, token);
    struct caller *caller = call->caller;
    reserve_known(access, call, &lock);
    caller->shows_token =
        caller->reservation != NULL &&
        holdings_has_token(caller->reservation, lock.number, random_of(token));
}

/* ---- places ------------------------------------------------------------- */

bool access_take_place(struct access *access, struct http_call *call,
                       enum place place, int most)
{
    struct account *account = account_of(access, call);
    if (account == NULL)
        return true;
    if (!has_place(access, account, place, most))
        return respond_busy(call, PROBLEM_RATE_LIMITED, no_place[place]);
    access->places[place]++;
    account->places[place]++;
    call->caller->placed = account;
    call->caller->place = place;
    return true;
}

/* ---- how it ended ------------------------------------------------------- */

/*
 * Whether the lock that the request names is not held now. The nodes find it
 * gone if it was released before: of several resources, one may have been by
 * force, and the others are now. But they know no token that they do not find,
 * so that has to be the one that counts here.
 */
static bool access_is_gone(const struct http_call *call, enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_RELEASED:
        return true;
    case OUTCOME_NOT_FOUND:
        return call->kind == LOCK_FORCE || call->caller->shows_token;
    case OUTCOME_NOT_OWNER:
        return call->caller->shows_token;
    default:
        return false;
    }
}

static void note_release(struct access *access, const struct http_call *call,
                         const struct engine_result *result)
{
    struct holding *held = call->caller->reservation;
    if (call->kind == LOCK_FORCE)
        holdings_force(access->holdings, result->resource, call->number);
    else if (held != NULL)
        holdings_release(access->holdings, held, call->number);
}

/* Granted, or extended. */
static void access_note_grant(struct access *access, struct http_call *call,
                              const struct engine_result *result,
                              int64_t now_us)
{
    struct caller *caller = call->caller;
    if (caller->reservation == NULL && !caller->reserves_late)
        return;
    if (result->is_shared || call->limit > 0) { /* which one is known now */
        struct holding_lock lock =
            access_lock_of(result->resource, result->token);
        if (!result->is_shared)
            lock.reader.len = 0;
        if (caller->reserves_late) /* unless it does not count here */
            reserve_known(access, call, &lock);
        else
            caller->reservation =
                holdings_move(access->holdings, caller->reservation, &lock);
    }
    if (caller->reservation != NULL) {
        holdings_grant(access->holdings, caller->reservation, result->number,
                       now_us + result->ttl_ms * US_PER_MS);
        holdings_set_token(caller->reservation, result->number,
                           random_of(result->token));
    }
    caller->granted = result->outcome == OUTCOME_GRANTED && !result->is_repeat
                          ? result->number
                          : 0;
}

void access_note(struct access *access, struct http_call *call,
                 const struct engine_result *result, int64_t now_us)
{
    if (access == NULL)
        return;
    if (access_is_gone(call, result->outcome))
        note_release(access, call, result);
    else if (result->outcome == OUTCOME_GRANTED ||
             result->outcome == OUTCOME_EXTENDED)
        access_note_grant(access, call, result, now_us);
}

void access_note_abandoned(struct access *access, struct http_call *call,
                           const struct engine_result *result, int64_t now_us)
{
    struct holding *held = call->caller->reservation;
    bool is_acquire = call->kind == LOCK_ACQUIRE;
    if (!is_acquire || result->is_repeat)
        access_note(access, call, result, now_us);
    else if (held != NULL && call->is_shared)
        /* that of a reader with the key: its repeat is not undone */
        holdings_keep(access->holdings, held,
                      now_us + call->ttl_ms * US_PER_MS);
}

void access_end(struct access *access, struct http_call *call, bool is_answered)
{
    struct caller *caller = call->caller;
    struct account *account =
        caller->has_result ? account_of(access, call) : NULL;
    if (account != NULL)
        account->results[caller->result]++;
    if (caller->placed != NULL) { /* its account is kept for that long */
        assert(access->places[caller->place] > 0 &&
               caller->placed->places[caller->place] > 0);
        access->places[caller->place]--;
        caller->placed->places[caller->place]--;
    }
    caller->placed = NULL;
    if (caller->reservation != NULL && caller->granted != 0 && !is_answered)
        holdings_release(access->holdings, caller->reservation,
                         caller->granted);
    if (caller->reservation != NULL)
        holdings_drop(access->holdings, caller->reservation);
    caller->reservation = NULL;
}

struct log_limit *access_refusals(struct access *access,
                                  const struct http_call *call)
{
    struct account *account = account_of(access, call);
    return account != NULL ? &account->reported : NULL;
}

/* ---- metrics ------------------------------------------------------------ */

bool access_print(struct access *access, int64_t now_us, FILE *out)
{
    if (access == NULL)
        return true;
    holdings_expire(access->holdings, now_us);
    return fprintf(out,
                   "# HELP redlockd_unauthorized_total Requests without a "
                   "known access token or certificate.\n"
                   "# TYPE redlockd_unauthorized_total counter\n"
                   "redlockd_unauthorized_total %" PRIu64 "\n",
                   access->unauthorized) >= 0 &&
           accounts_print(&access->accounts, out);
}
