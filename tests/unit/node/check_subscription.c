/* SPDX-License-Identifier: MIT */
/*
 * The life of a subscription, against a node that misbehaves; what any line
 * does is asked of links.
 */
#include <stdio.h>
#include <sys/socket.h>

#include "../../../server/base/clock.h"
#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "faked.h"
#include "heard.h"

#define BULK(len, text) "$" #len "\r\n" text "\r\n"
#define GENERATION                                                             \
    "*3\r\n" BULK(7, "message") BULK(20, HEARD_CHANNEL) BULK(0, "")
#define ON_GENERATION                                                          \
    "*3\r\n" BULK(9, "subscribe") BULK(20, HEARD_CHANNEL) ":1\r\n"
#define ON "*3\r\n" BULK(9, "subscribe") BULK(21, HEARD_CHANNEL "r") ":2\r\n"
#define OFF                                                                    \
    "*3\r\n" BULK(11, "unsubscribe") BULK(21, HEARD_CHANNEL "r") ":1\r\n"
#define MESSAGE                                                                \
    "*3\r\n" BULK(7, "message") BULK(21, HEARD_CHANNEL "r") BULK(0, "")

/* Long enough for slow machines, unless a test is about it. */
enum { LONG_US = 5000000, SHORT_US = 300000, BEATING_US = 1000000 };

static void start(void)
{
    heard_start(faked.loop, &faked.config, LONG_US);
}

static void restart(int64_t silence_us)
{
    heard_end();
    heard_start(faked.loop, &faked.config, silence_us);
}

static void setup(void)
{
    faked_setup();
    fake_say(&faked.node, "SUBSCRIBE", ON_GENERATION);
    fake_say(&faked.node, "SUBSCRIBE " HEARD_CHANNEL "r", ON);
    fake_say(&faked.node, "UNSUBSCRIBE", OFF);
    start();
}

static void teardown(void)
{
    heard_end();
    faked_teardown();
}

static void open_until_up(void)
{
    heard_open();
    heard_until_up(heard.ups + 1);
}

SUITE(subscription, .timeout_s = 30, .set_up = setup, .tear_down = teardown);

TEST(comes_up_with_heartbeats_and_leaves_no_trace)
{
    fake_say(&faked.node, "SUBSCRIBE", ON_GENERATION GENERATION);
    turns_pass(faked.loop, 50000);
    ck_assert_int_eq(faked.node.accepted, 0);
    open_until_up();
    turns_until_count(faked.loop, &heard.generations, 1);
    ck_assert_int_eq(heard.subscribed, 0);
    ck_assert_int_eq(heard.announced, 0);
    ck_assert_int_eq(heard.downs, 0);
    ck_assert_int_eq(faked.node.loads, 0);
    heard_open();
    turns_pass(faked.loop, 50000);
    ck_assert_int_eq(faked.node.accepted, 1);
}

TEST(tells_what_is_subscribed_and_announced)
{
    heard_set("r", true); /* ignored: it is closed */
    open_until_up();
    turns_pass(faked.loop, 20000);
    ck_assert_int_eq(heard.subscribed, 0);
    heard_set("r", true);
    turns_until_count(faked.loop, &heard.subscribed, 1);
    ck_assert_str_eq(heard.last, "r");
    heard.last[0] = '\0';
    fake_send(&faked.node, MESSAGE MESSAGE);
    turns_until_count(faked.loop, &heard.announced, 2);
    ck_assert_str_eq(heard.last, "r");
    int commands = faked.node.commands;
    heard_set("r", false);
    turns_until_count(faked.loop, &faked.node.commands, commands + 1);
    turns_pass(faked.loop, 20000);
    ck_assert_int_eq(heard.subscribed, 1);
    ck_assert_int_eq(heard.downs, 0);
}

/* On the channel of a pool a slot follows the number. */
TEST(an_announcement_to_a_pool_is_one_of_its_slot)
{
    open_until_up();
    fake_send(&faked.node,
              "*3\r\n" BULK(7, "message") BULK(22, HEARD_CHANNEL "a" NAMES_SLOT)
                  BULK(19, "1700000000000001" NAMES_SLOT "12"));
    turns_until_count(faked.loop, &heard.announced, 1);
    ck_assert_str_eq(heard.last, "a" NAMES_SLOT "12");
    ck_assert_int_eq(heard.number, INT64_C(1700000000000001));
}

