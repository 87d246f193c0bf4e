/* SPDX-License-Identifier: MIT */
/*
 * The verdict tables, row by row, and what must hold for every sequence of
 * votes.
 * A round is written as a text, one letter a node; letters.h explains them.
 */
#include <string.h>

#include "../../../server/engine/rounds/round.h"
#include "../../lib/suite/suite.h"
#include "letters.h"

static struct round round_of;

static void begin(enum lock_call kind, int total)
{
    round_init(&round_of, kind, total, 1000, 51000);
}

static void vote(int node, char letter)
{
    struct call_reply reply = letters_reply(letter);
    round_note_reply(&round_of, node, &reply);
    round_of.found += letter == 'B'; /* the token that a force is for */
}

static enum verdict verdict_of(enum lock_call kind, struct span votes)
{
    begin(kind, (int)votes.len);
    for (int i = 0; i < (int)votes.len; i++)
        if (votes.ptr[i] != '.')
            vote(i, votes.ptr[i]);
    return round_verdict(&round_of);
}

static const struct row {
    enum lock_call kind;
    enum verdict verdict;
    const char *rounds; /* each has this verdict */
} rows[] = {
    {LOCK_ACQUIRE, VERDICT_OPEN,
     "gg... ug. gg.. uuA.. kk... kku.. kuu.. FGs.. sAA.. AAgg."},
    /* a majority of the configured nodes granted */
    {LOCK_ACQUIRE, VERDICT_WON, "ggg.. gguug g gg. ggg. kkggg FGggg"},
    {LOCK_ACQUIRE, VERDICT_REFUSED, "kkk.. uukkk k"},
    /* more than N - q without a vote */
    {LOCK_ACQUIRE, VERDICT_NO_QUORUM, "gguuu uqt.. uqtAA uu. u kkuug uuu.."},
    /* one value on a majority, or others' values: none of ours is racing */
    {LOCK_ACQUIRE, VERDICT_HELD,
     "AAA.. AAAgg XXX.. uuAAA AAAss A AA. FFF.. FGX.. FGXgg FGFss "
     "FGuuX FG."},
    /* a number was too low */
    {LOCK_ACQUIRE, VERDICT_STALE, "AAsgg sssgg s sss.."},
    {LOCK_ACQUIRE, VERDICT_SPLIT, "FGAgg FGggu AABBg AAggX AFFgg AAggu ABg"},
    {LOCK_EXTEND, VERDICT_OPEN, "ee... fff.."},
    {LOCK_EXTEND, VERDICT_WON, "kkeee eee.. eeeAA e"},
    {LOCK_EXTEND, VERDICT_REFUSED, "kkk.."},
    /* fewer than q answers, or q still possible with the silent ones */
    {LOCK_EXTEND, VERDICT_NO_QUORUM, "eeuuu uuu.. eefft eeAAq effuu t"},
    /* another value anywhere */
    {LOCK_EXTEND, VERDICT_NOT_OWNER, "effAu AAA.. fffA. A"},
    {LOCK_EXTEND, VERDICT_NOT_FOUND, "fffff eefff fffuu f"},
    {LOCK_RELEASE, VERDICT_OPEN, "uud.. dAA.. fff.."},
    /* deleted anywhere */
    {LOCK_RELEASE, VERDICT_WON, "ddd.. dff.. dAAuu d"},
    {LOCK_RELEASE, VERDICT_REFUSED, "kkk.."},
    /* fewer than q answers, deleted or not */
    {LOCK_RELEASE, VERDICT_NO_QUORUM, "kkudd dduuu uuu.. u"},
    /* another value on a majority, or on fewer and nothing deleted */
    {LOCK_RELEASE, VERDICT_NOT_OWNER, "AAA.. AAAdd A Affff ABffu"},
    {LOCK_RELEASE, VERDICT_NOT_FOUND, "fffff fffuu"},
    {LOCK_INSPECT, VERDICT_OPEN, "Auu.. ABX.. AFGf."},
    {LOCK_INSPECT, VERDICT_REFUSED, "kkk.."},
    /* fewer than q answers, or the silent ones could make the majority */
    {LOCK_INSPECT, VERDICT_NO_QUORUM, "uuu.. AAuuu u AAffu Affut XXffq Afu"},
    /* one value on a majority */
    {LOCK_INSPECT, VERDICT_FOUND, "kkAAA AAA.. AAAff XXX.. A"},
    /* nobody could acquire it; whichever reply comes first */
    {LOCK_INSPECT, VERDICT_BUSY, "AABff ABXf. ABu AABfu AFGfX AFGff"},
    {LOCK_INSPECT, VERDICT_NOT_FOUND, "AAfff Afffu ABffu fffuu fff.. f"},
    {LOCK_FORCE, VERDICT_OPEN, "BB... AAA.. ffff."},
    /* a number is searched for until it is found: B's */
    {LOCK_FORCE, VERDICT_WON, "BBf.. uuffB AAA.B"},
    {LOCK_FORCE, VERDICT_REFUSED, "kkkff"},
    {LOCK_FORCE, VERDICT_NO_QUORUM, "uuuBB ffuuu uuu.."},
    {LOCK_FORCE, VERDICT_NOT_OWNER, "AAAFX ffffA A"},
    {LOCK_FORCE, VERDICT_NOT_FOUND, "fffuu"},
};

