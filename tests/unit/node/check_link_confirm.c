/*
 * A link that is up, and what confirmations do to it.
 */
#include <stdio.h>

#include "../../../server/base/clock.h"
#include "../../lib/suite/suite.h"
#include "faked.h"
#include "names.h"

#define OTHER_RUN_ID "f123456789abcdef0123456789abcdef01234567"

enum { SLACK_US = 500000 };

static void until_confirmed(int count)
{
    turns_until_count(faked.loop, &faked.confirmed, count);
}

SUITE(link_confirm, .timeout_s = 30, .set_up = faked_setup,
      .tear_down = faked_teardown);

TEST(a_healthy_node_is_confirmed_in_time)
{
    int64_t begin_us = clock_now_us();
    faked_bring_up();
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
    }
    ck_assert_int_eq(faked.downs, 0);
    ck_assert_int_eq(faked.ups, 1);
}

TEST(a_name_that_leads_to_another_server_ends_the_link)
{
    fake_say(&faked.node, "EVALSHA", "");
    faked.silence_us = 10000000;
    faked_bring_up();
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    fake_say(&faked.node, "INFO server",
             "$69\r\nredis_version:7.0.15\r\nrun_id:" OTHER_RUN_ID "\r\n");
    faked_expect_down(STATE_MOVED, "run_id");
    ck_assert_int_eq(faked.confirmed, 0);
    ck_assert_int_eq(faked.replies_at_down, 1);
    ck_assert_int_eq(faked.votes[0], VOTE_DISCONNECTED);
    faked_until_up(2);
    ck_assert_str_eq(faked.run_id, OTHER_RUN_ID);
    ck_assert_int_eq(faked.downs, 1);
}

static bool was_asked(void *arg)
{
    const int *times = arg;
    return names_asked() >= *times;
}

/* For a while nobody answers at the name; the connection still works. */
TEST(a_confirmation_that_does_not_come_closes_nothing)
{
    snprintf(faked.config.host, sizeof faked.config.host, "node.test");
    names_resolve_to("127.0.0.1", 0);
    faked_bring_up();
    names_resolve_to("127.0.0.9", 0);
    int times = names_asked() + 3;
    turns_until(faked.loop, was_asked, &times);
    ck_assert_int_eq(faked_inspect(1), VOTE_PENDING);
    turns_until_count(faked.loop, &faked.replies, 1);
    ck_assert_int_eq(faked.votes[0], VOTE_FREE);
    names_resolve_to("127.0.0.1", 0);
    until_confirmed(1);
    ck_assert_int_eq(faked.downs, 0);
}

TEST(the_last_good_address_confirms_nothing)
{
    snprintf(faked.config.host, sizeof faked.config.host, "node.test");
    names_resolve_to("127.0.0.1", 0);
    faked_bring_up();
    names_resolve_to("", 0);
    fake_close(&faked.node);
    faked_until_up(2);
    ck_assert_int_eq(faked.facts.confirmed_us, 0);
    int64_t before_us = clock_now_us();
    names_resolve_to("127.0.0.1", 0);
    until_confirmed(1);
    ck_assert_int_ge(faked.facts.confirmed_us, before_us);
    ck_assert_int_lt(clock_now_us() - before_us, 2 * SLACK_US);
}

TEST(a_link_is_freed_while_it_is_confirmed)
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
