/* SPDX-License-Identifier: MIT */
/*
 * Five nodes' clocks, as one server hears of them: what is a step, and whose it
 * is; and which are believed by a server without a history.
 */
#include <stdlib.h>

#include "../../../server/engine/voting/clocks.h"
#include "../../lib/suite/suite.h"

enum {
    NODES = 5,
    QUORUM = 3,
    MS = 1000,
    SECOND = 1000000,
    TTL_MS = 60000,
    TRIP_US = 200,
};

/* The nodes' clocks minus ours, but for offset_us. */
#define EPOCH_US INT64_C(1795221641000000)

static struct five {
    struct clocks clocks;
    struct clocks_judgement judgement;
    int64_t now_us;
    int64_t offset_us[NODES]; /* of each node's clock */
} five;

static void begin(void)
{
    five = (struct five){.now_us = 10 * SECOND};
    clocks_init(&five.clocks, NODES, TTL_MS);
}

/* A reply after a round trip of so long; as clocks_observe. */
static bool reply_after(int node, int64_t trip_us)
{
    int64_t sent_us = five.now_us;
    five.now_us += trip_us;
    return clocks_observe(&five.clocks, node,
                          EPOCH_US + five.offset_us[node] + sent_us +
                              trip_us / 2,
                          sent_us, five.now_us);
}

static bool reply(int node)
{
    return reply_after(node, TRIP_US);
}

static void all_reply(void)
{
    for (int i = 0; i < NODES; i++)
        (void)reply(i);
}

/* It connects, and replies. */
static void up(int node)
{
    clocks_note_up(&five.clocks, node, true);
    ck_assert(reply(node));
}

static void all_up(void)
{
    for (int i = 0; i < NODES; i++)
        up(i);
    clocks_tick(&five.clocks, five.now_us);
}

/* So long, with a reply of each connected node every second. */
static void watch(int64_t us)
{
    for (int64_t until_us = five.now_us + us; five.now_us < until_us;) {
        five.now_us += SECOND;
        for (int i = 0; i < NODES; i++)
            if (five.clocks.node[i].is_up)
                ck_assert(reply(i));
    }
    clocks_tick(&five.clocks, five.now_us);
}

#define ASSERT_STATE(node, it)                                                 \
    ck_assert_int_eq((int)clocks_refusal(&five.clocks, node), (int)(it))

/* Of all nodes: . is good, s stepped, u unproven, k skewed. */
static void expect_states(const char *states)
{
    static const char letters[STATE_KINDS] = {
        [STATE_NONE] = '.',
        [STATE_STEPPED] = 's',
        [STATE_UNPROVEN] = 'u',
        [STATE_SKEWED] = 'k',
    };
    char are[NODES + 1] = "";
    for (int i = 0; i < NODES; i++)
        are[i] = letters[clocks_refusal(&five.clocks, i)];
    ck_assert_str_eq(are, states);
}

/* A judgement is made now: these nodes lose their vote, or, "own", our own
 * clock is suspect; "": there is none to be made. */
static void expect_judgement(const char *stepped)
{
    bool is_own = strcmp(stepped, "own") == 0;
    ck_assert_int_eq(clocks_judge(&five.clocks, five.now_us, &five.judgement),
                     stepped[0] != '\0');
    if (stepped[0] == '\0')
        return;
    ck_assert_int_eq(five.judgement.is_own, is_own);
    for (int i = 0; i < NODES; i++)
        ck_assert_int_eq(five.judgement.step_us[i] != 0,
                         !is_own && strchr(stepped, '0' + i) != NULL);
}

SUITE(clocks, .set_up = begin);

/* ---- one clock ----------------------------------------------------------- */

static const struct nodeclock *base_of(int node)
{
    return &five.clocks.node[node].base;
}

static bool read(int64_t node_us, int64_t sent_us, int64_t received_us)
{
    return clocks_observe(&five.clocks, 0, node_us, sent_us, received_us);
}