SUITE(round, .timeout_s = 60);

TEST_EACH(verdict_tables, rows)
{
    struct span rest = span_of(rows[_i].rounds);
    while (rest.len > 0) {
        struct span votes = span_take(&rest, ' ');
        enum verdict verdict = verdict_of(rows[_i].kind, votes);
        ck_assert_msg(verdict == rows[_i].verdict,
                      "kind %d, votes %.*s: verdict %d", rows[_i].kind,
                      (int)votes.len, votes.ptr, verdict);
    }
}

/* If all readers are to be released, each node is waited for. */
TEST(all_tokens_are_found_when_each_node_has_answered)
{
    begin(LOCK_FORCE, 5);
    round_of.hears_all = true;
    for (int i = 0; i < 4; i++)
        vote(i, 'B');
    ck_assert_int_eq(round_verdict(&round_of), VERDICT_OPEN);
    vote(4, 'u');
    ck_assert_int_eq(round_verdict(&round_of), VERDICT_WON);
    begin(LOCK_FORCE, 5);
    round_of.hears_all = true;
    for (int i = 0; i < 3; i++)
        vote(i, 'u');
    ck_assert_int_eq(round_verdict(&round_of), VERDICT_NO_QUORUM);
}

/* The letters that a reply in a round of each kind can be. */
static const char *const alphabet[] = {
    [LOCK_ACQUIRE] = "gsABFXuk", [LOCK_EXTEND] = "efABuk",
    [LOCK_RELEASE] = "dfABuk",   [LOCK_INSPECT] = "fABXuk",
    [LOCK_FORCE] = "fABXuk",
};

static void next_text(char *text, const char *letters)
{
    for (; *text != '\0'; text++) {
        const char *at = strchr(letters, *text);
        if (at[1] != '\0') {
            *text = at[1];
            return;
        }
        *text = letters[0];
    }
}

static int power(int base, int exponent)
{
    int product = 1;
    while (exponent-- > 0)
        product *= base;
    return product;
}

/* A verdict that was given early is that of the complete votes. */
static void check_every_prefix(enum lock_call kind, int total)
{
    char text[NODES_MAX + 1] = {0};
    const char *letters = alphabet[kind];
    memset(text, letters[0], (size_t)total);
    for (int n = power((int)strlen(letters), total); n > 0; n--) {
        enum verdict final = verdict_of(kind, span_of(text));
        ck_assert_msg(final != VERDICT_OPEN, "%d %s stays open", kind, text);
        begin(kind, total);
        for (int i = 0; i < total; i++) {
            vote(i, text[i]);
            enum verdict early = round_verdict(&round_of);
            ck_assert_msg(early == VERDICT_OPEN || early == final,
                          "kind %d, votes %s: %d after %d, %d in the end", kind,
                          text, early, i + 1, final);
        }
        next_text(text, letters);
    }
}

TEST_RANGE(no_later_reply_changes_a_verdict, LOCK_ACQUIRE, LOCK_CALLS)
{
    for (int total = 1; total <= 5; total++)
        check_every_prefix((enum lock_call)_i, total);
}

TEST(quorum_is_the_majority_of_the_configured)
{
    static const int quorums[] = {0, 1, 2, 2, 3, 3, 4, 4, 5, 5};
    for (int n = 1; n <= NODES_MAX; n++)
        ck_assert_int_eq(quorum_of(n), quorums[n]);
}

TEST(a_second_reply_is_ignored)
{
    begin(LOCK_ACQUIRE, 3);
    vote(0, 'A');
    vote(0, 'g');
    ck_assert_int_eq(round_count(&round_of, VOTE_GRANTED), 0);
    ck_assert_int_eq(round_of.pending, 2);
}

static const struct {
    const char *votes;
    bool is_so;
} lost_to_time[] = {
    {"ttttt", true},  {"gg.tl", true}, {"lll..", true},  {"uutgg", true},
    {"qutAA", true},  {"uutll", true}, {"uuu..", false}, {"uuutt", false},
    {"uuugg", false}, {"t", true},     {"u", false},     {"tuu", false},
};

TEST_EACH(a_round_is_lost_to_time_if_time_could_have_won_it, lost_to_time)
{
    const char *votes = lost_to_time[_i].votes;
    (void)verdict_of(LOCK_ACQUIRE, span_of(votes));
    for (int i = 0; i < round_of.total; i++)
        round_note_sent(&round_of, i, 0);
    ck_assert_msg(round_is_lost_to_time(&round_of) == lost_to_time[_i].is_so,
                  "%s", votes);
}

/* It was not asked, as it was known to be. */
TEST(who_was_silent_before_is_not_too_slow)
{
    begin(LOCK_ACQUIRE, 3);
    for (int i = 0; i < 3; i++)
        round_note_ballot(&round_of, i,
                          (struct ballot){.vote = VOTE_UNANSWERED});
    ck_assert(!round_is_lost_to_time(&round_of));
}

