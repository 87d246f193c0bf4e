/* SPDX-License-Identifier: MIT */
/*
 * What front does with a request whose sender may not ask it.
 */

#include "../../lib/suite/suite.h"
#include "authtext.h"
#include "pair.h"

static void set_up(void)
{
    pair_begin();
    play.on_answer = exchange_on_answer;
    pair.service.access =
        authtext_access("a " AUTHTEXT_SECRET " lock prefix=* locks=1\n");
}

static void tear_down(void)
{
    pair_end();
    access_free(pair.service.access);
    authtext_remove();
}

static enum exchange_step begin_with(const char *fields)
{
    exchange_open(pair.it, &pair.service, "POST", "/locks", play.now_us);
    return pair_ask(fields);
}

SUITE(exchange_strangers, .set_up = set_up, .tear_down = tear_down);

TEST(a_refusal_waits_for_the_body_and_keeps_the_connection)
{
    static const char piece[HTTP_BODY_MAX];
    ck_assert_int_eq(begin_with("Host: x\nContent-Length: 16384"),
                     EXCHANGE_READ);
    ck_assert(connection_add_body(&pair.it->connection,
                                  (struct span){piece, sizeof piece}));
    ck_assert_ptr_null(pair.it->connection.body); /* it is not kept */
    pair_expect(pair_go_on(), 401);
    ck_assert_str_eq(pair.response.challenge, "Bearer realm=\"redlockd\"");
    ck_assert(!pair.response.close);
    ck_assert_int_eq(pair.it->request.counted_as, LOCK_ACQUIRE);
}

static const char *const not_read[] = {"Host: x\nContent-Length: 16385",
                                       "Host: x\nExpect: 100-continue"};

TEST_EACH(a_refusal_does_not_ask_for_a_large_body, not_read)
{
    pair_expect(begin_with(not_read[_i]), 401);
    ck_assert_ptr_nonnull(pair.response.challenge);
    ck_assert(pair.response.close);
}

TEST(a_body_without_end_is_not_read_for_a_refusal)
{
    static const char piece[HTTP_BODY_MAX];
    ck_assert_int_eq(begin_with("Host: x\nTransfer-Encoding: chunked"),
                     EXCHANGE_READ);
    for (int i = 0; i < CONNECTION_DISCARD_MAX / HTTP_BODY_MAX; i++)
        ck_assert(connection_add_body(&pair.it->connection,
                                      (struct span){piece, sizeof piece}));
    ck_assert(
        !connection_add_body(&pair.it->connection, (struct span){piece, 1}));
}

static bool is_awake(void *arg)
{
    (void)arg;
    return pair.wakes > 0;
}

static void be_late(void)
{
    ck_assert_int_eq(begin_with("Host: x\nAccept: */*"), EXCHANGE_READ);
    pair.it->caller.refusal.is_late = true;
    pair.all.delayed_most = 1;
    ck_assert_int_eq(pair_go_on(), EXCHANGE_DELAY);
    ck_assert_int_eq(pair.all.delayed_count, 1);
}

TEST(one_of_too_many_refusals_comes_late)
{
    be_late();
    turns_until(pair.loop, is_awake, NULL);
    pair_expect(pair_go_on(), 401);
    ck_assert_int_eq(pair.all.delayed_count, 0);
}

TEST_RANGE(without_room_or_a_client_it_comes_at_once, 0, 2)
{
    ck_assert_int_eq(begin_with("Host: x\nAccept: */*"), EXCHANGE_READ);
    pair.it->caller.refusal.is_late = true;
    pair.all.delayed_most = _i;
    if (_i > 0)
        pair_leave();
    pair_expect(pair_go_on(), 401);
}

static void stop(void)
{
    pair.service.is_stopping = true;
    connections_wake(&pair.all);
    pair_expect(pair_go_on(), 503);
    ck_assert_str_eq(pair.response.code, "shutting_down");
}

static void end(void)
{
    connection_end(&pair.it->connection, false);
    pair.wakes++; /* nobody need be told */
}

static void (*const ends[])(void) = {pair_leave, stop, end};

TEST_EACH(what_ends_meanwhile_is_not_delayed, ends)
{
    be_late();
    ends[_i]();
    ck_assert_int_eq(pair.wakes, 1);
    ck_assert_int_eq(pair.all.delayed_count, 0);
}

/* ---- locks that are counted --------------------------------------------- */

/* A whole acquire of "a". */
static void acquire_as_known(void)
{
    static const char body[] = "{\"resource\":\"a\",\"ttl_ms\":30000}";
    ck_assert_int_eq(begin_with("Host: x\nAuthorization: Bearer secret"),
                     EXCHANGE_READ);
    pair.it->request.content_type = span_of("application/json");
    ck_assert(connection_add_body(&pair.it->connection, span_of(body)));
    ck_assert_int_eq(pair_go_on(), EXCHANGE_WAIT);
    connection_wait(&pair.it->connection);
}

static void expect_locks(int count)
{
    const char *line =
        textf("redlockd_identity_locks{identity=\"a\"} %d\n", count);
    authtext_expect_metric(pair.service.access, play.now_us, line);
}

