/* SPDX-License-Identifier: MIT */
/*
 * How much identities may ask and hold.
 */
#include <stdio.h>

#include "../../../api/access/access.h"
#include "../../../api/message/problem.h"
#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "../starve.h"
#include "ask.h"
#include "authtext.h"
#include "judged.h"

#define TOKEN_A "{'token':'" ASK_TOKEN "'}"

static void end(bool is_answered)
{
    access_end(judged_access, &ask.request.call, is_answered);
    ask_anew();
}

static void tear_down(void)
{
    end(true);
    judged_end();
}

static const struct refusal *admit(const char *method, const char *target)
{
    return judged_admit(method, target, "Bearer secret");
}

static void expect_metric(const char *line)
{
    authtext_expect_metric(judged_access, play.now_us + judged_ahead_us, line);
}

/* ---- requests ----------------------------------------------------------- */

static void expect_limited(bool is_late)
{
    const struct refusal *refusal = admit("GET", "/nodes");
    ck_assert_ptr_nonnull(refusal->detail);
    ck_assert_int_eq(refusal->code, (int)PROBLEM_RATE_LIMITED);
    ck_assert_int_ge(refusal->retry_after_ms, 1);
    ck_assert_int_le(refusal->retry_after_ms, 2000);
    ck_assert(refusal->is_late == is_late);
    end(true);
}

static void expect_allowed(void)
{
    ck_assert_ptr_null(admit("GET", "/nodes")->detail);
    end(true);
}

static void set_up(void)
{
    ask_begin();
    judged_ahead_us = clock_now_us();
}

SUITE(access_limits);

GROUP(requests, .set_up = set_up, .tear_down = tear_down);

TEST(more_requests_than_allowed_are_refused)
{
    judged_use("a " AUTHTEXT_SECRET " read prefix=* rate=2 burst=3\n");
    for (int i = 0; i < 3; i++)
        expect_allowed();
    for (int i = 0; i < 3; i++)
        expect_limited(false);
    expect_limited(true);
    judged_ahead_us += 500000;
    expect_allowed();
    expect_limited(false);
    expect_limited(true);
    expect_metric("{identity=\"a\",result=\"allowed\"} 4\n");
    expect_metric("{identity=\"a\",result=\"limited\"} 6\n");
}

TEST(what_is_forbidden_counts_among_the_requests)
{
    judged_use("a " AUTHTEXT_SECRET " read prefix=* rate=1\n");
    ck_assert_int_eq(admit("GET", "/metrics")->code, (int)PROBLEM_FORBIDDEN);
    end(true);
    expect_limited(false);
    expect_metric("{identity=\"a\",result=\"forbidden\"} 1\n");
}

#define ID_OF_A_TO_D "/locks/~~YQpiCmMKZA"
#define OF_LIMIT(limit) "{'resource':'p','limit':" #limit "}"
#define FIVE "{'resources':['a','b','c','d','e'],'mode':'shared'}"

static const struct {
    const char *method, *target, *page_size, *body;
    int rate;
    int times; /* that it may be asked at once */
} prices[] = {
    /* one for each ten locks, but no more than the burst */
    {"GET", "/locks", "1", NULL, 100, 100},
    {"GET", "/locks", "19", NULL, 100, 100},
    {"GET", "/locks", "20", NULL, 100, 50},
    {"GET", "/locks", "500", NULL, 100, 2},
    {"GET", "/locks", "1000", NULL, 100, 1},
    {"GET", "/locks", "x", NULL, 100, 100},
    {"GET", "/locks", "1001", NULL, 100, 100},
    {"GET", "/locks", NULL, NULL, 10, 1},
    {"GET", "/locks", "1000", NULL, 10, 1},
    /* one for each name; a holder is not charged for the names once more */
    {"GET", ID_OF_A_TO_D, NULL, NULL, 8, 2},
    {"HEAD", ID_OF_A_TO_D, NULL, NULL, 8, 2},
    {"GET", "/locks/a", NULL, NULL, 8, 8},
    {"DELETE", ID_OF_A_TO_D, NULL, NULL, 8, 8},
    {"PUT", ID_OF_A_TO_D "/extend", NULL, NULL, 8, 8},
    {"POST", "/locks", NULL, "{'resource':'a'}", 20, 20},
    {"POST", "/locks", NULL, "{'resources':['a','b']}", 20, 10},
    {"POST", "/locks", NULL, FIVE, 20, 4},
    {"POST", "/locks", NULL, FIVE, 2, 1},
    /* and one more for each hundred permits of the pool */
    {"POST", "/locks", NULL, OF_LIMIT(99), 14, 14},
    {"POST", "/locks", NULL, OF_LIMIT(199), 14, 7},
    {"POST", "/locks", NULL, OF_LIMIT(1000), 21, 1},
    {"POST", "/locks", NULL, OF_LIMIT(1000), 22, 2},
    {"POST", "/locks", NULL, OF_LIMIT(1000), 5, 1},
};