TEST(a_broken_connection_is_remembered_after_the_vote)
{
    begin(LOCK_ACQUIRE, 3);
    round_note_rest(&round_of, VOTE_UNANSWERED);
    vote(1, 'u');
    ck_assert_uint_eq(round_of.broken, 1u << 1);
    ck_assert_int_eq(round_of.votes[1].vote, VOTE_UNANSWERED);
}

TEST(the_highest_number_is_kept)
{
    begin(LOCK_ACQUIRE, 3);
    vote(0, 's');
    struct call_reply lower = {.vote = VOTE_STALE, .highest = 5};
    round_note_reply(&round_of, 1, &lower);
    ck_assert_int_eq(round_of.highest, 77);
}

/* letters: of the values; a TTL of 0: none is there */
static int64_t remaining_with(const char *letters, const int64_t pttl_ms[],
                              int count)
{
    begin(LOCK_INSPECT, count);
    for (int i = 0; i < count; i++) {
        char letter = letters[i];
        if (pttl_ms[i] == 0)
            letter = 'f';
        struct call_reply reply = letters_reply(letter);
        reply.pttl_ms = pttl_ms[i];
        round_note_reply(&round_of, i, &reply);
    }
    return round_remaining_ms(&round_of);
}

static int64_t remaining_of(const int64_t pttl_ms[], int count)
{
    return remaining_with("AAAAA", pttl_ms, count);
}

/* Each node has a value of its own. */
TEST(remaining_of_others_values_is_the_quorum_th_largest)
{
    int64_t pttl_ms[] = {10, 50, 30, 20, 40};
    ck_assert_int_eq(remaining_with("FGXFG", pttl_ms, 5), 30);
    ck_assert_int_eq(remaining_with("FGAFG", pttl_ms, 5), 20);
    ck_assert_int_eq(remaining_with("FGABF", pttl_ms, 5), 10);
    ck_assert_int_eq(remaining_with("FGABB", pttl_ms, 5), -1);
    ck_assert_int_eq(remaining_with("AFAAG", pttl_ms, 5), 10);
}

TEST(remaining_is_the_quorum_th_largest)
{
    ck_assert_int_eq(remaining_of((int64_t[]){10, 50, 30, 20, 40}, 5), 30);
    ck_assert_int_eq(remaining_of((int64_t[]){10, 0, 30, 20, 0}, 5), 10);
    ck_assert_int_eq(remaining_of((int64_t[]){-1, -1, 30, -1, 9}, 5), -1);
    ck_assert_int_eq(remaining_of((int64_t[]){-1, -1, 30, 20, 9}, 5), 30);
    ck_assert_int_eq(remaining_of((int64_t[]){10, 0, 0, 20, 0}, 5), -1);
    ck_assert_int_eq(remaining_of((int64_t[]){15}, 1), 15);
}

/* A round that began at 1000; its majority came in so long after that. */
static void win(int64_t flight_us)
{
    begin(LOCK_ACQUIRE, 5);
    ck_assert_int_eq(round_validity_ms(&round_of, 30000, 1000, 0.01), -1);
    round_of.won_us = 1000 + flight_us;
}

static int64_t validity_ms(int64_t ttl_ms, int64_t elapsed_us, double drift)
{
    return round_validity_ms(&round_of, ttl_ms, 1000 + elapsed_us, drift);
}

/* 2 ms of the text, 5 ms of small steps. */
TEST(validity_is_ttl_minus_elapsed_minus_drift)
{
    win(0);
    ck_assert_int_eq(validity_ms(30000, 0, 0.01), 29693);
    ck_assert_int_eq(validity_ms(30000, 1, 0.01), 29692);
    ck_assert_int_eq(validity_ms(30000, 800, 0.01), 29692);
    ck_assert_int_eq(validity_ms(100, 0, 0.01), 92);
    ck_assert_int_eq(validity_ms(100, 92000, 0.01), 0);
    ck_assert_int_eq(validity_ms(100, 92001, 0.01), -1);
    ck_assert_int_eq(validity_ms(100, 900000, 0.0), -1);
}

/* A clock may have stepped by so much between the vote and what is known. */
TEST(story_49_the_flight_of_the_deciding_votes_is_paid_for)
{
    win(5000);
    ck_assert_int_eq(validity_ms(1000, 5000, 0.0), 1000 - 5 - 2 - 5);
    win(5001);
    ck_assert_int_eq(validity_ms(1000, 5001, 0.0), 1000 - 6 - 2 - 5);
    win(150000);
    ck_assert_int_eq(validity_ms(1000, 150000, 0.0), 1000 - 150 - 2 - 150);
    ck_assert_int_eq(validity_ms(1000, 200000, 0.01), 1000 - 200 - 12 - 150);
    ck_assert_int_eq(validity_ms(302, 150000, 0.0), 0);
    ck_assert_int_eq(validity_ms(301, 150000, 0.0), -1);
}