TEST(replies_bound_the_offset_and_quicker_ones_narrow_it)
{
    ck_assert(read(10500, 100, 300));
    ck_assert_int_eq(base_of(0)->low_us, 10200);
    ck_assert_int_eq(base_of(0)->high_us, 10400);
    ck_assert_int_eq(clocks_uncertainty_us(&five.clocks, 0, 300 + 2000), 220);
    ck_assert_int_eq(nodeclock_latest_at(base_of(0), 1000), 11403);
    ck_assert_int_eq(nodeclock_earliest_at(base_of(0), 1000), 11197);
    /* bounds widen by half a percent of their age, and never in the past */
    ck_assert_int_eq(nodeclock_earliest_at(base_of(0), -2000), -2000 + 10200);
    ck_assert(read(10650, 330, 350));
    ck_assert_int_eq(base_of(0)->low_us, 10300);
    ck_assert_int_eq(base_of(0)->high_us, 10320);
    ck_assert(read(10900, 400, 1400));
    ck_assert_int_ge(base_of(0)->low_us, 10290);
    ck_assert_int_le(base_of(0)->high_us, 10330);
}

/* Of a clock known as 100000 … 100200 at 0: offsets that a reply shows, and how
 * far they are beyond the bounds, which are then as before. */
static const struct {
    int64_t low_us, high_us, at_us, step_us;
} replies[] = {
    {105200, 105300, 0, 0},       {105201, 105300, 0, 5001},
    {94900, 95000, 0, 0},         {94900, 94999, 0, -5001},
    {90000, 120000, 0, 0},        {105205, 105205, 1000, 0},
    {105206, 105206, 1000, 5001}, {94995, 94995, 1000, 0},
    {94994, 94994, 1000, -5001},
};

TEST_EACH(what_lies_beyond_the_widened_bounds_is_a_step, replies)
{
    five.clocks.node[0].base = (struct nodeclock){true, 100000, 100200, 0};
    int64_t received_us = replies[_i].at_us;
    int64_t node_us = replies[_i].low_us + received_us;
    ck_assert_int_eq(read(node_us, node_us - replies[_i].high_us, received_us),
                     replies[_i].step_us == 0);
    ck_assert_int_eq(five.clocks.node[0].step_us, replies[_i].step_us);
    if (replies[_i].low_us > 100200 || replies[_i].high_us < 100000) {
        ck_assert_int_eq(base_of(0)->low_us, 100000);
        ck_assert_int_eq(base_of(0)->high_us, 100200);
        ck_assert_int_eq(base_of(0)->at_us, 0);
    }
}

TEST(the_median_is_the_lower_of_two_middle_ones)
{
    static const int64_t offsets_us[] = {10, 3000, 20, 30};
    static const int64_t medians_us[] = {10, 10, 20, 20};
    for (int i = 0; i < 4; i++) {
        clocks_note_up(&five.clocks, i, true);
        five.clocks.node[i].base =
            (struct nodeclock){true, offsets_us[i], offsets_us[i], 0};
        ck_assert_int_eq(clocks_median_at(&five.clocks, 100),
                         100 + medians_us[i]);
    }
}

/* ---- steps --------------------------------------------------------------- */

static const int64_t steps[] = {6 * MS, 3600 * (int64_t)SECOND, -6 * MS,
                                -3600 * (int64_t)SECOND};

TEST_EACH(story_11_a_step_is_told_and_its_reply_is_no_vote, steps)
{
    all_up();
    five.offset_us[1] = steps[_i];
    ck_assert(!reply(1));
    expect_states(".s...");
    expect_judgement("");
    for (int i = 0; i < NODES; i++)
        ck_assert(clocks_wants_reply(&five.clocks, i) == (i != 1));
    for (int i = 0; i < NODES; i++)
        if (i != 1)
            ck_assert(reply(i));
    expect_judgement("1");
    ck_assert_int_le(llabs(five.judgement.step_us[1] - steps[_i]), MS);
    expect_judgement("");
    clocks_tick(&five.clocks, five.now_us);
    expect_states(".u..."); /* and learned anew */
    ck_assert(reply(1));
}

