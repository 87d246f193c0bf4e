/* SPDX-License-Identifier: MIT */
/*
 * The life of a link, against a node that misbehaves.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "faked.h"
#include "names.h"
#include "secure.h"

SUITE(link, .timeout_s = 30, .set_up = faked_setup,
      .tear_down = faked_teardown);

TEST(comes_up_with_facts_and_answers)
{
    int64_t begin_us = clock_now_us();
    int asked = names_asked();
    faked_start_link();
    ck_assert_int_eq(faked_inspect(1), VOTE_DISCONNECTED);
    faked_until_up(1);
    ck_assert_int_eq(faked.downs, 0);
    ck_assert_str_eq(faked.run_id, FAKE_RUN_ID);
    ck_assert_int_eq(faked.facts.node_now_us, 1700000000123456);
    ck_assert(faked.facts.is_durable);
    ck_assert_int_ge(faked.facts.confirmed_us, begin_us);
    ck_assert_int_ge(faked.facts.sent_us, faked.facts.confirmed_us);
    ck_assert_int_gt(faked.facts.received_us, faked.facts.sent_us);
    ck_assert_int_eq(names_asked(), asked); /* no address needs to be */
    ck_assert_int_eq(faked.node.loads, 1);
    ck_assert_int_eq(faked_inspect(7), VOTE_PENDING);
    ck_assert_int_eq(faked_inspect(8), VOTE_PENDING);
    ck_assert_int_eq(faked.replies, 0);
    turns_until_count(faked.loop, &faked.replies, 2);
    ck_assert_uint_eq(faked.tags[0], 7);
    ck_assert_uint_eq(faked.tags[1], 8);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
    ck_assert_int_ge(faked.received_us, faked.sent_us);
}

TEST(a_refused_connection_is_tried_again)
{
    fake_stop(&faked.node); /* nobody listens on its port now */
    faked_start_link();
    faked_expect_down(STATE_UNREACHABLE, "Connection refused");
    faked_until_down(3);
    fake_start(&faked.node, faked.loop);
    faked.config.port = faked.node.port;
    faked_until_up(1);
}

TEST(a_node_that_accepts_and_says_nothing_is_silent)
{
    fake_say(&faked.node, "", "");
    faked_start_link();
    faked_expect_down(STATE_SILENT, "no reply for 300 ms");
    faked_until_down(2);
    ck_assert_int_eq(faked.node.accepted, 2);
}

TEST(an_unfit_node_has_a_reason)
{
    fake_say(&faked.node, "INFO replication",
             "$55\r\nrole:slave\r\nmaster_host:10.1.2.3\r\nmaster_port:6379\r\n"
             "x:1\r\n");
    faked_start_link();
    faked_expect_down(STATE_READ_ONLY, "10.1.2.3:6379");
    ck_assert_int_eq(faked.node.loads, 1); /* it was on its way */
}

TEST(a_name_that_is_not_resolved_is_asked_for_again)
{
    snprintf(faked.config.host, sizeof faked.config.host, "node.test");
    names_resolve_to("", 0);
    faked_start_link();
    faked_expect_down(STATE_UNREACHABLE, "");
    names_resolve_to("127.0.0.1", 0);
    names_hold(true);
    faked_expect_down(STATE_UNREACHABLE, "not resolved in time");
    int asked = names_asked();
    faked_expect_down(STATE_UNREACHABLE, "not resolved in time");
    ck_assert_int_eq(faked.node.accepted, 0);
    names_hold(false);
    faked_until_up(1);
    ck_assert_int_gt(faked.facts.confirmed_us, 0);
    ck_assert_int_eq(names_asked(), asked); /* it was the same lookup */
}

TEST(scheme_that_does_not_fit_the_node_is_told)
{
    faked.node.greeting = "\x15\x03\x03";
    faked_start_link();
    faked_expect_down(STATE_GARBAGE, "speaks TLS: write rediss://");
    faked.node.greeting = "";
    faked_expect_down(STATE_UNREACHABLE,
                      "if the node speaks TLS, write rediss:");
    link_free(faked.link);
    secure_setup();
    faked.config.is_tls = true;
    faked.trust = secure.trust;
    faked_start_link();
    faked_expect_down(STATE_UNREACHABLE, "in the TLS handshake");
    faked.node.greeting = "-ERR max number of clients reached\r\n";
    faked_expect_down(STATE_TLS_FAILED, "does not speak TLS: write redis://");
    faked.node.greeting = NULL;
    faked.node.is_deaf = true;
    faked_expect_down(STATE_SILENT, "no TLS handshake for 300 ms; if the node");
    int accepted = faked.node.accepted;
    turns_until_count(faked.loop, &faked.node.accepted, accepted + 1);
    link_free(faked.link);
    faked.link = NULL;
    secure_teardown();
}

