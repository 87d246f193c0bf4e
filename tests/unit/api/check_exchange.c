/* SPDX-License-Identifier: MIT */
/*
 * What front does with a request without asking a handler, and when it waits,
 * answers or closes.
 */

#include "../../lib/suite/suite.h"
#include "pair.h"

static void set_up(void)
{
    pair_begin();
    play.on_answer = exchange_on_answer;
}

SUITE(exchange);

/* ---- heads -------------------------------------------------------------- */

static void open_request(void)
{
    set_up();
    exchange_open(pair.it, &pair.service, "GET", "/", play.now_us);
}

GROUP(heads, .set_up = open_request, .tear_down = pair_end);

TEST(a_good_head_is_read_on)
{
    ck_assert_int_eq(pair_ask("Host: x\nContent-Type: application/json\n"
                              "X-Lock-Token: token\nIdempotency-Key: key\n"
                              "X-Request-Id: mine.1\nContent-Length: 262144\n"
                              "Traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736"
                              "-00f067aa0ba902b7-01"),
                     EXCHANGE_READ);
    const struct http_request *taken = &pair.it->request;
    ck_assert(span_is(taken->content_type, "application/json"));
    ck_assert(span_is(taken->call.lock_token, "token"));
    ck_assert(span_is(taken->call.idempotency_key, "key"));
    ck_assert_str_eq(taken->id, "mine.1");
    ck_assert_str_eq(taken->trace.id, "4bf92f3577b34da6a3ce929d0e0e4736");
    ck_assert_str_eq(taken->trace.parent, "00f067aa0ba902b7");
    ck_assert(!query_has(&taken->query, QUERY_VERBOSE));
}

/* As the draft of the IETF on Idempotency-Key wants it. */
TEST(a_key_may_be_in_quotes)
{
    static const char *const keys[][2] = {
        {"\"key\"", "key"},
        {"\"\"", ""},
        {"\"", "\""},
        {"\"key", "\"key"},
        /* parameters, which no one has defined (RFC 8941 section 3.1.2) */
        {"\"key\";a=1", "key"},
        {"\"key\" ; a", "key"},
        {"\"key\";a=\"b\"", "key"},
        /* two keys */
        {"\"key\",\"key\"", "\"key\",\"key\""},
        {"\"key\"x", "\"key\"x"},
        {"key;a=1", "key;a=1"}};
    for (size_t i = 0; i < COUNT(keys); i++) {
        ck_assert_int_eq(
            pair_ask(textf("Host: x\nIdempotency-Key: %s", keys[i][0])),
            EXCHANGE_READ);
        ck_assert(span_is(pair.it->request.call.idempotency_key, keys[i][1]));
    }
}

TEST(a_request_without_a_good_id_is_given_one)
{
    char first[REQUESTID_MAX + 1];
    ck_assert_int_eq(pair_ask("Host: x"), EXCHANGE_READ);
    ck_assert_uint_eq(strlen(pair.it->request.id), REQUESTID_LEN);
    strcpy(first, pair.it->request.id);
    ck_assert_int_eq(pair_ask("Host: x\nX-Request-Id: a b"), EXCHANGE_READ);
    ck_assert_uint_eq(strlen(pair.it->request.id), REQUESTID_LEN);
    ck_assert_str_ne(pair.it->request.id, first);
}

static const struct {
    const char *fields;
    int status;
    const char *code;
} refused[] = {
    {"Accept: x", 400, "bad_request"},
    {"Host: x.example", 421, "host_not_allowed"},
    {"Host: x\nOrigin: http://y", 403, "foreign_origin"},
    {"Host: x\nExpect: tea", 417, "expectation_failed"},
    {"Host: x\nTransfer-Encoding: gzip", 400, "bad_request"},
    {"Host: x\nContent-Length: 262145", 413, "body_too_large"},
};

TEST_EACH(what_the_head_shows_is_refused_and_closes, refused)
{
    ck_assert_int_eq(pair_ask(refused[_i].fields), EXCHANGE_ANSWER);
    ck_assert_int_eq(pair.response.status, refused[_i].status);
    ck_assert_str_eq(pair.response.code, refused[_i].code);
    ck_assert(pair.response.close);
    ck_assert_has(pair.response.body, pair.it->request.id);
}

