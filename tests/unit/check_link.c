/*
 * The link against a node that misbehaves in every way it can.
 */
#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../server/clock.h"
#include "../../server/link.h"
#include "fake.h"
#include "turns.h"

enum { SILENCE_US = 300000, NODE = 3, SEEN_MAX = 20000 };

static struct loop *loop;
static struct fake fake;
static struct config_node config;
static struct link *the_link;

/* What the link told. */
static struct {
    int ups, downs, replies;
    enum vote reason; /* of the last down */
    char detail[200];
    int replies_at_down;
    struct link_facts facts;
    char run_id[64];
    enum vote votes[SEEN_MAX];
    uint64_t tags[SEEN_MAX];
    int64_t sent_us, received_us; /* of the last reply */
    enum vote sent_in_reply;      /* what link_send said within the event */
    bool sends_in_reply;
} seen;

static enum vote inspect(uint64_t tag)
{
    struct script_call call = {.kind = SCRIPT_INSPECT,
                               .resource = span_of("r")};
    return link_send(the_link, &call, tag);
}

static void on_up(void *ctx, int node, const struct link_facts *facts)
{
    ck_assert_ptr_eq(ctx, &seen);
    ck_assert_int_eq(node, NODE);
    seen.facts = *facts;
    snprintf(seen.run_id, sizeof seen.run_id, "%s", facts->run_id);
    ck_assert_str_eq(facts->version, "7.0.15");
    ck_assert_str_eq(facts->role, "master");
    seen.ups++;
}

static void on_down(void *ctx, int node, enum vote reason, const char *detail)
{
    ck_assert_ptr_eq(ctx, &seen);
    ck_assert_int_eq(node, NODE);
    seen.reason = reason;
    snprintf(seen.detail, sizeof seen.detail, "%s", detail);
    seen.replies_at_down = seen.replies;
    seen.downs++;
}

static void on_reply(void *ctx, int node, uint64_t tag,
                     const struct script_reply *reply, int64_t sent_us,
                     int64_t received_us)
{
    ck_assert_ptr_eq(ctx, &seen);
    ck_assert_int_eq(node, NODE);
    ck_assert_int_lt(seen.replies, SEEN_MAX);
    seen.tags[seen.replies] = tag;
    seen.votes[seen.replies++] = reply->vote;
    seen.sent_us = sent_us;
    seen.received_us = received_us;
    if (seen.sends_in_reply)
        seen.sent_in_reply = inspect(tag + 1);
}

static void flush(void *arg)
{
    (void)arg;
    link_flush(the_link);
}

static void start_link(void)
{
    static const struct link_events events = {on_up, on_down, on_reply, &seen};
    the_link = link_new(loop, NODE, &config, "p:", SILENCE_US, &events);
    ck_assert_ptr_nonnull(the_link);
    loop_set_stage(loop, LOOP_FLUSH, flush, NULL);
}

static void setup(void)
{
    signal(SIGPIPE, SIG_IGN);
    memset(&seen, 0, sizeof seen);
    memset(&config, 0, sizeof config);
    loop = loop_new();
    ck_assert_ptr_nonnull(loop);
    fake_start(&fake, loop);
    snprintf(config.host, sizeof config.host, "127.0.0.1");
    config.port = fake.port;
}

static void teardown(void)
{
    link_free(the_link);
    fake_stop(&fake);
    loop_free(loop);
}

static void until_up(int ups)
{
    turns_until_count(loop, &seen.ups, ups);
}

static void until_down(int downs)
{
    turns_until_count(loop, &seen.downs, downs);
}

static void expect_down(enum vote reason, const char *detail)
{
    until_down(seen.downs + 1);
    ck_assert_str_eq(vote_name(seen.reason), vote_name(reason));
    ck_assert_msg(strstr(seen.detail, detail) != NULL, "%s", seen.detail);
}