/* A listener with a full backlog: its SYN queue answers nobody any more. */
TEST(a_connection_that_is_not_made_is_silent)
{
    int fds[16];
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)faked.node.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert(loop_watch_set(faked.node.listener_watch, 0));
    for (int i = 0; i < 16; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        ck_assert_int_ge(fds[i], 0);
        /* EINPROGRESS, or it fits into the backlog */
        (void)connect(fds[i], (struct sockaddr *)&addr, sizeof addr);
    }
    faked_start_link();
    faked_expect_down(STATE_SILENT, "no connection for 300 ms");
    for (int i = 0; i < 16; i++)
        close(fds[i]);
}

TEST(silence_with_pending_calls_ends_the_link)
{
    fake_say(&faked.node, "EVALSHA", "");
    faked_bring_up();
    int64_t begin_us = clock_now_us();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    ck_assert_int_eq(faked_inspect(2), VOTE_PENDING);
    faked.sends_in_reply = true;
    faked_expect_down(STATE_SILENT, "no reply for 300 ms");
    ck_assert_int_ge(clock_now_us() - begin_us, FAKED_SILENCE_US);
    ck_assert_int_eq(faked.replies_at_down, 2);
    ck_assert_uint_eq(faked.tags[0], 1);
    ck_assert_int_eq(faked.votes[0], VOTE_DISCONNECTED);
    ck_assert_int_eq(faked.votes[1], VOTE_DISCONNECTED);
    ck_assert_int_eq(faked.sent_in_reply, VOTE_DISCONNECTED);
    faked_until_up(2);
    ck_assert_int_eq(faked.replies, 2);
}

/* A turn that serves thousands of requests lasts longer than a node may take.
 */
TEST(what_has_gathered_is_written_within_the_turn)
{
    enum { CALLS = 6000, LEAST = 64 * 1024 };
    int there = 0;
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(0), VOTE_PENDING);
    ck_assert_int_eq(ioctl(faked.node.peers[0].fd, FIONREAD, &there), 0);
    ck_assert_int_eq(there, 0); /* a few wait for the end of the turn */
    for (uint64_t i = 1; i < CALLS; i++)
        ck_assert_int_eq(faked_inspect(i), VOTE_PENDING);
    ck_assert_int_eq(ioctl(faked.node.peers[0].fd, FIONREAD, &there), 0);
    ck_assert_int_ge(there, LEAST);
    turns_until_count(faked.loop, &faked.replies, CALLS);
}

TEST(a_link_that_owes_nothing_lives_through_silence)
{
    faked_bring_up();
    turns_pass(faked.loop, 3 * FAKED_SILENCE_US);
    ck_assert_int_eq(faked.downs, 0);
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    turns_until_count(faked.loop, &faked.replies, 1);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
}

TEST(a_link_that_waits_rests)
{
    fake_say(&faked.node, "TIME", "");
    faked_start_link();
    turns_expect_rest(faked.loop); /* for the handshake */
    faked_until_down(1);
    fake_say(&faked.node, "TIME", NULL);
    faked_until_up(1);
    turns_expect_rest(faked.loop); /* for calls */
    fake_say(&faked.node, "EVALSHA", "");
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    turns_expect_rest(faked.loop); /* for a reply */
}

/* The process was stopped; the replies are in the socket. */
TEST(replies_in_the_socket_are_no_silence)
{
    faked_bring_up();
    faked.node.stops_process_us = 2 * FAKED_SILENCE_US;
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    turns_until_count(faked.loop, &faked.replies, 1);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
    ck_assert_int_eq(faked.downs, 0);
}

TEST(a_loading_node_is_up_soon_after_it_is_ready)
{
    fake_say(&faked.node, "SCRIPT LOAD", "-LOADING Redis is loading\r\n");
    faked_start_link();
    faked_expect_down(STATE_LOADING, "LOADING Redis is loading");
    faked_until_down(8); /* the backoff is as long as it gets */
    fake_say(&faked.node, "SCRIPT LOAD", "$40\r\n" FAKE_SHA "\r\n");
    int64_t ready_us = clock_now_us();
    faked_until_up(1);
    ck_assert_int_lt(clock_now_us() - ready_us, 2000000);
}

/* ::1 comes before 127.0.0.1, where the node listens. */
TEST(a_name_with_several_addresses_is_tried_through)
{
    snprintf(faked.config.host, sizeof faked.config.host, "localhost");
    faked_bring_up();
}

TEST(a_link_is_freed_in_every_state)
{
    faked_start_link();
    link_free(faked.link); /* idle */
    faked_start_link();
    turns_until_count(faked.loop, &faked.node.accepted, 1); /* handshake */
    link_free(faked.link);
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    link_free(faked.link);
    faked_bring_up();
    ck_assert_int_eq(faked.replies, 0);
}