/* ---- whole requests ----------------------------------------------------- */

/* A request that has come whole. */
static enum exchange_step request(const char *method, const char *target,
                                  const char *body)
{
    exchange_open(pair.it, &pair.service, method, target, play.now_us);
    http_find_call(&pair.it->request);
    strcpy(pair.it->request.id, "r-1");
    pair.it->request.content_type = span_of("application/json");
    ck_assert(connection_add_body(&pair.it->connection, span_of(body)));
    return pair_go_on();
}

GROUP(whole_requests, .set_up = set_up, .tear_down = pair_end);

TEST(an_outcome_that_is_known_at_once_is_answered_at_once)
{
    for (int i = 0; i < 3; i++)
        play.is_refusing[i] = true;
    pair_expect(request("GET", "/locks/a", ""), 503);
    ck_assert_str_eq(pair.response.code, "no_quorum");
    ck_assert_int_eq(pair.wakes, 0);
}

TEST(who_has_left_gets_other_answers)
{
    ck_assert_int_eq(request("GET", "/locks/a", ""), EXCHANGE_WAIT);
    connection_wait(&pair.it->connection);
    pair_leave();
    play_answer_range(CALL_INSPECT, 0, 3, VOTE_FREE);
    pair_expect(pair_go_on(), 200);
}

TEST(a_watch_ends_with_its_client)
{
    exchange_open(pair.it, &pair.service, "GET", "/locks/a", play.now_us);
    query_add(&pair.it->request.query, span_of("after"), span_of("1"));
    query_add(&pair.it->request.query, span_of("wait_ms"), span_of("9000"));
    http_find_call(&pair.it->request);
    ck_assert_int_eq(pair_go_on(), EXCHANGE_WAIT);
    connection_wait(&pair.it->connection);
    pair_leave();
    ck_assert_int_eq((int)pair.it->connection.state, (int)CONNECTION_GONE);
    ck_assert_int_eq(pair_go_on(), EXCHANGE_CLOSE);
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
}

TEST(what_has_its_answer_gets_no_other)
{
    pair_expect(request("GET", "/livez", ""), 200);
    pair_answer(play.now_us);
    ck_assert_int_eq(pair_go_on(), EXCHANGE_CLOSE);
}

/* Whatever was asked; but it is counted as that. */
TEST(a_body_that_is_too_large_is_refused)
{
    static const char piece[HTTP_BODY_MAX + 1];
    exchange_open(pair.it, &pair.service, "POST", "/locks", play.now_us);
    http_find_call(&pair.it->request);
    ck_assert(connection_add_body(&pair.it->connection,
                                  (struct span){piece, sizeof piece}));
    pair_expect(pair_go_on(), 413);
    ck_assert_str_eq(pair.response.code, "body_too_large");
    ck_assert_has(pair.response.body, "16384 bytes");
    ck_assert_int_eq(pair.it->request.counted_as, LOCK_ACQUIRE);
    ck_assert(!pair.response.close);
    ck_assert_int_eq(play.sent_count, 0);
}

/* ---- batches ------------------------------------------------------------ */

#define ITS_TOKEN "1795221642000000.8f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a5"
#define TAKE "{\"operation\":\"acquire\",\"resource\":\"a\"}"
#define KEEP                                                                   \
    "{\"operation\":\"extend\",\"id\":\"b\",\"token\":\"" ITS_TOKEN "\"}"

static const char both[] = "{\"operations\":[" TAKE "," KEEP "]}";

static void wait_for(const char *body)
{
    ck_assert_int_eq(request("POST", "/batch", body), EXCHANGE_WAIT);
    connection_wait(&pair.it->connection);
}

static void extend(void)
{
    play_answer_range(CALL_EXTEND, 0, 3, VOTE_EXTENDED);
}

static void take(void)
{
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
}

static void expect_nothing_left(void)
{
    ck_assert_int_eq(engine_in_flight(play.engine), 0);
    ck_assert_ptr_null(pair.it->request.batch);
}

/* What was granted, or may still be, is released. */
static void expect_undone(void)
{
    ck_assert_int_eq(play_count(CALL_RELEASE), PLAY_NODES);
}

