/*
 * The scripts on a real redis-server, through a real link.
 */
#include <check.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../server/clock.h"
#include "../../server/link.h"
#include "master.h"
#include "turns.h"

#define ADMIT "1:fingerprint:run"
#define RUN_ID_DIGITS 40

enum { TTL_MS = 60000, WINDOW_US = 15000000, SILENCE_US = 2000000 };

static struct master master;
static struct loop *loop;
static struct link *the_link;
static struct config_node config;

static struct {
    int ups, downs, replies;
    int64_t clock_lead_us; /* node's clock minus ours */
    char detail[200];
    enum vote reason;
    struct script_reply reply;
    char value[VALUE_MAX + 1];
} seen;

static void on_up(void *ctx, int node, const struct link_facts *facts)
{
    (void)ctx, (void)node;
    ck_assert_uint_eq(strlen(facts->run_id), RUN_ID_DIGITS);
    ck_assert_int_le(facts->sent_us, facts->received_us);
    seen.clock_lead_us = facts->node_now_us - facts->received_us;
    seen.ups++;
}

static void on_down(void *ctx, int node, enum vote reason, const char *detail)
{
    (void)ctx, (void)node;
    seen.reason = reason;
    snprintf(seen.detail, sizeof seen.detail, "%s", detail);
    seen.downs++;
}

static void on_reply(void *ctx, int node, uint64_t tag,
                     const struct script_reply *reply, int64_t sent_us,
                     int64_t received_us)
{
    (void)ctx, (void)node, (void)tag;
    ck_assert_int_le(sent_us, received_us);
    seen.reply = *reply;
    seen.value[span_copy(seen.value, reply->value)] = '\0';
    seen.replies++;
}

static void flush(void *arg)
{
    (void)arg;
    link_flush(the_link);
}

static void setup(void)
{
    static const struct link_events events = {on_up, on_down, on_reply, NULL};
    signal(SIGPIPE, SIG_IGN);
    memset(&seen, 0, sizeof seen);
    master_start(&master);
    snprintf(config.host, sizeof config.host, "%s", master.path);
    config.is_unix = true;
    loop = loop_new();
    the_link = link_new(loop, 0, &config, "p:", SILENCE_US, &events);
    loop_set_stage(loop, LOOP_FLUSH, flush, NULL);
    turns_until_count(loop, &seen.ups, 1);
}

static void teardown(void)
{
    link_free(the_link);
    loop_free(loop);
    master_stop(&master);
}

static int64_t node_now_us(void)
{
    return clock_now_us() + seen.clock_lead_us;
}

/* Sends the call and returns the vote; the reply is in seen. */
static enum vote ask(const struct script_call *call)
{
    int before = seen.replies;
    ck_assert_int_eq(link_send(the_link, call, 1), VOTE_PENDING);
    turns_until_count(loop, &seen.replies, before + 1);
    if (seen.reply.node_now_us != 0)
        ck_assert_int_gt(seen.reply.node_now_us, node_now_us() - 10000000);
    return seen.reply.vote;
}

/* A call that is granted on a free lock. */
static struct script_call make(enum script_kind kind, const char *resource,
                               const char *token)
{
    return (struct script_call){
        .kind = kind,
        .resource = span_of(resource),
        .token = span_of(token),
        .admit = span_of(ADMIT),
        .ttl_ms = TTL_MS,
        .number = node_now_us(),
        .node_deadline_us = node_now_us() + 5000000,
        .window_us = WINDOW_US,
        .slot = 7,
    };
}

static enum vote run(enum script_kind kind, const char *resource,
                     const char *token)
{
    struct script_call call = make(kind, resource, token);
    return ask(&call);
}

static void admit(void)
{
    ck_assert_int_eq(run(SCRIPT_ADMIT, "", ""), VOTE_DONE);
}

static long long pttl(const char *resource)
{
    return master_integer(&master, "PTTL p:%s", resource);
}

