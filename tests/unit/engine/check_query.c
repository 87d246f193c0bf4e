/* SPDX-License-Identifier: MIT */
#include "../../../server/engine/permits/pool.h"
#include "../../lib/suite/suite.h"

enum { NODES = 5, SLOTS = 3 };

static struct query query;

static void begin(void)
{
    query_init(&query, NODES, SLOTS, 1);
}

static void tell_rest(int node, struct span letters, int64_t rest_ms)
{
    query_note_reply(&query, node,
                     &(struct call_reply){.vote = VOTE_DONE,
                                          .pttl_ms = rest_ms,
                                          .slots = letters});
}

static void tell(int node, const char *letters)
{
    tell_rest(node, span_of(letters), -1);
}

static void fail_node(int node, enum vote vote)
{
    query_note_reply(&query, node, &(struct call_reply){.vote = vote});
}

static void expect(enum query_outcome outcome)
{
    ck_assert_int_eq((int)query_outcome(&query), (int)outcome);
}

/* The letters that query_free or query_own must have. */
static void expect_set(struct slotset set, const char *letters, char letter)
{
    for (int i = 0; i < SLOTS; i++)
        ck_assert_int_eq(slotset_has(&set, i), letters[i] == letter);
}

SUITE(query, .set_up = begin);

/* It is open until the last of these answers, or until no more come: "end". */
static const struct {
    int wanted;      /* free ones; or with a key … */
    int own;         /* … so many */
    bool must_prove; /* … on a majority */
    const char *answers;
    const char *told; /* free where there is 0, or with a key its own: 2 */
} queries[] = {
    {1, 0, false, "011 011 011", "011"},
    {1, 0, false, "111 111 111", "111"},
    {1, 0, false, "110 110 111 111 110", "110"}, /* the last one decides */
    {1, 0, false, "111 111 110 111", "111"},     /* the last one could not */
    {2, 0, false, "001 011 001 001", "001"},
    {1, 1, false, "010 210 010", "2.."}, /* one node tells of the key */
    /* a lost try left its key on a node that was away: most nodes decide */
    {1, 1, false, "200 002 000 002 002", "..2"},
    {1, 1, false, "202 002 002", "..2"}, /* a majority has it */
    /* two were granted at once, or neither was: either will do */
    {1, 1, false, "022 002 020 end", ".2."},
    {1, 1, false, "200 020 000 000", NULL}, /* no majority can have one */
    {1, 2, false, "020 020 020", "..."},    /* fewer than are wanted */
    {1, 1, true, "200 200 000 000 000", "..."},
    {1, 1, true, "200 200 200", "2.."},
};

TEST_EACH(it_is_open_until_no_answer_matters, queries)
{
    struct span rest = span_of(queries[_i].answers);
    query_init(&query, NODES, SLOTS, queries[_i].wanted);
    if (queries[_i].own > 0)
        query_judge(&query, SLOTS, queries[_i].own, queries[_i].must_prove);
    for (int node = 0; rest.len > 0; node++) {
        expect(QUERY_OPEN);
        struct span answer = span_take(&rest, ' ');
        if (span_is(answer, "end"))
            query_note_rest(&query);
        else
            tell_rest(node, answer, -1);
    }
    expect(QUERY_REPORTED);
    if (queries[_i].told != NULL && queries[_i].own > 0)
        expect_set(query_own(&query), queries[_i].told, '2');
    else if (queries[_i].told != NULL)
        expect_set(query_free(&query), queries[_i].told, '0');
}

TEST(the_end_decides_what_is_in_doubt)
{
    tell(0, "110");
    tell(1, "110");
    tell(2, "111");
    query_note_rest(&query);
    expect(QUERY_REPORTED);
    expect_set(query_free(&query), "111", '0');
    tell(3, "000"); /* too late */
    expect_set(query_free(&query), "111", '0');
    ck_assert_int_eq(query.votes[3].vote, VOTE_UNANSWERED);
}

TEST(two_answers_of_five_are_no_quorum)
{
    tell(0, "000");
    tell(1, "000");
    fail_node(2, VOTE_DISCONNECTED);
    query_note_ballot(&query, 3, ballot_unfit(STATE_UNREACHABLE));
    expect(QUERY_OPEN);
    fail_node(4, VOTE_NOT_ADMITTED);
    expect(QUERY_NO_QUORUM);
}

TEST(a_majority_that_refuses_is_told)
{
    fail_node(0, VOTE_KEY_REFUSED);
    fail_node(1, VOTE_KEY_REFUSED);
    expect(QUERY_OPEN);
    fail_node(2, VOTE_KEY_REFUSED);
    expect(QUERY_REFUSED);
}

TEST(an_answer_about_other_slots_is_none)
{
    tell(0, "00");
    tell(1, "0000");
    ck_assert_int_eq(query.votes[0].vote, VOTE_UNREADABLE);
    ck_assert_int_eq(query.votes[1].vote, VOTE_UNREADABLE);
    ck_assert_int_eq(query.answers, 0);
}

TEST(a_slot_above_its_limit_is_not_its_own)
{
    query_judge(&query, 1, 1, false);
    for (int i = 0; i < 3; i++)
        tell(i, "020");
    expect_set(query_own(&query), "...", '2');
}

/* ---- when one is free ---------------------------------------------------- */

/* A slot is free when its key has ended on a majority. */
TEST(the_time_until_one_is_free_is_that_of_a_majority)
{
    ck_assert_int_eq(query_rest_ms(&query), -1);
    tell_rest(0, span_of("111"), 300);
    tell_rest(1, span_of("111"), 100);
    ck_assert_int_eq(query_rest_ms(&query), -1);
    tell_rest(2, span_of("111"), -1);
    ck_assert_int_eq(query_rest_ms(&query), -1);
    tell_rest(3, span_of("111"), 200);
    ck_assert_int_eq(query_rest_ms(&query), 300);
    tell_rest(4, span_of("111"), 0);
    ck_assert_int_eq(query_rest_ms(&query), 200);
}
