/* SPDX-License-Identifier: MIT */
/*
 * A subscription to a real redis-server, beside a link.
 */
#include <stdio.h>

#include "../../../server/node/line.h"
#include "../../../server/node/wire.h"
#include "../../lib/suite/suite.h"
#include "heard.h"
#include "live.h"

enum { SILENCE_US = 5000000 };

static void flush_both(void *arg)
{
    link_flush(live.link);
    heard_flush(arg);
}

static void set_and_wait(const char *resource)
{
    int subscribed = heard.subscribed;
    heard_set(resource, true);
    turns_until_count(live.loop, &heard.subscribed, subscribed + 1);
    ck_assert_str_eq(heard.last, resource);
}

/* Until the node has seen what was asked of it before. */
static void catch_up(void)
{
    set_and_wait("unused");
}

static void setup(void)
{
    live_setup();
    live_admit();
    heard_start(live.loop, &live.config, SILENCE_US);
    loop_set_stage(live.loop, LOOP_FLUSH, flush_both, NULL);
    heard_open();
    heard_until_up(1);
    catch_up();
}

static void teardown(void)
{
    heard_end();
    live_teardown();
}

/* Sets a lock and deletes it; returns how many were told. */
static int64_t release(const char *resource)
{
    ck_assert_int_eq(live_run(CALL_ACQUIRE, resource, "A"), VOTE_GRANTED);
    ck_assert_int_eq(live_run(CALL_RELEASE, resource, "A"), VOTE_DELETED);
    return live.reply.listeners;
}

/* Until what was announced before has come. */
static void pass_a_generation(void)
{
    int generations = heard.generations;
    live_listen(CALL_LISTEN_US);
    turns_until_count(live.loop, &heard.generations, generations + 1);
}

SUITE(subscription_live, .timeout_s = 60, .set_up = setup,
      .tear_down = teardown);

TEST(releases_are_announced_until_it_unsubscribes)
{
    pass_a_generation();
    set_and_wait("a/b c");
    ck_assert_int_eq(release("a/b"), 0);
    ck_assert_int_eq(release("a/b c"), 1);
    turns_until_count(live.loop, &heard.announced, 1);
    ck_assert_str_eq(heard.last, "a/b c");
    heard_set("a/b c", false);
    catch_up();
    ck_assert_int_eq(release("a/b c"), 0);
    pass_a_generation();
    ck_assert_int_eq(heard.announced, 1);
    ck_assert_int_eq(heard.downs, 0);
}

/*
 * The longest name of a lock, of bytes that a protocol may trip over. Only a
 * line feed is in no name.
 */
TEST(any_name_is_announced)
{
    static char name[RESOURCE_MAX + 1];
    memset(name, 'x', RESOURCE_MAX);
    (void)span_copy(name, span_of("\r\t*?[\\ \xff"));
    pass_a_generation();
    set_and_wait(name);
    ck_assert_int_eq(release(name), 1);
    turns_until_count(live.loop, &heard.announced, 1);
    ck_assert_str_eq(heard.last, name);
}

TEST(a_killed_connection_comes_back)
{
    pass_a_generation();
    set_and_wait("r");
    ck_assert_int_eq(real_integer(&live.real, "CLIENT KILL TYPE pubsub"), 1);
    heard_until_down(1);
    heard_until_up(2);
    catch_up();
    ck_assert_int_eq(release("r"), 0); /* forgotten */
    set_and_wait("r");
    ck_assert_int_eq(release("r"), 1);
    turns_until_count(live.loop, &heard.announced, 1);
}

static const struct {
    const char *deny;
    const char *allow;
} denials[] = {
    {"ACL SETUSER default -subscribe", "ACL SETUSER default +subscribe"},
    {"ACL SETUSER default resetchannels", "ACL SETUSER default allchannels"},
    {"ACL SETUSER default resetchannels &p:redlockd:released:r",
     "ACL SETUSER default allchannels"},
};

TEST_EACH(who_may_not_subscribe_is_down, denials)
{
    pass_a_generation();
    real_text(&live.real, denials[_i].deny);
    heard_set("s", true);
    heard_until_down(1);
    int ups = heard.ups;
    turns_pass(live.loop, 2 * (int64_t)LINE_BACKOFF_LAST_US);
    ck_assert_int_le(heard.ups, ups + 1); /* if the server closed it first */
    ck_assert_int_eq(heard.downs, heard.ups);
    real_text(&live.real, denials[_i].allow);
    heard_close();
    heard_open();
    heard_until_up(heard.downs + 1);
    set_and_wait("s");
    ck_assert_int_eq(live.downs, 0);
}

/* Whatever somebody publishes: the other work of each turn is done. */
TEST(a_flood_is_read_in_pieces)
{
    enum { FLOOD = 100000, LEAST_BYTES = sizeof HEARD_CHANNEL + 20 };
    pass_a_generation();
    set_and_wait("r");
    ck_assert_int_eq(
        real_integer(&live.real, "EVAL %s 0",
                     "for i = 1, 100000 do "
                     "redis.call('PUBLISH', 'p:redlockd:released:r', '') "
                     "end return 1"),
        1);
    turns_until_count(live.loop, &heard.announced, FLOOD);
    ck_assert_int_gt(heard.most_in_a_turn, 0);
    ck_assert_int_le(heard.most_in_a_turn, WIRE_READ_MAX / LEAST_BYTES);
    ck_assert_int_eq(heard.downs, 0);
    pass_a_generation();
    ck_assert_int_eq(heard.announced, FLOOD);
}
