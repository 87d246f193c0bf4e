#include <stdio.h>

#include "../../../server/base/clock.h"
#include "../../../server/node/dial.h"
#include "../../lib/suite/suite.h"
#include "faked.h"
#include "names.h"
#include "secure.h"

enum { SILENCE_US = 200000 };

static struct resolver resolver;
static struct dial *dial;
static struct wire *wire; /* of the last done event */
static struct dial_result result;
static struct handshake handshake;
static int dones, failures;
static enum node_state reason;
static char detail[200];

static void on_done(void *ctx, const struct dial_result *its)
{
    ck_assert_ptr_eq(ctx, &faked.node);
    wire_free(wire);
    wire = its->wire;
    result = *its;
    handshake = *its->handshake;
    dones++;
}

static void on_failed(void *ctx, enum node_state its_reason,
                      const char *its_detail)
{
    ck_assert_ptr_eq(ctx, &faked.node);
    reason = its_reason;
    snprintf(detail, sizeof detail, "%s", its_detail);
    failures++;
}

static void make(bool is_probe)
{
    const struct dial_setup setup = {
        .loop = faked.loop,
        .config = &faked.config,
        .trust = secure.trust,
        .resolver = &resolver,
        .silence_us = SILENCE_US,
        .is_probe = is_probe,
        .events = {on_done, on_failed, &faked.node}};
    dial_free(dial);
    dial = dial_new(&setup);
    ck_assert_ptr_nonnull(dial);
}

static void setup_node(void)
{
    faked_setup();
    resolver = (struct resolver){.loop = faked.loop, .config = &faked.config};
    make(false);
}

static void teardown_node(void)
{
    dial_free(dial);
    wire_free(wire);
    resolver_fini(&resolver);
    faked_teardown();
}

static void expect_failure(enum node_state state, const char *text)
{
    int before = failures;
    dial_start(dial);
    turns_until_count(faked.loop, &failures, before + 1);
    ck_assert_str_eq(state_name(reason), state_name(state));
    ck_assert_msg(strstr(detail, text) != NULL, "%s", detail);
}

SUITE(dial, .timeout_s = 30, .set_up = setup_node, .tear_down = teardown_node);

TEST(hands_over_a_live_connection)
{
    int64_t before_us = clock_now_us();
    dial_start(dial);
    turns_until_count(faked.loop, &dones, 1);
    ck_assert_str_eq(handshake.run_id, FAKE_RUN_ID);
    ck_assert_str_eq(handshake.sha, FAKE_SHA);
    ck_assert(handshake.is_durable);
    ck_assert_ptr_null(wire_error(wire));
    ck_assert_int_ge(faked.node.peers[0].fd, 0);
    ck_assert_int_ge(result.facts.confirmed_us, before_us);
    ck_assert_int_ge(result.facts.sent_us, result.facts.confirmed_us);
    ck_assert_int_gt(result.facts.received_us, result.facts.sent_us);
    ck_assert_int_ge(result.heard_us, result.facts.received_us);
    ck_assert_int_eq(failures, 0);
}

TEST(a_probe_leaves_the_script_out)
{
    make(true);
    dial_start(dial);
    turns_until_count(faked.loop, &dones, 1);
    ck_assert_str_eq(handshake.run_id, FAKE_RUN_ID);
    ck_assert_int_gt(handshake.node_now_us, 0);
    ck_assert_int_eq(faked.node.loads, 0);
}

TEST(an_unfit_node_has_a_reason)
{
    fake_say(&faked.node, "INFO replication",
             "$55\r\nrole:slave\r\nmaster_host:10.1.2.3\r\nmaster_port:6379\r\n"
             "x:1\r\n");
    expect_failure(STATE_READ_ONLY, "10.1.2.3:6379");
    ck_assert_int_eq(faked.node.loads, 1); /* it was on its way */
}

TEST(garbage_and_silence_are_failures)
{
    fake_say(&faked.node, "TIME", "HTTP/1.1 400 Bad Request\r\n\r\n");
    expect_failure(STATE_GARBAGE, "no reply");
    fake_say(&faked.node, "TIME", "$-1\r\n");
    expect_failure(STATE_GARBAGE, "not those of Redis");
    fake_say(&faked.node, "TIME", "*2\r\n$10\r\n1700000000\r\n$1\r\n1\r\n");
    fake_say(&faked.node, "SCRIPT LOAD", "");
    expect_failure(STATE_SILENT, "no reply for 200 ms");
}

