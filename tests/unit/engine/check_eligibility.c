/* SPDX-License-Identifier: MIT */
/*
 * How nodes that may have lost something get their vote: the others tell
 * when all has ended that they have promised, or time has passed.
 */

#include <stdio.h>

#include "../../../server/engine/voting/members.h"
#include "../../lib/suite/suite.h"
#include "voters.h"

enum {
    SECOND = VOTERS_SECOND,
    ASKED_US = HEARTBEAT_US + 1, /* the second probe comes with a heartbeat */
};

static void quarantine(int node)
{
    voters_pass(1);
    voters_come(node, PROBE_FRESH, "", VOTERS_QUARANTINE);
}

/* All are probed: the others are told of node 0's incarnation · and once
 * more. */
static void tell(void)
{
    voters_pass(1);
    for (int i = 0; i < voters.settings.nodes; i++)
        members_want_probe(&voters.members, i, voters.now_us);
    (void)voters_probe_around();
}

static void tell_twice(void)
{
    tell();
    tell();
}

/* One probe of this node, which is admitted, whether it is due or not. */
static void probe_at(int node)
{
    voters_pass(1);
    voters_found(node, PROBE_ADMITTED, VOTERS_ADMIT, "");
}

SUITE(eligibility);

GROUP(asked, .set_up = voters_begin);

/* ---- whom it asks -------------------------------------------------------- */

/* Another server knows of a machine that was quarantined later under the name.
 */
static void outdate(int node, int teller)
{
    strcpy(voters.memory[teller].latest[node], VOTERS_INCARNATION(9));
}

/*
 * The others: a admitted; d the same, but tells of no incarnation; o the same,
 * but node 1 knows it to be outdated; c the same, but its clock is not known
 * well; r restarted, with a memory that counts; m quarantined, and tells of the
 * incarnation all the same; - down.
 */
static const struct {
    int nodes;
    const char *others;
    enum { ASKED, IN_TIME, NEVER } end;
} sets[] = {
    {5, "aaaa", ASKED},   {5, "aaad", ASKED},   {5, "aaa-", ASKED},
    {5, "aaao", ASKED},   {5, "aadd", NEVER}, /* not N - q */
    {5, "dddd", NEVER},   {5, "aarr", IN_TIME}, {5, "aamm", IN_TIME},
    {5, "aaoo", IN_TIME}, {5, "aacc", IN_TIME}, {5, "aa--", IN_TIME},
    {5, "----", IN_TIME}, {4, "aaa", ASKED},    {4, "aad", NEVER},
    {4, "aa-", IN_TIME},  {3, "aa", ASKED},     {3, "ad", NEVER},
    {3, "a-", IN_TIME},   {2, "a", IN_TIME},    {1, "", IN_TIME},
};

static void bring(int node, char letter)
{
    voters.memory[node].is_deaf = letter == 'd';
    if (letter == 'o')
        outdate(node, 1);
    if (letter == '-')
        return;
    voters_up(node);
    if (letter == 'm') {
        strcpy(voters.memory[node].latest[0], VOTERS_INCARNATION(2));
        voters_found(node, PROBE_FRESH, "", VOTERS_QUARANTINE);
    } else if (letter == 'r')
        voters_found(node, PROBE_CREATED, VOTERS_OLD_ADMIT, VOTERS_QUARANTINE);
    else
        voters_found(node, PROBE_ADMITTED, VOTERS_ADMIT, "");
    if (letter == 'c' || letter == 'r') /* else it would be readmitted */
        voters.members.node[node].is_clock_good = false;
}

TEST_EACH(a_quorum_of_others_that_vote_must_know_of_its_incarnation, sets)
{
    voters.settings.nodes = sets[_i].nodes;
    voters_begin_again();
    for (int i = 1; i < sets[_i].nodes; i++)
        bring(i, sets[_i].others[i - 1]);
    quarantine(0);
    if (sets[_i].end == ASKED)
        voters_pass_until(MEMBER_ADMIT, ASKED_US);
    else if (sets[_i].end == IN_TIME)
        voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    else
        voters_pass_without(MEMBER_ADMIT, 2 * (int64_t)VOTERS_QUARANTINE_US);
    if (sets[_i].end != NEVER)
        voters_give(MEMBER_ADMIT, 0);
}

/* ---- probes -------------------------------------------------------------- */

/* The second probe of each leaves when a majority of all knows of the
 * incarnation. */
