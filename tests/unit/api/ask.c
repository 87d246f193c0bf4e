/* SPDX-License-Identifier: MIT */
#include "ask.h"

#include "../../../api/batch.h"
#include "../../../api/handler.h"
#include "../../lib/jsonat/jsonat.h"
#include "../../lib/suite/suite.h"
#include "fields.h"
#include "quoted.h"

struct ask ask;

static void clear_answer(void)
{
    json_decref(ask.body);
    if (!ask.response.is_static)
        free(ask.response.body);
    ask.body = NULL;
    http_response_init(&ask.response);
}

static void read_answer(void)
{
    if (ask.response.body == NULL)
        return;
    ask.body = json_loadb(ask.response.body, ask.response.body_len, 0, NULL);
}

void ask_begin(void)
{
    play_begin();
    memset(&ask, 0, sizeof ask);
    ask.config.nodes_count = PLAY_NODES;
    ask.config.default_ttl_ms = ASK_DEFAULT_TTL_MS;
    ask.config.max_ttl_ms = ASK_MAX_TTL_MS;
    ask.config.max_readers = 3;
    ask.config.max_hold_ms = play_settings.max_hold_ms;
    ask.service.engine = play.engine;
    ask.service.config = &ask.config;
    ask.service.metrics = &play.metrics;
    http_response_init(&ask.response);
    ask_anew();
}

void ask_anew(void)
{
    if (ask.request.call.op != 0)
        (void)engine_abandon(play.engine, ask.request.call.op);
    if (ask.request.batch != NULL)
        batch_end(&ask.service, &ask.request, false, play.now_us);
    ask.caller = (struct caller){0};
    ask.request = (struct http_request){.id = "r-1",
                                        .call = {.request = &ask.request,
                                                 .caller = &ask.caller,
                                                 .response = &ask.response}};
    play.sent_count = 0;
}

void ask_end(void)
{
    ask_anew();
    clear_answer();
    play_end();
}

bool ask_send(const char *method, const char *target, const char *body)
{
    clear_answer();
    ask.request.method = method;
    ask.request.target = target;
    ask.request.head_read_us = play.now_us;
    if (body != NULL) {
        ask.request.body = span_of(quoted(body));
        if (ask.request.content_type.ptr == NULL)
            ask.request.content_type = span_of("application/json");
    }
    http_find_call(&ask.request);
    if (!handler_begin(&ask.service, &ask.request, NULL))
        return false;
    read_answer();
    return true;
}

static char *copy_of(struct span text)
{
    return (char *)textf("%.*s", (int)text.len, text.ptr);
}

void ask_read(const char *text)
{
    static struct head head;
    const char *behind = strstr(text, "\n\n");
    size_t len = behind != NULL ? (size_t)(behind - text) : strlen(text);
    struct span fields = span_of(copy_of((struct span){text, len}));
    struct span line = span_take(&fields, '\n');
    ask.request.method = copy_of(span_take(&line, ' '));
    ask.request.target = copy_of(span_take(&line, '?'));
    while (line.len > 0) {
        struct span value = span_take(&line, '&');
        struct span name = span_take(&value, '=');
        query_add(&ask.request.query, name, value);
    }
    head_init(&head, 0, 0);
    if (fields.len > 0)
        fields_add(&head, fields.ptr);
    ask.request.call.lock_token = head.values[HEAD_LOCK_TOKEN];
    ask.request.call.idempotency_key = head.values[HEAD_IDEMPOTENCY_KEY];
    ask.request.content_type = head.values[HEAD_CONTENT_TYPE];
    ask.authorization = head.values[HEAD_AUTHORIZATION].ptr;
    ask.content = behind != NULL ? behind + 2 : NULL;
}

bool ask_http(const char *text)
{
    ask_read(text);
    return ask_send(ask.request.method, ask.request.target, ask.content);
}

void ask_answer(int64_t now_us)
{
    handler_answer(&ask.service, &ask.request, now_us);
    read_answer();
}

void ask_and_vote(const char *method, const char *target, const char *body,
                  enum call_kind kind, int ballot)
{
    ck_assert(!ask_send(method, target, body));
    for (int i = 0; play_outcome(ask.request.call.op) == OUTCOME_PENDING; i++)
        play_answer(kind, i, ballot);
    ask_answer(play.now_us);
}

static const struct {
    const char *method, *target, *body;
} calls[LOCK_CALLS] = {
    [LOCK_ACQUIRE] = {"POST", "/locks",
                      "{\"resource\":\"order:42\",\"ttl_ms\":30000}"},
    [LOCK_EXTEND] = {"PUT", "/locks/order:42/extend",
                     "{\"token\":\"" ASK_TOKEN "\",\"ttl_ms\":3000}"},
    [LOCK_RELEASE] = {"DELETE", "/locks/order:42",
                      "{\"token\":\"" ASK_TOKEN "\"}"},
    [LOCK_INSPECT] = {"GET", "/locks/order:42", NULL},
    [LOCK_FORCE] = {"DELETE", "/locks/order:42", NULL},
};