START_TEST(a_lock_lives_from_acquire_to_release)
{
    admit();
    struct script_call call = make(SCRIPT_ACQUIRE, "r", "A");
    ck_assert_int_eq(ask(&call), VOTE_GRANTED);
    ck_assert_str_eq(master_text(&master, "GET p:r"), "A");
    ck_assert_int_gt(pttl("r"), TTL_MS - 10000);
    ck_assert_int_le(pttl("r"), TTL_MS);
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)call.number);
    ck_assert_str_eq(master_text(&master, "HGET p:redlockd:state 7"), number);

    ck_assert_int_eq(run(SCRIPT_INSPECT, "r", ""), VOTE_HELD);
    ck_assert_str_eq(seen.value, "A");
    ck_assert_int_gt(seen.reply.pttl_ms, TTL_MS - 10000);

    call = make(SCRIPT_EXTEND, "r", "A");
    call.ttl_ms = 2 * TTL_MS;
    ck_assert_int_eq(ask(&call), VOTE_EXTENDED);
    ck_assert_int_gt(pttl("r"), TTL_MS);

    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(master_integer(&master, "EXISTS p:r"), 0);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(run(SCRIPT_INSPECT, "r", ""), VOTE_FREE);
    ck_assert_int_eq(run(SCRIPT_EXTEND, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(master_integer(&master, "EXISTS p:r"), 0);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

START_TEST(a_held_lock_is_held_for_others)
{
    admit();
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    static const enum script_kind kinds[] = {SCRIPT_ACQUIRE, SCRIPT_EXTEND,
                                             SCRIPT_RELEASE};
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(run(kinds[i], "r", "B"), VOTE_HELD);
        ck_assert_str_eq(seen.value, "A");
        ck_assert_int_gt(seen.reply.pttl_ms, TTL_MS - 10000);
        ck_assert_str_eq(master_text(&master, "GET p:r"), "A");
    }
    /* its own token does not take it a second time either */
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_HELD);
}
END_TEST

START_TEST(a_node_without_our_admission_is_quarantined)
{
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_QUARANTINED);
    ck_assert_int_eq(run(SCRIPT_EXTEND, "r", "A"), VOTE_QUARANTINED);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(run(SCRIPT_INSPECT, "r", "A"), VOTE_FREE);
    admit();
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    struct script_call call = make(SCRIPT_ACQUIRE, "s", "A");
    call.admit = span_of(ADMIT "x");
    ck_assert_int_eq(ask(&call), VOTE_QUARANTINED);
    call.kind = SCRIPT_EXTEND;
    call.resource = span_of("r");
    ck_assert_int_eq(ask(&call), VOTE_QUARANTINED);
    master_text(&master, "FLUSHALL");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_QUARANTINED);
    ck_assert_int_eq(master_integer(&master, "DBSIZE"), 0);
}
END_TEST

START_TEST(a_command_behind_its_deadline_changes_nothing)
{
    admit();
    struct script_call call = make(SCRIPT_ACQUIRE, "r", "A");
    call.node_deadline_us = node_now_us() - 1000000;
    ck_assert_int_eq(ask(&call), VOTE_LATE);
    ck_assert_int_eq(master_integer(&master, "EXISTS p:r"), 0);
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    call = make(SCRIPT_EXTEND, "r", "A");
    call.ttl_ms = 2 * TTL_MS;
    call.node_deadline_us = node_now_us() - 1000000;
    ck_assert_int_eq(ask(&call), VOTE_LATE);
    ck_assert_int_le(pttl("r"), TTL_MS);
}
END_TEST

START_TEST(a_number_far_from_the_clock_is_skewed)
{
    admit();
    for (int sign = -1; sign <= 1; sign += 2) {
        struct script_call call = make(SCRIPT_ACQUIRE, "r", "A");
        call.number += sign * (WINDOW_US + 1000000);
        ck_assert_int_eq(ask(&call), VOTE_SKEWED);
        ck_assert_int_eq(master_integer(&master, "EXISTS p:r"), 0);
        ck_assert_int_eq(master_integer(&master, "HLEN p:redlockd:state"), 1);
    }
}
END_TEST

