/* SPDX-License-Identifier: MIT */
/*
 * Prints as JSON what the docs and openapi.yaml have to agree with: the tables
 * of the code and its limits, what its predicates let through, and an answer
 * of each kind with every member.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../api/access/digest.h"
#include "../../api/handler.h"
#include "../../api/message/body.h"
#include "../../api/message/http.h"
#include "../../api/message/id.h"
#include "../../api/message/problem.h"
#include "../../api/message/render.h"
#include "../../server/engine/port/port.h"
#include "../../server/engine/port/token.h"
#include "../../server/lock/metrics.h"
#include "../../server/lock/names.h"

enum { CHARACTERS = 0x180 };

/* ---- an engine that nobody talks to ------------------------------------- */

static enum vote port_send(void *ctx, int node, const struct call *call,
                           uint64_t tag)
{
    (void)ctx, (void)node, (void)call, (void)tag;
    return VOTE_STALLED;
}

static int64_t port_now(void *ctx)
{
    (void)ctx;
    return 1;
}

static void port_random(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 0, len);
}

static bool port_timer(void *ctx, uint32_t id, int64_t at_us)
{
    (void)ctx, (void)id, (void)at_us;
    return true;
}

static void port_answer(void *ctx, void *client)
{
    (void)ctx, (void)client;
}

static struct engine *make_engine(void)
{
    static const struct engine_port port = {
        .send = port_send,
        .now = port_now,
        .random = port_random,
        .timer = port_timer,
        .answer = port_answer,
    };
    static const struct engine_settings settings = {.nodes = 1,
                                                    .node_names = {"a"},
                                                    .node_addresses = {"a"},
                                                    .max_ttl_ms = 1,
                                                    .config_epoch = 1};
    static struct metrics metrics;
    struct engine *engine = engine_new(&settings, &port, &metrics);
    assert(engine != NULL);
    return engine;
}

/* ---- tables ------------------------------------------------------------- */

static void put_codes(struct json *json)
{
    json_open_object(json, "codes");
    for (int i = 0; i < PROBLEM_CODES; i++) {
        const struct problem_kind *kind = &problem_kinds[i];
        json_open_object(json, kind->name);
        json_put_integer(json, "status", kind->status);
        json_put_text(json, "title", span_of(kind->title));
        json_close_object(json);
    }
    json_close_object(json);
}

/* A method is one of a path if it is not refused there: so is a bad id. */
static void put_paths(struct json *json)
{
    static const char *const methods[] = {"GET",     "HEAD",    "POST",
                                          "PUT",     "PATCH",   "DELETE",
                                          "CONNECT", "OPTIONS", "TRACE"};
    const char *path;
    const char *allow;
    json_open_object(json, "paths");
    for (int n = 0; (allow = route_path(n, &path)) != NULL; n++) {
        json_open_object(json, path);
        json_put_text(json, "allow", span_of(allow));
        json_open_array(json, "methods");
        for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
            struct route_match match;
            route_find(&match, methods[i], path);
            if (match.route != ROUTE_NOT_ALLOWED)
                json_put_text(json, NULL, span_of(methods[i]));
        }
        json_close_array(json);
        json_close_object(json);
    }
    json_close_object(json);
}

static void put_call_members(struct json *json, int call, const char *name,
                             const char *(*member)(enum lock_call call, int n))
{
    const char *one;
    json_open_array(json, name);
    for (int n = 0; (one = member((enum lock_call)call, n)) != NULL; n++)
        json_put_text(json, NULL, span_of(one));
    json_close_array(json);
}

static void put_members(struct json *json)
{
    json_open_object(json, "members");
    for (int i = 0; i < LOCK_CALLS; i++)
        put_call_members(json, i, metrics_call_names[i], body_member);
    put_call_members(json, LOCK_ACQUIRE, "acquire in a batch",
                     body_item_member);
    put_call_members(json, LOCK_EXTEND, "extend in a batch", body_item_member);
    put_call_members(json, LOCK_RELEASE, "release in a batch",
                     body_item_member);
    json_open_array(json, "batch");
    json_put_text(json, NULL, span_of("operations"));
    json_close_array(json);
    json_close_object(json);
}