TEST(each_is_probed_again_once_all_of_them_know)
{
    voters.members.node[4].is_clock_good = false;
    voters_admit_from(1);
    quarantine(0);
    probe_at(1);
    probe_at(2);
    probe_at(1);
    probe_at(2);
    probe_at(3);
    int64_t together_us = voters.now_us;
    probe_at(3);
    probe_at(1);
    voters_pass(1);
    voters.trip_us = voters.now_us - together_us + 1; /* had left before */
    voters_found(2, PROBE_ADMITTED, VOTERS_ADMIT, "");
    ck_assert(!rules_is_due(&voters.members, 0, voters.now_us + 1));
    voters.trip_us--;
    voters_found(2, PROBE_ADMITTED, VOTERS_ADMIT, "");
    ck_assert(rules_is_due(&voters.members, 0, voters.now_us + 1));
}

/* Else 1 and 2 would have been asked before a majority with 4 knew. */
TEST(one_that_comes_to_know_it_later_makes_all_be_asked_again)
{
    voters_admit_from(1);
    quarantine(0);
    for (int i = 1; i < 4; i++)
        probe_at(i);
    probe_at(1);
    probe_at(2);
    probe_at(4);
    probe_at(4);
    ck_assert(!rules_is_due(&voters.members, 0, voters.now_us + 1));
    probe_at(1);
    probe_at(2);
    ck_assert(rules_is_due(&voters.members, 0, voters.now_us + 1));
}

TEST(a_node_that_is_about_to_lose_its_vote_tells_nothing)
{
    voters_admit_from(1);
    voters_down(4);
    quarantine(0);
    members_on_step(&voters.members, 1);
    for (int i = 0; i < 6; i++)
        probe_at(1 + i % 3);
    ck_assert(!rules_is_due(&voters.members, 0, voters.now_us + 1));
}

