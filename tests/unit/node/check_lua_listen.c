/*
 * Releases that are announced, by the script on a real redis-server.
 */
#include <stdio.h>

#include "../../../server/lock/names.h"
#include "../../lib/suite/suite.h"
#include "live.h"

#define CHANNEL "p:" SCRIPT_RELEASED

/* A lock that is there, without an admission. */
static void set(const char *resource)
{
    ck_assert_str_eq(master_text(&live.master, "SET p:%s %s PX %d", resource,
                                 live_token("A"), LIVE_TTL_MS),
                     "OK");
}

/* Deletes it; returns how many were told. */
static int64_t release(const char *resource)
{
    set(resource);
    ck_assert_int_eq(live_run(CALL_RELEASE, resource, "A"), VOTE_DELETED);
    return live.reply.listeners;
}

SUITE(lua_listen, .timeout_s = 60, .set_up = live_setup_admitted,
      .tear_down = live_teardown);

TEST(releases_are_announced_while_a_server_listens)
{
    master_subscribe(&live.master, CHANNEL "a/b c");
    master_subscribe(&live.master, CHANNEL);
    ck_assert_int_eq(release("a/b c"), 0);
    live_listen(CALL_LISTEN_US);
    ck_assert_str_eq(live_hear(), CHANNEL);
    ck_assert_int_eq(release("a/b c"), 1);
    ck_assert_str_eq(live_hear(), CHANNEL "a/b c=A");
    ck_assert_int_eq(release("a/b"), 0);
    master_text(&live.master, "HSET p:redlockd:state listened_until 1");
    ck_assert_int_eq(release("a/b c"), 0);
    live_listen(CALL_LISTEN_US); /* nothing came in between */
    ck_assert_str_eq(live_hear(), CHANNEL);
}

/* Who waits for any slot of a pool has one channel for all of them. */
TEST(a_slot_is_announced_to_its_pool_as_well)
{
    live_listen(CALL_LISTEN_US);
    master_subscribe(&live.master, CHANNEL "a/b" NAMES_SLOT);
    ck_assert_int_eq(release("a/b" NAMES_SLOT "12"), 1);
    ck_assert_str_eq(live_hear(),
                     CHANNEL "a/b" NAMES_SLOT "=A" NAMES_SLOT "12");
    master_subscribe(&live.master, CHANNEL "a/b" NAMES_SLOT "7");
    ck_assert_int_eq(release("a/b" NAMES_SLOT "7"), 1);
    ck_assert_str_eq(live_hear(), CHANNEL "a/b" NAMES_SLOT "7=A");
    ck_assert_str_eq(live_hear(), CHANNEL "a/b" NAMES_SLOT "=A" NAMES_SLOT "7");
    ck_assert_int_eq(release("a/b" NAMES_SLOT "1234"), 0);
    ck_assert_int_eq(release("a/b" NAMES_SLOT), 1);
    ck_assert_str_eq(live_hear(), CHANNEL "a/b" NAMES_SLOT "=A");
}

TEST(what_deletes_nothing_is_not_announced)
{
    master_subscribe(&live.master, CHANNEL "r");
    live_listen(CALL_LISTEN_US);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "B"), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_HELD);
    ck_assert_int_eq(live.reply.listeners, 0);
    master_subscribe(&live.master, CHANNEL);
    live_listen(CALL_LISTEN_US);
    ck_assert_str_eq(live_hear(), CHANNEL);
}

TEST(a_call_that_listens_for_no_time_changes_nothing)
{
    master_subscribe(&live.master, CHANNEL "r");
    live_listen(0);
    ck_assert_int_eq(release("r"), 0);
    live_listen(CALL_LISTEN_US);
    live_listen(0); /* it is set, not raised: a clock may have stepped */
    ck_assert_int_eq(release("r"), 0);
    struct call calls[] = {
        live_call(CALL_LISTEN, "", ""),
        live_call(CALL_RELEASE, "r", "A"),
    };
    set("r");
    calls[0].admit = span_of("");
    calls[0].listen_us = 0;
    live_ask_all(calls, 2); /* at the same moment */
    ck_assert_int_eq(live.reply.vote, VOTE_DELETED);
    ck_assert_int_eq(live.reply.listeners, 0);
}

