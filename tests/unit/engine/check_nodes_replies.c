/*
 * What a reply tells of its node: how long it took, and whether it may vote.
 */

#include "../../lib/suite/suite.h"
#include "../play.h"

static void reply_after(int64_t us, enum vote vote)
{
    const struct call_reply reply = {.vote = vote};
    struct play_call *sent = play_find(CALL_ACQUIRE, 0);
    sent->is_answered = true;
    engine_on_reply(play.engine, 0, sent->tag, &reply, play.now_us - us,
                    play.now_us);
}

SUITE(nodes_replies, .set_up = play_begin, .tear_down = play_end);

TEST(the_last_round_trip_is_shown_and_each_one_counted)
{
    static const int64_t trips_us[] = {3000, 200};
    struct metrics_histogram before = play.metrics.node_rtt[0];
    struct engine_node_view view;
    for (int i = 0; i < 2; i++) {
        (void)play_acquire();
        reply_after(trips_us[i], VOTE_GRANTED);
        engine_view_node(play.engine, 0, &view);
        ck_assert_int_eq(view.rtt_us, trips_us[i]);
    }
    (void)play_acquire();
    reply_after(70000, VOTE_DISCONNECTED); /* nothing came back */
    engine_view_node(play.engine, 0, &view);
    ck_assert_int_eq(view.rtt_us, 200);
    ck_assert_uint_eq(play.metrics.node_rtt[0].count, before.count + 2);
    ck_assert_uint_eq(play.metrics.node_rtt[0].sum_us, before.sum_us + 3200);
}

/* The clock of node 0 has passed its confirmation, and no tick has come. */
static void let_confirmation_pass(void)
{
    play.is_unconfirmed[0] = true;
    play_advance(4970000);
    (void)play_acquire();
    play.now_us += 40000;
    ck_assert(play.metrics.node_is_voting[0]);
}

TEST(a_vote_that_is_distrusted_tells_who_votes_at_once)
{
    let_confirmation_pass();
    play_answer(CALL_ACQUIRE, 0, VOTE_GRANTED);
    ck_assert(!play.metrics.node_is_voting[0]);
    ck_assert_int_eq(engine_voting(play.engine), PLAY_NODES - 1);
}

/* So that each vote need not look at all nodes. */
TEST(a_vote_that_counts_changes_nothing_of_who_votes)
{
    let_confirmation_pass();
    play_answer(CALL_ACQUIRE, 1, VOTE_GRANTED);
    ck_assert(play.metrics.node_is_voting[0]);
    play_advance(400000); /* the tick sees it, too */
    ck_assert(!play.metrics.node_is_voting[0]);
}
