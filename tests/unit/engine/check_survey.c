#include "../../../server/engine/permits/pool.h"
#include "../../lib/suite/suite.h"

enum { NODES = 5, SLOTS = 3 };

static struct survey survey;

static void begin(void)
{
    survey_init(&survey, NODES, SLOTS, 1);
}

static void tell_rest(int node, const char *letters, int64_t rest_ms)
{
    survey_note_reply(&survey, node,
                      &(struct call_reply){.vote = VOTE_DONE,
                                           .pttl_ms = rest_ms,
                                           .slots = span_of(letters)});
}

static void tell(int node, const char *letters)
{
    tell_rest(node, letters, -1);
}

static void fail_node(int node, enum vote vote)
{
    survey_note_reply(&survey, node, &(struct call_reply){.vote = vote});
}

static void expect(enum survey_outcome outcome)
{
    ck_assert_int_eq((int)survey_outcome(&survey), (int)outcome);
}

static void expect_free(const char *letters)
{
    struct slotset set = survey_free(&survey);
    for (int i = 0; i < SLOTS; i++)
        ck_assert_int_eq(slotset_has(&set, i), letters[i] == '0');
}

SUITE(survey, .set_up = begin);

TEST(a_majority_that_agrees_is_enough)
{
    tell(0, "011");
    tell(4, "011");
    expect(SURVEY_OPEN);
    tell(2, "011");
    expect(SURVEY_TOLD);
    expect_free("011");
}

TEST(a_full_pool_is_told_by_a_majority)
{
    for (int i = 0; i < 3; i++) {
        expect(SURVEY_OPEN);
        tell(i, "111");
    }
    expect(SURVEY_TOLD);
    expect_free("111");
}

/* Two of the first three have a key that is free on three of all. */
TEST(a_slot_in_doubt_is_waited_for)
{
    tell(0, "110");
    tell(1, "110");
    tell(2, "111");
    expect(SURVEY_OPEN);
    tell(3, "111");
    expect(SURVEY_OPEN);
    tell(4, "110");
    expect(SURVEY_TOLD);
    expect_free("110");
}

TEST(a_slot_on_three_nodes_is_taken_whatever_the_others_say)
{
    tell(0, "111");
    tell(1, "111");
    tell(2, "110");
    expect(SURVEY_OPEN);
    tell(3, "111");
    expect(SURVEY_TOLD);
    expect_free("111");
}

TEST(so_many_free_ones_as_are_wanted_are_enough)
{
    survey_init(&survey, NODES, SLOTS, 2);
    tell(0, "001");
    tell(1, "011");
    tell(2, "001");
    expect(SURVEY_OPEN);
    tell(3, "001");
    expect(SURVEY_TOLD);
    expect_free("001");
}

TEST(the_end_decides_what_is_in_doubt)
{
    tell(0, "110");
    tell(1, "110");
    tell(2, "111");
    survey_note_rest(&survey);
    expect(SURVEY_TOLD);
    expect_free("111");
    tell(3, "000"); /* too late */
    expect_free("111");
    ck_assert_int_eq(survey.votes[3].vote, VOTE_UNANSWERED);
}

TEST(two_answers_of_five_are_no_quorum)
{
    tell(0, "000");
    tell(1, "000");
    fail_node(2, VOTE_DISCONNECTED);
    survey_note_ballot(&survey, 3, ballot_unfit(STATE_UNREACHABLE));
    expect(SURVEY_OPEN);
    fail_node(4, VOTE_NOT_ADMITTED);
    expect(SURVEY_NO_QUORUM);
}

TEST(a_majority_that_refuses_is_told)
{
    fail_node(0, VOTE_KEY_REFUSED);
    fail_node(1, VOTE_KEY_REFUSED);
    expect(SURVEY_OPEN);
    fail_node(2, VOTE_KEY_REFUSED);
    expect(SURVEY_REFUSED);
}

