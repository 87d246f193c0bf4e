/* SPDX-License-Identifier: MIT */
#include "replicas.h"

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

enum {
    SLICE_MS = 10000,       /* of a wait: proxies may cut long requests */
    ANSWER_MS = 5000,       /* timeout of a call, beyond its wait */
    EXTEND_MS = 2000,       /* the same for extend and release: time to retry */
    BACKOFF_FIRST_MS = 100, /* longest pause after all replicas failed once */
    BACKOFF_LAST_MS = 2000, /* and after many times */
    HOLDERS_PAUSE_US = 50000,
    HELD_ASKS = 5, /* of an acquire that is given up: as many replicas may stand
                      behind one address, and one of them has its wait */
    REPORT_US = 5000000, /* from the first failure of an acquire to a message */
};

bool replicas_open(struct replicas *replicas, const struct options *options,
                   struct wake *wake, struct credentials *credentials)
{
    assert(options->urls_count > 0);
    *replicas = (struct replicas){
        .fetch = fetch_new(wake, &credentials->trust),
        .options = options,
        .wake = wake,
        .credentials = credentials,
    };
    return replicas->fetch != NULL;
}

void replicas_close(struct replicas *replicas)
{
    json_decref(replicas->body);
    replicas->body = NULL;
    fetch_free(replicas->fetch);
}

/* ---- one call ------------------------------------------------------------ */

/*
 * Asks the current replica; after a 401 again, if the file has a new token. If
 * it cannot help, the next one is current.
 */
static enum answer ask_one(struct replicas *replicas, struct question *question,
                           struct fetch_answer *answer)
{
    const struct options *options = replicas->options;
    struct fetch_request *request = &question->request;
    request->base = options->urls[replicas->current];
    request->bearer = replicas->credentials->bearer;
    request->timeout_ms = at_least(request->timeout_ms, 1);
    fetch_call(replicas->fetch, request, answer);
    if (answer->status == HTTP_UNAUTHORIZED &&
        credentials_refresh(replicas->credentials)) {
        fetch_answer_free(answer);
        fetch_call(replicas->fetch, request, answer);
    }
    enum answer verdict = answer_judge(answer, question);
    if (verdict != ANSWER_DONE && verdict != ANSWER_STOPPED)
        answer_explain(answer, question,
                       credentials_advice(replicas->credentials),
                       options->is_shared, replicas->detail);
    if (answer_may_others_help(verdict))
        replicas->current = (replicas->current + 1) % options->urls_count;
    return verdict;
}

/* The pause after each replica has failed rounds times: longer, and random. */
static int64_t backoff_ms(int rounds, const struct fetch_answer *answer)
{
    int64_t reported_ms = at_most(answer->retry_after_ms, BACKOFF_LAST_MS) / 2;
    int64_t most_ms = BACKOFF_FIRST_MS;
    uint32_t bits = 0;
    for (int i = 1; i < rounds && most_ms < BACKOFF_LAST_MS; i++)
        most_ms *= 2;
    if (answer->status == HTTP_TOO_MANY) /* it would refuse until then */
        reported_ms = answer->retry_after_ms;
    random_bytes(&bits, sizeof bits);
    return reported_ms + bits % (most_ms + 1);
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
    int64_t report_us; /* when it is reported; 0: nothing failed, or told */
    int64_t hope_us;   /* until then, what may pass is no end */
};

/* How many replicas in turn are of no use, for good or for a while. */
static void note_hopes(struct attempts *attempts,
                       const struct fetch_answer *answer, enum answer verdict)
{
    bool is_other = verdict == ANSWER_NOT_REDLOCKD;
    if (verdict != ANSWER_DENIED && !is_other) {
        attempts->hopeless = 0;
        return;
    }
    if (attempts->hopeless++ == 0) {
        attempts->may_pass = false;
        attempts->hope_us = clock_now_us() + REPORT_US;
    }
    attempts->may_pass |= is_other && answer_may_pass(answer);
}

