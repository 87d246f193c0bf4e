/* SPDX-License-Identifier: MIT */
/*
 * The rechecks of a link that is up: whether its node's name still leads to it.
 */
#include <stdio.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "faked.h"
#include "names.h"

#define OTHER_RUN_ID "f123456789abcdef0123456789abcdef01234567"
#define SERVER(run_id) "$69\r\nredis_version:7.0.15\r\nrun_id:" run_id "\r\n"

enum { SLACK_US = 500000 };

static void until_confirmed(int count)
{
    turns_until_count(faked.loop, &faked.confirmed, count);
}

static void bring_up_by_name(void)
{
    snprintf(faked.config.host, sizeof faked.config.host, "node.test");
    names_resolve_to("127.0.0.1", 0);
    faked_bring_up();
}

/* At its last good address, so the first recheck is soon. */
static void bring_up_unconfirmed(void)
{
    bring_up_by_name();
    names_resolve_to("", 0);
    fake_close(&faked.node);
    faked_until_up(2);
    ck_assert_int_eq(faked.facts.confirmed_us, 0);
    ck_assert_int_eq(faked.confirmed, 0);
    names_resolve_to("127.0.0.1", 0);
}

static bool was_asked(void *arg)
{
    const int *times = arg;
    return names_asked() >= *times;
}

static bool has_hung_up(void *arg)
{
    (void)arg;
    return faked.node.peers[1].fd < 0;
}

SUITE(recheck, .timeout_s = 30, .set_up = faked_setup,
      .tear_down = faked_teardown);

TEST(a_healthy_node_is_confirmed_in_time)
{
    int64_t begin_us = clock_now_us();
    bring_up_by_name();
    int asked = names_asked();
    ck_assert_int_ge(faked.facts.confirmed_us, begin_us);
    ck_assert_int_le(faked.facts.confirmed_us, faked.facts.sent_us);
    for (int i = 1; i <= 2; i++) {
        int64_t before_us = faked.facts.confirmed_us;
        until_confirmed(i);
        int64_t passed_us = faked.facts.confirmed_us - before_us;
        ck_assert_int_gt(passed_us, CONFIRMED_US / 4);
        ck_assert_int_lt(passed_us, CONFIRMED_US / 2 + SLACK_US);
        ck_assert_int_ge(faked.facts.sent_us, faked.facts.confirmed_us);
        ck_assert(faked.facts.is_durable);
        ck_assert_int_eq(names_asked(), asked + i);
        turns_until(faked.loop, has_hung_up, NULL);
    }
    ck_assert_int_eq(faked.node.accepted, 3);
    ck_assert_int_eq(faked.node.loads, 1);
    ck_assert_int_eq(faked.downs, 0);
    ck_assert_int_eq(faked.ups, 1);
}

TEST(a_name_that_leads_to_another_server_ends_the_link)
{
    fake_say(&faked.node, "EVALSHA", "");
    faked.silence_us = 10000000;
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    fake_say(&faked.node, "INFO server", SERVER(OTHER_RUN_ID));
    faked_expect_down(STATE_MOVED, "run_id");
    ck_assert_int_eq(faked.confirmed, 0);
    ck_assert_int_eq(faked.replies_at_down, 1);
    ck_assert_int_eq(faked.votes[0], VOTE_DISCONNECTED);
    faked_until_up(2);
    ck_assert_str_eq(faked.run_id, OTHER_RUN_ID);
    ck_assert_int_eq(faked.downs, 1);
}

static const struct {
    const char *command, *reply;
    enum node_state state;
} unfit[] = {
    {"INFO server",
     "$89\r\nredis_version:7.0.15\r\nrun_id:" FAKE_RUN_ID
     "\r\nredis_mode:cluster\r\n",
     STATE_CLUSTER},
    {"INFO server", "-NOPERM no\r\n", STATE_NO_PERMISSION},
    {"INFO server", "-NOAUTH no\r\n", STATE_NO_PERMISSION},
    {"INFO replication", "$10\r\nrole:slave\r\n", STATE_READ_ONLY},
    {"INFO memory", "$44\r\nmaxmemory:1\r\nmaxmemory_policy:allkeys-random\r\n",
     STATE_EVICTS},
    {"TIME", "HTTP/1.1 200 OK\r\n", STATE_GARBAGE},
    {FAKE_RIGHTS, "*2\r\n$4\r\n+del\r\n$0\r\n\r\n", STATE_NO_PERMISSION},
};

TEST_EACH(a_node_that_becomes_unfit_is_left, unfit)
{
    bring_up_unconfirmed();
    fake_say(&faked.node, unfit[_i].command, unfit[_i].reply);
    faked_expect_down(unfit[_i].state, "");
    ck_assert_str_ne(faked.detail, "");
    ck_assert_int_eq(faked.confirmed, 0);
}

static const struct {
    const char *command, *reply, *better;
} passing[] = {
    {FAKE_RIGHTS, "", "*2\r\n$0\r\n\r\n$0\r\n\r\n"},
    {"INFO server", "-LOADING Redis is loading\r\n", SERVER(FAKE_RUN_ID)},
    {"INFO server", "-BUSY Redis is busy\r\n", SERVER(FAKE_RUN_ID)},
    {"INFO server", "-ERR max number of clients reached\r\n",
     SERVER(FAKE_RUN_ID)},
};