static void put_limits(struct json *json)
{
    json_open_object(json, "limits");
    json_put_integer(json, "ttl_min_ms", TTL_MIN_MS);
    json_put_integer(json, "wait_max_ms", WAIT_MAX_MS);
    json_put_integer(json, "waiters_each", WAITERS_EACH_MAX);
    json_put_integer(json, "waiters", WAITERS_MAX);
    json_put_integer(json, "resource_chars", RESOURCE_CHARS);
    json_put_integer(json, "slots", POOL_SLOTS_MAX);
    json_put_integer(json, "resources", NAMES_MAX);
    json_put_integer(json, "resources_bytes", NAMES_LEN_MAX);
    json_put_integer(json, "key_min", DIGEST_KEY_MIN);
    json_put_integer(json, "key_max", DIGEST_KEY_MAX);
    json_put_integer(json, "owner", OWNER_MAX);
    json_put_integer(json, "token", TOKEN_MAX);
    json_put_integer(json, "id", ID_MAX);
    json_put_integer(json, "request_id", REQUESTID_MAX);
    json_put_integer(json, "body", HTTP_BODY_MAX);
    json_put_integer(json, "batch_body", HTTP_BATCH_MAX);
    json_put_integer(json, "batch_operations", BODY_LIST_MAX);
    json_put_integer(json, "nodes", NODES_MAX);
    json_put_integer(json, "quorum", quorum_of(NODES_MAX));
    json_close_object(json);
}

static void put_votes(struct json *json)
{
    json_open_array(json, "votes");
    for (int i = 0; i < BALLOT_KINDS; i++) {
        struct ballot ballot = ballot_of_number(i);
        json_open_object(json, NULL);
        json_put_text(json, "name", span_of(ballot_name(ballot)));
        json_put_text(json, "detail", span_of(ballot_detail(ballot)));
        json_close_object(json);
    }
    json_close_array(json);
}

/* Those that have a name, and the one before any connection. */
static void put_states(struct json *json, const struct engine *engine)
{
    struct engine_node_view view;
    engine_view_node(engine, 0, &view);
    json_open_array(json, "states");
    for (int i = 0; i < STATE_KINDS; i++)
        json_put_text(json, NULL, span_of(state_name((enum node_state)i)));
    json_put_text(json, NULL, span_of(view.state));
    json_close_array(json);
}

/* ---- what is let through ------------------------------------------------ */

static bool is_resource(struct span text)
{
    return id_check_resource(text) == NULL;
}

static bool is_id(struct span text)
{
    char names[NAMES_LEN_MAX];
    size_t len;
    return id_decode(text, names, &len);
}

/* Of a key that is otherwise well formed. */
static bool is_key_character(struct span text)
{
    char key[DIGEST_KEY_MAX];
    memset(key, 'a', sizeof key);
    size_t len = span_copy(key, text);
    return digest_is_key((struct span){key, len - 1 + DIGEST_KEY_MIN});
}

/* Each character that is one alone. */
static void put_alone(struct json *json, const char *name,
                      bool (*is_one)(struct span text))
{
    char text[2 * CHARACTERS];
    size_t len = 0;
    for (int c = 0; c < CHARACTERS; c++) {
        struct span one = {text + len, c < 0x80 ? 1 : 2};
        text[len] = (char)(c < 0x80 ? c : 0xc0 | c >> 6);
        text[len + 1] = (char)(0x80 | (c & 0x3f));
        if (is_one(one))
            len += one.len;
    }
    json_put_text(json, name, (struct span){text, len});
}

static void put_characters(struct json *json)
{
    json_open_object(json, "characters");
    json_put_integer(json, "below", CHARACTERS);
    put_alone(json, "owner", token_is_owner);
    put_alone(json, "request_id", requestid_is_valid);
    put_alone(json, "key", is_key_character);
    put_alone(json, "resource", is_resource);
    put_alone(json, "id", is_id);
    json_close_object(json);
    json_put_text(json, "reserved", span_of(RESERVED_NAME));
}

/* The lengths of a token's parts. */
static void put_token(struct json *json)
{
    static const unsigned char random[TOKEN_RANDOM_BYTES];
    char token[2 * TOKEN_MAX];
    size_t len = token_make(token, random, &(struct token_parts){.number = 1});
    size_t digits = (size_t)((char *)memchr(token, '.', len) - token);
    size_t key_len = 0;
    token[len] = '+';
    do
        token[len + 1 + key_len++] = '_';
    while (!token_is_ours((struct span){token, len + 1 + key_len}) &&
           key_len < TOKEN_MAX);
    json_open_object(json, "token");
    json_put_integer(json, "number", (int64_t)digits);
    json_put_integer(json, "code", (int64_t)(len - digits - 1));
    json_put_integer(json, "key", (int64_t)key_len);
    json_put_integer(json, "owner", OWNER_MAX);
    json_close_object(json);
}