START_TEST(numbers_in_a_slot_only_rise)
{
    admit();
    struct script_call call = make(SCRIPT_ACQUIRE, "r", "A");
    int64_t accepted = call.number;
    ck_assert_int_eq(ask(&call), VOTE_GRANTED);
    call.resource = span_of("s");
    ck_assert_int_eq(ask(&call), VOTE_STALE); /* the same number */
    ck_assert_int_eq(seen.reply.highest, accepted);
    call.number = accepted - 1000;
    ck_assert_int_eq(ask(&call), VOTE_STALE);
    ck_assert_int_eq(seen.reply.highest, accepted);
    call.resource = span_of("r"); /* held comes before stale */
    ck_assert_int_eq(ask(&call), VOTE_HELD);
    call.resource = span_of("s");
    call.slot = 8;
    ck_assert_int_eq(ask(&call), VOTE_GRANTED);
    call.resource = span_of("t");
    call.slot = 7;
    call.number = accepted + 1;
    ck_assert_int_eq(ask(&call), VOTE_GRANTED);
}
END_TEST

START_TEST(a_refused_number_is_not_remembered)
{
    admit();
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    char before[64];
    snprintf(before, sizeof before, "%s",
             master_text(&master, "HGET p:redlockd:state 7"));
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "B"), VOTE_HELD);
    ck_assert_str_eq(master_text(&master, "HGET p:redlockd:state 7"), before);
}
END_TEST

START_TEST(a_shorter_extension_shortens_nothing)
{
    admit();
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    struct script_call call = make(SCRIPT_EXTEND, "r", "A");
    for (call.ttl_ms = 0; call.ttl_ms <= 200; call.ttl_ms += 100) {
        ck_assert_int_eq(ask(&call), VOTE_EXTENDED);
        ck_assert_int_gt(pttl("r"), TTL_MS - 10000);
    }
}
END_TEST

static const char *const foreign[] = {
    "HSET p:r field 1",
    "RPUSH p:r x",
    "SADD p:r x",
    "ZADD p:r 1 x",
    "XADD p:r * f v",
};

START_TEST(a_key_of_another_type_is_held)
{
    static const enum script_kind kinds[] = {SCRIPT_ACQUIRE, SCRIPT_EXTEND,
                                             SCRIPT_RELEASE, SCRIPT_INSPECT};
    admit();
    master_text(&master, foreign[_i]);
    for (int with_ttl = 0; with_ttl <= 1; with_ttl++) {
        for (int i = 0; i < 4; i++) {
            ck_assert_int_eq(run(kinds[i], "r", "A"), VOTE_HELD);
            ck_assert_str_eq(seen.value, "");
            ck_assert(with_ttl ? seen.reply.pttl_ms > TTL_MS
                               : seen.reply.pttl_ms == -1);
        }
        master_integer(&master, "PEXPIRE p:r %d", 2 * TTL_MS);
    }
    ck_assert_int_eq(master_integer(&master, "EXISTS p:r"), 1);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

START_TEST(a_key_without_ttl_is_held)
{
    admit();
    master_text(&master, "SET p:r legacy");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_HELD);
    ck_assert_int_eq(seen.reply.pttl_ms, -1);
    ck_assert_str_eq(seen.value, "legacy");
    /* only ever longer: no end is longer than any */
    ck_assert_int_eq(run(SCRIPT_EXTEND, "r", "legacy"), VOTE_EXTENDED);
    ck_assert_int_eq(pttl("r"), -1);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "legacy"), VOTE_DELETED);
}
END_TEST

START_TEST(a_long_value_is_cut_and_equals_no_token)
{
    char token[VALUE_MAX + 1];
    memset(token, 'x', sizeof token - 1);
    token[VALUE_MAX] = '\0';
    admit();
    master_text(&master, "SET p:r %s%s PX %d", token, "y", TTL_MS);
    token[TOKEN_MAX] = '\0';
    ck_assert_int_eq(run(SCRIPT_INSPECT, "r", ""), VOTE_HELD);
    ck_assert_uint_eq(strlen(seen.value), VALUE_MAX);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", token), VOTE_HELD);
    ck_assert_int_eq(run(SCRIPT_EXTEND, "r", token), VOTE_HELD);
    master_text(&master, "SET p:r %s PX %d", token, TTL_MS);
    ck_assert_int_eq(run(SCRIPT_EXTEND, "r", token), VOTE_EXTENDED);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", token), VOTE_DELETED);
    master_text(&master, "SET p:r %s", "");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_HELD);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_HELD);
}
END_TEST