/* A clock that runs fast: no reply is far from the one before. */
TEST_RANGE(many_small_steps_in_a_row_are_one_that_is_seen, 0, 2)
{
    bool is_same = true;
    all_up();
    for (int i = 0; i < 20 && is_same; i++) {
        five.now_us += 10000;
        five.offset_us[1] += _i == 0 ? 1000 : -1000;
        is_same = reply(1);
    }
    ck_assert(!is_same);
}

/* One that stays is believed once drift explains it. */
TEST_RANGE(a_small_step_that_stays_is_believed_a_second_later, 0, 2)
{
    int sign = _i == 0 ? 1 : -1;
    all_up();
    five.offset_us[1] = sign * 4900;
    for (int i = 0; i < 150; i++) {
        five.now_us += 10000;
        ck_assert(reply(1));
    }
    five.offset_us[1] = sign * 9700;
    ck_assert(reply(1));
    expect_judgement("");
    expect_states(".....");
}

TEST(a_judgement_waits_no_longer_than_its_patience)
{
    all_up();
    five.offset_us[1] = SECOND;
    (void)reply(1);
    five.now_us += CLOCK_REPLY_US - 1;
    expect_judgement("");
    five.now_us++;
    expect_judgement("1");
}

TEST(a_judgement_waits_for_connected_nodes_and_for_later_replies_only)
{
    all_up();
    clocks_note_up(&five.clocks, 4, false);
    int64_t before_us = five.now_us - 1;
    five.offset_us[1] = SECOND;
    (void)reply(1);
    ck_assert(reply(0));
    ck_assert(reply(2));
    /* this one's call had left before the step was seen */
    ck_assert(clocks_observe(&five.clocks, 3, EPOCH_US + five.now_us - TRIP_US,
                             before_us, five.now_us));
    expect_judgement("");
    ck_assert(clocks_wants_reply(&five.clocks, 3));
    ck_assert(reply(3));
    expect_judgement("1");
}

TEST(a_clock_that_stepped_there_and_back_has_stepped_twice)
{
    all_up();
    five.offset_us[1] = SECOND;
    ck_assert(!reply(1));
    five.offset_us[1] = 0;
    ck_assert(!reply(1));
    five.now_us += CLOCK_REPLY_US;
    expect_judgement("1");
    expect_states("....."); /* where the others are */
}

static const char *const learned[] = {"...uu", "....u", "....."};

/* Then it is our clock, or all is lost anyway: nobody is revoked. Those that
 * stepped agree with each other, the rest is learned anew as well. */
TEST_EACH(a_majority_that_steps_at_once_makes_our_own_clock_suspect, learned)
{
    const char *states = learned[_i];
    all_up();
    for (int i = 0; i < NODES; i++)
        five.offset_us[i] = states[i] == '.' ? SECOND : 0;
    all_reply();
    all_reply();
    expect_judgement("own");
    expect_states(states);
    all_reply();
    clocks_tick(&five.clocks, five.now_us);
    expect_states(states);
}

/* ---- no steps ------------------------------------------------------------ */

TEST_RANGE(story_35_a_node_that_was_paused_has_not_stepped, 0, 2)
{
    all_up();
    int64_t sent_us = five.now_us;
    five.now_us += 30 * SECOND;
    /* it read its clock when it woke up, or before it fell asleep */
    int64_t node_us = EPOCH_US + (_i == 0 ? five.now_us - 10 : sent_us + 10);
    ck_assert(clocks_observe(&five.clocks, 1, node_us, sent_us, five.now_us));
    ck_assert(reply(1));
}

TEST_RANGE(a_clock_that_drifts_by_a_two_hundred_and_fiftieth_has_not_stepped, 0,
           2)
{
    int sign = _i == 0 ? 1 : -1;
    all_up();
    for (int i = 0; i < 600; i++) {
        five.now_us += SECOND;
        five.offset_us[1] += sign * 4 * MS;
        ck_assert(reply(1));
    }
    clocks_note_up(&five.clocks, 1, false);
    five.now_us += 600 * SECOND;
    five.offset_us[1] += sign * 600 * 4 * MS;
    clocks_note_up(&five.clocks, 1, true);
    ck_assert(reply(1));
}

