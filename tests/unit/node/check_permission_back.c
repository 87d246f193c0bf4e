/*
 * The permission on the node: what readmit and revoke do to a real Redis
 * server's state.
 */

#include "../../lib/suite/suite.h"
#include "permit.h"

SUITE(permission_back, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

/* ---- readmit ------------------------------------------------------------- */

TEST_RANGE(a_restarted_node_gets_its_permission_back, 0, 2)
{
    char expected[CALL_STATE_MAX + 1];
    permit_restart(7);
    struct call call = live_call(CALL_READMIT, "", "");
    call.found = span_of(PERMIT_OLD);
    call.is_durable = _i == 0;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    live_make_admission(expected, live.marked, 0); /* of the mark's birth */
    ck_assert_str_eq(permit_field("admit"), expected);
    ck_assert_str_eq(permit_field("mark"), "");
    ck_assert_str_eq(permit_field("durable"), _i == 0 ? "1" : "0");
    ck_assert_str_eq(permit_field("evicted"), "0");
    ck_assert_int_eq(live.reply.beat, LIVE_MEDIAN_US + 1);
    ck_assert_int_eq(permit_number("max_ttl"), LIVE_TTL_MS);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_CHANGED);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
}

/* Another server saw meanwhile that it is not durable any more. */
TEST(story_44_a_readmission_that_comes_late_makes_nothing_durable)
{
    permit_restart(7);
    permit_set("durable", "0");
    ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_DONE);
    ck_assert_str_eq(permit_field("durable"), "0");
}

/* The server that found it to be old has deleted what this one compares with,
 * and each loss makes another mark. */
TEST_RANGE(story_43_a_readmission_that_comes_late_does_nothing, 0, 5)
{
    permit_restart(7);
    if (_i == 0)
        PERMIT_ASSERT_WORD(permit_look_above(8, PERMIT_OTHER_NONCE),
                           LOOK_CREATED);
    else if (_i == 1)
        ck_assert_int_eq(permit_revoke(PERMIT_OLD), VOTE_DONE);
    else if (_i == 2)
        permit_set("admit", "1:fingerprint:0123456789abcdef:older:m");
    else if (_i == 3)
        permit_set("mark", "1:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH
                           "::run:m");
    else
        master_text(&live.master, "FLUSHALL");
    ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_CHANGED);
    ck_assert(strstr(permit_field("admit"), live.of_this_life) == NULL);
    ck_assert_int_eq(permit_readmit(""), VOTE_CHANGED);
}

/* ---- revoke -------------------------------------------------------------- */

TEST(a_revocation_takes_the_permission_and_leaves_a_new_mark)
{
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    long long beat = permit_number("beat");
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    ck_assert_str_eq(permit_field("admit"), "");
    (void)permit_mark_of(PERMIT_OTHER_NONCE);
    ck_assert_int_eq(permit_number("beat"), beat); /* it counts on from there */
    ck_assert_int_eq(live_run(CALL_EXTEND, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 1);
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
}

/* It names no birth and no news, so it finds the admission whatever others told
 * the node meanwhile. */
TEST(a_revocation_takes_an_admission_with_news)
{
    char admit[CALL_STATE_MAX + 1];
    live_admit();
    live_make_admission(admit, live.marked, 5);
    permit_set("admit", admit);
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    ck_assert_str_eq(permit_field("admit"), "");
}

TEST(a_revocation_takes_the_evidence_of_an_older_life)
{
    permit_restart(7);
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
    ck_assert_int_eq(permit_revoke(live.admission), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("admit"), PERMIT_OLD);
    ck_assert_str_eq(permit_field("mark"), live.marked);
    ck_assert_int_eq(permit_revoke(PERMIT_OLD), VOTE_DONE);
    ck_assert_str_eq(permit_field("admit"), "");
    (void)permit_mark_of(PERMIT_OTHER_NONCE);
}

TEST(a_revocation_touches_no_other_state)
{
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
    ck_assert(!permit_has_state());
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("mark"), live.marked);
}
