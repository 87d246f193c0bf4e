#include <stdio.h>
#include <unistd.h>

#include "../../../server/base/clock.h"
#include "../../../server/node/confirm.h"
#include "../../lib/suite/suite.h"
#include "faked.h"
#include "names.h"

enum { SILENCE_US = 200000, INTERVAL_US = 100000 };

#define OTHER_RUN_ID "f123456789abcdef0123456789abcdef01234567"
#define SERVER "$69\r\nredis_version:7.0.15\r\nrun_id:" FAKE_RUN_ID "\r\n"

static struct resolver resolver;
static struct confirm *confirm;
static int confirmed, refuted;
static int64_t began_us, longest_us;
static enum node_state reason;
static char detail[200];

static void on_confirmed(void *ctx, const struct dial_result *result)
{
    ck_assert_ptr_eq(ctx, &faked.node);
    ck_assert_str_eq(result->facts.run_id, FAKE_RUN_ID);
    ck_assert_int_gt(result->facts.confirmed_us, began_us);
    if (began_us > 0 && result->facts.confirmed_us - began_us > longest_us)
        longest_us = result->facts.confirmed_us - began_us;
    began_us = result->facts.confirmed_us;
    confirmed++;
}

static void on_refuted(void *ctx, enum node_state its_reason,
                       const char *its_detail)
{
    ck_assert_ptr_eq(ctx, &faked.node);
    reason = its_reason;
    snprintf(detail, sizeof detail, "%s", its_detail);
    refuted++;
}

static void begin(int64_t interval_us, int64_t known_us)
{
    const struct dial_setup dialing = {.loop = faked.loop,
                                       .config = &faked.config,
                                       .resolver = &resolver,
                                       .silence_us = SILENCE_US};
    const struct confirm_events events = {on_confirmed, on_refuted,
                                          &faked.node};
    confirm = confirm_new(&dialing, interval_us, &events);
    ck_assert_ptr_nonnull(confirm);
    confirm_begin(confirm, FAKE_RUN_ID, known_us);
}

static void setup(void)
{
    faked_setup();
    snprintf(faked.config.host, sizeof faked.config.host, "node.test");
    names_resolve_to("127.0.0.1", 0);
    resolver = (struct resolver){.loop = faked.loop, .config = &faked.config};
}

static void teardown(void)
{
    confirm_free(confirm);
    resolver_fini(&resolver);
    faked_teardown();
}

static void until_confirmed(int count)
{
    turns_until_count(faked.loop, &confirmed, count);
}

static bool has_hung_up(void *arg)
{
    (void)arg;
    return faked.node.peers[0].fd < 0;
}

SUITE(confirm, .timeout_s = 30, .set_up = setup, .tear_down = teardown);

TEST(confirms_on_fresh_connections_by_fresh_lookups)
{
    int before = names_asked();
    begin(INTERVAL_US, clock_now_us());
    until_confirmed(5);
    turns_until(faked.loop, has_hung_up, NULL);
    ck_assert_int_ge(faked.node.accepted, 5);
    ck_assert_int_ge(names_asked(), before + 5);
    ck_assert_int_eq(faked.node.loads, 0);
    ck_assert_int_eq(refuted, 0);
    ck_assert_int_ge(longest_us, INTERVAL_US / 4 * 3);
}

TEST(what_was_not_resolved_is_confirmed_soon)
{
    enum { LONG_US = 60000000 };
    int64_t before_us = clock_now_us();
    begin(LONG_US, 0);
    until_confirmed(1);
    ck_assert_int_lt(clock_now_us() - before_us, LONG_US / 2);
}

TEST(another_run_id_refutes_once)
{
    begin(INTERVAL_US, clock_now_us());
    until_confirmed(1);
    confirm_begin(confirm, OTHER_RUN_ID, clock_now_us());
    turns_until_count(faked.loop, &refuted, 1);
    int before = faked.node.accepted;
    ck_assert_str_eq(state_name(reason), "moved");
    ck_assert_ptr_nonnull(strstr(detail, "run_id"));
    turns_pass(faked.loop, 3 * (int64_t)INTERVAL_US);
    ck_assert_int_eq(refuted, 1);
    ck_assert_int_eq(faked.node.accepted, before);
    confirm_begin(confirm, FAKE_RUN_ID, clock_now_us());
    until_confirmed(2);
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
};