TEST(an_answer_about_other_slots_is_none)
{
    tell(0, "00");
    tell(1, "0000");
    ck_assert_int_eq(survey.votes[0].vote, VOTE_UNREADABLE);
    ck_assert_int_eq(survey.votes[1].vote, VOTE_UNREADABLE);
    ck_assert_int_eq(survey.answers, 0);
}

/* ---- slots that a key hash has ------------------------------------------ */

static void expect_own(const char *letters)
{
    struct slotset set = survey_own(&survey);
    for (int i = 0; i < SLOTS; i++)
        ck_assert_int_eq(slotset_has(&set, i), letters[i] == '2');
}

static void look(int limit, int wanted, bool must_prove)
{
    survey_look(&survey, limit, wanted, must_prove);
}

TEST(one_node_is_enough_to_tell_of_the_key)
{
    look(SLOTS, 1, false);
    tell(0, "010");
    tell(1, "210");
    tell(2, "010");
    expect(SURVEY_TOLD);
    expect_own("2..");
}

/* A lost try left its key on a node that was away. */
TEST(of_more_than_are_wanted_most_nodes_decide)
{
    look(SLOTS, 1, false);
    tell(0, "200");
    tell(1, "002");
    tell(2, "000");
    expect(SURVEY_OPEN);
    tell(3, "002");
    expect(SURVEY_OPEN);
    tell(4, "002");
    expect(SURVEY_TOLD);
    expect_own("..2");
}

TEST(what_a_majority_has_needs_no_more_answers)
{
    look(SLOTS, 1, false);
    tell(0, "202");
    tell(1, "002");
    expect(SURVEY_OPEN);
    tell(2, "002");
    expect(SURVEY_TOLD);
    expect_own("..2");
}

/* Two were granted at once, or neither was: either will do. */
TEST(the_end_decides_what_most_nodes_have)
{
    look(SLOTS, 1, false);
    tell(0, "022");
    tell(1, "002");
    tell(2, "020");
    survey_note_rest(&survey);
    expect(SURVEY_TOLD);
    expect_own(".2.");
}

TEST(what_cannot_be_on_a_majority_is_not_waited_for)
{
    look(SLOTS, 1, false);
    tell(0, "200");
    tell(1, "020");
    tell(2, "000");
    tell(3, "000");
    expect(SURVEY_TOLD);
}

TEST(fewer_slots_than_are_wanted_are_not_its_own)
{
    look(SLOTS, 2, false);
    for (int i = 0; i < 3; i++)
        tell(i, "020");
    expect(SURVEY_TOLD);
    expect_own("...");
    survey_look(&survey, 1, 1, false); /* above its limit */
    expect_own("...");
}

TEST(one_that_must_be_proved_is_on_a_majority)
{
    look(SLOTS, 1, true);
    tell(0, "200");
    tell(1, "200");
    tell(2, "000");
    expect(SURVEY_OPEN);
    tell(3, "000");
    expect(SURVEY_OPEN);
    tell(4, "000");
    expect(SURVEY_TOLD);
    expect_own("...");
    begin();
    look(SLOTS, 1, true);
    for (int i = 0; i < 3; i++) {
        expect(SURVEY_OPEN);
        tell(i, "200");
    }
    expect(SURVEY_TOLD);
    expect_own("2..");
}

/* ---- when one is free ---------------------------------------------------- */

/* A slot is free when its key has ended on a majority. */
TEST(the_time_until_one_is_free_is_that_of_a_majority)
{
    ck_assert_int_eq(survey_rest_ms(&survey), -1);
    tell_rest(0, "111", 300);
    tell_rest(1, "111", 100);
    ck_assert_int_eq(survey_rest_ms(&survey), -1);
    tell_rest(2, "111", -1);
    ck_assert_int_eq(survey_rest_ms(&survey), -1);
    tell_rest(3, "111", 200);
    ck_assert_int_eq(survey_rest_ms(&survey), 300);
    tell_rest(4, "111", 0);
    ck_assert_int_eq(survey_rest_ms(&survey), 200);
}
