/* SPDX-License-Identifier: MIT */
/*
 * Replies that come wrong, late, in pieces or not at all: each call gets one.
 */
#include <stdio.h>
#include <sys/socket.h>

#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"
#include "faked.h"

#define TIME ":1700000000123456\r\n"
#define NOW TIME ":0\r\n" /* and the generation */
#define FREE "$1\r\nF\r\n"
#define FREE_REPLY "*3\r\n" NOW FREE
#define DETAIL "$1\r\n.\r\n"

/* check_batch_replies.c has more that Redis could say, but no script does. */
static const char *const garbage[] = {
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "*1000\r\n",
    "*2147483647\r\n",
    "*4\r\n" NOW DETAIL "*1\r\n*1\r\n:1\r\n",
    "*4\r\n" NOW DETAIL "*1\r\n*1\r\n*1\r\n:1\r\n",
    "*3\r\n*2\r\n" FREE ":1\r\n" NOW,
    "*3\r\n" NOW "$4\r\nFREE\r\n", /* of an older script */
    "*3\r\n" NOW "*0\r\n",
    "*3\r\n" NOW "$-1\r\n",
    "*0\r\n",
    "$-1\r\n",
    "+OK\r\n",
    ":abc\r\n",
    "*4\r\n" NOW DETAIL "*3\r\n$4\r\nHELD\r\n:-7\r\n$1\r\nx\r\n",
};

SUITE(link_replies, .timeout_s = 30, .set_up = faked_setup,
      .tear_down = faked_teardown);

TEST_EACH(garbage_ends_the_link, garbage)
{
    fake_say(&faked.node, "EVALSHA", garbage[_i]);
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    faked_expect_down(STATE_GARBAGE, "sent ");
    ck_assert_int_eq(faked.replies_at_down, 1);
    ck_assert_uint_eq(faked.tags[0], 1);
    fake_say(&faked.node, "EVALSHA", FREE_REPLY);
    faked_until_up(2);
    ck_assert_int_eq(faked_inspect(2), VOTE_PENDING);
    turns_until_count(faked.loop, &faked.replies, 2);
    ck_assert_int_eq(faked.votes[1], VOTE_FREE);
}

TEST_RANGE(too_long_a_reply_ends_the_link, 0, 2)
{
    static char flood[200000];
    enum { LONG = BATCH_TEXT_MAX + 1 };
    int begin = PRINT_TO(flood, "$%d\r\n", _i == 0 ? 900000000 : LONG);
    memset(flood + begin, 'x', sizeof flood - 1 - (size_t)begin);
    if (_i == 1)
        memcpy(flood + begin + LONG, "\r\n", 3);
    fake_say(&faked.node, "EVALSHA", flood);
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    faked_expect_down(STATE_GARBAGE, "too long");
}

TEST(an_unsolicited_reply_ends_the_link)
{
    faked_bring_up();
    fake_send(&faked.node, "+hello\r\n");
    faked_expect_down(STATE_GARBAGE, "without a request");
    faked_until_up(2);
}

TEST(a_reply_that_came_with_the_handshake_ends_the_link)
{
    fake_say(&faked.node, "SCRIPT LOAD --",
             "$40\r\n" FAKE_SHA "\r\n" FREE_REPLY);
    faked_start_link();
    faked_expect_down(STATE_GARBAGE, "without a request");
}

/* Or it would be taken for the reply to what the first one made us send. */
TEST(a_reply_that_came_before_its_call_was_sent_ends_the_link)
{
    fake_say(&faked.node, "EVALSHA", FREE_REPLY FREE_REPLY);
    faked.sends_in_reply = true;
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    faked_expect_down(STATE_GARBAGE, "without a request");
    ck_assert_int_eq(faked.replies_at_down, 2);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
    ck_assert_int_eq(faked.votes[1], VOTE_DISCONNECTED);
}

TEST(replies_in_single_bytes_are_put_together)
{
    faked.node.is_sliced = true;
    faked.silence_us = 60 * US_PER_S; /* a busy machine takes its time */
    faked_bring_up();
    faked_inspect_all(5);
    turns_until_count(faked.loop, &faked.replies, 5);
    faked_expect_replies(5, VOTE_FREE);
    ck_assert_int_eq(faked.downs, 0);
}

TEST(a_lost_connection_answers_each_call_once)
{
    fake_say(&faked.node, "EVALSHA", "");
    faked_bring_up();
    faked_inspect_all(100);
    turns_until_count(faked.loop, &faked.node.calls, 100);
    fake_close(&faked.node);
    faked_expect_down(STATE_UNREACHABLE, "closed the connection");
    ck_assert_int_eq(faked.replies_at_down, 100);
    faked_expect_replies(100, VOTE_DISCONNECTED);
    faked_until_up(2);
    ck_assert_int_eq(faked.replies, 100);
}

