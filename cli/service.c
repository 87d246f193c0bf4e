#include "service.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../api/message/jsonload.h"
#include "../server/base/clock.h"
#include "../server/base/process.h"
#include "../server/lock/names.h"
#include "answer.h"
#include "complain.h"
#include "verdict.h"

enum {
    SLICE_MS = 10000,       /* of a wait: proxies may cut long requests */
    ANSWER_MS = 5000,       /* timeout of a call, beyond its wait */
    EXTEND_MS = 2000,       /* the same for extend and release: time to retry */
    BACKOFF_FIRST_MS = 100, /* longest pause after all replicas failed once */
    BACKOFF_LAST_MS = 2000, /* and after many times */
    HOLDERS_PAUSE_US = 50000,
    HELD_ASKS = 5, /* of an acquire that is given up: as many replicas may stand
                      behind one address, and one of them has its wait */
    TELL_US = 5000000, /* from the first failure of an acquire to a message */
};

bool service_open(struct service *service, const struct options *options,
                  const struct wake *wake, struct credentials *credentials)
{
    assert(options->urls_count > 0);
    *service = (struct service){
        .http = http_new(wake, &credentials->trust),
        .options = options,
        .wake = wake,
        .credentials = credentials,
    };
    return service->http != NULL;
}

void service_close(struct service *service)
{
    http_free(service->http);
}

/* ---- one call ------------------------------------------------------------ */

/*
 * Asks the current replica; after a 401 again, if the file has a new token. If
 * it cannot help, the next one is current.
 */
static enum verdict ask_one(struct service *service, struct question *question,
                            struct http_answer *answer)
{
    const struct options *options = service->options;
    struct http_request *request = &question->http;
    request->base = options->urls[service->current];
    request->bearer = service->credentials->bearer;
    request->timeout_ms = at_least(request->timeout_ms, 1);
    http_call(service->http, request, answer);
    if (answer->status == HTTP_UNAUTHORIZED &&
        credentials_refresh(service->credentials)) {
        http_answer_free(answer);
        http_call(service->http, request, answer);
    }
    enum verdict verdict = answer_verdict(answer, question);
    if (verdict != VERDICT_DONE && verdict != VERDICT_STOPPED)
        answer_explain(answer, question,
                       credentials_advice(service->credentials),
                       options->is_shared, service->detail);
    if (verdict_may_others_help(verdict))
        service->current = (service->current + 1) % options->urls_count;
    return verdict;
}

/* The pause after each replica has failed rounds times: longer, and random. */
static int64_t backoff_ms(int rounds, const struct http_answer *answer)
{
    int64_t told_ms = at_most(answer->retry_after_ms, BACKOFF_LAST_MS) / 2;
    int64_t most_ms = BACKOFF_FIRST_MS;
    uint32_t bits = 0;
    for (int i = 1; i < rounds && most_ms < BACKOFF_LAST_MS; i++)
        most_ms *= 2;
    if (answer->status == HTTP_TOO_MANY) /* it would refuse until then */
        told_ms = answer->retry_after_ms;
    random_fill(&bits, sizeof bits);
    return told_ms + bits % (most_ms + 1);
}

/* Counts the failures of a call over all replicas. */
struct attempts {
    int failed;
    int hopeless;       /* the last ones, without another failure between:
                           denied, or from something else */
    bool may_pass;      /* one of those */
    bool may_have_done; /* the call: an answer was lost, or unclear */
    bool is_holders;    /* by the holder: short pauses, no message */
    int64_t give_up_us;
    int64_t tell_us; /* when people are told; 0: nothing failed, or told */
    int64_t hope_us; /* until then, what may pass is no end */
};

/* How many replicas in turn are of no use, for good or for a while. */
static void note_hopes(struct attempts *attempts,
                       const struct http_answer *answer, enum verdict verdict)
{
    bool is_foreign = verdict == VERDICT_FOREIGN;
    if (verdict != VERDICT_DENIED && !is_foreign) {
        attempts->hopeless = 0;
        return;
    }
    if (attempts->hopeless++ == 0) {
        attempts->may_pass = false;
        attempts->hope_us = clock_now_us() + TELL_US;
    }
    attempts->may_pass |= is_foreign && answer_may_pass(answer);
}

/*
 * When a replica could not help: pauses when each has failed as often as the
 * others. False: the time is up, all have denied it or are no redlockd, or wake
 * said to stop.
 */