/* ---- answers ------------------------------------------------------------ */

/* Prints a member, and frees its value: a body. */
static void print_answer(const char *name, char *body)
{
    assert(body != NULL);
    printf(",\"%s\":%s", name, body);
    free(body);
}

static void print_problem(const char *name, const struct problem *problem)
{
    struct http_response response = {0};
    problem_respond(
        &(struct http_call){.request = &(struct http_request){.id = "id"},
                            .response = &response},
        problem);
    assert(response.status == problem_kinds[problem->code].status);
    print_answer(name, response.body);
}

static const struct engine_result *slot_of(void *ctx, int n)
{
    (void)n;
    return ctx;
}

static void print_answers(const struct engine *engine)
{
    static const int64_t waited_ms = 1;
    static const struct render_times times = {.waited_ms = &waited_ms,
                                              .max_hold_ms = 1};
    struct engine_result result = {
        .resource = span_of("a"),
        .token = span_of("a"),
        .owner = span_of("a"),
        .number = 1,
        .is_shared = true,
        .holders = 1,
        .total = 1,
    };
    struct render_nodes nodes = {
        .status = "ready", .total = 1, .has_list = true};
    struct engine_node_view *view = &nodes.list[0];
    struct faults errors = {0};
    struct http_request probe = {.match = {.route = ROUTE_LIVEZ}};
    struct http_response alive;
    size_t len;
    engine_view_node(engine, 0, view);
    view->quarantine_us = view->rtt_us = 1;
    view->clock_steps = 1;
    view->is_connected = true;
    view->has_clock = true;
    faults_add(&errors, "/a", "a");
    struct problem lock = {
        .detail = "a",
        .resource = result.resource,
        .retry_after_ms = 1,
        .waited_ms = &waited_ms,
        .errors = &errors,
        .held_by = &result,
        .votes = &result,
        .engine = engine,
    };
    struct problem unready = {.detail = "a", .states = &nodes};
    http_response_init(&alive);
    probe.call.response = &alive;
    (void)handler_begin(NULL, &probe, NULL);
    print_answer("Grant", render_grant(&result, &times, &len));
    print_answer("Release", render_release(&result, &len));
    print_answer("Lock", render_inspect(&result, 1, &len));
    struct json page;
    render_page_begin(&page);
    render_page_lock(&page, &result, 1);
    result.resource = span_of("a\nb");
    render_page_lock(&page, &result, 1);
    result.resource = span_of("a" NAMES_SLOT "0");
    render_page_lock(&page, &result, 1);
    print_answer("LockList", render_page_end(&page, "a", &len));
    result.resource = span_of("a\nb");
    print_answer("Grant of several", render_grant(&result, &times, &len));
    static const struct render_times of_pool = {
        .waited_ms = &waited_ms, .limit = 1, .max_hold_ms = 1};
    result.resource = span_of("a" NAMES_SLOT "0");
    print_answer("Grant of a permit", render_grant(&result, &of_pool, &len));
    print_answer("Pool", render_pool(&(struct render_pool){span_of("a"), 2, 1,
                                                           1, slot_of, &result},
                                     &len));
    print_answer("Release of a permit", render_release(&result, &len));
    print_answer("Lock of a permit", render_inspect(&result, 1, &len));
    result.resource = span_of("a\nb");
    print_answer("Release of several", render_release(&result, &len));
    print_answer("Lock of several", render_inspect(&result, 1, &len));
    print_answer("Readiness", render_nodes(&nodes, &len));
    nodes.status = NULL;
    print_answer("NodeList", render_nodes(&nodes, &len));
    print_answer("Liveness", alive.body);
    print_problem("Problem", &lock);
    lock.resource = span_of("a\nb");
    print_problem("Problem of several", &lock);
    lock.resource = span_of("a" NAMES_SLOT "0");
    print_problem("Problem of a permit", &lock);
    print_problem("Problem of nodes", &unready);
}

int main(void)
{
    struct engine *engine = make_engine();
    struct json json;
    size_t len;
    json_begin(&json);
    put_codes(&json);
    put_paths(&json);
    put_members(&json);
    put_limits(&json);
    put_votes(&json);
    put_states(&json, engine);
    put_characters(&json);
    put_token(&json);
    char *tables = json_end(&json, &len);
    assert(tables != NULL);
    printf("{\"tables\":%s", tables);
    print_answers(engine);
    printf("}\n");
    free(tables);
    engine_free(engine);
    return 0;
}