TEST(a_grant_counts_until_it_turns_out_that_nobody_got_it)
{
    for (int i = 0; i < 2; i++) {
        bool is_written = i == 1;
        play.sent_count = 0;
        acquire_as_known();
        expect_locks(1);
        play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
        pair_expect(pair_go_on(), 201);
        pair_answer(play.now_us);
        connection_end(&pair.it->connection, is_written);
        expect_locks(is_written);
    }
}

/* Grants "a", and ends that request. */
static void hold_as_known(char token[100])
{
    acquire_as_known();
    play_answer_range(CALL_ACQUIRE, 0, 3, VOTE_GRANTED);
    pair_expect(pair_go_on(), 201);
    const char *at = strstr(pair.response.body, "\"token\":\"");
    ck_assert_int_eq(sscanf(at, "\"token\":\"%99[^\"]", token), 1);
    pair_answer(play.now_us);
    connection_end(&pair.it->connection, true);
    expect_locks(1);
}

/* Its connection is reset between the outcome and the answer. */
TEST(a_release_that_nobody_is_told_of_counts)
{
    char token[100], fields[200];
    hold_as_known(token);
    exchange_open(pair.it, &pair.service, "DELETE", "/locks/a", play.now_us);
    (void)snprintf(fields, sizeof fields,
                   "Host: x\nAuthorization: Bearer secret\nX-Lock-Token: %s",
                   token);
    ck_assert_int_eq(pair_ask(fields), EXCHANGE_READ);
    ck_assert_int_eq(pair_go_on(), EXCHANGE_WAIT);
    connection_wait(&pair.it->connection);
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    connection_end(&pair.it->connection, false);
    expect_locks(0);
}

static void read_with_key(const char *body)
{
    play.sent_count = 0;
    ck_assert_int_eq(begin_with("Host: x\nAuthorization: Bearer secret\n"
                                "Idempotency-Key: 0123456789abcdef"),
                     EXCHANGE_READ);
    pair.it->request.content_type = span_of("application/json");
    ck_assert(connection_add_body(&pair.it->connection, span_of(body)));
    ck_assert_int_eq(pair_go_on(), EXCHANGE_WAIT);
    connection_wait(&pair.it->connection);
}

#define READ_FOR(ms)                                                           \
    "{\"resource\":\"a\",\"mode\":\"shared\",\"ttl_ms\":" #ms "}"

/* It is not undone: the nodes may keep the lock for its TTL. */
TEST(a_repeat_that_nobody_is_told_of_counts)
{
    read_with_key(READ_FOR(1000));
    play_answer_range(CALL_REPEAT, 0, 3, VOTE_GRANTED);
    pair_expect(pair_go_on(), 200);
    pair_answer(play.now_us);
    connection_end(&pair.it->connection, true);
    read_with_key(READ_FOR(30000));
    pair_leave();
    connection_end(&pair.it->connection, false);
    play_advance(2000000);
    expect_locks(1);
}

/* ---- who may not any more ----------------------------------------------- */

static void change_file(const char *text)
{
    authtext_write(text);
    ck_assert(access_reload(pair.service.access));
}

#define GONE "b " AUTHTEXT_OTHER " lock prefix=*\n"
#define ONLY_READS "a " AUTHTEXT_SECRET " read prefix=* locks=1\n"

/* What the file says when an acquire is under way, and one node has it. */
static const struct {
    const char *file;
    bool is_granted; /* before it is asked what it was woken for */
    bool is_stopping;
    int status;
} changes[] = {
    {GONE, false, false, 401},
    {ONLY_READS, false, false, 403},
    {ONLY_READS, true, false, 403},
    {"a " AUTHTEXT_SECRET " lock prefix=a\n", true, false, 201},
    /* a stop is told rather than a refusal */
    {GONE, false, true, 503},
};

TEST_EACH(an_acquire_of_who_may_not_any_more_ends_at_once, changes)
{
    bool is_kept = changes[_i].status == 201;
    acquire_as_known();
    play_answer_range(CALL_ACQUIRE, 0, 1, VOTE_GRANTED);
    change_file(changes[_i].file);
    exchanges_review(&pair.all);
    ck_assert_int_eq(pair.wakes, !is_kept);
    if (changes[_i].is_granted)
        play_answer_range(CALL_ACQUIRE, 1, 3, VOTE_GRANTED);
    pair.service.is_stopping = changes[_i].is_stopping;
    pair_expect(pair_go_on(), changes[_i].status);
    if (changes[_i].status == 401)
        ck_assert_pstr_eq(pair.response.challenge,
                          "Bearer realm=\"redlockd\", error=\"invalid_token\"");
    ck_assert((pair.it->request.call.op == 0) == !is_kept);
    pair_answer(play.now_us);
    connection_end(&pair.it->connection, true);
    ck_assert_int_eq(play_count(CALL_RELEASE), is_kept ? 0 : PLAY_NODES);
    ck_assert_uint_eq(play.metrics.undelivered_grants,
                      changes[_i].is_granted && !is_kept);
    if (changes[_i].status == 403)
        expect_locks(0);
}
