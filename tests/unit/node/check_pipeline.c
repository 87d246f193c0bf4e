/* SPDX-License-Identifier: MIT */
/*
 * Commands in a row, and which reply belongs to which, over a socket whose
 * other end is the test's.
 */
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/node/pipeline.h"
#include "../../lib/suite/suite.h"

enum { TAG = 1000, BYTES_MAX = 64 * 1024 };

#define SHA "89abcdef0123456789abcdef0123456789abcdef"
#define ADMIT "1:0011223344556677:name:run"

static int listener, peer;
static struct wire *wire;
static struct pipeline pipeline;
static struct pipeline_reply reply;

static void connect_wire(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t len = sizeof address;
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&address, &len),
                     0);
    wire = wire_new((struct sockaddr *)&address, len);
    ck_assert_ptr_nonnull(wire);
    ck_assert_ptr_null(wire_error(wire));
    peer = accept(listener, NULL, NULL);
    ck_assert_int_ge(peer, 0);
    pipeline_begin(&pipeline, wire, SHA);
}

static void disconnect_wire(void)
{
    wire_free(wire);
    close(peer);
}

static void setup(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    /* without a path the system chooses a name */
    ck_assert_int_eq(
        bind(listener, (struct sockaddr *)&address, sizeof address.sun_family),
        0);
    ck_assert_int_eq(listen(listener, 1), 0);
    pipeline_init(&pipeline, span_of("p:"));
    connect_wire();
}

static void teardown(void)
{
    disconnect_wire();
    pipeline_fini(&pipeline);
    close(listener);
}

/* ---- both ends ----------------------------------------------------------- */

static enum vote call(uint64_t tag, const char *admit)
{
    const struct call it = {.kind = CALL_INSPECT,
                            .resource = span_of("r"),
                            .admit = span_of(admit)};
    return pipeline_call(&pipeline, &it, tag);
}

static void call_all(int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(call((uint64_t)(TAG + i), ADMIT), VOTE_PENDING);
}

static void load(void)
{
    const struct span args[] = {span_of("PING"), span_of("me")};
    ck_assert(pipeline_load(&pipeline, args, 2));
}

/* What came there of all that was appended. */
static const char *take_sent(void)
{
    static char bytes[BYTES_MAX];
    size_t len = 0;
    while (wire_unsent(wire) > 0) {
        ck_assert(wire_write(wire));
        ssize_t got = recv(peer, bytes + len, sizeof bytes - 1 - len, 0);
        ck_assert_int_gt(got, 0);
        len += (size_t)got;
    }
    bytes[len] = '\0';
    return bytes;
}

static int count_in(const char *text, const char *word)
{
    int count = 0;
    while ((text = strstr(text, word)) != NULL) {
        count++;
        text += strlen(word);
    }
    return count;
}