START_TEST(a_release_is_announced_without_the_token)
{
    redisContext *listener = redisConnectUnix(master.path);
    redisReply *reply =
        redisCommand(listener, "SUBSCRIBE p:redlockd:released:r");
    freeReplyObject(reply);
    admit();
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "B"), VOTE_HELD);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_DELETED);
    ck_assert_int_eq(redisGetReply(listener, (void **)&reply), REDIS_OK);
    ck_assert_str_eq(reply->element[1]->str, "p:redlockd:released:r");
    ck_assert_str_eq(reply->element[2]->str, "1");
    freeReplyObject(reply);
    redisFree(listener);
}
END_TEST

START_TEST(a_user_without_channels_releases_all_the_same)
{
    admit();
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_str_eq(master_text(&master, "ACL SETUSER default resetchannels"),
                     "OK");
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_DELETED);
}
END_TEST

START_TEST(a_user_without_a_command_gets_no_vote_not_held)
{
    admit();
    master_text(&master, "SET p:r x");
    master_text(&master, "ACL SETUSER default -getrange");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_NO_PERMISSION);
    ck_assert_int_eq(run(SCRIPT_EXTEND, "r", "A"), VOTE_NO_PERMISSION);
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_NO_PERMISSION);
    ck_assert_int_eq(run(SCRIPT_INSPECT, "r", "A"), VOTE_NO_PERMISSION);
}
END_TEST

START_TEST(errors_of_a_node_have_their_names)
{
    admit();
    ck_assert_str_eq(master_text(&master, "CONFIG SET maxmemory 1"), "OK");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_OUT_OF_MEMORY);
    master_text(&master, "CONFIG SET maxmemory 0");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    master_text(&master, "CONFIG SET maxmemory 1");
    ck_assert_int_eq(run(SCRIPT_RELEASE, "r", "A"), VOTE_DELETED);
    master_text(&master, "CONFIG SET maxmemory 0");
    master_text(&master, "REPLICAOF 127.0.0.1 1");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_READ_ONLY);
    master_text(&master, "CLIENT KILL TYPE normal SKIPME yes");
    turns_until_count(loop, &seen.downs, 2);
    ck_assert_int_eq(seen.reason, VOTE_READ_ONLY);
    ck_assert_str_eq(seen.detail, "is a replica of 127.0.0.1:1");
    master_text(&master, "REPLICAOF NO ONE");
    turns_until_count(loop, &seen.ups, 2);
}
END_TEST

START_TEST(flushed_scripts_come_back)
{
    admit();
    master_text(&master, "SCRIPT FLUSH");
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_NO_SCRIPT);
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

static void restart_with_password(void)
{
    static const struct link_events events = {on_up, on_down, on_reply, NULL};
    master_text(&master, "CONFIG SET requirepass s3cret");
    link_free(the_link);
    the_link = link_new(loop, 0, &config, "p:", SILENCE_US, &events);
}