static bool may_try_again(const struct service *service,
                          struct attempts *attempts,
                          const struct http_answer *answer,
                          enum verdict *verdict)
{
    if (attempts->failed++ == 0 && !attempts->is_holders)
        attempts->tell_us = clock_now_us() + TELL_US;
    note_hopes(attempts, answer, *verdict);
    if (attempts->hopeless == 0)
        attempts->may_have_done |= answer_may_be_done(
            answer, service->options->command_id == COMMAND_RELEASE);
    if (attempts->failed % service->options->urls_count != 0)
        return true;
    int64_t now_us = clock_now_us();
    if (attempts->hopeless >= service->options->urls_count &&
        !service->outlasts_denials &&
        (!attempts->may_pass || now_us >= attempts->hope_us))
        return false;
    int64_t left_us = attempts->give_up_us - now_us;
    if (left_us <= 0)
        return false;
    if (attempts->tell_us != 0 && now_us >= attempts->tell_us) {
        complain("no lock yet, still trying: %s", service->detail);
        attempts->tell_us = 0;
    }
    int rounds = attempts->failed / service->options->urls_count;
    int64_t pause_us = backoff_ms(rounds, answer) * US_PER_MS;
    if (attempts->is_holders)
        pause_us = at_most(pause_us, at_least(left_us / 4, HOLDERS_PAUSE_US));
    if (wake_wait(service->wake, now_us + at_most(pause_us, left_us)))
        return true;
    *verdict = VERDICT_STOPPED;
    return false;
}

/* Hands the body over to the caller, or frees it. */
static void give_body(struct http_answer *answer, json_t **body)
{
    if (body == NULL) {
        http_answer_free(answer);
        return;
    }
    json_decref(*body);
    *body = answer->body;
}

/* ---- acquire ------------------------------------------------------------- */

/* Frees json, which may be NULL: then the text is, too. */
static char *print_wish(json_t *json)
{
    size_t len = json_dumpb(json, NULL, 0, JSON_COMPACT); /* 0: no memory */
    char *text = len > 0 ? jsonload_allocate(len + 1) : NULL;
    if (text != NULL && json_dumpb(json, text, len, JSON_COMPACT) != len) {
        free(text);
        text = NULL;
    }
    if (text != NULL)
        text[len] = '\0';
    json_decref(json);
    return text;
}

/*
 * free() it. NULL: no memory, or a text is not UTF-8. If jsonload_has_failed
 * tells so, members may be missing.
 */
static char *format_wish(const struct options *options, int64_t ttl_ms,
                         int64_t wait_ms)
{
    bool is_permit = options->limit > 0; /* of one resource, which is named */
    json_t *list = is_permit ? NULL : json_array();
    for (int i = 0; i < options->resources_count && !is_permit; i++)
        if (json_array_append_new(list, json_string(options->resources[i])) !=
            0) {
            json_decref(list);
            return NULL;
        }
    return print_wish(json_pack(
        "{s:o*, s:s*, s:o*, s:o*, s:I, s:I, s:s*, s:s*}", "resources", list,
        "resource", is_permit ? options->resources[0] : NULL, "limit",
        is_permit ? json_integer(options->limit) : NULL, "permits",
        is_permit ? json_integer(at_least(options->permits, 1)) : NULL,
        "ttl_ms", (json_int_t)ttl_ms, "wait_ms", (json_int_t)wait_ms, "owner",
        options->owner, "mode", options->is_shared ? "shared" : NULL));
}

/* The slots of a permit. False: as below. */
static bool read_slots(struct lock *lock, const json_t *body)
{
    const json_t *slots = json_object_get(body, "slots");
    size_t count = json_array_size(slots), len = 0;
    if (count < 1 || count > NAMES_MAX)
        return false;
    for (size_t i = 0; i < count; i++) {
        int slot = (int)json_integer_value(json_array_get(slots, i));
        if (slot < 0 || slot >= POOL_SLOTS_MAX)
            return false;
        len += (size_t)snprintf(lock->slots + len, sizeof lock->slots - len,
                                "%s%d", i > 0 ? " " : "", slot);
    }
    return true;
}