START_TEST(comes_up_with_facts_and_answers)
{
    int64_t begin_us = clock_now_us();
    start_link();
    ck_assert_int_eq(inspect(1), VOTE_UNREACHABLE);
    until_up(1);
    ck_assert_int_eq(seen.downs, 0);
    ck_assert_str_eq(seen.run_id, FAKE_RUN_ID);
    ck_assert_int_eq(seen.facts.node_now_us, 1700000000123456);
    ck_assert_int_ge(seen.facts.sent_us, begin_us);
    ck_assert_int_ge(seen.facts.received_us, seen.facts.sent_us);
    ck_assert_int_eq(fake.loads, SCRIPT_KINDS);
    ck_assert_int_eq(inspect(7), VOTE_PENDING);
    ck_assert_int_eq(inspect(8), VOTE_PENDING);
    ck_assert_int_eq(seen.replies, 0);
    turns_until_count(loop, &seen.replies, 2);
    ck_assert_uint_eq(seen.tags[0], 7);
    ck_assert_uint_eq(seen.tags[1], 8);
    ck_assert_int_eq(seen.votes[0], VOTE_FREE);
    ck_assert_int_ge(seen.received_us, seen.sent_us);
}
END_TEST

START_TEST(a_refused_connection_is_tried_again)
{
    fake_stop(&fake); /* nobody listens on its port now */
    start_link();
    expect_down(VOTE_UNREACHABLE, "Connection refused");
    until_down(3);
    fake_start(&fake, loop);
    config.port = fake.port;
    until_up(1);
}
END_TEST

START_TEST(a_node_that_accepts_and_says_nothing_is_silent)
{
    fake_say(&fake, "", "");
    start_link();
    expect_down(VOTE_SILENT, "no reply for 300 ms");
    until_down(2);
    ck_assert_int_eq(fake.accepted, 2);
}
END_TEST

/* A listener with a full backlog: its SYN queue answers nobody any more. */
START_TEST(a_connection_that_is_not_made_is_silent)
{
    int fds[16];
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)fake.port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert(loop_watch_set(fake.listener_watch, 0));
    for (int i = 0; i < 16; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        /* EINPROGRESS, or it fits into the backlog */
        (void)connect(fds[i], (struct sockaddr *)&addr, sizeof addr);
    }
    start_link();
    expect_down(VOTE_SILENT, "no connection for 300 ms");
    for (int i = 0; i < 16; i++)
        close(fds[i]);
}
END_TEST

START_TEST(silence_with_pending_calls_ends_the_link)
{
    fake_say(&fake, "EVALSHA", "");
    start_link();
    until_up(1);
    int64_t begin_us = clock_now_us();
    ck_assert_int_eq(inspect(1), VOTE_PENDING);
    ck_assert_int_eq(inspect(2), VOTE_PENDING);
    seen.sends_in_reply = true;
    expect_down(VOTE_SILENT, "no reply for 300 ms");
    ck_assert_int_ge(clock_now_us() - begin_us, SILENCE_US);
    ck_assert_int_eq(seen.replies_at_down, 2);
    ck_assert_uint_eq(seen.tags[0], 1);
    ck_assert_int_eq(seen.votes[0], VOTE_UNREACHABLE);
    ck_assert_int_eq(seen.votes[1], VOTE_UNREACHABLE);
    ck_assert_int_eq(seen.sent_in_reply, VOTE_UNREACHABLE);
    until_up(2);
    ck_assert_int_eq(seen.replies, 2);
}
END_TEST

static void wait_us(int64_t wait_us);

START_TEST(a_link_that_owes_nothing_lives_through_silence)
{
    start_link();
    until_up(1);
    wait_us(3 * SILENCE_US);
    ck_assert_int_eq(seen.downs, 0);
    ck_assert_int_eq(inspect(1), VOTE_PENDING);
    turns_until_count(loop, &seen.replies, 1);
    ck_assert_int_eq(seen.votes[0], VOTE_FREE);
}
END_TEST