TEST_EACH(an_unfit_node_is_refuted, unfit)
{
    begin(INTERVAL_US, clock_now_us());
    until_confirmed(1);
    fake_say(&faked.node, unfit[_i].command, unfit[_i].reply);
    turns_until_count(faked.loop, &refuted, 1);
    ck_assert_str_eq(state_name(reason), state_name(unfit[_i].state));
    ck_assert_str_ne(detail, "");
}

static const struct {
    const char *command, *reply, *better;
} passing[] = {
    {"TIME", "", "*2\r\n$10\r\n1700000000\r\n$1\r\n1\r\n"},
    {"INFO server", "-LOADING Redis is loading\r\n", SERVER},
    {"INFO server", "-BUSY Redis is busy\r\n", SERVER},
    {"INFO server", "-ERR max number of clients reached\r\n", SERVER},
};

TEST_EACH(what_passes_refutes_nothing, passing)
{
    begin(INTERVAL_US, clock_now_us());
    until_confirmed(1);
    fake_say(&faked.node, passing[_i].command, passing[_i].reply);
    int before = faked.node.accepted;
    turns_until_count(faked.loop, &faked.node.accepted, before + 2);
    before = confirmed;
    fake_say(&faked.node, passing[_i].command, passing[_i].better);
    until_confirmed(before + 2);
    ck_assert_int_eq(refuted, 0);
}

static const char *const nowhere[] = {"", "127.0.0.9"};

TEST_EACH(a_name_that_leads_nowhere_refutes_nothing, nowhere)
{
    begin(INTERVAL_US, clock_now_us());
    until_confirmed(1);
    names_resolve_to(nowhere[_i], 0);
    int asked = names_asked();
    turns_pass(faked.loop, 3 * (int64_t)CONFIRM_RETRY_US);
    ck_assert_int_ge(names_asked(), asked + 2);
    int before = confirmed;
    names_resolve_to("127.0.0.1", 0);
    until_confirmed(before + 2);
    ck_assert_int_eq(refuted, 0);
}

/* The lookup takes longer than the timeout; its late answer still counts. */
TEST(a_slow_name_server_is_asked_one_thing_at_a_time)
{
    begin(INTERVAL_US, clock_now_us());
    until_confirmed(1);
    int before = names_asked();
    names_resolve_to("127.0.0.1", 3 * SILENCE_US);
    int64_t before_us = clock_now_us();
    until_confirmed(confirmed + 2);
    ck_assert_int_ge(clock_now_us() - before_us, 3 * SILENCE_US);
    ck_assert_int_le(names_asked(), before + 4);
    ck_assert_int_eq(refuted, 0);
}

/* This process was stopped while the replies were on their way. */
TEST(a_stopped_process_refutes_nothing)
{
    begin(INTERVAL_US, clock_now_us());
    for (int i = 0; i < 5; i++) {
        int before = faked.node.accepted;
        turns_until_count(faked.loop, &faked.node.accepted, before + 1);
        usleep(2 * SILENCE_US);
    }
    until_confirmed(confirmed + 1);
    ck_assert_int_eq(refuted, 0);
}

TEST(nothing_comes_after_the_end)
{
    begin(INTERVAL_US, clock_now_us());
    turns_until_count(faked.loop, &faked.node.accepted,
                      1); /* in its handshake */
    confirm_end(confirm);
    int before = confirmed;
    turns_pass(faked.loop, INTERVAL_US); /* what was begun is accepted */
    int accepted = faked.node.accepted;
    turns_pass(faked.loop, 3 * (int64_t)INTERVAL_US);
    ck_assert_int_eq(confirmed, before);
    ck_assert_int_eq(faked.node.accepted, accepted);
    confirm_end(confirm);
}
