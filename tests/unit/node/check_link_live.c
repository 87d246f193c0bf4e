/* SPDX-License-Identifier: MIT */
/*
 * A link and what a real redis-server refuses; what a service does then is in
 * tests/integration/, check_faults.c and check_rights.c.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/node/batch.h"
#include "../../lib/suite/suite.h"
#include "../turns.h"
#include "live.h"

SUITE(link_live, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

static bool has_failed_to_save(void *arg)
{
    (void)arg;
    return strstr(real_text(&live.real, "INFO persistence"),
                  "rdb_last_bgsave_status:err") != NULL;
}

/* Redis saves in a child, which outlives it. */
TEST_RANGE(a_node_that_saves_can_be_stopped, 0, 20)
{
    static struct real node;
    real_start(&node);
    real_text(&node, "DEBUG POPULATE 20000");
    real_text(&node, "BGSAVE");
    usleep(1000 * (useconds_t)_i);
    real_stop(&node);
}

/* Redis says so in 330 bytes, to each call of a batch. */
TEST(a_node_that_cannot_save_is_named_by_a_whole_batch)
{
    static char names[BATCH_CALLS_MAX][12];
    struct call calls[BATCH_CALLS_MAX];
    live_admit();
    ck_assert_int_eq(mkdir(textf("%s/dump.rdb", live.real.dir), 0700), 0);
    real_text(&live.real, "CONFIG SET save %s", "3600 1");
    real_text(&live.real, "BGSAVE");
    turns_until(live.loop, has_failed_to_save, NULL);
    for (int i = 0; i < BATCH_CALLS_MAX; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        calls[i] = live_call(CALL_ACQUIRE, names[i], "A");
        calls[i].buckets[0] = (uint16_t)i;
    }
    live_ask_all(calls, BATCH_CALLS_MAX);
    for (int i = 0; i < BATCH_CALLS_MAX; i++)
        ck_assert_str_eq(ballot_name(ballot_of_number(live.votes[i])),
                         "misconfigured");
    ck_assert_int_eq(live.downs, 0);
}

/* redlockd writes the keys that it reads. */
TEST(keys_that_may_be_read_only_are_named)
{
    ck_assert_str_eq(
        real_text(&live.real, "ACL SETUSER default resetkeys %%R~p:*"), "OK");
    live_reconnect();
    turns_until_count(live.loop, &live.downs, 1);
    ck_assert_str_eq(state_name(live.reason), "no_permission");
    ck_assert_str_eq(live.detail, "its user lacks ~p:*");
}

TEST(a_node_at_its_maxclients_is_named)
{
    real_text(&live.real, "CONFIG SET maxclients 1");
    real_text(&live.real, "CLIENT KILL TYPE normal SKIPME yes");
    turns_until_count(live.loop, &live.downs, 2);
    ck_assert_msg(live.reason == STATE_TOO_MANY, "%s", live.detail);
    real_text(&live.real, "CONFIG SET maxclients 100");
    turns_until_count(live.loop, &live.ups, 2);
}

/* It gets no calls that ask for a vote: the engine sees to that. */
TEST(a_node_that_evicts_is_left_and_comes_back)
{
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_str_eq(live.evicts, "");
    real_text(&live.real, "CONFIG SET maxmemory 100mb maxmemory-policy "
                          "allkeys-lru");
    turns_until_count(live.loop, &live.downs, 1);
    turns_until_count(live.loop, &live.ups, 2);
    ck_assert(strstr(live.evicts, "allkeys-lru"));
    int confirmed = live.confirmed;
    turns_until_count(live.loop, &live.confirmed, confirmed + 1);
    ck_assert_int_eq(live_run(CALL_RELEASE, "r", "A"), VOTE_DELETED);
    real_text(&live.real, "CONFIG SET maxmemory-policy noeviction");
    turns_until_count(live.loop, &live.downs, 2);
    turns_until_count(live.loop, &live.ups, 3);
    ck_assert_str_eq(live.evicts, "");
}

/* This test's and the link's. */
static bool has_three_clients(void *arg)
{
    (void)arg;
    return strstr(real_text(&live.real, "INFO clients"),
                  "connected_clients:3\r\n") != NULL;
}

TEST(a_change_of_persistence_is_told_by_a_confirmation)
{
    ck_assert(!live.is_durable);
    real_text(&live.real, "CONFIG SET appendonly yes appendfsync always");
    turns_until_count(live.loop, &live.confirmed, 1);
    ck_assert(live.is_durable);
    ck_assert_int_eq(live.downs, 0);
    turns_until(live.loop, has_three_clients, NULL);
}

static const struct {
    const char *change;
    bool is_durable;
} rights[] = {
    {"ACL SETUSER default +@all", true},
    {"ACL SETUSER default off", true},
    {"ACL SETUSER default >another", true},
    {"ACL SETUSER default (+get ~x)", true},
    {"ACL SETUSER default (+@all ~*)", true},
    {"ACL SETUSER default resetchannels", true},
    {"ACL SETUSER default -pexpireat", false},
    {"ACL SETUSER default -@dangerous", false},
    {"ACL SETUSER default -@all +evalsha +set", false},
    {"ACL SETUSER default -@all (+@all ~*)", false},
    {"ACL SETUSER default resetkeys ~p:*", false},
};

/* Redis loads its append-only file as the user default. */
TEST_EACH(durable_needs_all_rights_of_the_user_default, rights)
{
    real_text(&live.real, "CONFIG SET appendonly yes appendfsync always");
    real_text(&live.real, "ACL SETUSER other on >secret ~* &* +@all");
    snprintf(live.config.user, sizeof live.config.user, "other");
    snprintf(live.config.password, sizeof live.config.password, "secret");
    ck_assert_str_eq(real_text(&live.real, rights[_i].change), "OK");
    live_reconnect();
    turns_until_count(live.loop, &live.ups, 2);
    ck_assert_int_eq(live.is_durable, rights[_i].is_durable);
    ck_assert_int_eq(live.downs, 0);
}

TEST(passwords_and_databases_work)
{
    real_text(&live.real, "CONFIG SET requirepass s3cret");
    live_reconnect();
    turns_until_count(live.loop, &live.downs, 1);
    ck_assert_int_eq(live.reason, STATE_NO_PERMISSION);
    snprintf(live.config.password, sizeof live.config.password, "wrong");
    turns_until_count(live.loop, &live.downs, 3);
    ck_assert_int_eq(live.reason, STATE_NO_PERMISSION);
    snprintf(live.config.password, sizeof live.config.password, "s3cret");
    live.config.db = 5;
    turns_until_count(live.loop, &live.ups, 2);
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_eq(real_integer(&live.real, "EXISTS p:r"), 0);
    real_text(&live.real, "SELECT 5");
    ck_assert_int_eq(real_integer(&live.real, "EXISTS p:r"), 1);
}