TEST(a_write_to_a_closed_connection_calls_nobody_back)
{
    faked_bring_up();
    struct linger reset = {1, 0};
    setsockopt(faked.node.peers[0].fd, SOL_SOCKET, SO_LINGER, &reset,
               sizeof reset);
    fake_close(&faked.node);
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    link_flush(faked.link);
    ck_assert_int_eq(faked.replies, 0);
    ck_assert_int_eq(faked.downs, 0);
    ck_assert_int_eq(faked_inspect(2), VOTE_DISCONNECTED);
    faked_expect_down(STATE_UNREACHABLE, "");
    ck_assert_int_eq(faked.replies, 1);
}

/* The reply was on its way before the connection broke: it is a vote. */
TEST(replies_that_came_before_a_failed_write_count)
{
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    link_flush(faked.link);
    fake_send(&faked.node, FREE_REPLY);
    fake_close(&faked.node); /* a reset, as it has not read the call */
    ck_assert_int_eq(faked_inspect(2), VOTE_PENDING);
    link_flush(faked.link);
    faked_expect_down(STATE_UNREACHABLE, "");
    ck_assert_int_eq(faked.replies_at_down, 2);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
    ck_assert_int_eq(faked.votes[1], VOTE_DISCONNECTED);
}

static int replies_when_due;

static void note_replies(void *arg)
{
    (void)arg;
    replies_when_due = faked.replies;
}

/* Sends a batch's replies, 17 KiB of them. */
static void send_long_replies(void)
{
    static char text[BATCH_TEXT_MAX + 4096];
    char value[VALUE_MAX + 1], letters[BATCH_CALLS_MAX + 1];
    memset(value, 'x', VALUE_MAX);
    value[VALUE_MAX] = '\0';
    memset(letters, '.', BATCH_CALLS_MAX);
    letters[BATCH_CALLS_MAX] = '\0';
    size_t len =
        (size_t)PRINT_TO(text, "*%d\r\n" NOW "$%d\r\n%s\r\n",
                         BATCH_CALLS_MAX + 3, BATCH_CALLS_MAX, letters);
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "*3\r\n$4\r\nHELD\r\n:5\r\n$%d\r\n%s\r\n",
                                VALUE_MAX, value);
    fake_send(&faked.node, text);
}

/* When the timer runs, all of it has been read. */
TEST(what_lies_in_the_socket_is_read_at_once)
{
    int calls = 3 * BATCH_CALLS_MAX;
    fake_say(&faked.node, "EVALSHA", "");
    faked_bring_up();
    faked_inspect_all(calls);
    turns_until_count(faked.loop, &faked.node.calls, calls);
    for (int batch = 0; batch < 3; batch++)
        send_long_replies();
    struct loop_timer *timer = loop_timer_new(faked.loop, note_replies, NULL);
    loop_timer_set(timer, 0);
    turns_until_count(faked.loop, &replies_when_due, 1);
    ck_assert_int_eq(replies_when_due, calls);
    loop_timer_free(timer);
}

/* The replies after it in the batch do not count either. */
TEST(garbage_within_a_batch_ends_the_link)
{
    fake_say(&faked.node, "EVALSHA", "*3\r\n" NOW "$3\r\nFGF\r\n");
    faked_bring_up();
    faked_inspect_all(3);
    faked_expect_down(STATE_GARBAGE, "never gives");
    ck_assert_int_eq(faked.replies_at_down, 3);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
    ck_assert_int_eq(faked.votes[1], VOTE_UNREADABLE);
    ck_assert_int_eq(faked.votes[2], VOTE_DISCONNECTED);
}

TEST(flushed_scripts_are_loaded_again_once)
{
    faked_bring_up();
    fake_say(&faked.node, "EVALSHA", "-NOSCRIPT No matching script.\r\n");
    faked_inspect_all(10);
    turns_until_count(faked.loop, &faked.node.loads, 2);
    fake_say(&faked.node, "EVALSHA", FREE_REPLY);
    turns_until_count(faked.loop, &faked.replies, 10);
    faked_expect_replies(10, UNFIT(NO_SCRIPT));
    ck_assert_int_eq(faked.node.calls, 10);
    ck_assert_int_eq(faked_inspect(11), VOTE_PENDING);
    turns_until_count(faked.loop, &faked.replies, 11);
    ck_assert_int_eq(faked.votes[10], VOTE_FREE);
    ck_assert_int_eq(faked.node.loads, 2);
    ck_assert_int_eq(faked.downs, 0);
    ck_assert_int_eq(faked.ups, 1);
}
