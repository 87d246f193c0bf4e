/* SPDX-License-Identifier: MIT */
/*
 * Nodes whose admission changes in the middle of a round: refused calls are
 * sent again, and votes of a memory that is outdated count no more.
 */
#include <stdio.h>
#include <string.h>

#include "../../lib/suite/suite.h"
#include "../play.h"
#include "letters.h"

enum { TIMEOUT_US = 50000 };

/* Rounds are not repeated, so each outcome is that of one. */
static void begin_with_clock(int64_t offset_us)
{
    struct engine_settings settings = play_settings;
    settings.retry_count = 0;
    play_begin_with(&settings);
    play.offset_us[2] = offset_us;
    play_nodes_up();
    play_advance(1000);
    play.sent_count = 0;
}

static void begin(void)
{
    begin_with_clock(0);
}

static const struct kind {
    const char *ask;
    enum call_kind kind;
    enum vote vote;
    enum outcome outcome; /* if a majority votes so */
} kinds[] = {
    {"acquire", CALL_ACQUIRE, VOTE_GRANTED, OUTCOME_GRANTED},
    {"again acquire:OO..O", CALL_REPEAT, VOTE_GRANTED, OUTCOME_GRANTED},
    {"extend", CALL_EXTEND, VOTE_EXTENDED, OUTCOME_EXTENDED},
    {"inspect", CALL_INSPECT, VOTE_FREE, OUTCOME_NOT_FOUND},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static engine_op ask(const struct kind *it)
{
    scene(it->ask);
    return scene_op();
}

/* Two have voted, two are too late, and node 2 refuses, which decides. */
static engine_op ask_and_refuse(const struct kind *it)
{
    engine_op op = ask(it);
    play_answer_range(it->kind, 0, 2, (int)it->vote);
    play_answer_range(it->kind, 3, 5, VOTE_LATE);
    play_answer(it->kind, 2, VOTE_NOT_ADMITTED);
    ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    ck_assert_ptr_null(play_find(it->kind, 2));
    ck_assert_ptr_nonnull(play_find(CALL_PROBE, 2));
    return op;
}

/* The inspection finds that node 2 has heard of another one's incarnation. */
static void find_news(void)
{
    play.news[2]++;
    play_answer_probe(2, PROBE_ADMITTED, "", "");
}

SUITE(again);

GROUP(refused, .set_up = begin, .tear_down = play_end);

/* ---- asked again --------------------------------------------------------- */

/* With the same token and number: to the others it is the same round. */
TEST_RANGE(a_refused_call_is_sent_again_by_the_admission_that_was_found, 0,
           KINDS)
{
    const struct kind *it = &kinds[_i];
    engine_op op = ask_and_refuse(it);
    const struct play_call *before = NULL;
    for (int i = 0; i < play.sent_count; i++)
        if (play.sent[i].call.kind == it->kind && play.sent[i].node == 2)
            before = &play.sent[i];
    ck_assert_ptr_nonnull(before);
    play_advance(TIMEOUT_US / 2);
    find_news();
    const struct play_call *again = play_find(it->kind, 2);
    ck_assert_ptr_nonnull(again);
    ck_assert_str_eq(again->admit, play_admission(2, false));
    ck_assert_str_ne(again->admit, before->admit);
    ck_assert_str_eq(again->token, before->token);
    ck_assert_int_eq(again->call.number, before->call.number);
    ck_assert_int_eq(again->call.seen, before->call.seen);
    ck_assert_int_eq(again->call.ttl_ms, before->call.ttl_ms);
    ck_assert_mem_eq(again->call.buckets, before->call.buckets,
                     sizeof again->call.buckets);
    /* the same deadline, but for drift */
    ck_assert_int_ge(again->call.node_deadline_us,
                     before->call.node_deadline_us - 500);
    ck_assert_int_le(again->call.node_deadline_us,
                     before->call.node_deadline_us + 500);
    ck_assert_uint_eq(again->tag, before->tag);
    play_answer(it->kind, 2, (int)it->vote);
    ck_assert_int_eq(play_outcome(op), (int)it->outcome);
}

TEST_RANGE(it_is_sent_as_often_as_news_come, 0, KINDS)
{
    const struct kind *it = &kinds[_i];
    engine_op op = ask_and_refuse(it);
    for (int i = 0; i < 3; i++) {
        find_news();
        play_answer(it->kind, 2, VOTE_NOT_ADMITTED);
        ck_assert_int_eq(play_outcome(op), OUTCOME_PENDING);
    }
    find_news();
    play_answer(it->kind, 2, (int)it->vote);
    ck_assert_int_eq(play_outcome(op), (int)it->outcome);
}

/* What begins meanwhile asks the node when it is known how, or not at all. */
TEST_RANGE(what_begins_behind_it_waits_for_the_same_inspection, 0, KINDS)
{
    const struct kind *it = &kinds[_i];
    engine_op op = ask_and_refuse(it), other = ask(it);
    for (int i = 0; i < PLAY_NODES; i++)
        ck_assert((play_find(it->kind, i) != NULL) == (i != 2));
    find_news();
    play_answer(it->kind, 2, (int)it->vote);
    ck_assert_int_eq(play_outcome(op), (int)it->outcome);
    ck_assert_str_eq(play_find(it->kind, 2)->token,
                     play_find(it->kind, 3)->token);
    play_answer_range(it->kind, 2, 5, (int)it->vote);
    ck_assert_int_eq(play_outcome(other), (int)it->outcome);
}

/* ---- an inspection behind the news --------------------------------------- */

/*
 * A heartbeat tells the news of node 2 first. Then two calls are under way: one
 * that did not know of it, and one that did.
 */
static engine_op ask_before_and_behind_news(const struct kind *it,
                                            engine_op *before)
{
    play_advance(1200000);
    *before = ask(it);
    play_answer_range(it->kind, 0, 2, (int)it->vote);
    play_answer_range(it->kind, 3, 5, VOTE_LATE);
    find_news();
    engine_op behind = ask(it);
    play_answer_range(it->kind, 0, 2, (int)it->vote);
    play_answer_range(it->kind, 3, 5, VOTE_LATE);
    play_answer(it->kind, 2, VOTE_NOT_ADMITTED);
    return behind;
}

/* It was asked by the right admission, so its answer counts. */
TEST_RANGE(a_refusal_of_an_earlier_call_costs_no_later_one_its_vote, 0, KINDS)
{
    const struct kind *it = &kinds[_i];
    engine_op before, behind = ask_before_and_behind_news(it, &before);
    play_answer(it->kind, 2, (int)it->vote);
    if (it->vote == VOTE_FREE) /* says more once it was probed */
        ck_assert_int_eq(play_outcome(behind), OUTCOME_PENDING);
    else
        ck_assert_int_eq(play_outcome(behind), (int)it->outcome);
    play_answer_probe(2, PROBE_ADMITTED, "", "");
    while (play_find(it->kind, 2) != NULL)
        play_answer(it->kind, 2, (int)it->vote);
    ck_assert_int_eq(play_outcome(before), (int)it->outcome);
    ck_assert_int_eq(play_outcome(behind), (int)it->outcome);
}

/* The step brought it to where the others are, so its clock is trusted. */
TEST_RANGE(its_vote_is_lost_if_its_clock_has_stepped_meanwhile, 0, KINDS)
{
    const struct kind *it = &kinds[_i];
    play_end();
    begin_with_clock(-3000);
    engine_op before, behind = ask_before_and_behind_news(it, &before);
    play.offset_us[2] = 3000;
    play_confirm(2);
    for (int i = 0; i < PLAY_NODES; i++)
        if (i != 2)
            play_answer_probes(i, PROBE_ADMITTED, "");
    ck_assert_uint_eq(play.metrics.clock_steps[2], 1);
    while (play_find(it->kind, 2) != NULL)
        play_answer(it->kind, 2, (int)it->vote);
    ck_assert_int_eq(play_outcome(behind), OUTCOME_NO_QUORUM);
}

/* ---- not asked again ----------------------------------------------------- */

static void find_it_forgot(void)
{
    play_answer_probe(2, PROBE_FRESH, "", PLAY_QUARANTINE(2));
}

static void find_another_configuration(void)
{
    play_answer_probe(2, PROBE_OTHER, "1:ffffffffffffffff:run", "");
}

static void answer_with_an_error(void)
{
    play_answer(CALL_PROBE, 2, UNFIT(BUSY));
}

static void go_down(void)
{
    play_node_down(2);
}

/* The answer to the inspection may be lost with the connection. */
static void go_down_first(void)
{
    play.is_up[2] = false;
    engine_on_node_down(play.engine, 2, STATE_UNREACHABLE, "reset");
}

static void come_too_late(void)
{
    play_advance(TIMEOUT_US);
    find_news();
}

/* It found its admission, but its clock has stepped meanwhile. */
static void step(void)
{
    play.offset_us[2] = 2000000;
    find_news();
}

static const struct {
    void (*happens)(void);
    int ballot;
} ends[] = {
    {find_it_forgot, UNFIT(QUARANTINED)},
    {find_another_configuration, UNFIT(OTHER)},
    {answer_with_an_error, UNFIT(QUARANTINED)},
    {go_down, UNFIT(QUARANTINED)},
    {go_down_first, UNFIT(UNREACHABLE)},
    {come_too_late, VOTE_UNANSWERED},
    {step, UNFIT(STEPPED)},
};

enum { ENDS = sizeof ends / sizeof *ends };

TEST_RANGE(a_node_that_turns_out_not_to_vote_is_left_out, 0, KINDS *ENDS)
{
    const struct kind *it = &kinds[_i % KINDS];
    engine_op op = ask_and_refuse(it);
    ends[_i / KINDS].happens();
    if (it->kind == CALL_INSPECT && play_find(CALL_INSPECT, 2) != NULL)
        play_answer(CALL_INSPECT, 2, VOTE_NOT_ADMITTED); /* asks everybody */
    ck_assert_ptr_null(play_find(it->kind, 2));
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, OUTCOME_NO_QUORUM);
    if (it->kind != CALL_INSPECT)
        ck_assert_int_eq(ballot_number(result->votes[2]),
                         ends[_i / KINDS].ballot);
}