static const char *const garbage[] = {
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "+OK\r\n",
    "$-1\r\n",
    ":1\r\n",
    "*0\r\n",
    "*-1\r\n",
    "*3\r\n:1\r\n:2\r\n:3\r\n",
    "*2\r\n" BULK(7, "message") BULK(20, HEARD_CHANNEL),
    "*4\r\n" BULK(7, "message") BULK(20, HEARD_CHANNEL) BULK(0, "") BULK(0, ""),
    "*3\r\n" BULK(7, "message") BULK(20, HEARD_CHANNEL) ":1\r\n",
    "*3\r\n" BULK(7, "message") BULK(20, HEARD_CHANNEL) "$-1\r\n",
    "*3\r\n" BULK(7, "message") BULK(20, HEARD_CHANNEL) "*1\r\n:1\r\n",
    "*3\r\n" BULK(7, "message") ":1\r\n" BULK(0, ""),
    "*3\r\n" BULK(7, "message") BULK(1, "p") BULK(0, ""),
    "*3\r\n" BULK(7, "message") BULK(19, "p:redlockd:released") BULK(0, ""),
    "*3\r\n" BULK(7, "message") BULK(21, "q:redlockd:released:r") BULK(0, ""),
    "*3\r\n" BULK(9, "subscribe") BULK(20, HEARD_CHANNEL) BULK(1, "1"),
    "*3\r\n" BULK(8, "pmessage") BULK(20, HEARD_CHANNEL) BULK(0, ""),
    "*3\r\n" BULK(10, "psubscribe") BULK(20, HEARD_CHANNEL) ":1\r\n",
    "*2\r\n" BULK(4, "pong") BULK(0, ""),
};

TEST_EACH(garbage_ends_it_until_it_connects_again, garbage)
{
    fake_say(&faked.node, "SUBSCRIBE", garbage[_i]);
    heard_open();
    heard_until_down(1);
    ck_assert_int_eq(heard.ups, 1);
    ck_assert_int_eq(heard.generations + heard.announced + heard.subscribed, 0);
    fake_say(&faked.node, "SUBSCRIBE", ON_GENERATION GENERATION);
    heard_until_up(heard.downs + 1);
    turns_until_count(faked.loop, &heard.generations, 1);
}

TEST(too_long_a_name_is_garbage)
{
    static char text[RESOURCE_MAX + 200], name[RESOURCE_MAX + 2];
    static const int lengths[] = {RESOURCE_MAX, RESOURCE_MAX + 1};
    memset(name, 'x', RESOURCE_MAX + 1);
    open_until_up();
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "*3\r\n$7\r\nmessage\r\n$%d\r\n" HEARD_CHANNEL
                 "%.*s\r\n$0\r\n\r\n",
                 20 + lengths[i], lengths[i], name);
        fake_send(&faked.node, text);
        if (i == 0)
            turns_until_count(faked.loop, &heard.announced, 1);
    }
    heard_until_down(1);
    ck_assert_int_eq(heard.announced, 1);
    ck_assert_uint_eq(strlen(heard.last), RESOURCE_MAX);
}

/* What a message says is of no matter: anybody may publish. */
TEST(the_text_of_a_message_is_ignored)
{
    open_until_up();
    fake_send(&faked.node, "*3\r\n" BULK(7, "message") BULK(
                               21, HEARD_CHANNEL "r") BULK(5, "hello") MESSAGE);
    turns_until_count(faked.loop, &heard.announced, 2);
    ck_assert_int_eq(heard.downs, 0);
}

/* Longer than any backoff. */
TEST(a_refusal_is_not_asked_about_again_soon)
{
    fake_say(&faked.node, "SUBSCRIBE", "-NOPERM no permission\r\n");
    heard_open();
    heard_until_down(1);
    turns_pass(faked.loop, 2 * (int64_t)LINE_BACKOFF_LAST_US);
    ck_assert_int_eq(faked.node.accepted, 1);
    fake_say(&faked.node, "SUBSCRIBE", ON_GENERATION);
    heard_close();
    open_until_up(); /* at once */
    fake_close(&faked.node);
    heard_until_up(3); /* and soon, as it was no refusal */
    ck_assert_int_eq(heard.downs, 2);
}

TEST(after_a_refusal_it_backs_off_as_ever)
{
    fake_say(&faked.node, "SUBSCRIBE", "-NOPERM no permission\r\n");
    heard_open();
    heard_until_down(1);
    heard_close();
    fake_stop(&faked.node);
    heard_open();
    turns_pass(faked.loop, 100000);
    fake_start(&faked.node, faked.loop);
    faked.config.port = faked.node.port;
    fake_say(&faked.node, "SUBSCRIBE", ON_GENERATION);
    heard_until_up(2);
}

TEST(silence_ends_it)
{
    restart(SHORT_US);
    int64_t begin_us = clock_now_us();
    heard_open();
    heard_until_down(1);
    ck_assert_int_ge(clock_now_us() - begin_us, SHORT_US);
    heard_until_up(2);
}

TEST(heartbeats_are_no_silence)
{
    restart(BEATING_US);
    open_until_up();
    for (int i = 0; i < 6; i++) {
        turns_pass(faked.loop, BEATING_US / 4);
        fake_send(&faked.node, GENERATION);
    }
    ck_assert_int_eq(heard.downs, 0);
    ck_assert_int_ge(heard.generations, 5);
}