/*
 * When a replica could not help: pauses when each has failed as often as the
 * others. False: the time is up, all have denied it or are no redlockd, or wake
 * said to stop.
 */
static bool may_try_again(const struct replicas *replicas,
                          struct attempts *attempts,
                          const struct fetch_answer *answer,
                          enum answer *verdict)
{
    if (attempts->failed++ == 0 && !attempts->is_holders)
        attempts->report_us = clock_now_us() + REPORT_US;
    note_hopes(attempts, answer, *verdict);
    if (attempts->hopeless == 0)
        attempts->may_have_done |= answer_may_be_done(
            answer, replicas->options->command_id == COMMAND_RELEASE);
    if (attempts->failed % replicas->options->urls_count != 0)
        return true;
    int64_t now_us = clock_now_us();
    if (attempts->hopeless >= replicas->options->urls_count &&
        !replicas->outlasts_denials &&
        (!attempts->may_pass || now_us >= attempts->hope_us))
        return false;
    int64_t left_us = attempts->give_up_us - now_us;
    if (left_us <= 0)
        return false;
    if (attempts->report_us != 0 && now_us >= attempts->report_us) {
        complain("the lock is not acquired yet, still trying: %s",
                 replicas->detail);
        attempts->report_us = 0;
    }
    int rounds = attempts->failed / replicas->options->urls_count;
    int64_t pause_us = backoff_ms(rounds, answer) * US_PER_MS;
    if (attempts->is_holders)
        pause_us = at_most(pause_us, at_least(left_us / 4, HOLDERS_PAUSE_US));
    if (wake_wait(replicas->wake, now_us + at_most(pause_us, left_us)))
        return true;
    *verdict = ANSWER_STOPPED;
    return false;
}

/* Takes it from the answer. */
static void keep_body(struct replicas *replicas, struct fetch_answer *answer)
{
    json_decref(replicas->body);
    replicas->body = answer->body;
}

/* ---- acquire ------------------------------------------------------------- */

/* Frees json, which may be NULL: then the text is, too. */
static char *print_body(json_t *json)
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
 * says so, members may be missing.
 */
