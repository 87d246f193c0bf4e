/* SPDX-License-Identifier: MIT */
/*
 * What the log tells of nodes, their clocks and the quorum.
 */
#include <stdio.h>
#include <string.h>

#include "../../../server/base/log.h"
#include "../../lib/suite/suite.h"
#include "../play.h"
#include "../said.h"

enum { SECOND = 1000000 };

static void begin(void)
{
    play_begin();
    said_begin();
    log_set_level(LOG_DEBUG);
}

static void end(void)
{
    play_end();
    said_end();
}

/* So many lines have this part. */
static void expect_lines(const char *text, const char *part, int count)
{
    int found = 0;
    for (const char *at = strstr(text, part); at != NULL;
         at = strstr(at + 1, part))
        found++;
    ck_assert_msg(found == count, "%d of %s in %s", found, part, text);
}

/* One line, which has this part. */
static void expect_only(const char *part)
{
    const char *text = said();
    expect_lines(text, part, 1);
    expect_lines(text, "event=", 1);
}

SUITE(nodes_log, .set_up = begin, .tear_down = end);

TEST(a_node_is_told_by_what_it_means)
{
    play_node_down(2);
    expect_only(" level=warn event=node node=c state=unreachable "
                "detail=reset\n");
    play_node_connect(2);
    expect_only(" level=debug event=node node=c state=admitting ");
    play_answer_probe(2, PROBE_ADMITTED, "", "");
    expect_only(" level=info event=node node=c state=voting "
                "detail=admitted\n");
}

static void lose_three(void)
{
    for (int i = 0; i < 3; i++)
        play_node_down(i);
}

TEST(a_quorum_is_told_when_it_stays_away_and_when_it_comes)
{
    lose_three();
    play_advance(SECOND - SECOND / 20);
    expect_lines(said(), "quorum", 0);
    play_advance(SECOND / 20);
    ck_assert(!engine_has_quorum(play.engine));
    expect_lines(said(),
                 " level=error event=no_quorum voting=2 quorum=3 "
                 "total=5 not_voting=a,b,c\n",
                 1);
    play_node_down(3);
    play_advance(3 * SECOND);
    expect_lines(said(), "quorum", 0);
    play_node_up(3);
    expect_lines(said(), "quorum", 0);
    play_node_up(0);
    expect_lines(said(),
                 " level=info event=quorum voting=3 quorum=3 total=5 "
                 "not_voting=b,c lasted_ms=4000 failed=0\n",
                 1);
    play_node_up(1);
    expect_lines(said(), "quorum", 0);
}

/*
 * Where another node restarts, some are probed again, and vote a reply later:
 * that is told only if a request missed them. A server that starts has not
 * reached its nodes yet: only who asks when they should be there misses them.
 */
static const struct {
    bool is_first; /* the server has just started */
    int failed;    /* requests */
    int away_ms;
    bool is_reported;
} losses[] = {
    {false, 0, 10, false},  {false, 0, 1000, true}, {false, 2, 7, true},
    {true, 0, 3000, false}, {true, 1, 100, false},  {true, 1, 5000, true},
};

TEST_EACH(a_quorum_is_told_if_it_was_missed, losses)
{
    bool is_first = losses[_i].is_first, is_reported = losses[_i].is_reported;
    if (is_first)
        play_begin_again(&play_settings);
    else
        lose_three();
    log_set_level(LOG_DEBUG);
    (void)said();
    for (int i = 0; i < losses[_i].failed; i++)
        ck_assert_int_eq(play_outcome(play_acquire()), OUTCOME_NO_QUORUM);
    play_advance(losses[_i].away_ms * 1000);
    ck_assert(engine_has_quorum(play.engine) == (!is_first && !is_reported));
    const char *text = said();
    expect_lines(text, "event=no_quorum", is_reported);
    for (int i = 0; i < 3; i++)
        play_node_up(i);
    text = said();
    expect_lines(text, "event=quorum voting=3 ", is_first || is_reported);
    expect_lines(text, "lasted_ms", is_reported);
    expect_lines(text,
                 textf(" lasted_ms=%d failed=%d\n", losses[_i].away_ms,
                       losses[_i].failed),
                 is_reported);
    play_advance(3 * SECOND);
    (void)play_result(play_win()); /* nobody misses it now */
    expect_lines(said(), "quorum", 0);
}

/* They vote: that they were too late is said elsewhere. */
TEST(nodes_that_vote_and_are_late_are_no_lost_quorum)
{
    struct engine_settings settings = play_settings;
    settings.retry_count = 0;
    play_begin_again(&settings);
    play_nodes_up();
    play_advance(2 * SECOND); /* what fails is none of the start either */
    log_set_level(LOG_DEBUG);
    (void)said();
    engine_op op = play_acquire();
    play_advance(SECOND / 10);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
    expect_lines(said(), "quorum", 0);
}

TEST(a_clock_that_stepped_is_told_once)
{
    play_advance(1000);
    play.offset_us[3] = 2 * SECOND;
    (void)play_acquire();
    play_answer(CALL_ACQUIRE, 3, VOTE_GRANTED);
    expect_lines(said(), "event=clock_step", 0); /* is not judged yet */
    play_answer_all_probes();
    const char *text = said();
    expect_lines(text, " level=warn event=clock_step node=d step_us=199", 1);
    expect_lines(text, "event=clock_step", 1);
    expect_lines(text, "event=own_clock_suspect", 0);
    ck_assert_uint_eq(play.metrics.clock_steps[3], 1);
}