TEST(a_clock_far_from_the_median_is_known_but_far)
{
    five.offset_us[4] = CLOCK_FAR_US - 10 * MS;
    five.offset_us[0] = -CLOCK_FAR_US - 10 * MS;
    all_up();
    watch(62 * SECOND);
    expect_states("k....");
    ck_assert_int_eq(clocks_offset_us(&five.clocks, 0, five.now_us) / SECOND,
                     -1);
    for (int i = 1; i < 4; i++) /* the median is of those that are there */
        clocks_note_up(&five.clocks, i, false);
    clocks_tick(&five.clocks, five.now_us);
    expect_states(".kkkk");
}

/* A repeat that comes then counts from it how old another lock may be. */
TEST(a_clock_that_is_far_is_so_while_no_node_is_up)
{
    five.offset_us[0] = -4 * CLOCK_FAR_US;
    all_up();
    watch(62 * SECOND);
    int64_t apart_us = clocks_apart_us(&five.clocks, five.now_us);
    ck_assert_int_lt(apart_us, CLOCK_FAR_US);
    for (int i = 0; i < 5; i++)
        clocks_note_up(&five.clocks, i, false);
    clocks_tick(&five.clocks, five.now_us);
    ck_assert_int_eq(clocks_apart_us(&five.clocks, five.now_us), apart_us);
}

/* ---- what is known together ---------------------------------------------- */

TEST(the_median_is_known_once_a_majority_is_proven)
{
    ck_assert(!clocks_are_known(&five.clocks));
    for (int i = 0; i < NODES; i++) {
        up(i);
        clocks_tick(&five.clocks, five.now_us);
        ck_assert(clocks_are_known(&five.clocks) == (i + 1 >= QUORUM));
    }
    clocks_note_up(&five.clocks, 0, false);
    clocks_note_up(&five.clocks, 1, false);
    ck_assert(clocks_are_known(&five.clocks));
    clocks_note_up(&five.clocks, 2, false);
    ck_assert(!clocks_are_known(&five.clocks));
    clocks_note_up(&five.clocks, 2, true);
    ck_assert(clocks_are_known(&five.clocks));
    five.offset_us[3] += SECOND; /* which of them has stepped? */
    ck_assert(!reply(3));
    ck_assert(!clocks_are_known(&five.clocks));
}

/* A server that reaches the lowest measures by slow replies, one by quick ones.
 */
TEST(medians_differ_by_no_more_than_near_clocks_and_slow_replies)
{
    five.offset_us[0] = -400 * MS;
    five.offset_us[1] = 20 * SECOND; /* votes for nobody */
    all_up();
    clocks_tick(&five.clocks, five.now_us);
    ck_assert_int_eq(clocks_apart_us(&five.clocks, five.now_us),
                     400 * MS + CLOCK_REPLY_US);
    clocks_note_up(&five.clocks, 0, false); /* but others may reach it */
    ck_assert_int_eq(clocks_apart_us(&five.clocks, five.now_us),
                     400 * MS + CLOCK_REPLY_US);
}

/* ---- without a history --------------------------------------------------- */

enum { AWAY = INT32_MAX };

/* What each clock is ahead, and who is good then. The median of three that
 * differ is one of them: it agrees with itself. */
static const struct {
    int64_t offset_us[NODES];
    const char *states;
} agreements[] = {
    {{0, 0, AWAY, AWAY, AWAY}, "uuuuu"},
    {{0, 0, 0, AWAY, AWAY}, "...uu"},
    {{0, 0, 0, 0, 4500}, "....."},
    {{0, 0, 0, 0, -4500}, "....."},
    {{0, 0, 0, 0, 5500}, "....u"},
    {{0, 0, 0, 0, -5500}, "....u"},
    {{1965 * MS, 0, 470 * MS, AWAY, AWAY}, "uuuuu"},
};