static char *format_body(const struct options *options, int64_t ttl_ms,
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
    return print_body(json_pack(
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
static bool read_lock(struct replicas *replicas, struct lock *lock,
                      const struct fetch_answer *answer)
{
    const json_t *body = answer->body;
    const char *id = fetch_text(body, "id"), *token = fetch_text(body, "token");
    int64_t elapsed_ms = fetch_number(body, "elapsed_ms");
    (void)snprintf(replicas->detail, sizeof replicas->detail,
                   "the response describes no lock");
    if (strlen(id) >= sizeof lock->id || strlen(token) >= sizeof lock->token)
        return false;
    replicas->detail[0] = '\0';
    memcpy(lock->id, id, strlen(id) + 1);
    memcpy(lock->token, token, strlen(token) + 1);
    lock->fencing_token = fetch_number(body, "fencing_token");
    lock->max_hold_ms = fetch_number(body, "max_hold_ms");
    int64_t granted_us = answer->sent_us + elapsed_ms * US_PER_MS;
    lock->until_us = granted_us + fetch_number(body, "validity_ms") * US_PER_MS;
    lock->renew_us =
        granted_us + fetch_number(body, "renew_after_ms") * US_PER_MS;
    return true;
}

static enum answer acquire_once(struct replicas *replicas, int64_t ttl_ms,
                                int64_t wait_ms, int64_t timeout_ms,
                                struct fetch_answer *answer)
{
    char *body = format_body(replicas->options, ttl_ms, wait_ms);
    struct question question = {
        .request = {.method = "POST",
                    .path = "/locks",
                    .header = replicas->key_header,
                    .timeout_ms = wait_ms + timeout_ms,
                    .body = body},
        .kind = QUESTION_GRANT,
    };
    bool is_starved = jsonload_has_failed();
    if (is_starved || body == NULL) {
        (void)snprintf(replicas->detail, sizeof replicas->detail, "%s",
                       is_starved
                           ? "out of memory"
                           : "the resource or the owner is not valid UTF-8");
        *answer = (struct fetch_answer){.is_unsent = true};
        free(body);
        return is_starved ? ANSWER_STARVED : ANSWER_REFUSED;
    }
    enum answer verdict = ask_one(replicas, &question, answer);
    free(body);
    return verdict;
}

/*
 * After ANSWER_HELD. If the server has waited, asks again at once; otherwise
 * it has said when to try again.
 */
static bool may_wait_on(const struct replicas *replicas, int64_t give_up_us,
                        const struct fetch_answer *answer, enum answer *verdict)
{
    int64_t now_us = clock_now_us();
    int64_t again_us = now_us;
    if (now_us >= give_up_us)
        return false;
    if (json_object_get(answer->body, "waited_ms") == NULL)
        again_us += answer->retry_after_ms * US_PER_MS;
    if (wake_wait(replicas->wake, at_most(again_us, give_up_us)))
        return true;
    *verdict = ANSWER_STOPPED;
    return false;
}

static void draw_key(struct replicas *replicas)
{
    unsigned char key[REPLICAS_KEY_BYTES];
    char *header = replicas->key_header;
    random_bytes(key, sizeof key);
    int len = snprintf(header, sizeof replicas->key_header, REPLICAS_KEY_NAME);
    for (size_t i = 0; i < sizeof key; i++)
        (void)snprintf(header + len + 2 * i, 3, "%02x", key[i]);
}

enum answer replicas_acquire(struct replicas *replicas, struct lock *lock)
{
    int64_t wait_all_ms = replicas->options->wait_ms;
    struct attempts attempts = {.give_up_us = INT64_MAX};
    enum answer verdict = ANSWER_UNAVAILABLE;
    struct fetch_answer answer;
    bool is_again = true;
    if (wait_all_ms != OPTIONS_UNSET)
        attempts.give_up_us = clock_now_us() + wait_all_ms * US_PER_MS;
    draw_key(replicas);
    replicas->may_be_granted = false;
    while (is_again) {
        int64_t left_us = attempts.give_up_us - clock_now_us();
        int64_t wait_ms =
            at_most(divide_up(at_least(left_us, 0), US_PER_MS), SLICE_MS);
        verdict = acquire_once(replicas, replicas->options->ttl_ms, wait_ms,
                               ANSWER_MS, &answer);
        is_again = false;
        if (verdict == ANSWER_DONE &&
            (!read_lock(replicas, lock, &answer) ||
             (replicas->options->limit > 0 && !read_slots(lock, answer.body))))
            verdict = ANSWER_UNAVAILABLE;
        if (verdict == ANSWER_STOPPED || answer_may_others_help(verdict))
            replicas->may_be_granted |= answer_may_be_done(&answer, false);
        if (verdict == ANSWER_HELD) {
            attempts.failed = attempts.hopeless = 0;
            is_again =
                may_wait_on(replicas, attempts.give_up_us, &answer, &verdict);
        } else if (answer_may_others_help(verdict)) {
            is_again = may_try_again(replicas, &attempts, &answer, &verdict);
        }
        keep_body(replicas, &answer);
    }
    return verdict;
}

/* ---- extend and release -------------------------------------------------- */

/* How long a replica may take: leaves time for the others, and for a second
 * try. */
static int64_t part_ms(int64_t give_up_us)
{
    int64_t left_ms = (give_up_us - clock_now_us()) / US_PER_MS;
    return at_most(EXTEND_MS, at_least(left_ms / 4, 100));
}

/*
 * A call to one replica after the other, until give_up_us; 0: once to each,
 * with the timeout that it has.
 */
static enum answer ask_all(struct replicas *replicas, struct question *question,
                           int64_t give_up_us, struct lock *granted)
{
    struct attempts attempts = {.is_holders = true, .give_up_us = give_up_us};
    for (;;) {
        struct fetch_answer answer;
        if (give_up_us != 0)
            question->request.timeout_ms = part_ms(give_up_us);
        enum answer verdict = ask_one(replicas, question, &answer);
        if (answer_may_others_help(verdict) &&
            may_try_again(replicas, &attempts, &answer, &verdict)) {
            fetch_answer_free(&answer);
            continue;
        }
        if (verdict == ANSWER_DONE && granted != NULL &&
            !read_lock(replicas, granted, &answer))
            verdict = ANSWER_UNAVAILABLE;
        replicas->is_repeated = attempts.may_have_done;
        keep_body(replicas, &answer);
        return verdict;
    }
}

enum answer replicas_extend(struct replicas *replicas, struct lock *lock,
                            int64_t give_up_us)
{
    char path[ID_MAX + 32], header[TOKEN_MAX + 32], json[64];
    struct question question = {.request = {.method = "PUT",
                                            .path = path,
                                            .header = header,
                                            .body = json},
                                .kind = QUESTION_GRANT,
                                .id = lock->id};
    (void)snprintf(path, sizeof path, "/locks/%s/extend", lock->id);
    (void)snprintf(header, sizeof header, "X-Lock-Token: %s", lock->token);
    (void)snprintf(json, sizeof json, "{\"ttl_ms\":%" PRId64 "%s}",
                   replicas->options->ttl_ms,
                   replicas->options->is_shared ? ",\"mode\":\"shared\"" : "");
    return ask_all(replicas, &question, give_up_us, lock);
}

enum answer replicas_release(struct replicas *replicas, const char *id,
                             const char *token, int64_t give_up_us)
{
    char path[ID_MAX + 32], header[TOKEN_MAX + 32];
    struct question question = {
        .request = {.method = "DELETE", .path = path, .header = header},
        .kind = QUESTION_RELEASE,
        .id = id};
    (void)snprintf(path, sizeof path, "/locks/%s", id);
    (void)snprintf(header, sizeof header, "X-Lock-Token: %s", token);
    return ask_all(replicas, &question, give_up_us, NULL);
}

enum answer replicas_ask(struct replicas *replicas, struct question *question,
                         int64_t wait_ms)
{
    question->request.timeout_ms = ANSWER_MS + wait_ms;
    return ask_all(replicas, question, 0, NULL);
}

/* ---- a hold that begins anew ----------------------------------------------
 */

/* What the answer to a repeat means for the holder. */
static enum answer judge_repeat(struct replicas *replicas,
                                const struct lock *lock,
                                const struct fetch_answer *answer,
                                struct lock *fresh)
{
    const char *why = NULL;
    if (!read_lock(replicas, fresh, answer))
        return ANSWER_NOT_REDLOCKD;
    if (strcmp(fresh->id, lock->id) != 0)
        why = "its permits were free meanwhile";
    else if (answer->status != HTTP_OK)
        why = "it was free meanwhile";
    else if (clock_now_us() >= lock->until_us)
        why = "its validity expired meanwhile";
    if (why == NULL)
        return ANSWER_DONE;
    (void)snprintf(replicas->detail, sizeof replicas->detail, "%s", why);
    return ANSWER_LOST;
}

/* Whether the lock of a 409 is none that this redlockctl may have got. */
static bool is_of_other(const struct fetch_answer *answer,
                        const struct lock *lock,
                        const struct attempts *attempts)
{
    const json_t *holder = json_object_get(answer->body, "held_by");
    int64_t number = fetch_number(holder, "fencing_token");
    return number != 0 && number != lock->fencing_token &&
           fetch_number(holder, "readers") == 0 && !attempts->may_have_done;
}

/* What a 409 to a repeat means for the holder. */
static enum answer judge_holder(struct replicas *replicas,
                                const struct lock *lock,
                                const struct fetch_answer *answer,
                                const struct attempts *attempts)
{
    size_t len = strlen(replicas->detail);
    /* or clocks differ, or the access token's name was replaced: the service
     * knows a key only together with the name that it came from */
    if (*replicas->credentials->bearer)
        (void)snprintf(replicas->detail + len, sizeof replicas->detail - len,
                       ", or the access token is that of another identity than "
                       "when the lock was acquired");
    return is_of_other(answer, lock, attempts) ? ANSWER_LOST
                                               : ANSWER_UNAVAILABLE;
}

enum answer replicas_renew_hold(struct replicas *replicas, struct lock *lock,
                                int64_t give_up_us)
{
    struct attempts attempts = {.is_holders = true, .give_up_us = give_up_us};
    for (;;) {
        struct lock fresh = *lock;
        struct fetch_answer answer;
        enum answer verdict = acquire_once(replicas, replicas->options->ttl_ms,
                                           0, part_ms(give_up_us), &answer);
        if (verdict == ANSWER_DONE) {
            verdict = judge_repeat(replicas, lock, &answer, &fresh);
            if (verdict != ANSWER_NOT_REDLOCKD)
                *lock = fresh; /* also to release it */
        } else if (verdict == ANSWER_HELD) {
            verdict = judge_holder(replicas, lock, &answer, &attempts);
        }
        bool is_again = answer_may_others_help(verdict) &&
                        may_try_again(replicas, &attempts, &answer, &verdict);
        fetch_answer_free(&answer);
        if (!is_again)
            return verdict;
    }
}

/* ---- an acquire that is given up ----------------------------------------- */

/*
 * Asks with the key, without a wait: that also ends the wait of the request
 * that was given up, on the replica that it reaches. True: the lock is ours.
 */
static bool ask_for_it(struct replicas *replicas, int64_t give_up_us,
                       struct lock *lock, enum answer *verdict)
{
    bool is_ours = false;
    *verdict = ANSWER_HELD;
    for (int i = 0; i < HELD_ASKS && *verdict == ANSWER_HELD; i++) {
        struct fetch_answer answer;
        int64_t left_ms = (give_up_us - clock_now_us()) / US_PER_MS;
        /* the rest is to release it */
        *verdict = acquire_once(replicas, TTL_MIN_MS, 0,
                                at_least(left_ms / 2, 1), &answer);
        is_ours = *verdict == ANSWER_DONE && read_lock(replicas, lock, &answer);
        fetch_answer_free(&answer);
    }
    return is_ours;
}

/* True: nothing is held, or it is released. */
static bool take_back(struct replicas *replicas, int64_t give_up_us,
                      bool *was_lost, bool *is_stopped)
{
    struct lock lock;
    enum answer verdict;
    bool is_ours = ask_for_it(replicas, give_up_us, &lock, &verdict);
    if (is_ours)
        verdict = replicas_release(replicas, lock.id, lock.token, give_up_us);
    *is_stopped = verdict == ANSWER_STOPPED;
    if (!is_ours)
        return verdict == ANSWER_HELD || verdict == ANSWER_REFUSED;
    /* the request that was given up may have come later, and taken its place */
    bool is_lost =
        verdict == ANSWER_LOST && !replicas->is_repeated && !*was_lost;
    *was_lost |= is_lost;
    return !is_lost && !answer_may_others_help(verdict) && !*is_stopped;
}

static bool has_given_back(struct replicas *replicas)
{
    int64_t give_up_us = clock_now_us() + REPLICAS_GIVE_BACK_US;
    bool was_lost = false, is_stopped = false;
    /* each replica once, and one of them again */
    for (int i = 0; i <= replicas->options->urls_count; i++) {
        if (take_back(replicas, give_up_us, &was_lost, &is_stopped))
            return true;
        int64_t next_us = clock_now_us() + HOLDERS_PAUSE_US;
        if (is_stopped || next_us >= give_up_us ||
            !wake_wait(replicas->wake, next_us))
            break;
    }
    return false;
}

void replicas_give_back(struct replicas *replicas)
{
    int first = replicas->wake->caught;
    replicas->wake->caught = 0; /* or it would stop at once */
    if (replicas->may_be_granted && !has_given_back(replicas))
        options_complain(replicas->options,
                         "cancelled, but not released: the lock may be held "
                         "until it expires");
    if (replicas->wake->caught == 0)
        replicas->wake->caught = first;
}