/* False: it was one too many. */
static bool ask_for(int row)
{
    if (prices[row].page_size != NULL)
        query_add(&ask.request.query, span_of("page_size"),
                  span_of(prices[row].page_size));
    const struct refusal *refusal =
        admit(prices[row].method, prices[row].target);
    bool may = refusal->detail == NULL;
    if (!may)
        ck_assert_int_eq(refusal->code, (int)PROBLEM_RATE_LIMITED);
    if (may && prices[row].body != NULL) {
        may =
            !ask_send(prices[row].method, prices[row].target, prices[row].body);
        if (!may)
            ask_expect(429, "rate_limited");
    }
    end(false);
    return may;
}

TEST_EACH(requests_count_by_what_they_ask, prices)
{
    int times = 0;
    judged_use(textf("a " AUTHTEXT_SECRET " lock,read prefix=* rate=%d\n",
                     prices[_i].rate));
    while (ask_for(_i))
        times++;
    ck_assert_int_eq(times, prices[_i].times);
}

TEST(crowds_of_strangers_are_answered_late)
{
    int late = 0;
    judged_use("a " AUTHTEXT_OTHER " read prefix=*\n");
    for (int i = 0; i < 1000; i++) {
        late += admit("GET", "/nodes")->is_late;
        end(true);
    }
    ck_assert_int_eq(late, 800);
    judged_ahead_us += 1000000;
    ck_assert(!admit("GET", "/nodes")->is_late);
    expect_metric("redlockd_unauthorized_total 1001\n");
}

/* ---- locks -------------------------------------------------------------- */

static bool acquire(const char *body)
{
    const struct refusal *refusal = admit("POST", "/locks");
    return refusal->detail == NULL && !ask_send("POST", "/locks", body);
}

static void grant(int status)
{
    int first = play.sent_count > PLAY_NODES ? play.sent_count - PLAY_NODES : 0;
    for (int i = first; i < play.sent_count; i++)
        if (!play.sent[i].is_answered)
            play_answer(play.sent[i].call.kind, play.sent[i].node,
                        VOTE_GRANTED);
    ask_answer(play.now_us);
    ck_assert_int_eq(ask.response.status, status);
}

/* The client has its answer: the operation ends with its connection. */
static void deliver(void)
{
    if (ask.request.call.op != 0)
        engine_close(play.engine, ask.request.call.op);
    ask.request.call.op = 0;
    end(true);
}

static void hold(const char *body)
{
    ck_assert(acquire(body));
    grant(201);
    deliver();
}

static void expect_refused(const char *body, enum problem_code code)
{
    ck_assert(!acquire(body));
    if (ask.caller.refusal.detail != NULL)
        ck_assert_int_eq(ask.caller.refusal.code, (int)code);
    else
        ask_expect(429, problem_kinds[code].name);
    end(true);
}

static void expect_full(const char *body)
{
    expect_refused(body, PROBLEM_LOCK_QUOTA_EXCEEDED);
}

