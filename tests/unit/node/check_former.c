/*
 * Admissions without births, as they were before: what a look makes of them on
 * a real redis-server.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "permit.h"

enum { GREATEST_MS = 90000 };

static char former[CALL_STATE_MAX + 1];

/* As the version before has left it, with a lock. */
static void setup(void)
{
    live_setup();
    snprintf(former, sizeof former, "1:formerprint:0123456789abcdef%s",
             live.of_this_life);
    permit_set("admit", former);
    permit_set("durable", "1");
    permit_set("beat", "7");
    permit_set("evicted", "0");
    permit_set("top", "1700000000000005");
    permit_set("7", "1700000000000005");
    permit_set("seen", "1700000000000003");
    permit_set("voted", "1700000000000004");
    permit_set_number("max_ttl", GREATEST_MS);
}

/* The birth and the admission that the look has made. */
static void read_admission(void)
{
    static const size_t at = sizeof LIVE_NAME - 1;
    struct span made = {live.admit + at, 16};
    char expected[CALL_STATE_MAX + 1];
    int64_t made_us = span_number(made, 16);
    ck_assert_int_gt(made_us, live_node_now_us() - LIVE_WINDOW_US);
    ck_assert_int_le(made_us, live_node_now_us() + 1000000);
    snprintf(expected, sizeof expected, LIVE_NAME "%lld" LIVE_NONCE ":0%s",
             (long long)made_us, live.of_this_life);
    ck_assert_str_eq(live.admit, expected);
    ck_assert_str_eq(permit_field("admit"), expected);
    memcpy(live.admission, expected, sizeof expected);
}

SUITE(former, .timeout_s = 60, .set_up = setup, .tear_down = live_teardown);

TEST(a_former_admission_becomes_one_with_a_birth)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    read_admission();
    ck_assert_str_eq(live.mark, "");
    ck_assert_str_eq(permit_field("mark"), "");
    ck_assert_str_eq(permit_field("seen"), "");
    ck_assert_str_eq(permit_field("voted"), "");
    ck_assert_str_eq(permit_field("top"), "1700000000000005");
    ck_assert_int_eq(permit_number("beat"), 8);
    ck_assert(live.reply.look.is_durable);
    ck_assert_int_eq(live.reply.look.number, 1700000000000005);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    PERMIT_ASSERT_WORD(permit_look_with(PERMIT_OTHER_NONCE), LOOK_ADMITTED);
    ck_assert_str_eq(live.admit, live.admission); /* once */
}

TEST(servers_of_before_have_no_vote_from_then_on)
{
    struct call call = live_call(CALL_ACQUIRE, "r", "A");
    call.admit = span_of(former);
    ck_assert_int_eq(live_ask(&call), VOTE_GRANTED);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    call.resource = span_of("s");
    ck_assert_int_eq(live_ask(&call), VOTE_QUARANTINED);
}

/* It may just have promised the greatest TTL that any server allowed. */
TEST_RANGE(its_promises_end_after_the_greatest_ttl, 0, 2)
{
    struct call call = live_call(CALL_LOOK, "", "");
    int64_t greatest_us = GREATEST_MS * 1000;
    if (_i == 1) {
        call.max_ttl_ms = GREATEST_MS + 30000;
        greatest_us += 30000000;
    }
    int64_t before_us = live_node_now_us();
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.max_ttl_ms, greatest_us / 1000);
    ck_assert_int_eq(live.reply.look.rest_us, greatest_us);
    ck_assert_int_ge(permit_number("until"), before_us + greatest_us - 1000000);
    ck_assert_int_eq(permit_number("max_ttl"), greatest_us / 1000);
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED);
    ck_assert_int_lt(live.reply.look.rest_us, greatest_us);
    ck_assert_int_gt(live.reply.look.rest_us, greatest_us - 10000000);
}

/* Its birth is later than those of other machines under the name. */
TEST(it_is_the_latest_under_its_name)
{
    struct call call = live_call(CALL_LOOK, "", "");
    char latest[CALL_BIRTH_LEN + 8];
    int64_t latest_us = live_node_now_us() + 3600000000;
    snprintf(latest, sizeof latest, "%lld5555555555", (long long)latest_us);
    call.latest = span_of(latest);
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED);
    const char *birth = live.admit + sizeof LIVE_NAME - 1;
    ck_assert_int_eq(span_number((struct span){birth, 16}, 16), latest_us + 1);
}

/* What takes an admission takes this one, too. */
TEST_RANGE(a_former_admission_of_an_older_memory_is_none, 0, 2)
{
    if (_i == 1)
        permit_drop("top");
    PERMIT_ASSERT_WORD(permit_look_above(_i == 0 ? 8 : 0, LIVE_NONCE),
                       LOOK_CREATED);
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(permit_field("admit"), "");
}

static void expect_untouched(const char *admit)
{
    ck_assert_str_eq(permit_field("admit"), admit);
    ck_assert_str_eq(permit_field("voted"), "1700000000000004");
    ck_assert_str_eq(permit_field("until"), "");
    ck_assert_str_eq(permit_field("beat"), "7");
}

/* Of another configuration, or of another node. */
TEST_RANGE(who_is_not_its_successor_changes_nothing, 0, 2)
{
    static const char *const others[] = {"1:otherprint:0123456789abcdef%s",
                                         "1:formerprint:fedcba9876543210%s"};
    char admit[CALL_STATE_MAX + 1];
    snprintf(admit, sizeof admit, others[_i], live.of_this_life);
    permit_set("admit", admit);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FOREIGN);
    expect_untouched(admit);
}
