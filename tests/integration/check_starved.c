/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of a call fails once. The answer is the one that is due, 503
 * overloaded, or none at all; and the nodes have what the answer says: no lock
 * but the one that was granted, and none that nobody owns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http.h"
#include "node.h"
#include "starve.h"

/* Long ones, so that buffers have to grow. */
#define LONG_TEXT                                                              \
    "jkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjk" \
    "jkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjk"
#define OTHERS_TOKEN MADE_UP_TOKEN ".somebody-who-has-it-no-longer"
#define OWN_TOKEN ""

enum { N = 5, QUORUM = 3, TTL_MS = 60000 };

/* One that changes or tells a lock, and has to get an answer; '#' is the lock
 * that is held before. */
static const struct call {
    const char *method;
    const char *path;
    const char *json;
    const char *token;
    int status;
    const char *code;
} calls[] = {
    {"POST", "/locks",
     "{\"resource\":\"new:" LONG_TEXT "\",\"ttl_ms\":60000,"
     "\"owner\":\"owner:jkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjkjk\"}",
     NULL, 201, NULL},
    {"POST", "/locks", "{\"resource\":\"new:caf\\u00e9 \xe2\x82\xac\"}", NULL,
     201, NULL},
    {"POST", "/locks", "{\"resource\":\"new:pool\",\"limit\":5,\"permits\":2}",
     NULL, 201, NULL},
    {"GET", "/pools/new:pool?limit=20", NULL, NULL, 200, NULL},
    {"POST", "/locks", "{\"resource\":\"#\",\"ttl_ms\":1000}", NULL, 409,
     "lock_held"},
    {"POST", "/locks",
     "{\"resource\":5,\"ttl_ms\":1.5,\"owner\":\"a b\",\"" LONG_TEXT "\":[{}]}",
     NULL, 400, "invalid_request"},
    {"PUT", "/locks/#/extend", "{\"ttl_ms\":60000}", OWN_TOKEN, 200, NULL},
    {"PUT", "/locks/#/extend", NULL, OWN_TOKEN, 200, NULL},
    {"PUT", "/locks/#/extend", "{\"token\":\"$\"}", NULL, 200, NULL},
    {"PUT", "/locks/#/extend", "{\"token\":\"" OTHERS_TOKEN "\"}", NULL, 409,
     "not_owner"},
    {"PUT", "/locks/missing/extend", NULL, OTHERS_TOKEN, 404, "lock_not_found"},
    {"POST", "/batch",
     "{\"operations\":[{\"operation\":\"extend\",\"id\":\"#\",\"token\":\"$\"}]"
     "}",
     NULL, 200, NULL},
    {"POST", "/batch", "{\"operations\":[{\"" LONG_TEXT "\":1}],\"a\":1}", NULL,
     400, "invalid_request"},
    {"DELETE", "/locks/#", NULL, OWN_TOKEN, 200, NULL},
    {"DELETE", "/locks/#", "{\"token\":\"$\"}", NULL, 200, NULL},
    {"DELETE", "/locks/#", NULL, OTHERS_TOKEN, 409, "not_owner"},
    {"DELETE", "/locks/missing", NULL, OTHERS_TOKEN, 404, "lock_not_found"},
    {"GET", "/locks/#", NULL, NULL, 200, NULL},
    {"GET", "/locks", NULL, NULL, 200, NULL},
    {"GET", "/locks?prefix=held&page_size=1", NULL, NULL, 200, NULL},
    {"GET", "/locks?cursor=7.0.0.0000000000000000", NULL, NULL, 410,
     "cursor_expired"},
};

/* What the tests, each a process, have counted. */
struct tally {
    int calls;
    int passed;
    int allocations;
    int good;
    int overloaded;
    int closed;
};

static struct tally *tally;
static char due[ANSWER_BODY]; /* the answer to the call with memory enough */

/* ---- the nodes ---------------------------------------------------------- */

/* Keys of locks on all nodes. */
static int count_locks(void)
{
    int count = 0;

    for (int i = 0; i < N; i++)
        count += (int)(node_integer(&world.nodes[i], "DBSIZE") -
                       node_integer(&world.nodes[i], "EXISTS redlockd:state"));
    return count;
}

/* A sweep that failed leaves nothing to the next. */
static void delete_locks(void)
{
    static const char script[] =
        "for _, key in ipairs(redis.call('KEYS', '*')) do "
        "if key ~= 'redlockd:state' then redis.call('DEL', key) end end";

    for (int i = 0; i < N; i++)
        node_do(&world.nodes[i], "EVAL %s 0", script);
}

static int count_value(const char *key, const char *value)
{
    int count = 0;

    for (int i = 0; i < N; i++) {
        const char *found = node_text(&world.nodes[i], "GET %s", key);
        count += found && strcmp(found, value) == 0;
    }
    return count;
}