#define X "{'resource':'x','ttl_ms':10000}"
#define Y "{'resource':'y','ttl_ms':20000}"
#define Z "{'resource':'z','ttl_ms':20000}"

static void use_two(void)
{
    ask_begin();
    judged_use("a " AUTHTEXT_SECRET " lock,read,admin prefix=* locks=2\n");
}

GROUP(locks, .set_up = use_two, .tear_down = tear_down);

TEST(more_locks_than_allowed_are_refused)
{
    hold(X);
    hold(Y);
    expect_full(Z);
    expect_metric("redlockd_identity_locks{identity=\"a\"} 2\n");
    expect_allowed();
    play_advance(10000000); /* x ends */
    hold(Z);
    expect_full(X);
}

static void release_with(const char *id, const char *token, int ballot)
{
    const char *target = textf("/locks/%s", id);
    (void)admit("DELETE", target);
    ask_and_vote("DELETE", target, textf("{'token':'%s'}", token), CALL_RELEASE,
                 ballot);
    ck_assert_int_eq(ask.response.status, ballot == VOTE_DELETED ? 200
                                          : ballot == VOTE_FREE  ? 404
                                                                 : 409);
    end(true);
}

TEST(a_release_makes_room_and_a_refused_one_does_not)
{
    hold(X);
    hold(Y);
    release_with("x", ASK_TOKEN, VOTE_HELD);
    expect_full(Z);
    release_with("x", ASK_TOKEN, VOTE_DELETED);
    hold(Z);
}

TEST(a_release_that_cannot_be_told_makes_room_too)
{
    hold(X);
    hold(Y);
    (void)admit("DELETE", "/locks/x");
    ck_assert(!ask_send("DELETE", "/locks/x", TOKEN_A));
    play_answer_range(CALL_RELEASE, 0, 3, VOTE_DELETED);
    starve = (struct starve){.is_on = true, .left = 1};
    ask_answer(play.now_us);
    starve.is_on = false;
    ask_expect(503, "overloaded");
    end(true);
    hold(Z);
}

static void extend(const char *target, const char *body)
{
    (void)admit("PUT", target);
    ask_and_vote("PUT", target, body, CALL_EXTEND, VOTE_EXTENDED);
    ask_expect(200, NULL);
    end(true);
}

TEST(an_extension_counts_longer)
{
    hold(X);
    hold(Y);
    extend("/locks/x/extend", TOKEN_A);
    play_advance(11000000);
    expect_full(Z);
}

#define PERMIT "{'resource':'p','limit':9,'ttl_ms':20000}"

TEST(a_released_permit_makes_room)
{
    hold("{'resource':'p','limit':1}");
    hold(X);
    expect_full(PERMIT);
    release_with("~cB8w", ASK_TOKEN, VOTE_DELETED); /* slot 0 of p */
    hold(PERMIT);
}

/* It was acquired through another server. */
TEST(an_extended_lock_counts)
{
    hold(X);
    extend("/locks/y/extend", TOKEN_A);
    expect_full(Z);
    (void)admit("PUT", "/locks/z/extend");
    ck_assert(ask_send("PUT", "/locks/z/extend", TOKEN_A));
    ask_expect(429, "lock_quota_exceeded");
    end(true);
}

TEST(who_is_refused_or_left_holds_nothing)
{
    for (int i = 0; i < 3; i++) {
        ck_assert(acquire(X));
        play_hold_range(CALL_ACQUIRE, 0, 3, PLAY_TOKEN_OF(1));
        ask_answer(play.now_us);
        ck_assert_int_eq(ask.response.status, 409);
        end(true);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert(acquire(Y));
        grant(201);
        end(false); /* it was not written: ask_anew abandons it */
    }
    for (int i = 0; i < 3; i++) {
        ck_assert(acquire(Z));
        end(false);
    }
    expect_metric("redlockd_identity_locks{identity=\"a\"} 0\n");
}

