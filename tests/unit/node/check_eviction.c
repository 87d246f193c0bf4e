/*
 * A node that throws keys away, and keeps its state: on a real Redis server.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "permit.h"

static void evict(void)
{
    char value[1001];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 10; i++)
        master_text(&live.master, "SET filler:%d %s PX 60000", i, value);
    master_text(&live.master,
                "CONFIG SET maxmemory 1 maxmemory-policy volatile-ttl");
    master_text(&live.master, "SET x y"); /* refused, when all is gone */
    master_text(&live.master,
                "CONFIG SET maxmemory 0 maxmemory-policy noeviction");
    ck_assert_int_eq(master_integer(&live.master, "EXISTS filler:0 filler:9"),
                     0);
}

SUITE(eviction, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

TEST_RANGE(story_40_a_node_that_threw_keys_away_loses_its_admission, 0, 2)
{
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    evict();
    ck_assert_int_eq(master_integer(&live.master, "EXISTS p:r"), 0);
    if (_i == 0)
        PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    else
        PERMIT_ASSERT_WORD(permit_probe(), LOOK_BARE);
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_int_eq(permit_number("beat"), LIVE_MEDIAN_US + 2);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "B"), VOTE_NOT_ADMITTED);
}

/* Locks that were evicted before the quarantine have expired by its end. */
TEST(what_was_thrown_away_before_an_admission_is_forgiven)
{
    evict();
    live_admit();
    ck_assert_int_gt(permit_number("evicted"), 0);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    evict();
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
}

/* As of a server that somebody started by mistake. */
static const struct {
    const char *admit;
} strange[] = {
    {"2:fingerprint:0123456789abcdef:run"},
    {"2:another:0123456789abcdef:run"},
};

TEST_EACH(so_it_is_by_a_probe_of_a_higher_epoch, strange)
{
    char admit[CALL_STATE_MAX + 1];
    evict();
    live_admit();
    snprintf(admit, sizeof admit, "%s", permit_field("admit"));
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of(strange[_i].admit);
    call.nonce = span_of("");
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_BARE);
    ck_assert_str_eq(permit_field("admit"), admit);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    evict();
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_BARE);
    ck_assert_str_eq(permit_field("admit"), "");
}

/* Somebody has reset the node's statistics: that tells of no eviction, and the
 * next one is seen. */
TEST(story_56_a_count_that_fell_was_reset)
{
    evict();
    live_admit();
    long long before = permit_number("evicted");
    ck_assert_int_gt(before, 0);
    ck_assert_str_eq(master_text(&live.master, "CONFIG RESETSTAT"), "OK");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_str_eq(permit_field("evicted"), "0");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    evict(); /* fewer than before the reset, perhaps */
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_BARE);
    ck_assert_str_eq(permit_field("admit"), "");
}

/* Otherwise the first reset would take the admission of all nodes at once. */
TEST(story_56_resets_and_evictions_before_an_admission_are_forgiven)
{
    evict();
    live_admit();
    for (int i = 0; i < 2; i++) {
        master_text(&live.master, "CONFIG RESETSTAT");
        PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
        PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    }
}

/* The evictions of that life are forgiven; in this one there was none. */
TEST(what_an_older_life_threw_away_is_no_objection)
{
    permit_restart(7);
    permit_set("evicted", "5");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_DONE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
}

/* It restarts whole, and its locks are evicted before it votes again: its
 * memory is not what it was, whichever call comes first. */
TEST_RANGE(story_40_a_restarted_node_that_threw_keys_away_is_not_whole, 0, 3)
{
    permit_restart(7);
    evict();
    if (_i == 0) {
        ck_assert_int_eq(permit_readmit(PERMIT_OLD), VOTE_CHANGED);
        ck_assert_str_eq(permit_field("admit"), PERMIT_OLD);
    } else {
        PERMIT_ASSERT_WORD(_i == 1 ? permit_look() : permit_probe(),
                           LOOK_MARKED);
        ck_assert_str_eq(live.admit, "");
        ck_assert_str_eq(permit_field("admit"), "");
        ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    }
}