TEST(a_batch_listens_from_the_call_on)
{
    struct call calls[] = {
        live_call(CALL_RELEASE, "r", "A"),
        live_call(CALL_LISTEN, "", ""),
        live_call(CALL_RELEASE, "s", "A"),
        live_call(CALL_RELEASE, "t", "A"),
    };
    master_subscribe(&live.master, CHANNEL "r");
    master_subscribe(&live.master, CHANNEL "s");
    master_subscribe(&live.master, CHANNEL "t");
    set("r");
    set("s");
    set("t");
    calls[1].admit = span_of("");
    live_ask_all(calls, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(live.votes[i], i == 1 ? VOTE_DONE : VOTE_DELETED);
    ck_assert_int_eq(live.reply.listeners, 1);
    ck_assert_str_eq(live_hear(), CHANNEL "s=A");
    ck_assert_str_eq(live_hear(), CHANNEL "t=A");
}

/* A row, which runs at once: releases of r, s, t and u, an acquire of x. */
static void ask_row(void)
{
    static const char *const names[] = {"r", "x", "s", "t", "u"};
    struct call calls[5];
    for (int i = 0; i < 5; i++) {
        bool is_acquire = i == 1;
        calls[i] = live_call(is_acquire ? CALL_ACQUIRE : CALL_RELEASE, names[i],
                             is_acquire ? "B" : "A");
        calls[i].slots[0] = (uint16_t)i;
    }
    live_ask_all(calls, 5);
}

static void set_row(void)
{
    set("r");
    set("s");
    set("u");
}

TEST(a_row_announces_what_it_deletes)
{
    static const enum vote votes[] = {VOTE_DELETED, VOTE_GRANTED, VOTE_DELETED,
                                      VOTE_FREE, VOTE_DELETED};
    master_subscribe(&live.master, CHANNEL "r");
    master_subscribe(&live.master, CHANNEL "x");
    master_subscribe(&live.master, CHANNEL "t");
    master_subscribe(&live.master, CHANNEL "u");
    set_row();
    ask_row(); /* nobody listens */
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(live.votes[i], votes[i]);
        ck_assert_int_eq(live.answers[i].listeners, 0);
    }
    master_integer(&live.master, "DEL p:x");
    live_listen(CALL_LISTEN_US);
    set_row();
    ask_row();
    for (int i = 0; i < 5; i++) {
        bool is_heard = i == 0 || i == 4; /* s has no subscriber */
        ck_assert_int_eq(live.votes[i], votes[i]);
        ck_assert_int_eq(live.answers[i].listeners, is_heard);
    }
    ck_assert_str_eq(live_hear(), CHANNEL "r=A");
    ck_assert_str_eq(live_hear(), CHANNEL "u=A");
    master_subscribe(&live.master, CHANNEL);
    live_listen(CALL_LISTEN_US);
    ck_assert_str_eq(live_hear(), CHANNEL); /* nothing else before */
}

TEST(a_row_announces_nothing_that_it_may_not_delete)
{
    static const int votes[] = {VOTE_DELETED, VOTE_GRANTED, VOTE_KEY_REFUSED,
                                VOTE_FREE, VOTE_DELETED};
    master_subscribe(&live.master, CHANNEL "r");
    master_subscribe(&live.master, CHANNEL "s");
    master_subscribe(&live.master, CHANNEL "u");
    live_listen(CALL_LISTEN_US);
    set_row();
    master_text(&live.master, "ACL SETUSER default resetkeys "
                              "~p:redlockd:state ~p:[rtux] %%R~p:s");
    ask_row();
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(live.votes[i], votes[i]);
        ck_assert_int_eq(live.answers[i].listeners, i == 0 || i == 4);
    }
    ck_assert_str_eq(live_hear(), CHANNEL "r=A");
    ck_assert_str_eq(live_hear(), CHANNEL "u=A");
}

/* Or it would not be admitted as one that was never used. */
TEST(a_node_without_state_gets_none_by_listening)
{
    struct call probe = live_call(CALL_LOOK, "", "");
    probe.nonce = span_of("");
    master_text(&live.master, "FLUSHALL");
    master_subscribe(&live.master, CHANNEL);
    live_listen(CALL_LISTEN_US);
    ck_assert_int_eq(master_integer(&live.master, "PUBLISH %s probe", CHANNEL),
                     1);
    ck_assert_str_eq(live_hear(), CHANNEL "=probe"); /* alone */
    ck_assert_int_eq(master_integer(&live.master, "DBSIZE"), 0);
    ck_assert_int_eq(live_ask(&probe), VOTE_DONE);
    ck_assert_int_eq((int)live.reply.look.word, LOOK_EMPTY);
    ck_assert_int_eq(live_run(CALL_LOOK, "", ""), VOTE_DONE);
    ck_assert_int_eq((int)live.reply.look.word, LOOK_FRESH);
    live_listen(CALL_LISTEN_US);
    ck_assert_int_eq(live_run(CALL_LOOK, "", ""), VOTE_DONE);
    ck_assert_int_eq((int)live.reply.look.word, LOOK_MARKED);
    ck_assert_int_eq(live_run(CALL_ADMIT, "", ""), VOTE_DONE);
    ck_assert_int_eq(master_integer(&live.master, "HEXISTS p:redlockd:state "
                                                  "listened_until"),
                     1);
}

static const struct {
    const char *deny;
    const char *allow;
} denials[] = {
    {"ACL SETUSER default -publish", "ACL SETUSER default +publish"},
    {"ACL SETUSER default resetchannels", "ACL SETUSER default allchannels"},
    {"ACL SETUSER default resetchannels &q:redlockd:released:*",
     "ACL SETUSER default allchannels"},
};

TEST_EACH(who_may_not_publish_loses_nothing_else, denials)
{
    master_subscribe(&live.master, CHANNEL "r");
    live_listen(CALL_LISTEN_US);
    master_text(&live.master, denials[_i].deny);
    live_listen(CALL_LISTEN_US);
    ck_assert_int_eq(release("r"), 0);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 0);
    master_text(&live.master, denials[_i].allow);
    /* the server closes the connections that the user may no longer have */
    master_subscribe(&live.master, CHANNEL "r");
    ck_assert_int_eq(release("r"), 1);
    ck_assert_int_eq(live.downs, 0);
}

static const char *const spoilt[] = {
    "HSET p:redlockd:state listened_until soon",
    "HSET p:redlockd:state listened_until nan",
    "HSET p:redlockd:state listened_until ''",
    "SET p:redlockd:state x",
};

TEST_EACH(a_state_that_is_not_ours_loses_no_release, spoilt)
{
    master_subscribe(&live.master, CHANNEL "r");
    live_listen(CALL_LISTEN_US);
    master_text(&live.master, spoilt[_i]);
    ck_assert_int_eq(release("r"), 0);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 0);
}