/* The process was stopped: replies lie in the socket, and are no silence. */
START_TEST(replies_that_lie_in_the_socket_are_no_silence)
{
    start_link();
    until_up(1);
    fake.stops_process_us = 2 * SILENCE_US;
    ck_assert_int_eq(inspect(1), VOTE_PENDING);
    turns_until_count(loop, &seen.replies, 1);
    ck_assert_int_eq(seen.votes[0], VOTE_FREE);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

static const char *const garbage[] = {
    "HTTP/1.1 400 Bad Request\r\n\r\n",
    "*9\r\n",
    "*2147483647\r\n",
    "*1\r\n*1\r\n:1\r\n",
    "*2\r\n$4\r\nFREE\r\n:0\r\n",
    "*2\r\n$7\r\nGRANTED\r\n:1700000000123456\r\n",
    "*0\r\n",
    "$-1\r\n",
    "+OK\r\n",
    ":abc\r\n",
    "*4\r\n$4\r\nHELD\r\n:1700000000123456\r\n:-7\r\n$1\r\nx\r\n",
};

START_TEST(garbage_ends_the_link)
{
    fake_say(&fake, "EVALSHA", garbage[_i]);
    start_link();
    until_up(1);
    ck_assert_int_eq(inspect(1), VOTE_PENDING);
    expect_down(VOTE_GARBAGE, "sent ");
    ck_assert_int_eq(seen.replies_at_down, 1);
    ck_assert_uint_eq(seen.tags[0], 1);
    fake_say(&fake, "EVALSHA", "*2\r\n$4\r\nFREE\r\n:1700000000123456\r\n");
    until_up(2);
    ck_assert_int_eq(inspect(2), VOTE_PENDING);
    turns_until_count(loop, &seen.replies, 2);
    ck_assert_int_eq(seen.votes[1], VOTE_FREE);
}
END_TEST

START_TEST(too_long_a_reply_ends_the_link)
{
    static char flood[200000];
    int begin = snprintf(flood, sizeof flood, "$%s\r\n",
                         _i == 0 ? "190000" : "17000");
    memset(flood + begin, 'x', sizeof flood - 1 - (size_t)begin);
    if (_i == 1)
        memcpy(flood + begin + 17000, "\r\n", 3);
    fake_say(&fake, "EVALSHA", flood);
    start_link();
    until_up(1);
    ck_assert_int_eq(inspect(1), VOTE_PENDING);
    expect_down(VOTE_GARBAGE, "too long");
}
END_TEST

START_TEST(an_unsolicited_reply_ends_the_link)
{
    start_link();
    until_up(1);
    fake_send(&fake, "+hello\r\n");
    expect_down(VOTE_GARBAGE, "nobody asked for");
    until_up(2);
}
END_TEST

struct refusal {
    const char *command;
    const char *reply;
    enum vote vote;
    const char *detail;
};

static const struct refusal refusals[] = {
    {"AUTH", "-WRONGPASS invalid username-password pair\r\n",
     VOTE_NO_PERMISSION, "refuses the user"},
    {"AUTH", "-ERR unknown command 'AUTH', with args: 's3cret'\r\n",
     VOTE_FAILED, "does not accept AUTH"},
    {"SELECT", "-ERR DB index is out of range\r\n", VOTE_FAILED,
     "ERR DB index is out of range"},
    {"INFO server", "-NOAUTH Authentication required.\r\n", VOTE_NO_PERMISSION,
     "Authentication required"},
    {"INFO server", "$19\r\nredis_version:6.2.1\r\n", VOTE_GARBAGE, "answers"},
    {"INFO server",
     "$68\r\nredis_version:6.2.6\r\nrun_id:" FAKE_RUN_ID "\r\n", VOTE_FAILED,
     "version 6.2.6 is too old"},
    {"INFO server", ":1\r\n", VOTE_GARBAGE, "answers"},
    {"INFO replication",
     "$53\r\nrole:slave\r\nmaster_host:10.1.2.3\r\nmaster_port:6379\r\n\r\n",
     VOTE_READ_ONLY, "is a replica of 10.1.2.3:6379"},
    {"TIME", "*2\r\n$2\r\n-5\r\n$1\r\n0\r\n", VOTE_GARBAGE, "answers"},
    {"TIME", "*2\r\n$10\r\n9999999999\r\n$1\r\n0\r\n", VOTE_GARBAGE, "answers"},
    {"SCRIPT LOAD", "$3\r\nabc\r\n", VOTE_GARBAGE, "answers"},
    {"SCRIPT LOAD", "-BUSY Redis is busy\r\n", VOTE_BUSY, "Redis is busy"},
    {"SCRIPT LOAD", "-NOPERM \x01\x1b[31m\r\n", VOTE_NO_PERMISSION, "??[31m"},
};

START_TEST(a_refused_handshake_names_the_reason)
{
    const struct refusal *refusal = &refusals[_i];
    snprintf(config.password, sizeof config.password, "s3cret");
    config.db = 3;
    fake_say(&fake, refusal->command, refusal->reply);
    start_link();
    expect_down(refusal->vote, refusal->detail);
    ck_assert_ptr_null(strstr(seen.detail, "s3cret"));
    ck_assert_int_eq(seen.ups, 0);
}
END_TEST

START_TEST(the_user_and_database_are_sent)
{
    snprintf(config.user, sizeof config.user, "alice");
    snprintf(config.password, sizeof config.password, "pass word");
    config.db = 12;
    fake_say(&fake, "AUTH", "-ERR\r\n");
    fake_say(&fake, "AUTH alice pass word", "+OK\r\n");
    fake_say(&fake, "SELECT 12", "+OK\r\n");
    start_link();
    until_up(1);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

START_TEST(a_name_that_the_node_refuses_does_not_matter)
{
    fake_say(&fake, "CLIENT SETNAME", "-NOPERM no\r\n");
    start_link();
    until_up(1);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

START_TEST(a_loading_node_is_up_soon_after_it_is_ready)
{
    fake_say(&fake, "SCRIPT LOAD", "-LOADING Redis is loading\r\n");
    start_link();
    expect_down(VOTE_LOADING, "LOADING Redis is loading");
    until_down(8); /* the backoff has reached its end */
    fake_say(&fake, "SCRIPT LOAD", "$40\r\n" FAKE_SHA "\r\n");
    int64_t ready_us = clock_now_us();
    until_up(1);
    ck_assert_int_lt(clock_now_us() - ready_us, 2000000);
}
END_TEST

START_TEST(a_full_node_is_named)
{
    fake.greeting = "-ERR max number of clients reached\r\n";
    start_link();
    expect_down(VOTE_TOO_MANY, "max number of clients");
    until_down(2);
    ck_assert_int_eq(seen.reason, VOTE_TOO_MANY);
}
END_TEST

START_TEST(replies_in_single_bytes_are_put_together)
{
    fake.is_sliced = true;
    start_link();
    until_up(1);
    for (uint64_t tag = 0; tag < 5; tag++)
        ck_assert_int_eq(inspect(tag), VOTE_PENDING);
    turns_until_count(loop, &seen.replies, 5);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(seen.votes[i], VOTE_FREE);
    ck_assert_int_eq(seen.downs, 0);
}
END_TEST

START_TEST(a_lost_connection_answers_each_call_once)
{
    fake_say(&fake, "EVALSHA", "");
    start_link();
    until_up(1);
    for (uint64_t tag = 0; tag < 100; tag++)
        ck_assert_int_eq(inspect(tag), VOTE_PENDING);
    turns_until_count(loop, &fake.calls, 100);
    fake_close(&fake);
    expect_down(VOTE_UNREACHABLE, "the node closed the connection");
    ck_assert_int_eq(seen.replies_at_down, 100);
    for (int i = 0; i < 100; i++) {
        ck_assert_uint_eq(seen.tags[i], (uint64_t)i);
        ck_assert_int_eq(seen.votes[i], VOTE_UNREACHABLE);
    }
    until_up(2);
    ck_assert_int_eq(seen.replies, 100);
}
END_TEST

START_TEST(a_write_to_a_closed_connection_calls_nobody_back)
{
    start_link();
    until_up(1);
    struct linger reset = {1, 0};
    setsockopt(fake.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    fake_close(&fake);
    ck_assert_int_eq(inspect(1), VOTE_PENDING);
    link_flush(the_link);
    ck_assert_int_eq(seen.replies, 0);
    ck_assert_int_eq(seen.downs, 0);
    ck_assert_int_eq(inspect(2), VOTE_UNREACHABLE);
    expect_down(VOTE_UNREACHABLE, "");
    ck_assert_int_eq(seen.replies, 1);
}
END_TEST

/* A paused node: bounded memory, then everything is answered. */
START_TEST(too_many_pending_calls_are_stalled)
{
    int sent = 0;
    start_link();
    until_up(1);
    fake_set_deaf(&fake, true);
    while (inspect((uint64_t)sent) == VOTE_PENDING) {
        ck_assert_int_le(++sent, 16384);
        if (sent % 100 == 0)
            link_flush(the_link);
    }
    ck_assert_int_eq(sent, 16384);
    ck_assert_int_eq(inspect(0), VOTE_STALLED);
    fake_set_deaf(&fake, false);
    turns_until_count(loop, &seen.replies, sent);
    ck_assert_int_eq(seen.downs, 0);
    for (int i = 0; i < sent; i++) {
        ck_assert_uint_eq(seen.tags[i], (uint64_t)i);
        ck_assert_int_eq(seen.votes[i], VOTE_FREE);
    }
}
END_TEST

START_TEST(flushed_scripts_are_loaded_again_once)
{
    start_link();
    until_up(1);
    fake_say(&fake, "EVALSHA", "-NOSCRIPT No matching script.\r\n");
    for (uint64_t tag = 0; tag < 10; tag++)
        ck_assert_int_eq(inspect(tag), VOTE_PENDING);
    turns_until_count(loop, &fake.loads, 2 * SCRIPT_KINDS);
    fake_say(&fake, "EVALSHA", "*2\r\n$4\r\nFREE\r\n:1700000000123456\r\n");
    turns_until_count(loop, &seen.replies, 10);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(seen.votes[i], VOTE_NO_SCRIPT);
    ck_assert_int_eq(fake.calls, 10);
    ck_assert_int_eq(inspect(11), VOTE_PENDING);
    turns_until_count(loop, &seen.replies, 11);
    ck_assert_int_eq(seen.votes[10], VOTE_FREE);
    ck_assert_int_eq(fake.loads, 2 * SCRIPT_KINDS);
    ck_assert_int_eq(seen.downs, 0);
    ck_assert_int_eq(seen.ups, 1);
}
END_TEST

/* ::1 comes before 127.0.0.1, where the node listens. */
START_TEST(a_name_with_several_addresses_is_tried_through)
{
    snprintf(config.host, sizeof config.host, "localhost");
    start_link();
    until_up(1);
}
END_TEST

START_TEST(an_unknown_name_is_unreachable)
{
    snprintf(config.host, sizeof config.host, "no such host.invalid");
    start_link();
    until_down(1);
    ck_assert_int_eq(seen.reason, VOTE_UNREACHABLE);
    ck_assert_str_ne(seen.detail, "");
}
END_TEST

START_TEST(a_link_is_freed_in_every_state)
{
    start_link();
    link_free(the_link); /* idle */
    start_link();
    turns_until_count(loop, &fake.accepted, 1); /* handshake */
    link_free(the_link);
    start_link();
    until_up(seen.ups + 1);
    ck_assert_int_eq(inspect(1), VOTE_PENDING);
    link_free(the_link);
    start_link();
    until_up(seen.ups + 1);
    ck_assert_int_eq(seen.replies, 0);
}
END_TEST

static bool is_past(void *arg)
{
    return clock_now_us() >= *(const int64_t *)arg;
}

static void wait_us(int64_t wait_us)
{
    int64_t until_us = clock_now_us() + wait_us;
    turns_until(loop, is_past, &until_us);
}

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

Suite *check_link(void);

Suite *check_link(void)
{
    Suite *suite = suite_create("link");
    TCase *tcase = tcase_create("link");
    tcase_set_timeout(tcase, 30);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, comes_up_with_facts_and_answers);
    tcase_add_test(tcase, a_refused_connection_is_tried_again);
    tcase_add_test(tcase, a_node_that_accepts_and_says_nothing_is_silent);
    tcase_add_test(tcase, a_connection_that_is_not_made_is_silent);
    tcase_add_test(tcase, silence_with_pending_calls_ends_the_link);
    tcase_add_test(tcase, a_link_that_owes_nothing_lives_through_silence);
    tcase_add_test(tcase, replies_that_lie_in_the_socket_are_no_silence);
    tcase_add_loop_test(tcase, garbage_ends_the_link, 0, COUNT(garbage));
    tcase_add_loop_test(tcase, too_long_a_reply_ends_the_link, 0, 2);
    tcase_add_test(tcase, an_unsolicited_reply_ends_the_link);
    tcase_add_loop_test(tcase, a_refused_handshake_names_the_reason, 0,
                        COUNT(refusals));
    tcase_add_test(tcase, the_user_and_database_are_sent);
    tcase_add_test(tcase, a_name_that_the_node_refuses_does_not_matter);
    tcase_add_test(tcase, a_loading_node_is_up_soon_after_it_is_ready);
    tcase_add_test(tcase, a_full_node_is_named);
    tcase_add_test(tcase, replies_in_single_bytes_are_put_together);
    tcase_add_test(tcase, a_lost_connection_answers_each_call_once);
    tcase_add_test(tcase, a_write_to_a_closed_connection_calls_nobody_back);
    tcase_add_test(tcase, too_many_pending_calls_are_stalled);
    tcase_add_test(tcase, flushed_scripts_are_loaded_again_once);
    tcase_add_test(tcase, a_name_with_several_addresses_is_tried_through);
    tcase_add_test(tcase, an_unknown_name_is_unreachable);
    tcase_add_test(tcase, a_link_is_freed_in_every_state);
    suite_add_tcase(suite, tcase);
    return suite;
}
