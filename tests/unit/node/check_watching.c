/*
 * Looks that only watch, for a plan: on a real node they find what another look
 * would find, and write nothing.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "permit.h"

#define A "00000000000000a1"
#define BEAT "00000000000000000000000012"

SUITE(watching, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

/* The whole state, as text: field by field, as a hash has no order. */
static const char *state(char text[2000])
{
    snprintf(text, 2000, "%s",
             master_text(&live.master, "EVAL %s 1 " PERMIT_STATE,
                         "local all = redis.call('HGETALL', KEYS[1]) "
                         "for i = 1, #all, 2 do "
                         "all[i], all[i + 1] = all[i] .. '=' .. all[i + 1], '' "
                         "end table.sort(all) return table.concat(all, ' ')"));
    return text;
}

static enum call_look_word watch_with(struct call call)
{
    char before[2000], after[2000];
    (void)state(before);
    call.nonce = span_of("");
    call.is_watching = true;
    enum call_look_word word = permit_ask(&call);
    ck_assert_str_eq(state(after), before);
    return word;
}

static enum call_look_word watch(void)
{
    return watch_with(live_call(CALL_LOOK, "", ""));
}

TEST(an_empty_node_stays_empty)
{
    PERMIT_ASSERT_WORD(watch(), LOOK_EMPTY);
    ck_assert(!permit_has_state());
}

TEST(an_admitted_node_keeps_beat_limit_and_what_it_knows_of_others)
{
    struct call call = live_call(CALL_LOOK, "", "");
    live_admit();
    permit_set("beat", "7");
    permit_set("max_ttl", "5000");
    permit_set_number("until", live_node_now_us() + 30000000);
    call.max_ttl_ms = 90000;
    call.is_durable = false;
    call.floor = 100;
    call.witnesses = span_of(A "=" BEAT " m" A "=" PERMIT_OLD_BIRTH " ");
    PERMIT_ASSERT_WORD(watch_with(call), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.beat, 7);
    ck_assert_int_eq(live.reply.beat, 0);
    ck_assert_int_gt(live.reply.look.rest_us, 0);
    ck_assert_int_le(live.reply.look.rest_us, 30000000);
    ck_assert(!live.reply.look.is_durable);
    call.is_watching = false; /* the same look writes all of that */
    call.nonce = span_of("");
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED);
    ck_assert_int_eq(permit_number("beat"), 8);
    ck_assert_int_eq(permit_number("max_ttl"), 90000);
    ck_assert_str_eq(permit_field("w:" A), BEAT);
    ck_assert_str_eq(permit_field("durable"), "0");
}

TEST(an_admission_that_is_void_is_left_there)
{
    live_admit();
    permit_set("evicted", "5"); /* was reset by somebody */
    PERMIT_ASSERT_WORD(watch(), LOOK_ADMITTED);
    permit_set("admit", PERMIT_OLD);
    PERMIT_ASSERT_WORD(watch(), LOOK_BARE);
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    permit_restart(5);
    PERMIT_ASSERT_WORD(watch(), LOOK_MARKED);
}

/* It would tell its promises to who marks it, and keeps its permission. */
TEST(who_votes_under_other_names_goes_on)
{
    char admit[CALL_STATE_MAX + 1];
    live_admit();
    snprintf(admit, sizeof admit, "1:another:0123456789abcdef:%s:0%s",
             PERMIT_OLD_BIRTH, live.of_this_life);
    permit_set("admit", admit);
    permit_set_number("until", live.reply.node_now_us + 3600000000);
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of("2:fingerprint:0123456789abcdef:run");
    PERMIT_ASSERT_WORD(watch_with(call), LOOK_BARE);
    ck_assert_str_eq(live.admit, admit);
    ck_assert_str_eq(live.taken, admit);
    ck_assert_str_eq(live.mark, "");
    ck_assert_int_gt(live.reply.look.rest_us, 3590000000);
    call.admit = span_of("2:fingerprint:ffffffffffffffff:run");
    PERMIT_ASSERT_WORD(watch_with(call), LOOK_BARE);
    ck_assert_str_eq(live.taken, "");
}

TEST(the_mark_of_a_first_start_is_left_there)
{
    struct call call = live_call(CALL_LOOK, "", "");
    (void)permit_look_with("0000000001:first");
    call.is_objecting = call.is_renewing = true;
    call.latest = span_of("99999999999999991234567890");
    PERMIT_ASSERT_WORD(watch_with(call), LOOK_MARKED);
}