/* The client of an earlier one reads nothing, until the next one is held. */
TEST(a_lost_answer_ends_no_later_lock)
{
    ck_assert(acquire(X));
    grant(201);
    struct caller caller = ask.caller;
    struct http_call earlier = ask.request.call;
    earlier.caller = &caller;
    ask.request.call.op = 0;
    ask_anew();
    play_advance(10000000);
    hold(X);
    (void)engine_abandon(play.engine, earlier.op);
    access_end(judged_access, &earlier, false);
    expect_metric("redlockd_identity_locks{identity=\"a\"} 1\n");
}

#define READ "{'resource':'x','mode':'shared','ttl_ms':10000}"

TEST(each_reader_counts_from_its_acquire)
{
    hold(READ);
    hold(READ);
    expect_full(READ);
    expect_metric("redlockd_identity_locks{identity=\"a\"} 2\n");
    play_advance(10000000);
    ck_assert(acquire(READ));
    expect_metric("redlockd_identity_locks{identity=\"a\"} 1\n");
    grant(201);
    expect_metric("redlockd_identity_locks{identity=\"a\"} 1\n");
    deliver();
    expect_metric("redlockd_identity_locks{identity=\"a\"} 1\n");
}

/* By each of their random digits. */
TEST(readers_from_other_servers_are_told_apart)
{
#define READER(first, last)                                                    \
    "{'token':'1795221642000000~" first                                        \
    "f1c27a5b9d04e6e8f1c27a5b9d04e6e8f1c27a" last "'}"
    extend("/locks/x/extend", READER("0", "0"));
    extend("/locks/x/extend", READER("0", "0"));
    expect_metric("redlockd_identity_locks{identity=\"a\"} 1\n");
    extend("/locks/x/extend", READER("1", "0"));
    expect_metric("redlockd_identity_locks{identity=\"a\"} 2\n");
    (void)admit("PUT", "/locks/x/extend");
    ck_assert(ask_send("PUT", "/locks/x/extend", READER("0", "1")));
    ask_expect(429, "lock_quota_exceeded");
    end(true);
}

static const struct {
    const char *body, *key; /* NULL: none */
    int ballot;
} gone[] = {
    {"{'resources':['x','y']}", NULL, VOTE_FREE},
    {"{'resources':['x','y']}", NULL, VOTE_HELD},
    {"{'resources':['x','y'],'mode':'shared'}", NULL, VOTE_FREE},
    {X, NULL, VOTE_FREE},
    {READ, "0123456789abcdef", VOTE_FREE},
    {READ, "0123456789abcdef", VOTE_HELD},
};

/* Some of it was released by force, perhaps; the rest is with the release. But
 * that is known to the holder only. */
TEST_EACH(what_its_token_does_not_find_counts_no_longer, gone)
{
    char id[40], token[100];
    if (gone[_i].key != NULL)
        ask.request.call.idempotency_key = span_of(gone[_i].key);
    ck_assert(acquire(gone[_i].body));
    grant(gone[_i].key != NULL ? 200 : 201); /* of a key, as to a repeat */
    deliver();
    snprintf(id, sizeof id, "%s", ask_text("id"));
    snprintf(token, sizeof token, "%s", ask_text("token"));
    char *last = &token[56], digit = *last;
    *last = digit == '0' ? '1' : '0';
    release_with(id, token, gone[_i].ballot);
    expect_metric("redlockd_identity_locks{identity=\"a\"} 1\n");
    *last = digit;
    release_with(id, token, gone[_i].ballot);
    expect_metric("redlockd_identity_locks{identity=\"a\"} 0\n");
}

TEST(a_repeat_is_let_through)
{
    hold(X);
    hold(Y);
    ask.request.call.idempotency_key = span_of("0123456789abcdef");
    ck_assert(acquire(X));
    end(false);
    ask.request.call.idempotency_key = span_of("0123456789abcdef");
    expect_full(Z);
    expect_metric("redlockd_identity_locks{identity=\"a\"} 2\n");
}