GROUP(batches, .set_up = set_up, .tear_down = pair_end);

TEST(a_batch_waits_for_its_last_operation)
{
    wait_for(both);
    extend();
    ck_assert_int_eq(pair.wakes, 0);
    take();
    ck_assert_int_eq(pair.wakes, 1);
    pair_expect(pair_go_on(), 200);
    ck_assert(exchange_has_grant(pair.it));
    pair_answer(play.now_us);
    connection_end(&pair.it->connection, true);
    expect_nothing_left();
    ck_assert_int_eq(play_count(CALL_RELEASE), 0);
}

TEST(a_batch_without_grants_ends_with_its_answer)
{
    wait_for("{\"operations\":[" KEEP "]}");
    ck_assert(exchange_goes_on(pair.it));
    pair_leave(); /* it is written, for all we know */
    extend();
    pair_expect(pair_go_on(), 200);
    ck_assert(!exchange_has_grant(pair.it));
}

TEST(what_goes_on_without_its_client_is_known)
{
    wait_for("{\"operations\":[" TAKE "]}");
    ck_assert(!exchange_goes_on(pair.it));
    connection_end(&pair.it->connection, false);
}

/* Woken at the end of the process. */
TEST(a_batch_that_a_server_stops_leaves_nothing)
{
    wait_for(both);
    take();
    pair.service.is_stopping = true;
    pair_expect(pair_go_on(), 503);
    ck_assert_str_eq(pair.response.code, "shutting_down");
    expect_undone();
    expect_nothing_left();
}

/*
 * A batch of which no client is told, whatever happens in which order: its lock
 * is 't'aken, its other lock 'e'xtended, its client 'l'eaves; it is 'c'losed or
 * 'a'nswered in the end, in vain.
 */
static const struct {
    const char *acts;
    enum connection_state state; /* before the end */
    int wakes;
    bool is_granted, is_extended;
} lost[] = {
    {"t", CONNECTION_WAITING, 0, true, false}, /* its client resets */
    {"lec", CONNECTION_SETTLED, 1, false, true},
    {"tlec", CONNECTION_SETTLED, 1, true, true},
    {"elc", CONNECTION_GONE, 1, false, true},
    {"telc", CONNECTION_SETTLED, 1, true, true},
    {"tea", CONNECTION_ANSWERED, 1, true, true},
};

static void lose(char act)
{
    if (act == 't')
        take();
    else if (act == 'e')
        extend();
    else if (act == 'l')
        pair_leave();
    else if (act == 'c')
        ck_assert_int_eq(pair_go_on(), EXCHANGE_CLOSE);
    else {
        pair_expect(pair_go_on(), 200);
        pair_answer(play.now_us);
    }
}

TEST_EACH(a_batch_of_which_nobody_is_told_leaves_no_lock, lost)
{
    wait_for(both);
    for (const char *act = lost[_i].acts; *act != '\0'; act++)
        lose(*act);
    ck_assert_int_eq((int)pair.it->connection.state, (int)lost[_i].state);
    ck_assert_int_eq(pair.wakes, lost[_i].wakes);
    connection_end(&pair.it->connection, false);
    expect_undone();
    expect_nothing_left();
    ck_assert_uint_eq(play.metrics.undelivered_grants, lost[_i].is_granted);
    ck_assert_uint_eq(play.metrics.outcomes[LOCK_EXTEND][OUTCOME_EXTENDED],
                      lost[_i].is_extended);
}

TEST(a_batch_may_have_a_larger_body)
{
    static char piece[HTTP_BATCH_MAX + 1];
    memset(piece, ' ', sizeof piece);
    exchange_open(pair.it, &pair.service, "POST", "/batch", play.now_us);
    ck_assert_int_eq(pair_ask("Host: x"), EXCHANGE_READ);
    ck_assert(connection_add_body(&pair.it->connection,
                                  (struct span){piece, HTTP_BATCH_MAX}));
    ck_assert(!pair.it->connection.body_is_too_large);
    ck_assert(
        connection_add_body(&pair.it->connection, (struct span){piece, 1}));
    pair_expect(pair_go_on(), 413);
    ck_assert_has(pair.response.body, "the limit is 65536 bytes");
}