START_TEST(passwords_and_databases_work)
{
    restart_with_password();
    turns_until_count(loop, &seen.downs, 1);
    ck_assert_int_eq(seen.reason, VOTE_NO_PERMISSION);
    snprintf(config.password, sizeof config.password, "wrong");
    turns_until_count(loop, &seen.downs, 3);
    ck_assert_int_eq(seen.reason, VOTE_NO_PERMISSION);
    snprintf(config.password, sizeof config.password, "s3cret");
    config.db = 5;
    turns_until_count(loop, &seen.ups, 2);
    admit();
    ck_assert_int_eq(run(SCRIPT_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_eq(master_integer(&master, "EXISTS p:r"), 0);
    master_text(&master, "SELECT 5");
    ck_assert_int_eq(master_integer(&master, "EXISTS p:r"), 1);
}
END_TEST

START_TEST(a_node_at_its_maxclients_is_named)
{
    master_text(&master, "CONFIG SET maxclients 1");
    master_text(&master, "CLIENT KILL TYPE normal SKIPME yes");
    turns_until_count(loop, &seen.downs, 2);
    ck_assert_msg(seen.reason == VOTE_TOO_MANY, "%s", seen.detail);
    master_text(&master, "CONFIG SET maxclients 100");
    turns_until_count(loop, &seen.ups, 2);
}
END_TEST

/* Several locks, as one call of several resources will send them. */
START_TEST(several_locks_are_all_or_none)
{
    static const char *const words[] = {"GRANTED", "HELD", "STALE", "GRANTED"};
    char text[64], now[32];
    admit();
    snprintf(text, sizeof text, "%s",
             master_text(&master, "SCRIPT LOAD %s",
                         script_text(SCRIPT_ACQUIRE).ptr));
    for (int i = 0; i < 4; i++) {
        snprintf(now, sizeof now, "%lld", (long long)node_now_us());
        if (i == 1) {
            master_text(&master, "DEL p:a p:b p:c");
            master_text(&master, "SET p:c other");
        } else if (i == 2) {
            master_text(&master, "DEL p:c");
            master_text(&master, "HSET p:redlockd:state 3 %lld",
                        (long long)node_now_us() + 1000000);
        } else if (i == 3) {
            master_text(&master, "HDEL p:redlockd:state 3");
        }
        redisReply *reply = redisCommand(
            master.redis,
            "EVALSHA %s 4 p:redlockd:state p:a p:b p:c T %d %s %s "
            "9000000000000000 %d 1 2 3",
            text, TTL_MS, now, ADMIT, WINDOW_US);
        ck_assert_int_eq(reply->type, REDIS_REPLY_ARRAY);
        ck_assert_str_eq(reply->element[0]->str, words[i]);
        freeReplyObject(reply);
        ck_assert_int_eq(master_integer(&master, "EXISTS p:a p:b"),
                         i % 3 == 0 ? 2 : 0);
    }
    ck_assert_str_eq(master_text(&master, "HGET p:redlockd:state 3"), now);
}
END_TEST

Suite *check_lua(void);

Suite *check_lua(void)
{
    Suite *suite = suite_create("lua");
    TCase *tcase = tcase_create("lua");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_lock_lives_from_acquire_to_release);
    tcase_add_test(tcase, a_held_lock_is_held_for_others);
    tcase_add_test(tcase, a_node_without_our_admission_is_quarantined);
    tcase_add_test(tcase, a_command_behind_its_deadline_changes_nothing);
    tcase_add_test(tcase, a_number_far_from_the_clock_is_skewed);
    tcase_add_test(tcase, numbers_in_a_slot_only_rise);
    tcase_add_test(tcase, a_refused_number_is_not_remembered);
    tcase_add_test(tcase, a_shorter_extension_shortens_nothing);
    tcase_add_loop_test(tcase, a_key_of_another_type_is_held, 0,
                        (int)(sizeof foreign / sizeof *foreign));
    tcase_add_test(tcase, a_key_without_ttl_is_held);
    tcase_add_test(tcase, a_long_value_is_cut_and_equals_no_token);
    tcase_add_test(tcase, a_release_is_announced_without_the_token);
    tcase_add_test(tcase, a_user_without_channels_releases_all_the_same);
    tcase_add_test(tcase, a_user_without_a_command_gets_no_vote_not_held);
    tcase_add_test(tcase, errors_of_a_node_have_their_names);
    tcase_add_test(tcase, flushed_scripts_come_back);
    tcase_add_test(tcase, passwords_and_databases_work);
    tcase_add_test(tcase, a_node_at_its_maxclients_is_named);
    tcase_add_test(tcase, several_locks_are_all_or_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