static bool are_all_voting(void)
{
    const struct answer *answer =
        HTTP(here, .method = "GET", .path = "/nodes", .is_fresh = true);

    return answer_int(answer, "voting") == N;
}

/* ---- answers ------------------------------------------------------------ */

/* Whatever came and went with a connection to a node. */
static bool may_be_missing(const char *name)
{
    return strcmp(name, "rtt_us") == 0 || strcmp(name, "clock_lead_ms") == 0;
}

/* Whether what is due is there, down to the last member. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as an answer */
static bool has_shape(const json_t *json, const json_t *wanted)
{
    const char *name;
    json_t *member;
    size_t i;

    if (!json || json_typeof(json) != json_typeof(wanted) ||
        json_array_size(json) != json_array_size(wanted))
        return false;
    json_object_foreach((json_t *)wanted, name, member)
    {
        if (!may_be_missing(name) &&
            !has_shape(json_object_get(json, name), member))
            return false;
    }
    json_array_foreach(wanted, i, member)
    {
        if (!has_shape(json_array_get(json, i), member))
            return false;
    }
    return true;
}

/* Whether the answer is what is due with memory enough. */
static bool is_due(const struct answer *answer)
{
    json_t *json = json_loads(due, 0, NULL);
    bool is_it = has_shape(answer->json, json);

    json_decref(json);
    return is_it;
}

/* The one lock that is held, or a cursor to it: the nodes choose the pages. */
static void check_page(const struct answer *answer, const struct lock *held)
{
    const json_t *locks = json_object_get(answer->json, "locks");
    const json_t *lock = json_array_get(locks, 0);

    ck_assert(lock || answer_has(answer, "next_cursor"));
    ck_assert_uint_le(json_array_size(locks), 1);
    if (!lock)
        return;
    ck_assert_str_eq(json_string_value(json_object_get(lock, "resource")),
                     held->resource);
    ck_assert_int_eq(json_integer_value(json_object_get(lock, "fencing_token")),
                     held->number);
}

/* A member of the one operation of a batch, which may fail alone. */
static const json_t *of_batch(const struct answer *answer, const char *name)
{
    const json_t *list = json_object_get(answer->json, "results");

    const json_t *it = json_array_get(list, 0);

    return json_object_get(
        strcmp(name, "status") == 0 ? it : json_object_get(it, "grant"), name);
}

/* Whether a success says what it has to, of the lock that was asked for. */
static void check_success(const struct call *call, const struct answer *answer,
                          const char *resource, const struct lock *held)
{
    if (answer_has(answer, "results")) {
        ck_assert_str_eq(json_string_value(of_batch(answer, "token")),
                         held->token);
        return;
    }
    if (strncmp(call->path, "/locks", 6) != 0)
        return;
    if (answer_has(answer, "locks")) {
        check_page(answer, held);
        return;
    }
    if (answer_has(answer, "free")) { /* of a pool that nobody uses */
        ck_assert_uint_eq(
            json_array_size(json_object_get(answer->json, "free")), 20);
        return;
    }
    if (json_is_false(json_object_get(answer->json, "held"))) {
        ck_assert_str_eq(answer_text(answer, "resource"), "missing");
        return;
    }
    ck_assert_str_eq(answer_text(answer, "resource"), resource);
    if (strcmp(call->method, "PUT") == 0)
        ck_assert_str_eq(answer_text(answer, "token"), held->token);
    if (strcmp(call->method, "GET") == 0)
        ck_assert_int_eq(answer_int(answer, "fencing_token"), held->number);
}

/* Whether the call did what it was to do; else it did nothing, or is unknown */
static bool judge(const struct call *call, const struct answer *answer,
                  const char *resource, const struct lock *held, bool lasts)
{
    if (!answer) {
        tally->closed++;
        return false;
    }
    if (answer->status == 503) {
        if (!lasts) /* which can cost all nodes their connections */
            answer_expect(answer, 503, "overloaded");
        tally->overloaded++;
        return false;
    }
    if (json_integer_value(of_batch(answer, "status")) == 503) {
        tally->overloaded++;
        return false;
    }
    answer_expect(answer, call->status, call->code);
    if (!call->code)
        check_success(call, answer, resource, held);
    tally->good++;
    return true;
}

/* ---- calls -------------------------------------------------------------- */

static void fill(const char *form, const struct lock *held, char out[1024])
{
    size_t len = 0;

    for (; *form; form++)
        len += (size_t)snprintf(out + len, 1024 - len, "%.*s",
                                *form == '#'   ? (int)strlen(held->resource)
                                : *form == '$' ? (int)strlen(held->token)
                                               : 1,
                                *form == '#'   ? held->resource
                                : *form == '$' ? held->token
                                               : form);
}