TEST(our_own_clock_is_told_and_no_node)
{
    play_advance(1000);
    (void)play_acquire();
    for (int i = 0; i < PLAY_NODES; i++) {
        play.offset_us[i] = 2 * SECOND;
        play_answer(CALL_ACQUIRE, i, VOTE_GRANTED);
    }
    const char *text = said();
    expect_lines(text, " level=warn event=own_clock_suspect ", 1);
    expect_lines(text, "event=clock_step", 0);
}

TEST(a_change_is_logged_once)
{
    play_lose_memory(0);
    play_advance(3 * SECOND);
    play_lose_memory(1);
    expect_lines(said(), "event=node node=a state=quar", 1);
    play_lose_memory(2);
    play_advance(3 * SECOND);
    expect_lines(said(), "event=no_quorum", 1);
    for (int i = 0; i < 3; i++) {
        play_node_down(i);
        play_node_up(i);
    }
    expect_lines(said(), "event=quorum", 1);
    play_advance(3 * SECOND);
    expect_lines(said(), "event=", 0);
}

/* A durable node that comes back is quarantined for a moment, and then
 * readmitted: a quarantine of 67 s that nobody has to wait for would only
 * alert. */
TEST(a_quarantine_that_ends_at_once_is_not_logged)
{
    play_node_down(0);
    expect_lines(said(), "state=unreachable", 1);
    play_node_connect(0);
    play_answer_probe(0, PROBE_CREATED, play_admission(0, true),
                      PLAY_QUARANTINE(2));
    play_advance(SECOND / 2);
    play_reconnect(0); /* readmitted by another server */
    play_answer_probe(0, PROBE_ADMITTED, "", "");
    expect_lines(said(), "state=quarantined", 0);
    for (int i = 0; i < 3; i++)
        play_lose_memory(i);
    play_advance(2 * SECOND);
    expect_lines(said(), "state=quarantined", 3);
}

/* Its state at the start is none that it changes to. */
TEST(a_node_that_was_never_reached_is_told_once)
{
    play_begin_again(&play_settings);
    log_set_level(LOG_INFO);
    play_advance(SECOND / 2);
    play_node_down(0); /* not there yet, as it starts with this server */
    play_node_down(4);
    for (int i = 0; i < 4; i++)
        play_node_up(i);
    const char *text = said();
    expect_lines(text, "unreachable", 0);
    expect_lines(text, "event=quorum voting=3 quorum=3 total=5 not_voting=d,e",
                 1);
    play_advance(SECOND);
    expect_lines(said(),
                 " level=warn event=node node=e state=unreachable detail=reset",
                 1);
    play_node_down(4);
    play_advance(3 * SECOND);
    expect_lines(said(), "node=e", 0);
}

static void tell(bool is_durable, const char *not_durable, const char *lacks)
{
    struct node_facts facts = play_facts(1);
    facts.is_durable = is_durable;
    facts.not_durable = not_durable;
    facts.lacks = lacks;
    engine_on_node_confirmed(play.engine, 1, &facts);
}

/* It votes on; but its next restart may cost its vote. */
TEST(lost_durability_is_told_once)
{
    tell(true, "", "");
    expect_lines(said(), "event=", 0);
    tell(false, "appendonly is no", "");
    tell(false, "appendonly is no", "");
    expect_only(" level=warn event=node_not_durable node=b detail=\"appendonly "
                "is no\"\n");
    ck_assert(!play.metrics.node_is_durable[1]);
    tell(true, "", "");
    expect_only(" level=info event=node_durable node=b ");
    ck_assert(play.metrics.node_is_durable[1]);
}

TEST(what_a_node_votes_without_is_told_once)
{
    tell(true, "", "its user lacks +scan");
    tell(true, "", "its user lacks +scan");
    expect_only("its user lacks +scan");
    tell(true, "", "");
    const char *text = said();
    expect_lines(text, "event=node node=b state=voting", 1);
    expect_lines(text, "+scan", 0);
}

#define FIRST_QUARANTINE                                                       \
    "1:" PLAY_FINGERPRINT ":name:" PLAY_INCARNATION(1) ":first:"               \
                                                       "run:" PLAY_MEMORY

/* Two servers start together: the other one quarantines the nodes, and admits
 * them a second later. That they wait for 66 s would be wrong. */
TEST(a_first_start_by_another_server_is_no_quarantine_yet)
{
    struct engine_settings settings = play_settings;
    settings.first_start = FIRST_START_AUTO;
    play_begin_again(&settings);
    log_set_level(LOG_INFO);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_connect(i);
        play_answer_probe(i, PROBE_QUARANTINED, "", FIRST_QUARANTINE);
    }
    play_advance(3 * SECOND - SECOND / 10);
    expect_lines(said(), "level=warn", 0);
    play_advance(SECOND / 5); /* nothing came of it */
    expect_lines(said(), "quarantined it", PLAY_NODES);
}

/* Of the same names: the epoch that the nodes have counts. */
TEST(an_epoch_that_the_nodes_carry_is_told)
{
    struct engine_settings settings = play_settings;
    settings.config_epoch = 2;
    play_begin_again(&settings);
    log_set_level(LOG_INFO);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_connect(i);
        play_answer_probe(i, PROBE_BARE, play_admission(i, false), "");
    }
    expect_lines(said(), " event=config_epoch epoch=1 before=2 ", 1);
}