/* It is the reader with its key, which is counted already. */
TEST(a_repeat_of_a_reader_is_let_through)
{
    hold(READ);
    ask.request.call.idempotency_key = span_of("0123456789abcdef");
    ck_assert(acquire(READ));
    grant(200);
    deliver();
    expect_full(READ);
    ask.request.call.idempotency_key = span_of("0123456789abcdef");
    ck_assert(acquire(READ));
    end(false);
}

TEST(without_memory_nothing_is_acquired)
{
    (void)admit("POST", "/locks");
    starve.is_on = true;
    for (int left = 1; left < 30; left++) {
        starve.left = left;
        if (!ask_send("POST", "/locks", X))
            break;
        ck_assert_int_eq(ask.response.status, 503);
        access_end(judged_access, &ask.request.call, true);
    }
    starve.is_on = false;
    ck_assert(ask.request.call.op != 0);
}

/* ---- what a large pool costs --------------------------------------------- */

GROUP(pools, .set_up = set_up, .tear_down = tear_down);

/* Whether the nodes are asked which slots are free. */
static bool ask_with_key(const char *bearer, const char *body)
{
    ask.request.call.idempotency_key = span_of("0123456789abcdef");
    (void)judged_admit("POST", "/locks", bearer);
    ck_assert(!ask_send("POST", "/locks", body));
    bool is_asked = play_count(CALL_SLOTS) > 0;
    ask.request.call.op = 0; /* it stays under way */
    end(true);
    return is_asked;
}

TEST(after_a_reload_the_engine_is_told_the_same)
{
    judged_use("0 " AUTHTEXT_THIRD " lock prefix=*\n"
               "a " AUTHTEXT_SECRET " lock prefix=*\n"
               "b " AUTHTEXT_OTHER " lock prefix=*\n");
    ck_assert(ask_with_key("Bearer secret", "{'resource':'p','limit':1000}"));
    play.sent_count = 0;
    judged_change("a " AUTHTEXT_SECRET " lock prefix=*\n"
                  "b " AUTHTEXT_OTHER " lock prefix=*\n");
    ck_assert(ask_with_key("Bearer other", "{'resource':'q','limit':1000}"));
}

/* Or one identity would fill the places of all that wait. */
TEST(permits_take_places_of_those_that_wait)
{
    judged_use("a " AUTHTEXT_SECRET " lock prefix=*\n"
               "b " AUTHTEXT_OTHER " lock prefix=*\n");
    ck_assert(acquire(OF_LIMIT(3)));
    ck_assert_ptr_nonnull(ask.caller.placed);
    ck_assert_int_eq(ask.caller.place, PLACE_WAIT);
    end(false);
    ck_assert(acquire(X));
    ck_assert_ptr_null(ask.caller.placed);
    end(false);
}

/* ---- places ------------------------------------------------------------- */

enum { ALL = 8 };

static struct http_request placed[2 * ALL];
static struct caller placers[2 * ALL];
static int placed_count;

/* One more for the identity, of most. */
static bool take_of(const char *identity, enum place place, int most)
{
    struct http_request *request = &placed[placed_count];
    struct caller *caller = &placers[placed_count];
    static struct http_response response; /* the request points to it */
    *caller = (struct caller){.has_result = true};
    http_response_init(&response);
    *request = (struct http_request){
        .call = {.request = request, .caller = caller, .response = &response}};
    request->identity[span_copy(request->identity, span_of(identity))] = '\0';
    if (access_take_place(judged_access, &request->call, place, most)) {
        placed_count++;
        return true;
    }
    ck_assert_int_eq(response.status, 429);
    free(response.body);
    return false;
}

static bool take(const char *identity, enum place place)
{
    return take_of(identity, place, ALL);
}

static int take_all(const char *identity, enum place place)
{
    int count = 0;
    while (take(identity, place))
        count++;
    return count;
}

static void leave_all(void)
{
    while (placed_count > 0)
        access_end(judged_access, &placed[--placed_count].call, true);
}