const enum call_kind ask_kinds[LOCK_CALLS] = {
    [LOCK_ACQUIRE] = CALL_ACQUIRE, [LOCK_EXTEND] = CALL_EXTEND,
    [LOCK_RELEASE] = CALL_RELEASE, [LOCK_INSPECT] = CALL_INSPECT,
    [LOCK_FORCE] = CALL_TOKENS,
};

static void set_query(int call)
{
    ask.request.query = (struct query){0};
    if (call == LOCK_FORCE)
        query_add(&ask.request.query, span_of("force"), span_of("7"));
}

bool ask_call(int call)
{
    set_query(call);
    return ask_send(calls[call].method, calls[call].target, calls[call].body);
}

void ask_call_and_vote(int call, int ballot)
{
    set_query(call);
    ask_and_vote(calls[call].method, calls[call].target, calls[call].body,
                 ask_kinds[call], ballot);
}

void ask_expect(int status, const char *code)
{
    ck_assert_int_eq(ask.response.status, status);
    ck_assert_pstr_eq(ask.response.code, code);
    ck_assert_pstr_eq(ask.response.content_type,
                      code != NULL ? "application/problem+json"
                                   : "application/json");
    if (code != NULL) {
        ck_assert_str_eq(ask_text("code"), code);
        ck_assert_str_eq(ask_text("request_id"), "r-1");
        ck_assert_int_eq(ask_number("status"), status);
    }
}

void ask_expect_now(int status, const char *code)
{
    ask_answer(play.now_us);
    ask_expect(status, code);
}

void ask_expect_detail(const char *part)
{
    const char *detail = ask_text("detail");
    ck_assert_has(detail, part);
}

void ask_expect_pointer(const char *in, const char *pointer)
{
    ck_assert_str_eq(ask_text("errors.0.in"), in);
    ck_assert_str_eq(ask_text("errors.0.pointer"), pointer);
}

void ask_expect_lock(void)
{
    ck_assert_str_eq(ask_text("resource"), "order:42");
    ck_assert_str_eq(ask_text("id"), "order:42");
}

void ask_expect_closed(void)
{
    ck_assert(ask.request.call.op == 0);
    ck_assert_str_eq(ask.response.location, "");
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

void ask_expect_failed(int status, const char *code, int64_t retry_most_ms)
{
    ask_expect(status, code);
    ask_expect_lock();
    ask_expect_retry(retry_most_ms);
    ask_expect_closed();
}

void ask_expect_retry(int64_t most_ms)
{
    if (most_ms == 0) {
        ck_assert_int_eq(ask.response.retry_after_ms, 0);
        ck_assert_ptr_null(ask_member("retry_after_ms"));
        return;
    }
    ck_assert_int_ge(ask.response.retry_after_ms, 1);
    ck_assert_int_le(ask.response.retry_after_ms, most_ms);
    ck_assert_int_eq(ask_number("retry_after_ms"), ask.response.retry_after_ms);
}

static const char *text_of(const json_t *value)
{
    if (json_is_string(value))
        return json_string_value(value);
    if (json_is_integer(value))
        return textf("%lld", (long long)json_integer_value(value));
    if (json_is_boolean(value))
        return json_is_true(value) ? "true" : "false";
    return textf("#%zu", json_array_size(value));
}

void ask_expect_members(const char *list)
{
    for (struct span rest = span_of(list); rest.len > 0;) {
        struct span value = span_take(&rest, ' ');
        const char *name = copy_of(span_take(&value, '='));
        const json_t *member = ask_member(*name == '-' ? name + 1 : name);
        ck_assert_msg((member == NULL) == (*name == '-'), "%s", name);
        if (value.len > 0)
            ck_assert_str_eq(textf("%s=%s", name, text_of(member)),
                             textf("%s=%s", name, copy_of(value)));
    }
}

const json_t *ask_member(const char *member)
{
    return json_at(ask.body, member);
}

const char *ask_text(const char *member)
{
    const char *text = json_string_value(ask_member(member));
    ck_assert_msg(text != NULL, "no text %s", member);
    return text;
}

int64_t ask_number(const char *member)
{
    ck_assert_msg(json_is_integer(ask_member(member)), "no number %s", member);
    return json_integer_value(ask_member(member));
}

void ask_quarantine(void)
{
    for (int i = 0; i < 3; i++) {
        play_node_down(i);
        play_node_connect(i);
        play_answer_probe(i, PROBE_QUARANTINED, "", PLAY_QUARANTINE(2));
    }
    play.sent_count = 0;
}

static void expect_quorum_in(int64_t seconds)
{
    ask_expect(503, "no_quorum");
    ask_expect_detail(textf("expected in %d s", (int)seconds));
}

void ask_expect_countdown(void (*look)(void))
{
    ask_quarantine();
    int64_t wait_us = engine_quorum_in_us(play.engine);
    ck_assert_int_gt(wait_us, 2000000);
    /* whole seconds are left; the loss has lasted for one */
    play_advance(1000000 + wait_us % 1000000);
    wait_us = engine_quorum_in_us(play.engine);
    ck_assert_int_eq(wait_us % 1000000, 0);
    look();
    expect_quorum_in(wait_us / 1000000);
    play_advance(1);
    look();
    expect_quorum_in(wait_us / 1000000);
    play_advance(999999);
    look();
    expect_quorum_in(wait_us / 1000000 - 1);
}