/* The answer is a grant. False: it is too long for redlockctl. */
static bool read_lock(struct service *service, struct lock *lock,
                      const struct http_answer *answer)
{
    const json_t *body = answer->body;
    const char *id = http_text(body, "id"), *token = http_text(body, "token");
    int64_t elapsed_ms = http_number(body, "elapsed_ms");
    (void)snprintf(service->detail, sizeof service->detail,
                   "the answer tells of no lock");
    if (strlen(id) >= sizeof lock->id || strlen(token) >= sizeof lock->token)
        return false;
    service->detail[0] = '\0';
    memcpy(lock->id, id, strlen(id) + 1);
    memcpy(lock->token, token, strlen(token) + 1);
    lock->fencing_token = http_number(body, "fencing_token");
    lock->max_hold_ms = http_number(body, "max_hold_ms");
    int64_t granted_us = answer->sent_us + elapsed_ms * US_PER_MS;
    lock->until_us = granted_us + http_number(body, "validity_ms") * US_PER_MS;
    lock->renew_us =
        granted_us + http_number(body, "renew_after_ms") * US_PER_MS;
    return true;
}

static enum verdict acquire_once(struct service *service, int64_t ttl_ms,
                                 int64_t wait_ms, int64_t timeout_ms,
                                 struct http_answer *answer)
{
    char *wish = format_wish(service->options, ttl_ms, wait_ms);
    struct question question = {
        .http = {.method = "POST",
                 .path = "/locks",
                 .header = service->key_header,
                 .timeout_ms = wait_ms + timeout_ms,
                 .body = wish},
        .kind = ANSWER_GRANT,
    };
    bool is_starved = jsonload_has_failed();
    if (is_starved || wish == NULL) {
        (void)snprintf(service->detail, sizeof service->detail, "%s",
                       is_starved
                           ? "out of memory"
                           : "the resource or the owner is not valid UTF-8");
        *answer = (struct http_answer){.status = 0};
        free(wish);
        return is_starved ? VERDICT_STARVED : VERDICT_REFUSED;
    }
    enum verdict verdict = ask_one(service, &question, answer);
    free(wish);
    return verdict;
}

/*
 * After VERDICT_HELD. If the server has waited, asks again at once; otherwise
 * it has said when to try again.
 */
static bool may_wait_on(const struct service *service, int64_t give_up_us,
                        const struct http_answer *answer, enum verdict *verdict)
{
    int64_t now_us = clock_now_us();
    int64_t again_us = now_us;
    if (now_us >= give_up_us)
        return false;
    if (json_object_get(answer->body, "waited_ms") == NULL)
        again_us += answer->retry_after_ms * US_PER_MS;
    if (wake_wait(service->wake, at_most(again_us, give_up_us)))
        return true;
    *verdict = VERDICT_STOPPED;
    return false;
}

static void draw_key(struct service *service)
{
    unsigned char key[SERVICE_KEY_BYTES];
    char *header = service->key_header;
    random_fill(key, sizeof key);
    int len = snprintf(header, sizeof service->key_header, SERVICE_KEY_NAME);
    for (size_t i = 0; i < sizeof key; i++)
        (void)snprintf(header + len + 2 * i, 3, "%02x", key[i]);
}

/* Whether a request that ended so may have got the lock. */
static bool may_have_got(enum verdict verdict, const struct http_answer *answer)
{
    return verdict == VERDICT_STOPPED ||
           (verdict_may_others_help(verdict) && verdict != VERDICT_DENIED &&
            answer->status != HTTP_TOO_MANY);
}

enum verdict service_acquire(struct service *service, struct lock *lock,
                             json_t **body)
{
    int64_t wait_all_ms = service->options->wait_ms;
    struct attempts attempts = {.give_up_us = INT64_MAX};
    enum verdict verdict = VERDICT_UNAVAILABLE;
    struct http_answer answer;
    bool is_again = true;
    if (wait_all_ms != OPTIONS_UNSET)
        attempts.give_up_us = clock_now_us() + wait_all_ms * US_PER_MS;
    draw_key(service);
    service->may_be_granted = false;
    while (is_again) {
        int64_t left_us = attempts.give_up_us - clock_now_us();
        int64_t wait_ms =
            at_most(divide_up(at_least(left_us, 0), US_PER_MS), SLICE_MS);
        verdict = acquire_once(service, service->options->ttl_ms, wait_ms,
                               ANSWER_MS, &answer);
        is_again = false;
        if (verdict == VERDICT_DONE &&
            (!read_lock(service, lock, &answer) ||
             (service->options->limit > 0 && !read_slots(lock, answer.body))))
            verdict = VERDICT_UNAVAILABLE;
        service->may_be_granted |= may_have_got(verdict, &answer);
        if (verdict == VERDICT_HELD) {
            attempts.failed = attempts.hopeless = 0;
            is_again =
                may_wait_on(service, attempts.give_up_us, &answer, &verdict);
        } else if (verdict_may_others_help(verdict)) {
            is_again = may_try_again(service, &attempts, &answer, &verdict);
        }
        give_body(&answer, body);
    }
    return verdict;
}