/* Without a name server a link still reaches its node; a probe must not: the
   name may lead somewhere else by now. */
TEST(only_a_link_falls_back_on_the_last_good_address)
{
    snprintf(faked.config.host, sizeof faked.config.host, "node.test");
    names_resolve_to("", 0);
    expect_failure(STATE_UNREACHABLE, "");
    names_resolve_to("127.0.0.1", 0);
    dial_start(dial);
    turns_until_count(faked.loop, &dones, 1);
    names_resolve_to("", 0);
    dial_start(dial);
    turns_until_count(faked.loop, &dones, 2);
    ck_assert_int_eq(result.facts.confirmed_us, 0);
    make(true);
    expect_failure(STATE_UNREACHABLE, "");
    names_resolve_to("127.0.0.1", 0);
    names_hold(true);
    expect_failure(STATE_UNREACHABLE, "not resolved in time");
    ck_assert_int_eq(faked.node.accepted, 2);
    make(false); /* waits for the same lookup, which is done in time */
    dial_start(dial);
    names_hold(false);
    turns_until_count(faked.loop, &dones, 3);
    ck_assert_int_gt(result.facts.confirmed_us, 0);
}

TEST(scheme_that_does_not_fit_the_node_is_told)
{
    faked.node.greeting = "\x15\x03\x03";
    expect_failure(STATE_GARBAGE, "speaks TLS: write rediss://");
    faked.node.greeting = "";
    expect_failure(STATE_UNREACHABLE, "if the node speaks TLS, write rediss:");
    faked.config.is_tls = true;
    secure_setup();
    make(false);
    expect_failure(STATE_UNREACHABLE, "in the TLS handshake");
    faked.node.greeting = "-ERR max number of clients reached\r\n";
    expect_failure(STATE_TLS_FAILED, "does not speak TLS: write redis://");
    faked.node.greeting = NULL;
    faked.node.is_deaf = true;
    expect_failure(STATE_SILENT, "no TLS handshake for 200 ms; if the node");
    dial_start(dial);
    turns_until_count(faked.loop, &faked.node.accepted, 6);
    dial_stop(dial);
    dial_free(dial);
    dial = NULL;
    secure_teardown();
}

TEST(a_stopped_attempt_tells_nothing)
{
    dial_start(dial);
    dial_stop(dial); /* lookup */
    dial_start(dial);
    turns_until_count(faked.loop, &faked.node.accepted, 1);
    dial_stop(dial); /* handshake */
    dial_stop(dial); /* at rest */
    dial_start(dial);
    turns_until_count(faked.loop, &dones, 1);
    ck_assert_int_eq(failures, 0);
}

/* ---- silence ------------------------------------------------------------- */

enum { TIMEOUT_US = 300000 };

static const struct {
    int64_t heard_us, owed_us, now_us, since_us;
} silences[] = {
    {0, 0, 5000, 5000},       /* owes nothing, was never heard */
    {4000, 0, 5000, 5000},    /* owes nothing: its silence does not count */
    {0, 3000, 5000, 3000},    /* was never heard */
    {2000, 3000, 5000, 3000}, /* was heard before it owed anything */
    {3000, 3000, 5000, 3000},
    {4000, 3000, 5000, 4000}, /* owes more, but talks */
    {4000, 3000, 900000, 4000},
};

TEST_EACH(the_deadline_follows_the_debt_and_the_last_word, silences)
{
    const struct silence silence = {TIMEOUT_US, silences[_i].heard_us};
    ck_assert_int_eq(
        dial_deadline_us(&silence, silences[_i].owed_us, silences[_i].now_us),
        silences[_i].since_us + TIMEOUT_US);
}

TEST(the_text_names_what_is_missing_and_for_how_long)
{
    const struct silence silence = {TIMEOUT_US, 0};
    char text[DIAL_TEXT_MAX];
    dial_explain_silence(&silence, "reply", text);
    ck_assert_str_eq(text, "no reply for 300 ms");
    dial_explain_silence(&silence, "connection", text);
    ck_assert_str_eq(text, "no connection for 300 ms");
}