static void leave_and_tear_down(void)
{
    leave_all();
    tear_down();
}

static void use_three(void)
{
    ask_begin();
    placed_count = 0;
    judged_use("a " AUTHTEXT_SECRET " read prefix=*\nb " AUTHTEXT_OTHER
               " read prefix=*\n"
               "c cert:dns:c read prefix=*\nd cert:dns:d read prefix=*\n");
}

GROUP(places, .set_up = use_three, .tear_down = leave_and_tear_down);

TEST(nobody_takes_more_places_than_are_left)
{
    ck_assert_int_eq(take_all("a", PLACE_LIST), 4);
    ck_assert_int_eq(take_all("a", PLACE_WAIT), 4);
    leave_all();
    ck_assert_int_eq(take_all("a", PLACE_LIST), 4);
    ck_assert_int_eq(take_all("b", PLACE_LIST), 2);
    ck_assert_int_eq(take_all("c", PLACE_LIST), 1);
    ck_assert(take("d", PLACE_LIST));
    ck_assert(!take("a", PLACE_LIST));
    access_end(judged_access, &placed[0].call, true);
    access_end(judged_access, &placed[1].call, true);
    ck_assert_int_eq(take_all("d", PLACE_LIST), 1); /* of the two left */
}

/* Or who asks again at once would keep the server busy with refusals. */
TEST(a_list_too_many_is_refused_late)
{
    for (int i = 0; i < ENGINE_LISTS_MAX / 2; i++)
        ck_assert(take_of("a", PLACE_LIST, ENGINE_LISTS_MAX));
    const struct refusal *refusal = admit("GET", "/locks");
    ck_assert_int_eq(refusal->code, (int)PROBLEM_RATE_LIMITED);
    ck_assert(refusal->is_late);
    end(true);
    access_end(judged_access, &placed[0].call, true);
    ck_assert_ptr_null(admit("GET", "/locks")->detail);
}

/* As if they were still taken, or had not been. */
static void expect_four_for_a(enum place place)
{
    leave_all();
    ck_assert_int_eq(take_all("a", place), 4);
}

TEST(who_is_removed_while_it_waits_and_returns_has_its_share)
{
    static const char with_a[] = "a " AUTHTEXT_SECRET " read prefix=*\n"
                                 "b " AUTHTEXT_OTHER " read prefix=*\n";
    for (int place = 0; place < PLACES; place++) {
        ck_assert_int_eq(take_all("a", (enum place)place), 4);
        judged_change("b " AUTHTEXT_OTHER " read prefix=*\n");
        judged_change("b " AUTHTEXT_OTHER " read prefix=*\n");
        access_end(judged_access, &placed[--placed_count].call, true);
        judged_change(with_a);
        ck_assert_int_eq(take_all("a", (enum place)place), 1);
        expect_four_for_a((enum place)place);
        judged_change("b " AUTHTEXT_OTHER " read prefix=*\n");
        leave_all();
        judged_change(with_a);
        expect_four_for_a((enum place)place);
        leave_all();
    }
}

#define HOLDS_ONE "a " AUTHTEXT_SECRET " lock prefix=* locks=9\n"

/* Its locks keep its account. */
TEST(who_is_removed_with_its_locks_leaves_no_place_taken)
{
    judged_change(HOLDS_ONE);
    hold(Z);
    ck_assert_int_eq(take_all("a", PLACE_WAIT), 4);
    judged_change("b " AUTHTEXT_OTHER " read prefix=*\n");
    leave_all();
    judged_change(HOLDS_ONE);
    expect_four_for_a(PLACE_WAIT);
}

GROUP(streams, .set_up = use_two, .tear_down = tear_down);

TEST(a_stream_without_room_is_told)
{
    char room[64];
    FILE *out = fmemopen(room, sizeof room, "w");
    setbuf(out, NULL);
    ck_assert(!access_print(judged_access, 0, out));
    ck_assert(access_print(NULL, 0, out));
    (void)fclose(out);
}