/* The resource of an acquire's body; NULL: it names none. */
static const char *resource_of(const char *json, char out[1024])
{
    json_t *root = json_loads(json, 0, NULL);
    const char *text = json_string_value(json_object_get(root, "resource"));

    if (text)
        snprintf(out, 1024, "%s", text);
    json_decref(root);
    return text ? out : NULL;
}

/* The key of a lock that was granted; of a permit that of its first slot. */
static const char *key_of(const struct answer *answer, char out[1024])
{
    const json_t *slots = json_object_get(answer->json, "slots");
    const char *resource = answer_text(answer, "resource");

    if (!slots)
        return resource;
    snprintf(out, 1024, "%s\x1f%lld", resource,
             (long long)json_integer_value(json_array_get(slots, 0)));
    return out;
}

/* Whether a lock was granted, which a quorum then has. */
static bool read_grant(const struct answer *answer, struct lock *granted)
{
    char key[1024];

    if (!answer || answer->status != 201)
        return false;
    PRINT_TO(granted->path, "%s", answer_header(answer, "Location"));
    PRINT_TO(granted->token, "%s", answer_text(answer, "token"));
    ck_assert_int_ge(count_value(key_of(answer, key), granted->token), QUORUM);
    return true;
}

/* Gives back what was granted; then no node has a lock. */
static void clean_up(const struct call *call, const struct answer *answer,
                     bool is_done, const struct lock *held)
{
    struct lock granted;
    bool is_grant = read_grant(answer, &granted);
    bool is_release = strcmp(call->method, "DELETE") == 0 && !call->code;

    SOON(are_all_voting());
    if (is_grant)
        lock_drop(here, &granted);
    if (!is_release) {
        SOON(count_value(held->resource, held->token) >= QUORUM);
        lock_drop(here, held);
    } else if (!is_done && lock_release(here, held)->status != 200) {
        answer_expect(lock_release(here, held), 404, "lock_not_found");
    }
    SOON(count_locks() == 0);
}

/* n 0: with memory enough. False: fewer than n allocations were made. */
static bool try_call(const struct call *call, int n, bool lasts)
{
    struct lock held;
    char path[1024], json[1024], asked[1024];
    struct request request = {
        .method = call->method, .path = path, .json = call->json ? json : NULL};

    SOON(are_all_voting());
    SOON(lock_acquire(here, "held:" LONG_TEXT, TTL_MS, &held)->status == 201);
    fill(call->path, &held, path);
    fill(call->json ? call->json : "", &held, json);
    request.token = call->token && !*call->token ? held.token : call->token;
    const char *resource = resource_of(json, asked);
    tally->calls++;
    starve_begin(n, lasts);
    const struct answer *answer = http_try(here, &request);
    bool has_failed = starve_end() > 0;
    tally->allocations += has_failed;
    bool is_done =
        judge(call, answer, resource ? resource : held.resource, &held, lasts);
    if (n == 0)
        PRINT_TO(due, "%s", answer->body);
    ck_assert_msg(n == 0 || !is_done || is_due(answer),
                  "%.1000s instead of %.1000s", answer->body, due);
    clean_up(call, answer, is_done, &held);
    tally->passed++;
    return has_failed;
}

static void sweep(const struct call *call, bool lasts)
{
    int n = 1;

    delete_locks();
    (void)try_call(call, 0, false);
    while (try_call(call, n, lasts))
        n++;
    printf("%s %s: %d allocations\n", call->method, call->path, n - 1);
}

static void set_up(void)
{
    char dir[PATH_SIZE];

    tally = harness_share(sizeof *tally);
    world_start_nodes(N);
    world_admit_nodes("");
    starve_prepare(here);
    /* a busy disk must not cost nodes their connections */
    harness_make_dir(dir);
    world_start_server(
        0, textf("--node-timeout-ms 2000 --audit-log %s/audit", dir));
    world_wait_ready(0);
}

static void tear_down(void)
{
    printf("%d allocations failed: %d answers as due, %d overloaded, "
           "%d connections closed\n%d passed, %d failed\n",
           tally->allocations, tally->good, tally->overloaded, tally->closed,
           tally->passed, tally->calls - tally->passed);
    world_finish(); /* tells of a crash, or a leak */
}

SUITE(starved, .timeout_s = 300, .set_up_once = set_up,
      .tear_down_once = tear_down);

TEST_EACH(each_allocation_of_a_call_fails_once, calls)
{
    sweep(&calls[_i], false);
}

TEST_EACH(all_allocations_of_a_call_fail_from_one_on, calls)
{
    sweep(&calls[_i], true);
}