/* A paused node: bounded memory. */
TEST(too_much_unsent_ends_it)
{
    static char name[RESOURCE_MAX + 1];
    enum { MOST = 10000 }; /* of waiters, so of names */
    open_until_up();
    fake_set_deaf(&faked.node, true);
    memset(name, 'x', RESOURCE_MAX);
    for (int i = 0; i < MOST; i++)
        heard_set(name, true);
    turns_pass(faked.loop, 20000);
    ck_assert_int_eq(heard.downs, 0);
    for (int i = 0; i < MOST; i++)
        heard_set(name, true);
    ck_assert_int_eq(heard.downs, 0);
    int64_t begin_us = clock_now_us();
    heard_until_down(1);
    ck_assert_int_lt(clock_now_us() - begin_us, LONG_US / 2); /* no silence */
    fake_set_deaf(&faked.node, false);
    heard_until_up(2);
}

TEST(a_write_to_a_closed_connection_calls_nobody_back)
{
    open_until_up();
    struct linger reset = {1, 0};
    setsockopt(faked.node.peers[0].fd, SOL_SOCKET, SO_LINGER, &reset,
               sizeof reset);
    fake_close(&faked.node);
    heard_set("r", true);
    heard_flush(NULL);
    heard_set("r", true); /* ignored */
    ck_assert_int_eq(heard.downs, 0);
    heard_until_down(1);
    heard_until_up(2);
}

/* ---- closing ------------------------------------------------------------- */

TEST(what_is_closed_hears_nothing)
{
    restart(SHORT_US);
    open_until_up();
    fake_send(&faked.node, MESSAGE);
    heard_close();
    heard_close();
    heard_set("r", true);
    turns_pass(faked.loop, 2 * (int64_t)SHORT_US);
    ck_assert_int_eq(heard.announced, 0);
    ck_assert_int_eq(heard.downs, 0); /* who closes knows */
    ck_assert_int_eq(faked.node.accepted, 1);
    ck_assert_int_eq(faked.node.peers[0].fd, -1);
    open_until_up();
    ck_assert_int_eq(faked.node.accepted, 2);
}

TEST(it_is_closed_while_it_fails)
{
    static char name[RESOURCE_MAX + 1];
    memset(name, 'x', RESOURCE_MAX);
    open_until_up();
    for (int i = 0; i < 20000; i++)
        heard_set(name, true);
    heard_close();
    open_until_up();
    heard_set("r", true);
    turns_until_count(faked.loop, &heard.subscribed, 1);
    ck_assert_int_eq(heard.downs, 0);
}

TEST(it_is_closed_while_it_dials)
{
    restart(SHORT_US);
    fake_say(&faked.node, "", ""); /* says nothing to the handshake */
    for (int i = 1; i <= 2; i++) {
        heard_open();
        turns_until_count(faked.loop, &faked.node.accepted, i);
        heard_close();
        turns_pass(faked.loop, 2 * (int64_t)SHORT_US);
        ck_assert_int_eq(faked.node.accepted, i);
    }
    ck_assert_int_eq(heard.ups + heard.downs, 0);
}

TEST_RANGE(an_event_may_close_and_open_it, 0, 2)
{
    heard.reopens = _i;
    heard.closes_when_announced = true;
    open_until_up();
    fake_send(&faked.node, MESSAGE MESSAGE GENERATION);
    turns_until_count(faked.loop, &heard.announced, 1);
    ck_assert_str_eq(heard.last, "r");
    if (heard.reopens)
        heard_until_up(2);
    turns_pass(faked.loop, 50000);
    ck_assert_int_eq(heard.announced, 1);
    ck_assert_int_eq(heard.generations, 0);
    ck_assert_int_eq(heard.downs, 0);
    ck_assert_int_eq(faked.node.accepted, 1 + _i);
}

TEST(an_event_may_close_it_when_it_is_up)
{
    heard.closes_when_up = true;
    open_until_up();
    turns_pass(faked.loop, 50000);
    ck_assert_int_eq(heard.ups, 1);
    ck_assert_int_eq(heard.downs, 0);
    heard.closes_when_up = false;
    open_until_up();
}

TEST(it_is_freed_in_every_state)
{
    heard_end(); /* closed */
    start();
    heard_open();
    heard_end(); /* about to dial */
    start();
    heard_open();
    turns_until_count(faked.loop, &faked.node.accepted, 1);
    heard_end(); /* in the handshake */
    start();
    open_until_up();
    heard_set("r", true);
    heard_end();
    start();
    open_until_up();
    fake_close(&faked.node);
    heard_until_down(1);
    heard_end(); /* until the backoff ends */
    start();
    open_until_up();
    fake_close(&faked.node);
    for (int i = 0; i < 3; i++) { /* the second write fails */
        heard_set("r", true);
        heard_flush(NULL);
    }
    heard_end();
    subscription_free(NULL);
    start();
    open_until_up();
}