TEST_EACH(what_passes_closes_nothing, passing)
{
    bring_up_unconfirmed();
    int downs = faked.downs, accepted = faked.node.accepted;
    fake_say(&faked.node, passing[_i].command, passing[_i].reply);
    turns_until_count(faked.loop, &faked.node.accepted, accepted + 2);
    ck_assert_int_eq(faked.confirmed, 0);
    fake_say(&faked.node, passing[_i].command, passing[_i].better);
    until_confirmed(1);
    ck_assert_int_eq(faked.downs, downs);
}

/* For a while nobody answers at the name; the connection still works. */
static const char *const nowhere[] = {"", "127.0.0.9"};

TEST_EACH(a_name_that_leads_nowhere_closes_nothing, nowhere)
{
    bring_up_by_name();
    names_resolve_to(nowhere[_i], 0);
    int times = names_asked() + 3;
    turns_until(faked.loop, was_asked, &times);
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    turns_until_count(faked.loop, &faked.replies, 1);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
    ck_assert_int_eq(faked.confirmed, 0);
    names_resolve_to("127.0.0.1", 0);
    until_confirmed(1);
    ck_assert_int_eq(faked.downs, 0);
}

TEST(the_last_good_address_confirms_nothing)
{
    bring_up_unconfirmed();
    int64_t before_us = clock_now_us();
    until_confirmed(1);
    ck_assert_int_ge(faked.facts.confirmed_us, before_us);
    ck_assert_int_lt(clock_now_us() - before_us, 2 * SLACK_US);
}

/* The lookup takes longer than the timeout; its late answer still counts. */
TEST(a_slow_name_server_is_asked_one_thing_at_a_time)
{
    bring_up_unconfirmed();
    int before = names_asked(), downs = faked.downs;
    int64_t before_us = clock_now_us();
    names_resolve_to("127.0.0.1", 5 * FAKED_SILENCE_US);
    until_confirmed(1);
    ck_assert_int_ge(clock_now_us() - before_us, 5 * FAKED_SILENCE_US);
    ck_assert_int_le(faked.facts.confirmed_us,
                     clock_now_us() - 5 * FAKED_SILENCE_US);
    ck_assert_int_eq(names_asked(), before + 1);
    ck_assert_int_eq(faked.downs, downs);
}

/* This process was stopped while the replies were on their way. */
TEST(a_stopped_process_ends_nothing)
{
    bring_up_unconfirmed();
    int downs = faked.downs;
    for (int i = 1; i <= 2; i++) {
        int before = faked.node.accepted;
        turns_until_count(faked.loop, &faked.node.accepted, before + 1);
        usleep(2 * FAKED_SILENCE_US);
        until_confirmed(i);
    }
    ck_assert_int_eq(faked.downs, downs);
}

/* A refusal shows it, before the next recheck is due. */
TEST(a_refused_command_is_followed_by_a_recheck)
{
    int64_t begin_us = clock_now_us();
    fake_say(&faked.node, "EVALSHA",
             "-NOPERM User u has no permissions to run the 'evalsha' "
             "command\r\n");
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    fake_say(&faked.node, FAKE_RIGHTS, "*2\r\n$4\r\n+del\r\n$0\r\n\r\n");
    faked_expect_down(STATE_NO_PERMISSION, "its user lacks +del");
    ck_assert_int_lt(clock_now_us() - begin_us, CONFIRMED_US / 4);
    ck_assert_int_eq(faked.votes[0], UNFIT(NO_PERMISSION));
    faked_until_down(4);
    ck_assert_str_eq(faked.detail, "its user lacks +del");
    ck_assert_int_eq(faked.ups, 1); /* it stays away … */
    fake_say(&faked.node, FAKE_RIGHTS, "*2\r\n$0\r\n\r\n$5\r\n+scan\r\n");
    faked_until_up(2); /* … until the right is back */
    ck_assert_str_eq(faked.lacks, "its user lacks +scan");
}

/* What is refused for another reason than a right: the node votes on. */
TEST(a_refused_command_is_rechecked_rarely)
{
    fake_say(&faked.node, "EVALSHA", "-NOPERM what a proxy made up\r\n");
    faked_bring_up();
    int64_t begin_us = clock_now_us(), passed_us = 0;
    for (int i = 1; passed_us < 3 * SLACK_US; i++) {
        ck_assert_int_lt(i, FAKED_REPLIES_MAX);
        ck_assert_int_eq(faked_inspect((uint64_t)i), VOTE_PENDING);
        turns_until_count(faked.loop, &faked.replies, i);
        usleep(1000);
        passed_us = clock_now_us() - begin_us;
    }
    ck_assert_int_ge(faked.confirmed, 2);
    ck_assert_int_le(faked.node.accepted, 2 + passed_us / SLACK_US);
    ck_assert_int_eq(faked.downs, 0);
}

TEST(a_link_is_freed_while_it_is_probed)
{
    faked_bring_up();
    fake_set_deaf(&faked.node, true);
    turns_until_count(faked.loop, &faked.node.accepted, 2);
    link_free(faked.link);
    fake_set_deaf(&faked.node, false);
    faked_start_link();
    faked_until_up(2);
    ck_assert_int_eq(faked.confirmed, 0);
    ck_assert_int_eq(faked.downs, 0);
}
