/* SPDX-License-Identifier: MIT */
/*
 * An observer, for a plan: whatever its probes find, and however long it
 * probes, it probes each node once a heartbeat and does nothing else.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "voters.h"

static void begin(void)
{
    voters_begin();
    voters.settings.is_observer = true;
    voters.settings.first_start = FIRST_START_YES;
    voters_begin_again();
}

SUITE(observer, .set_up = begin);

/* For longer than any quarantine. */
static void expect_probes(void)
{
    struct member_action action;
    (void)voters_probe_around();
    for (int second = 0; second < 100; second++) {
        voters_expect_nothing();
        voters_pass(VOTERS_SECOND);
        struct members before = voters.members;
        while (members_next(&voters.members, voters.now_us, &action))
            ck_assert_int_eq((int)action.kind, MEMBER_OBSERVE);
        voters.members = before;
        ck_assert_int_eq(voters_probe_around(), VOTERS_NODES);
    }
}

static const struct {
    enum call_probe_word word;
    const char *admit, *quarantine;
} found[] = {
    {PROBE_EMPTY, "", ""},
    {PROBE_BARE, "", ""},
    {PROBE_BARE, VOTERS_OLD_ADMIT, ""},
    {PROBE_BARE, "1:ffffffffffffffff:@:#:0:" VOTERS_LIFE, ""},
    {PROBE_ADMITTED, VOTERS_ADMIT, ""},
    {PROBE_QUARANTINED, "", VOTERS_QUARANTINE},
    {PROBE_QUARANTINED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE},
    {PROBE_OTHER, "1:ffffffffffffffff:@:#:0:" VOTERS_LIFE, ""},
    {PROBE_MISNAMED, "1:" VOTERS_FINGERPRINT ":0123:#:0:" VOTERS_LIFE, ""},
    {PROBE_SUPERSEDED, "7:ffffffffffffffff:@:#:0:" VOTERS_LIFE, ""},
};

enum { FOUND = sizeof found / sizeof *found };

/* On all nodes, and on one that is beside four which vote. */
TEST_RANGE(only_probes, 0, 2 * FOUND)
{
    int i = _i / 2;
    if (_i % 2 == 0) {
        voters_all(found[i].word, found[i].admit, found[i].quarantine);
    } else {
        voters_admit_from(1);
        voters_come(0, found[i].word, found[i].admit, found[i].quarantine);
    }
    expect_probes();
}

/* The next epoch would take over these; see check_epoch.c. */
TEST(takes_over_nothing)
{
    voters.settings.config_epoch = 2;
    voters_begin_again();
    voters_all(PROBE_BARE, "1:ffffffffffffff05:@:#:0:" VOTERS_LIFE, "");
    ck_assert(rules_may_take_over(&voters.members));
    expect_probes();
}

TEST(revokes_nothing)
{
    voters_all(PROBE_ADMITTED, VOTERS_ADMIT, "");
    members_on_step(&voters.members, 3);
    expect_probes();
}