static void give(const char *bytes)
{
    bool has_read;
    ck_assert_int_eq(write(peer, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
    ck_assert(wire_read(wire, &has_read));
    ck_assert(has_read);
}

/* The reply to a batch of so many calls. */
static void give_batch(int calls)
{
    char letters[BATCH_CALLS_MAX + 1];
    memset(letters, 'F', (size_t)calls);
    letters[calls] = '\0';
    give(textf("*3\r\n:1700000000123456\r\n:0\r\n$%d\r\n%s\r\n", calls,
               letters));
}

/* What is read from now on was sent before. */
static enum pipeline_next next(void)
{
    return pipeline_next(&pipeline, clock_now_us() + 1, &reply);
}

static void expect_call(int number)
{
    ck_assert_int_eq(next(), PIPELINE_CALL);
    ck_assert_uint_eq(reply.tag, (uint64_t)(TAG + number));
    ck_assert_int_eq(reply.script.vote, VOTE_FREE);
}

SUITE(pipeline, .set_up = setup, .tear_down = teardown, .timeout_s = 60);

/* ---- commands ------------------------------------------------------------ */

TEST(the_calls_of_a_turn_are_one_command)
{
    call_all(3);
    ck_assert_uint_eq(wire_unsent(wire), 0);
    ck_assert(pipeline_append(&pipeline));
    const char *sent = take_sent();
    ck_assert_int_eq(count_in(sent, "EVALSHA"), 1);
    ck_assert_int_eq(count_in(sent, SHA), 1);
    ck_assert_int_eq(count_in(sent, "\r\np:r\r\n"), 3);
    ck_assert(pipeline_append(&pipeline));
    ck_assert_uint_eq(wire_unsent(wire), 0);
}

TEST(calls_with_two_admissions_are_two_commands)
{
    ck_assert_int_eq(call(TAG, ADMIT), VOTE_PENDING);
    ck_assert_int_eq(call(TAG + 1, "another"), VOTE_PENDING);
    ck_assert(pipeline_append(&pipeline));
    ck_assert_int_eq(count_in(take_sent(), "EVALSHA"), 2);
    give_batch(1);
    expect_call(0);
    ck_assert_int_eq(next(), PIPELINE_NONE);
}

TEST(a_load_keeps_its_place_between_calls)
{
    call_all(2);
    load();
    ck_assert_int_eq(call(TAG + 2, ADMIT), VOTE_PENDING);
    ck_assert(pipeline_append(&pipeline));
    const char *sent = take_sent();
    ck_assert_int_eq(count_in(sent, "EVALSHA"), 2);
    ck_assert_int_eq(count_in(strstr(sent, "PING"), "EVALSHA"), 1);
    give_batch(2);
    give("$2\r\nok\r\n");
    give_batch(1);
    expect_call(0);
    expect_call(1);
    ck_assert_int_eq(next(), PIPELINE_LOADED);
    ck_assert_int_eq(reply.loaded->count, 1);
    ck_assert_uint_eq(reply.loaded->fields[0].string.len, 2);
    expect_call(2);
}

static void discard_sent(void)
{
    static char bytes[1024 * 1024];
    while (wire_unsent(wire) > 0) {
        ck_assert(wire_write(wire));
        ck_assert_int_gt(recv(peer, bytes, sizeof bytes, 0), 0);
    }
}

/* Batches of one call and more, some of which are always under way. */
TEST(replies_find_their_calls_in_order_while_more_are_pending)
{
    enum { ROUNDS = 200, BEHIND = 5 };
    int in = 0, out = 0;
    for (int round = 0; round < ROUNDS + BEHIND; round++) {
        int calls = 1 + round * 7 % BATCH_CALLS_MAX;
        for (int i = 0; i < calls && round < ROUNDS; i++)
            ck_assert_int_eq(call((uint64_t)(TAG + in++), ADMIT), VOTE_PENDING);
        ck_assert(pipeline_append(&pipeline));
        discard_sent();
        if (round < BEHIND)
            continue;
        calls = 1 + (round - BEHIND) * 7 % BATCH_CALLS_MAX;
        give_batch(calls);
        for (int i = 0; i < calls; i++)
            expect_call(out++);
        ck_assert_int_eq(next(), PIPELINE_NONE);
    }
    ck_assert_int_eq(out, in);
    ck_assert_int_eq(pipeline_oldest_us(&pipeline), 0);
    ck_assert(!pipeline_drop(&pipeline, &reply));
}

/* ---- times --------------------------------------------------------------- */

TEST(each_reply_tells_when_its_command_was_sent)
{
    ck_assert_int_eq(pipeline_oldest_us(&pipeline), 0);
    int64_t before_us = clock_now_us();
    call_all(3);
    int64_t between_us = clock_now_us();
    load();
    int64_t after_us = clock_now_us();
    ck_assert(pipeline_append(&pipeline));
    (void)take_sent();
    int64_t oldest_us = pipeline_oldest_us(&pipeline);
    ck_assert(before_us <= oldest_us && oldest_us <= between_us);
    give_batch(3);
    for (int i = 0; i < 3; i++) {
        expect_call(i);
        ck_assert_int_eq(reply.sent_us, oldest_us);
    }
    oldest_us = pipeline_oldest_us(&pipeline);
    ck_assert(between_us <= oldest_us && oldest_us <= after_us);
    give("+OK\r\n");
    ck_assert_int_eq(next(), PIPELINE_LOADED);
    ck_assert_int_eq(reply.sent_us, oldest_us);
    ck_assert_int_eq(pipeline_oldest_us(&pipeline), 0);
}

/* ---- what is no reply ---------------------------------------------------- */

TEST(a_reply_that_came_before_its_command_was_sent_is_unasked)
{
    int64_t received_us = clock_now_us();
    give_batch(1);
    call_all(1);
    ck_assert(pipeline_append(&pipeline));
    ck_assert_int_eq(pipeline_next(&pipeline, received_us, &reply),
                     PIPELINE_UNASKED);
}

/* ---- a lost connection --------------------------------------------------- */

/* Sent or not, answered in part or not: each once, and no load. */
TEST(each_call_without_a_reply_is_dropped_once)
{
    call_all(3);
    load();
    ck_assert_int_eq(call(TAG + 3, ADMIT), VOTE_PENDING);
    give_batch(3);
    expect_call(0);
    for (int i = 1; i <= 3; i++) {
        ck_assert(pipeline_drop(&pipeline, &reply));
        ck_assert_uint_eq(reply.tag, (uint64_t)(TAG + i));
        ck_assert_int_eq(reply.script.vote, VOTE_DISCONNECTED);
        ck_assert_int_gt(reply.sent_us, 0);
    }
    ck_assert(!pipeline_drop(&pipeline, &reply));
    disconnect_wire();
    connect_wire();
    ck_assert(pipeline_append(&pipeline));
    ck_assert_uint_eq(wire_unsent(wire), 0); /* it is not sent again */
    call_all(1);
    ck_assert(pipeline_append(&pipeline));
    ck_assert_int_eq(count_in(take_sent(), "\r\np:r\r\n"), 1);
    ck_assert_int_eq(next(), PIPELINE_NONE); /* of the old reply */
    give_batch(1);
    expect_call(0);
}

/* As when there is no memory for a command. */
TEST(a_broken_one_takes_nothing_until_it_is_begun_anew)
{
    call_all(1);
    pipeline.is_broken = true;
    ck_assert_int_eq(call(TAG + 1, ADMIT), VOTE_STALLED);
    ck_assert(!pipeline_append(&pipeline));
    ck_assert(pipeline_drop(&pipeline, &reply));
    ck_assert_uint_eq(reply.tag, TAG);
    ck_assert(!pipeline_drop(&pipeline, &reply));
    disconnect_wire();
    connect_wire();
    call_all(1);
    ck_assert(pipeline_append(&pipeline));
}

/* ---- limits -------------------------------------------------------------- */

/* A node that reads nothing must not use up our memory. */
TEST(so_many_bytes_may_wait)
{
    static char name[RESOURCE_MAX];
    struct call it = {.kind = CALL_INSPECT, .resource = {name, sizeof name}};
    int calls = 0;
    memset(name, 'n', sizeof name);
    while (pipeline_call(&pipeline, &it, TAG) == VOTE_PENDING)
        ck_assert_int_lt(++calls, PIPELINE_PENDING_MAX);
    ck_assert_uint_gt(wire_unsent(wire), 1024 * 1024);
    ck_assert_uint_lt(wire_unsent(wire), 64 * 1024 * 1024);
    discard_sent();
    ck_assert_int_eq(pipeline_call(&pipeline, &it, TAG), VOTE_PENDING);
}

TEST(so_many_calls_may_be_pending)
{
    for (int i = 0; i < PIPELINE_PENDING_MAX; i++) {
        ck_assert_int_eq(call((uint64_t)(TAG + i), ADMIT), VOTE_PENDING);
        discard_sent();
    }
    ck_assert_int_eq(call(TAG, ADMIT), VOTE_STALLED);
    ck_assert(!pipeline.is_broken);
    ck_assert(pipeline_append(&pipeline));
    discard_sent();
    give_batch(BATCH_CALLS_MAX);
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        expect_call(i);
    ck_assert_int_eq(call(TAG, ADMIT), VOTE_PENDING);
}