/* The others have decided. */
TEST_RANGE(after_an_outcome_nothing_is_sent, 0, KINDS)
{
    const struct kind *it = &kinds[_i];
    engine_op op = ask(it);
    play_answer(it->kind, 2, VOTE_NOT_ADMITTED);
    for (int i = 0; i < PLAY_NODES; i++)
        if (i != 2)
            play_answer(it->kind, i, (int)it->vote);
    ck_assert_int_eq(play_outcome(op), (int)it->outcome);
    int calls = play_count(it->kind);
    find_news();
    ck_assert_int_eq(play_count(it->kind), calls);
    ck_assert_int_eq(play_outcome(op), (int)it->outcome);
}

TEST_RANGE(after_a_client_that_left_nothing_is_sent, 0, KINDS)
{
    const struct kind *it = &kinds[_i];
    engine_op op = ask_and_refuse(it);
    (void)engine_abandon(play.engine, op);
    int calls = play_count(it->kind);
    find_news();
    ck_assert_int_eq(play_count(it->kind), calls);
}

/* It waits for the last votes, whatever comes of them, and then replications.
 */
TEST(story_50_an_extension_is_replicated_behind_the_inspection)
{
    scene("extend extend:eeqe =extended close extend:....f");
    find_news();
    scene("extend#5 pass:100000 extend#10");
}

