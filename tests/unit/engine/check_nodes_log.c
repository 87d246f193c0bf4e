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
    play_answer_look(2, LOOK_ADMITTED, "", "");
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
    const char *text = said();
    expect_lines(text,
                 " level=error event=no_quorum voting=2 quorum=3 "
                 "total=5 not_voting=a,b,c\n",
                 1);
    play_node_down(3);
    play_advance(3 * SECOND);
    expect_lines(said(), "quorum", 0);
    play_node_up(3);
    expect_lines(said(), "quorum", 0);
    play_node_up(0);
    text = said();
    expect_lines(text,
                 " level=info event=quorum voting=3 quorum=3 total=5 "
                 "not_voting=b,c lasted_ms=4000 failed=0\n",
                 1);
    play_node_up(1);
    expect_lines(said(), "quorum", 0);
}

/* Where another node restarts, some are probed again, and vote a reply later.
 */
TEST(a_quorum_that_is_back_soon_and_failed_nobody_is_not_told)
{
    for (int times = 0; times < 3; times++) {
        lose_three();
        play_advance(SECOND / 100);
        ck_assert(engine_has_quorum(play.engine));
        for (int i = 0; i < 3; i++)
            play_node_up(i);
        play_advance(3 * SECOND);
    }
    expect_lines(said(), "quorum", 0);
    (void)play_result(play_win()); /* nobody misses it now */
    expect_lines(said(), "quorum", 0);
}

/* However short it is. */
TEST(a_quorum_that_a_request_missed_is_told_at_once)
{
    lose_three();
    expect_lines(said(), "quorum", 0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(play_outcome(play_acquire()), OUTCOME_NO_QUORUM);
    ck_assert(!engine_has_quorum(play.engine));
    const char *text = said();
    expect_lines(text, " level=error event=no_quorum voting=2 ", 1);
    expect_lines(text, "quorum ", 1);
    play_advance(7000);
    play_node_up(0);
    text = said();
    expect_lines(text, "event=quorum voting=3 quorum=3 total=5 ", 1);
    expect_lines(text, " lasted_ms=7 failed=2\n", 1);
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
    play_answer_all_looks();
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

/* Before there is any node there is no quorum to be lost. */
TEST(the_first_quorum_is_told)
{
    play_begin_again(&play_settings);
    log_set_level(LOG_INFO);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_up(i);
        const char *text = said();
        expect_lines(text, " event=quorum voting=3 ", i == 2);
        expect_lines(text, "lasted_ms", 0);
        play_advance(3 * SECOND);
        expect_lines(said(), "no_quorum", 0);
    }
}

/* But who asks when it should be there fails. */
TEST(the_first_quorum_is_missed_by_a_request)
{
    play_begin_again(&play_settings);
    log_set_level(LOG_INFO);
    ck_assert_int_eq(play_outcome(play_acquire()), OUTCOME_NO_QUORUM);
    play_advance(SECOND - SECOND / 10);
    expect_lines(said(), "event=no_quorum", 0);
    play_advance(SECOND / 10);
    expect_lines(said(),
                 " level=error event=no_quorum voting=0 quorum=3 total=5 "
                 "not_voting=a,b,c,d,e\n",
                 1);
    play_advance(4 * SECOND);
    play_nodes_up();
    expect_lines(said(), " lasted_ms=5000 failed=1\n", 1);
}

/* A server that restarts serves before it has reached its nodes. */
TEST(a_request_in_the_moment_of_the_start_is_no_lost_quorum)
{
    play_begin_again(&play_settings);
    log_set_level(LOG_INFO);
    ck_assert(!engine_has_quorum(play.engine));
    ck_assert_int_eq(play_outcome(play_acquire()), OUTCOME_NO_QUORUM);
    play_advance(SECOND / 10);
    play_nodes_up();
    ck_assert(engine_has_quorum(play.engine));
    const char *text = said();
    expect_lines(text, "event=no_quorum", 0);
    expect_lines(text, "event=quorum", 1);
    expect_lines(text, "lasted_ms", 0);
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

/* A durable node that comes back is marked for a moment, and then readmitted:
 * a quarantine of 67 s that nobody has to wait for would only alert. */
TEST(a_quarantine_that_ends_at_once_is_not_logged)
{
    play_node_down(0);
    expect_lines(said(), "state=unreachable", 1);
    play_node_connect(0);
    play_answer_look(0, LOOK_CREATED, play_admission(0, true), PLAY_MARK(2));
    play_advance(SECOND / 2);
    play_reconnect(0); /* readmitted by another server */
    play_answer_look(0, LOOK_ADMITTED, "", "");
    expect_lines(said(), "state=quarantined", 0);
    for (int i = 0; i < 3; i++)
        play_lose_memory(i);
    play_advance(2 * SECOND);
    expect_lines(said(), "votes again in 66 s", 3);
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
    const char *text = said();
    expect_lines(text,
                 " event=node node=b state=voting detail=\"admitted; its user "
                 "lacks +scan\"\n",
                 1);
    expect_lines(text, "event=", 1);
    tell(true, "", "");
    expect_lines(said(), "event=node node=b state=voting detail=admitted", 1);
}

#define FIRST_MARK                                                             \
    "1:" PLAY_FINGERPRINT ":name:" PLAY_INCARNATION(1) ":first:"               \
                                                       "run:" PLAY_MEMORY

/* Two servers start together: the other one marks the nodes, and admits them a
 * second later. That they wait for 66 s would be wrong. */
TEST(a_first_start_by_another_server_is_no_quarantine_yet)
{
    struct engine_settings settings = play_settings;
    settings.first_start = FIRST_START_AUTO;
    play_begin_again(&settings);
    log_set_level(LOG_INFO);
    for (int i = 0; i < PLAY_NODES; i++) {
        play_node_connect(i);
        play_answer_look(i, LOOK_MARKED, "", FIRST_MARK);
    }
    struct engine_node_view view;
    engine_view_node(play.engine, 1, &view);
    ck_assert_has(view.detail,
                  "is new; votes as soon as the server that marked it has "
                  "marked all nodes, or in 6");
    play_advance(3 * SECOND - SECOND / 10);
    expect_lines(said(), "level=warn", 0);
    play_advance(SECOND / 5); /* nothing came of it */
    expect_lines(said(), "as soon as the server that marked it", PLAY_NODES);
}