TEST_EACH(story_11_a_majority_that_agrees_is_good_at_once, agreements)
{
    for (int i = 0; i < NODES; i++) {
        five.offset_us[i] = agreements[_i].offset_us[i];
        if (five.offset_us[i] != AWAY)
            up(i);
    }
    clocks_tick(&five.clocks, five.now_us);
    expect_states(agreements[_i].states);
}

TEST(story_30_a_clock_that_differs_is_watched_for_the_greatest_ttl)
{
    five.offset_us[4] = CLOCK_FAR_US / 2;
    all_up();
    expect_states("....u");
    ck_assert_int_le(clocks_remaining_us(&five.clocks, 4, five.now_us),
                     60 * SECOND);
    watch(58 * SECOND);
    ASSERT_STATE(4, STATE_UNPROVEN);
    ck_assert_int_le(clocks_remaining_us(&five.clocks, 4, five.now_us),
                     2 * SECOND);
    watch(3 * SECOND);
    ASSERT_STATE(4, STATE_NONE);
    ck_assert_int_eq(clocks_remaining_us(&five.clocks, 4, five.now_us), 0);
}

/* Time alone proves nothing: replies do. */
TEST(a_clock_that_was_not_watched_is_not_steady)
{
    five.offset_us[4] = SECOND;
    all_up();
    five.now_us += 90 * SECOND;
    for (int i = 0; i < 4; i++)
        (void)reply(i);
    clocks_tick(&five.clocks, five.now_us);
    ASSERT_STATE(4, STATE_UNPROVEN);
}

/* It may have stepped by as much as it took. */
TEST(a_slow_reply_proves_nothing)
{
    for (int i = 0; i < 4; i++)
        up(i);
    clocks_note_up(&five.clocks, 4, true);
    ck_assert(reply_after(4, 50 * MS));
    clocks_tick(&five.clocks, five.now_us);
    ASSERT_STATE(4, STATE_UNPROVEN);
    ck_assert_int_ge(clocks_uncertainty_us(&five.clocks, 4, five.now_us),
                     50 * MS);
    ck_assert(reply(4));
    ASSERT_STATE(4, STATE_NONE);
}

/* A long way is no slow reply; but one of more than two timeouts tells nothing.
 */
TEST_RANGE(replies_that_are_all_slow_prove_something_within_limits, 0, 2)
{
    static const struct {
        int64_t trip_us;
        enum node_state state;
    } trips[] = {
        {80 * MS, STATE_NONE},
        {101 * MS, STATE_UNPROVEN},
    };
    for (int i = 0; i < NODES; i++) {
        clocks_note_up(&five.clocks, i, true);
        ck_assert(reply_after(i, trips[_i].trip_us));
    }
    clocks_tick(&five.clocks, five.now_us);
    ASSERT_STATE(4, trips[_i].state);
}

/* Two stepped, two did not, and the fifth may show what both pairs do. */
TEST(story_11_a_slow_reply_in_the_middle_joins_nobody)
{
    five.offset_us[2] = five.offset_us[3] = 470 * MS;
    for (int i = 0; i < 4; i++)
        up(i);
    clocks_note_up(&five.clocks, 4, true);
    (void)reply_after(4, 2 * SECOND);
    for (int i = 0; i < 4; i++)
        (void)reply(i);
    clocks_tick(&five.clocks, five.now_us);
    expect_states("uuuuu");
    (void)reply(4);
    expect_states("..uu.");
}

TEST(a_node_that_is_down_is_no_part_of_the_majority)
{
    up(0);
    up(1);
    clocks_note_up(&five.clocks, 1, false);
    up(2);
    clocks_tick(&five.clocks, five.now_us);
    ASSERT_STATE(0, STATE_UNPROVEN);
    clocks_note_up(&five.clocks, 1, true);
    clocks_tick(&five.clocks, five.now_us);
    ASSERT_STATE(0, STATE_NONE);
}