/* ---- whom nobody waits for ----------------------------------------------- */

static void connect_mute(void)
{
    play_reconnect(2);
    answer_with_an_error();
}

/* Its number would be one that no majority of the clocks stands for. */
static void connect_with_another_clock(void)
{
    play_node_down(2);
    play.offset_us[2] = 2000000;
    play_node_connect(2);
}

static void (*const strangers[])(void) = {connect_mute,
                                          connect_with_another_clock};

TEST_RANGE(a_node_that_may_not_vote_anyway_is_not_waited_for, 0, 2 * KINDS)
{
    const struct kind *it = &kinds[_i % KINDS];
    strangers[_i / KINDS]();
    engine_op op = ask(it);
    if (it->kind == CALL_INSPECT) /* asked all the same, but does not count */
        play_answer(it->kind, 2, VOTE_NOT_ADMITTED);
    ck_assert_ptr_null(play_find(it->kind, 2));
    play_answer_range(it->kind, 0, 2, (int)it->vote);
    play_answer_range(it->kind, 3, 5, VOTE_LATE);
    ck_assert_int_eq(play_outcome(op), OUTCOME_NO_QUORUM);
}

/* ---- memory that is outdated --------------------------------------------- */

GROUP(outdated, .set_up = begin, .tear_down = play_end);