/* ---- extend and release -------------------------------------------------- */

/* How long a replica may take: leaves time for the others, and for a second
 * try. */
static int64_t part_ms(int64_t give_up_us, int64_t most_ms)
{
    int64_t left_ms = (give_up_us - clock_now_us()) / US_PER_MS;
    return at_most(most_ms, at_least(left_ms / 4, 100));
}

/* A call by the holder, to one replica after the other. */
static enum verdict ask_all(struct service *service, struct question *question,
                            int64_t give_up_us, int64_t timeout_ms,
                            struct attempts *attempts,
                            struct http_answer *answer)
{
    struct http_request *request = &question->http;
    *attempts = (struct attempts){.is_holders = true, .give_up_us = give_up_us};
    for (;;) {
        request->timeout_ms =
            give_up_us != 0 ? part_ms(give_up_us, timeout_ms) : timeout_ms;
        enum verdict verdict = ask_one(service, question, answer);
        if (!verdict_may_others_help(verdict) ||
            !may_try_again(service, attempts, answer, &verdict))
            return verdict;
        http_answer_free(answer);
    }
}

enum verdict service_extend(struct service *service, struct lock *lock,
                            int64_t give_up_us, json_t **body)
{
    char path[ID_MAX + 32], header[TOKEN_MAX + 32], wish[64];
    struct question question = {
        .http = {.method = "PUT", .path = path, .header = header, .body = wish},
        .kind = ANSWER_GRANT,
        .id = lock->id};
    struct attempts attempts;
    struct http_answer answer;
    (void)snprintf(path, sizeof path, "/locks/%s/extend", lock->id);
    (void)snprintf(header, sizeof header, "X-Lock-Token: %s", lock->token);
    (void)snprintf(wish, sizeof wish, "{\"ttl_ms\":%" PRId64 "%s}",
                   service->options->ttl_ms,
                   service->options->is_shared ? ",\"mode\":\"shared\"" : "");
    enum verdict verdict =
        ask_all(service, &question, give_up_us, EXTEND_MS, &attempts, &answer);
    if (verdict == VERDICT_DONE && !read_lock(service, lock, &answer))
        verdict = VERDICT_UNAVAILABLE;
    give_body(&answer, body);
    return verdict;
}

enum verdict service_release(struct service *service, const char *id,
                             const char *token, int64_t give_up_us,
                             bool *is_repeated, json_t **body)
{
    char path[ID_MAX + 32], header[TOKEN_MAX + 32];
    struct question question = {
        .http = {.method = "DELETE", .path = path, .header = header},
        .kind = ANSWER_RELEASE,
        .id = id};
    struct attempts attempts;
    struct http_answer answer;
    (void)snprintf(path, sizeof path, "/locks/%s", id);
    (void)snprintf(header, sizeof header, "X-Lock-Token: %s", token);
    enum verdict verdict =
        ask_all(service, &question, give_up_us, EXTEND_MS, &attempts, &answer);
    *is_repeated = attempts.may_have_done;
    give_body(&answer, body);
    return verdict;
}

enum verdict service_ask(struct service *service, struct question *question,
                         int64_t wait_ms, json_t **body)
{
    struct attempts attempts;
    struct http_answer answer;
    enum verdict verdict =
        ask_all(service, question, 0, ANSWER_MS + wait_ms, &attempts, &answer);
    give_body(&answer, body);
    return verdict;
}

/* ---- a hold that begins anew ----------------------------------------------
 */

/* What the answer to a repeat means for the holder. */
static enum verdict judge_repeat(struct service *service,
                                 const struct lock *lock,
                                 const struct http_answer *answer,
                                 struct lock *fresh)
{
    const char *why = NULL;
    if (!read_lock(service, fresh, answer))
        return VERDICT_FOREIGN;
    if (strcmp(fresh->id, lock->id) != 0)
        why = "its slots were free meanwhile";
    else if (answer->status != HTTP_OK)
        why = "it was free meanwhile";
    else if (clock_now_us() >= lock->until_us)
        why = "its validity ended meanwhile";
    if (why == NULL)
        return VERDICT_DONE;
    (void)snprintf(service->detail, sizeof service->detail, "%s", why);
    return VERDICT_LOST;
}