/* Each of the others, which answers a microsecond later. */
static void expect_probes(void)
{
    for (int i = 1; i < VOTERS_NODES; i++)
        voters_expect(MEMBER_PROBE, i);
    voters_expect_nothing();
    voters_pass(1);
    voters.trip_us = 1;
    for (int i = 1; i < VOTERS_NODES; i++)
        voters_found(i, PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters.trip_us = 0;
}

/* Nobody waits for a heartbeat. */
TEST(the_others_are_asked_at_once_and_told_of_its_admission)
{
    voters_admit_from(1);
    quarantine(0);
    expect_probes();
    expect_probes();
    voters_pass(1);
    voters_do(MEMBER_ADMIT, 0);
    voters_expect(MEMBER_PROBE, 0);
    voters_pass(1);
    voters_found(0, PROBE_ADMITTED, VOTERS_ADMIT, "");
    expect_probes();
}

/*
 * Two names that lead to one machine, or two configurations, replace each
 * other's quarantine records: each probe is news.
 */
TEST(news_that_never_end_keep_no_node_busy)
{
    int probes = 0;
    for (int i = 0; i < VOTERS_NODES; i++)
        voters_come(i, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(SECOND);
    voters.trip_us = 100;
    for (int64_t end_us = voters.now_us + SECOND; voters.now_us < end_us;) {
        struct member_action action;
        voters_pass(200);
        if (!members_next(&voters.members, voters.now_us, &action))
            continue;
        char record[CALL_STATE_MAX + 1];
        snprintf(record, sizeof record, "1:%s:name:9%025d::%s",
                 VOTERS_FINGERPRINT, probes++, VOTERS_LIFE);
        voters_found(action.node, PROBE_CREATED, "", record);
    }
    ck_assert_int_ge(probes, 20 * VOTERS_NODES);
    ck_assert_int_le(probes, 50 * VOTERS_NODES);
}

static void step(int node)
{
    members_on_step(&voters.members, node);
    members_on_done(&voters.members,
                    &(struct member_action){MEMBER_REVOKE, node},
                    voters.now_us); /* which another server did, too */
    voters_found(node, PROBE_ADMITTED, VOTERS_ADMIT, "");
}

static void forget(int node)
{
    voters_found(node, PROBE_ADMITTED, VOTERS_ADMIT_OF(VOTERS_INCARNATION(4)),
                 "");
}

static void learn_of_a_twin(int node)
{
    outdate(node, 2);
    voters_found(2, PROBE_ADMITTED, VOTERS_ADMIT, "");
}

static const struct {
    void (*happens)(int node);
    bool counts_behind_it; /* if all had told already */
} losses[] = {
    {step, false}, /* it may have told too early an end */
    {forget, true},
    {learn_of_a_twin, true},
};

/* Between the two probes of it: the first one does not count any more. */
TEST_EACH(who_may_not_be_the_same_any_more_begins_anew, losses)
{
    voters_admit_from(1);
    voters_down(4);
    quarantine(0);
    tell();
    losses[_i].happens(1);
    probe_at(2);
    probe_at(3);
    ck_assert(!rules_is_due(&voters.members, 0, voters.now_us + 1));
}

/* Behind the second one it may forget what it likes. */
TEST_EACH(what_was_told_by_all_stays_told, losses)
{
    voters_admit_from(1);
    voters_down(4);
    voters.memory[1].rest_us = SECOND;
    quarantine(0);
    tell_twice();
    losses[_i].happens(1);
    voters_pass(SECOND + SECOND / 100 + 1);
    ck_assert(rules_is_due(&voters.members, 0, voters.now_us) ==
              losses[_i].counts_behind_it);
}

/* What was told for one quarantine record tells nothing of another loss. */
TEST(story_25_every_loss_asks_anew)
{
    voters_admit_from(1);
    voters.memory[2].rest_us = SECOND;
    quarantine(0);
    tell_twice();
    voters_pass(1);
    voters_found(0, PROBE_FRESH, "", VOTERS_OTHER_QUARANTINE); /* a FLUSHALL */
    voters.memory[2].rest_us = 10 * SECOND;
    voters_pass_until(MEMBER_ADMIT, ASKED_US + 10 * SECOND + SECOND / 10);
    voters_give(MEMBER_ADMIT, 0);
}

/* ---- what they tell ------------------------------------------------------ */

static const struct {
    int64_t first_us[VOTERS_NODES], second_us[VOTERS_NODES]; /* the rests */
    int64_t end_us;                                          /* from then on */
} rests[] = {
    {{0}, {0}, 1},
    {{0}, {0, 0, 10000000, 3000000}, 10100001},
    {{0, 70000000}, {0, 50, 51, 99}, 100},
    {{0}, {70000000, 1000, 100, 0}, 1011},
};

/* A server's clock may be 1% fast. Only the second probes tell, and only those
 * at others. */
TEST_EACH(all_that_they_have_promised_ends_first, rests)
{
    voters_admit_from(1);
    voters_down(4);
    quarantine(0);
    for (int i = 0; i < VOTERS_NODES; i++)
        voters.memory[i].rest_us = rests[_i].first_us[i];
    tell();
    for (int i = 0; i < VOTERS_NODES; i++)
        voters.memory[i].rest_us = rests[_i].second_us[i];
    tell();
    ck_assert_int_eq(voters_remaining_us(0), rests[_i].end_us);
    voters_pass_until(MEMBER_ADMIT, rests[_i].end_us);
    voters_give(MEMBER_ADMIT, 0);
}

/* By then one of them may have promised more, which it cannot have lost.
 */
TEST(what_is_promised_behind_the_second_probe_is_not_waited_for)
{
    voters_admit_from(1);
    voters.memory[1].rest_us = 3 * SECOND;
    quarantine(0);
    tell_twice();
    voters.memory[1].rest_us = voters.memory[2].rest_us = 60 * SECOND;
    voters_pass_until(MEMBER_ADMIT, 3 * SECOND + 3 * SECOND / 100 + 1);
}

TEST(the_highest_number_of_a_second_probe_is_the_bar)
{
    voters.memory[4].number = 99; /* of one that is not asked in the end */
    voters_admit_from(1);
    quarantine(0);
    tell();
    voters.memory[1].number = 7;
    voters.memory[2].number = 8;
    voters.memory[3].number = 6;
    voters.memory[4].number = 0;
    tell();
    voters_pass(1);
    voters_expect(MEMBER_ADMIT, 0);
    ck_assert_int_eq(voters.members.node[0].asked.number, 8);
}

/* Nobody knows above which generation an admission is to begin. */
TEST(without_the_clocks_none_is_admitted)
{
    voters_know_clocks(false);
    voters_admit_from(1);
    quarantine(0);
    voters_pass_without(MEMBER_ADMIT, 2 * (int64_t)VOTERS_QUARANTINE_US);
    voters_know_clocks(true);
    voters_give(MEMBER_ADMIT, 0);
}

/* ---- machines under one name --------------------------------------------- */

GROUP(twins, .set_up = voters_begin);

/* It does not vote, and nothing changes it: the two would quarantine each other
 * for ever. What it carries is probed all the same. */
TEST_RANGE(story_45_a_machine_with_an_earlier_incarnation_has_no_say, 0, 2)
{
    voters_admit_from(1);
    voters_come(0, _i == 0 ? PROBE_ADMITTED : PROBE_QUARANTINED, VOTERS_ADMIT,
                _i == 0 ? "" : VOTERS_QUARANTINE);
    outdate(0, 3);
    tell();
    voters_pass(HEARTBEAT_US);
    (void)voters_probe_around();
    VOTERS_ASSERT_REFUSAL(0, STATE_QUARANTINED);
    ck_assert(rules_is_outdated(&voters.members, 0));
    members_on_step(&voters.members, 0);
    members_on_generation(&voters.members, 0, 77); /* it is of that machine */
    ck_assert_int_eq(voters.members.witness.node[0].high_water, 0);
    for (int s = 0; s < 30; s++) {
        voters_pass(HEARTBEAT_US);
        voters_expect(MEMBER_OBSERVE, 0);
        voters_found(0, _i == 0 ? PROBE_ADMITTED : PROBE_QUARANTINED,
                     VOTERS_ADMIT, _i == 0 ? "" : VOTERS_QUARANTINE);
        voters_wait();
    }
}

/* When the other one's generations were last heard to rise, and when it became
 * known. One without a generation above the time of its incarnation may still
 * be waiting to be admitted. */
static const struct {
    int64_t rose_us, born_us, renewed_us;
} twins[] = {
    {0, 0, VOTERS_QUARANTINE_US},
    {VOTERS_QUARANTINE_US, 0, VOTERS_QUARANTINE_US + 10 * SECOND},
    {30 * SECOND, 0, 40 * SECOND},
    {5 * SECOND, 30 * SECOND, 40 * SECOND},
    {0, 30 * SECOND, VOTERS_QUARANTINE_US + 30 * SECOND},
};

TEST_EACH(story_45_a_machine_is_quarantined_anew_when_the_other_one_is_gone,
          twins)
{
    int64_t begin_us = voters.now_us;
    voters_admit_from(0);
    struct witness_node *it = &voters.members.witness.node[0];
    for (int64_t us = 0; us < twins[_i].renewed_us; us += SECOND / 2) {
        if (us == twins[_i].born_us)
            witness_on_incarnation(&voters.members.witness, 0,
                                   VOTERS_INCARNATION(9), voters.now_us);
        if (us <= twins[_i].rose_us)
            voters.memory[2].high_water[0] = us + 1;
        ck_assert(!rules_is_outdated(&voters.members, 0) ||
                  !rules_may_renew(&voters.members, 0, voters.now_us));
        (void)voters_probe_around();
        voters_pass(SECOND / 2);
    }
    voters.now_us =
        at_least(it->rose_us + 10 * SECOND, begin_us + twins[_i].renewed_us);
    members_want_probe(&voters.members, 0, voters.now_us);
    voters_expect(MEMBER_PROBE, 0);
}

/* ---- by time, if too few others can be asked ----------------------------- */

static const struct {
    int64_t max_ttl_ms, us;
} lengths[] = {
    {60000, VOTERS_QUARANTINE_US},
    {1000, 8000000 + 6000000}, /* four windows of two seconds */
    {7920, 8000000 + 6000000},
    {8000, 8080000 + 6000000},
    {86400000, 87264000000 + 6000000},
};

GROUP(in_time, .set_up = voters_begin);

TEST_EACH(it_lasts_as_long_as_locks_and_numbers_that_were_forgotten, lengths)
{
    voters.settings.max_ttl_ms = lengths[_i].max_ttl_ms;
    voters_begin_again();
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[_i].us);
}

TEST(before_an_admission_every_node_that_is_there_is_probed)
{
    voters_admit_from(3);
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters_wait(); /* which is too early to count */
    voters_pass(HEARTBEAT_US);
    voters_expect(MEMBER_PROBE, 0);
    voters_expect(MEMBER_PROBE, 3);
    voters_found(0, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    voters_found(3, PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(MEMBER_PROBE, 4);
    voters_expect_nothing();
    voters_found(4, PROBE_ADMITTED, VOTERS_ADMIT, "");
    voters_expect(MEMBER_ADMIT, 0);
}

/* One that answers errors only would hold up all others for ever. */
TEST(a_node_that_answers_no_probe_holds_up_no_other)
{
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US);
    voters_up(1);
    voters_expect(MEMBER_PROBE, 0);
    voters_expect(MEMBER_PROBE, 1);
    voters_found(0, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    voters_expect_nothing();
    voters_fail(MEMBER_PROBE, 1);
    voters_expect(MEMBER_ADMIT, 0);
}

TEST(a_node_that_answers_no_probe_is_not_admitted)
{
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US);
    for (int i = 0; i < 5; i++) {
        voters_expect(MEMBER_PROBE, 0);
        voters_fail(MEMBER_PROBE, 0);
        voters_expect_nothing();
        voters_pass(VOTERS_SECOND);
    }
    ck_assert_int_eq(voters_probe_around(), 1);
    voters_expect(MEMBER_ADMIT, 0);
}

TEST(a_lost_connection_does_not_stop_the_timer)
{
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US / 2);
    voters_down(0);
    voters_pass(VOTERS_QUARANTINE_US - VOTERS_QUARANTINE_US / 2);
    voters_come(0, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    voters_expect(MEMBER_ADMIT, 0);
}

TEST(story_25_every_loss_has_a_timer_of_its_own)
{
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    (void)voters_probe_around();
    voters_found(0, PROBE_FRESH, "", VOTERS_OTHER_QUARANTINE); /* a FLUSHALL */
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(MEMBER_ADMIT, 0);
}

/* What the other nodes report at the end of a quarantine counts, too. */
TEST_RANGE(story_45_news_of_a_twin_at_the_last_moment_begin_it_anew, 0, 2)
{
    voters_admit_from(3);
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US);
    if (_i == 0)
        voters.memory[3].high_water[0] = 1; /* a twin promises */
    else                                    /* … or was quarantined */
        strcpy(voters.memory[3].latest[0], VOTERS_INCARNATION(3));
    (void)voters_probe_around();
    voters_expect_nothing();
    voters.memory[0].generation = 1;
    voters_found(0, PROBE_CREATED, "", VOTERS_QUARANTINE_OF(4));
    voters_pass_without(MEMBER_ADMIT, VOTERS_SECOND);
    ck_assert_int_eq(voters_remaining_us(0),
                     VOTERS_QUARANTINE_US - VOTERS_SECOND);
}

/* A node whose clock stepped by an hour says it had run for an hour. */
TEST(story_07_no_word_of_the_node_shortens_its_quarantine)
{
    voters.memory[0] = (struct voters_memory){
        .generation = INT64_MAX, .rest_us = -1, .number = INT64_MAX};
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_pass_until(MEMBER_ADMIT, VOTERS_QUARANTINE_US);
    voters_expect(MEMBER_ADMIT, 0);
}

/* ---- the greatest TTL ---------------------------------------------------- */

TEST(story_33_the_greatest_ttl_governs_every_timer)
{
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_come(1, PROBE_FRESH, "", VOTERS_OTHER_QUARANTINE);
    voters_pass(VOTERS_QUARANTINE_US - 1);
    voters.max_ttl_ms = 2 * VOTERS_TTL_MS;
    (void)voters_probe_around();
    ck_assert_int_eq(rules_quarantine_us(&voters.members),
                     VOTERS_QUARANTINE_US + 60600000);
    voters_pass_until(MEMBER_ADMIT, 60600001);
    voters_expect(MEMBER_ADMIT, 0);
}

/* Whoever still names the old one may have promised by it: who is down, too. */
TEST(a_lower_ttl_counts_once_no_node_names_the_greater_one)
{
    voters.settings.max_ttl_ms = 1000;
    voters_begin_again();
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    voters_come(1, PROBE_FRESH, "", VOTERS_QUARANTINE);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters.max_ttl_ms = 1000;
    voters_found(0, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters_down(1);
    ck_assert_int_eq(voters_remaining_us(0), VOTERS_QUARANTINE_US);
    voters_up(1);
    voters_found(1, PROBE_QUARANTINED, "", VOTERS_QUARANTINE);
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[1].us);
}

TEST(a_ttl_that_some_hand_wrote_counts_as_a_day_at_most)
{
    voters.max_ttl_ms = INT64_MAX;
    voters_come(0, PROBE_FRESH, "", VOTERS_QUARANTINE);
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[4].us);
    voters.max_ttl_ms = INT64_MIN;
    voters_come(1, PROBE_FRESH, "", VOTERS_QUARANTINE);
    ck_assert_int_eq(rules_quarantine_us(&voters.members), lengths[4].us);
}