/* Node 3 tells of a machine that was quarantined later under the name of node
 * 0. */
static void tell_of_a_twin(void)
{
    struct call_reply reply = {
        .vote = VOTE_DONE,
        .probe = {.word = PROBE_ADMITTED,
                  .admit = span_of(play_admission(3, false)),
                  .is_durable = true,
                  .generation = 2,
                  .witnesses = play_heard(3, 0, 0, PLAY_INCARNATION(2))}};
    play_reply(play_find(CALL_PROBE, 3), reply);
}

static void lose_and_tell(void)
{
    play_node_down(0);
    tell_of_a_twin();
}

static void reconnect_and_tell(void)
{
    play_reconnect(0);
    tell_of_a_twin();
}

static void find_quarantined(void)
{
    play_answer_probe(0, PROBE_CREATED, "", PLAY_QUARANTINE(2));
}

/* By another server. */
static void find_admitted_anew(void)
{
    strcpy(play.incarnation[0], PLAY_INCARNATION(2));
    play_answer_probe(0, PROBE_ADMITTED, "", "");
}

static void find_the_same(void)
{
    play_answer_probe(0, PROBE_ADMITTED, "", "");
}

static void lose(void)
{
    play_node_down(0);
}

static const struct {
    void (*happens)(void);
    bool counts; /* what node 0 has answered */
} turns[] = {
    {find_the_same, true},       {lose, true},
    {tell_of_a_twin, false},     {lose_and_tell, false},
    {reconnect_and_tell, false}, {find_quarantined, false},
    {find_admitted_anew, false},
};

enum { TURNS = sizeof turns / sizeof *turns };

TEST_RANGE(story_45_a_vote_falls_with_the_memory_that_gave_it, 0, KINDS *TURNS)
{
    const struct kind *it = &kinds[_i % KINDS];
    bool counts = turns[_i / KINDS].counts;
    play_advance(1200000); /* the inspections of a heartbeat are under way */
    engine_op op = ask(it);
    play_answer_range(it->kind, 0, 2, (int)it->vote);
    turns[_i / KINDS].happens();
    play_answer(it->kind, 2, (int)it->vote);
    bool is_decided = play_outcome(op) != OUTCOME_PENDING;
    ck_assert(is_decided == counts);
    play_answer(it->kind, 3, (int)it->vote);
    play_answer(it->kind, 4, (int)it->vote);
    const struct engine_result *result = play_result(op);
    ck_assert_int_eq(result->outcome, (int)it->outcome);
    ck_assert_int_eq(result->votes[0].vote,
                     counts ? (int)it->vote : VOTE_DISTRUSTED);
}