/* Whether the lock of a 409 is none that this redlockctl may have got. */
static bool is_of_other(const struct http_answer *answer,
                        const struct lock *lock,
                        const struct attempts *attempts)
{
    const json_t *holder = json_object_get(answer->body, "held_by");
    int64_t number = http_number(holder, "fencing_token");
    return number != 0 && number != lock->fencing_token &&
           http_number(holder, "readers") == 0 && !attempts->may_have_done;
}

/* What a 409 to a repeat means for the holder. */
static enum verdict judge_holder(struct service *service,
                                 const struct lock *lock,
                                 const struct http_answer *answer,
                                 const struct attempts *attempts)
{
    size_t len = strlen(service->detail);
    /* or clocks differ, or the access token's name was replaced: the service
     * knows a key only together with the name that it came from */
    if (*service->credentials->bearer)
        (void)snprintf(service->detail + len, sizeof service->detail - len,
                       ", or the access token is that of another identity than "
                       "when the lock was acquired");
    return is_of_other(answer, lock, attempts) ? VERDICT_LOST
                                               : VERDICT_UNAVAILABLE;
}

enum verdict service_renew_hold(struct service *service, struct lock *lock,
                                int64_t give_up_us)
{
    struct attempts attempts = {.is_holders = true, .give_up_us = give_up_us};
    for (;;) {
        struct lock fresh = *lock;
        struct http_answer answer;
        enum verdict verdict =
            acquire_once(service, service->options->ttl_ms, 0,
                         part_ms(give_up_us, EXTEND_MS), &answer);
        if (verdict == VERDICT_DONE) {
            verdict = judge_repeat(service, lock, &answer, &fresh);
            if (verdict != VERDICT_FOREIGN)
                *lock = fresh; /* also to release it */
        } else if (verdict == VERDICT_HELD) {
            verdict = judge_holder(service, lock, &answer, &attempts);
        }
        bool is_again = verdict_may_others_help(verdict) &&
                        may_try_again(service, &attempts, &answer, &verdict);
        http_answer_free(&answer);
        if (!is_again)
            return verdict;
    }
}

/* ---- an acquire that is given up ----------------------------------------- */

/*
 * Asks with the key, without a wait: that also ends the wait of the request
 * that was given up, on the replica that it reaches. True: the lock is ours.
 */
static bool ask_for_it(struct service *service, int64_t give_up_us,
                       struct lock *lock, enum verdict *verdict)
{
    bool is_ours = false;
    *verdict = VERDICT_HELD;
    for (int i = 0; i < HELD_ASKS && *verdict == VERDICT_HELD; i++) {
        struct http_answer answer;
        int64_t left_ms = (give_up_us - clock_now_us()) / US_PER_MS;
        /* the rest is to release it */
        *verdict = acquire_once(service, TTL_MIN_MS, 0,
                                at_least(left_ms / 2, 1), &answer);
        is_ours = *verdict == VERDICT_DONE && read_lock(service, lock, &answer);
        http_answer_free(&answer);
    }
    return is_ours;
}

/* True: nothing is held, or it is released. */
static bool take_back(struct service *service, int64_t give_up_us,
                      bool *was_lost, bool *is_stopped)
{
    struct lock lock;
    enum verdict verdict;
    bool is_repeated = false;
    bool is_ours = ask_for_it(service, give_up_us, &lock, &verdict);
    if (is_ours)
        verdict = service_release(service, lock.id, lock.token, give_up_us,
                                  &is_repeated, NULL);
    *is_stopped = verdict == VERDICT_STOPPED;
    if (!is_ours)
        return verdict == VERDICT_HELD || verdict == VERDICT_REFUSED;
    /* the request that was given up may have come later, and taken its place */
    bool is_lost = verdict == VERDICT_LOST && !is_repeated && !*was_lost;
    *was_lost |= is_lost;
    return !is_lost && !verdict_may_others_help(verdict) && !*is_stopped;
}

bool service_give_back(struct service *service, int64_t give_up_us)
{
    bool was_lost = false, is_stopped = false;
    if (!service->may_be_granted)
        return true;
    /* each replica once, and one of them again */
    for (int i = 0; i <= service->options->urls_count; i++) {
        if (take_back(service, give_up_us, &was_lost, &is_stopped))
            return true;
        int64_t next_us = clock_now_us() + HOLDERS_PAUSE_US;
        if (is_stopped || next_us >= give_up_us ||
            !wake_wait(service->wake, next_us))
            break;
    }
    return false;
}
