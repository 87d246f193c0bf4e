/*
 * Births on a real redis-server: when nodes were marked last. A node is told
 * those of others, and tells them; its own shows whether another machine under
 * its name was marked later.
 */

#include "../../lib/suite/suite.h"
#include "permit.h"

#define A "00000000000000aa"
#define B "00000000000000bb"
#define NONE "00000000000000000000000000"
#define BEAT(n) "0000000000000000000000000" #n
#define EARLY "17000000000000010000000007"
#define LATER "17000000000000010000000008" /* the same time, more chance */
#define LATEST "17000000000000020000000000"

SUITE(births, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

/* ---- of others ----------------------------------------------------------- */

TEST(an_admitted_node_keeps_the_latest_that_it_is_told)
{
    live_admit();
    PERMIT_ASSERT_WORD(permit_tell("m" A "=" NONE " m" B "=" EARLY),
                       LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, NONE EARLY);
    ck_assert_str_eq(permit_field("w:m" A), "");
    ck_assert_str_eq(permit_field("w:m" B), EARLY);
    PERMIT_ASSERT_WORD(permit_tell("m" B "=" LATER), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, LATER);
    PERMIT_ASSERT_WORD(permit_tell("m" B "=" EARLY), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, LATER);
    PERMIT_ASSERT_WORD(permit_tell("m" B "=" NONE), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, LATER);
    PERMIT_ASSERT_WORD(permit_tell("m" B "=" LATEST), LOOK_ADMITTED);
    ck_assert_str_eq(permit_field("w:m" B), LATEST);
}

/* A beat and a birth of one name are kept apart. */
TEST(beats_and_births_are_told_together)
{
    live_admit();
    PERMIT_ASSERT_WORD(permit_tell(A "=" BEAT(5) " m" A "=" EARLY " " B "=" NONE
                                                 " m" B "=" NONE),
                       LOOK_ADMITTED);
    PERMIT_ASSERT_WORD(permit_tell(A "=" BEAT(4) " m" A "=" NONE " " B
                                                 "=" BEAT(6) " m" B "=" LATER),
                       LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, BEAT(5) EARLY BEAT(6) LATER);
}

/* As of beats: check_memory.c. */
TEST(a_node_whose_memory_does_not_count_keeps_none)
{
    PERMIT_ASSERT_WORD(permit_tell("m" A "=" EARLY), LOOK_FRESH);
    ck_assert_str_eq(live.witnesses, NONE);
    permit_set("w:m" A, EARLY);
    PERMIT_ASSERT_WORD(permit_tell("m" A "=" LATER), LOOK_MARKED);
    ck_assert_str_eq(live.witnesses, EARLY);
    ck_assert_str_eq(permit_field("w:m" A), EARLY);
}

/* Nobody counts its votes yet, and its next admission has another birth. */
TEST(a_node_that_was_restarted_whole_keeps_them_too)
{
    permit_restart(7);
    PERMIT_ASSERT_WORD(permit_tell("m" A "=" EARLY), LOOK_MARKED);
    ck_assert_str_eq(live.witnesses, EARLY);
    ck_assert_str_eq(permit_field("w:m" A), EARLY);
    ck_assert_str_eq(permit_field("admit"), PERMIT_OLD);
}

static void expect_news(int news)
{
    char admit[CALL_STATE_MAX + 1];
    live_make_admission(admit, live.marked, news);
    ck_assert_str_eq(permit_field("admit"), admit);
    ck_assert_str_eq(live.admit, admit);
}

/* What is known already, and beats, are none. */
TEST(a_birth_that_is_stored_is_news)
{
    static const struct {
        const char *told;
        int news;
    } rows[] = {
        {"m" A "=" NONE, 0},
        {"m" A "=" EARLY, 1},
        {"m" A "=" EARLY, 1},
        {A "=" BEAT(5) " m" A "=" EARLY, 1},
        {"m" A "=" LATER " m" B "=" EARLY, 2}, /* by one look */
        {"m" A "=" EARLY " m" B "=" LATER, 3},
    };
    live_admit();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        PERMIT_ASSERT_WORD(permit_tell(rows[i].told), LOOK_ADMITTED);
        expect_news(rows[i].news);
    }
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    expect_news(3);
}

TEST(news_are_counted_beyond_all_digits)
{
    char admit[CALL_STATE_MAX + 1];
    live_admit();
    live_make_admission(admit, live.marked, 999999999);
    permit_set("admit", admit);
    PERMIT_ASSERT_WORD(permit_tell("m" A "=" EARLY), LOOK_ADMITTED);
    expect_news(1000000000);
}

/* So whoever counts a vote knows all births that the node knew when it voted.
 */
TEST(who_does_not_know_the_news_has_no_vote)
{
    static const struct {
        enum call_kind kind;
        const char *name, *token;
        enum vote vote; /* of who knows them */
    } rows[] = {
        {CALL_ACQUIRE, "s", "B", VOTE_GRANTED},
        {CALL_REPEAT, "t", "B", VOTE_GRANTED},
        {CALL_REPAIR, "u", "B", VOTE_GRANTED},
        {CALL_ACQUIRE, "v\nw", "B", VOTE_GRANTED},
        {CALL_EXTEND, "r", "A", VOTE_EXTENDED},
        {CALL_INSPECT, "none", "B", VOTE_FREE},
        {CALL_RELEASE, "none", "B", VOTE_FREE},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    live_admit();
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    PERMIT_ASSERT_WORD(permit_tell("m" A "=" EARLY), LOOK_ADMITTED);
    for (int is_known = 0; is_known < 2; is_known++) {
        for (int i = 0; i < ROWS; i++) {
            struct call call =
                live_call(rows[i].kind, rows[i].name, rows[i].token);
            call.slots[0] = (uint16_t)(20 + 2 * i);
            call.slots[1] = (uint16_t)(21 + 2 * i);
            ck_assert_int_eq(live_ask(&call),
                             is_known ? rows[i].vote : VOTE_NOT_ADMITTED);
        }
        live_make_admission(live.admission, live.marked, 1);
    }
}

/* A row asks once for all of it. */
TEST(a_row_that_does_not_know_the_news_has_no_vote)
{
    struct call calls[3];
    live_admit();
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"r", "s", "t"};
        calls[i] = live_call(CALL_ACQUIRE, names[i], "A");
        calls[i].slots[0] = (uint16_t)(20 + i);
    }
    PERMIT_ASSERT_WORD(permit_tell("m" A "=" EARLY), LOOK_ADMITTED);
    live_ask_all(calls, 3);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(live.votes[i], VOTE_NOT_ADMITTED);
    ck_assert_str_eq(permit_field("20"), "");
}

/* In the same call, so that no vote of it can lack them. */
TEST_RANGE(who_gives_the_permission_tells_them, 0, 2)
{
    if (_i == 0)
        PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    else
        permit_restart(7);
    permit_set("w:m" A, LATER);
    permit_set("w:" B, "5");
    struct call call = live_call(_i == 0 ? CALL_ADMIT : CALL_READMIT, "", "");
    call.found = span_of(PERMIT_OLD);
    call.witnesses = span_of(A "=7 m" A "=" EARLY " " B "=4 m" B "=" EARLY);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_str_eq(permit_field("w:m" A), LATER);
    ck_assert_str_eq(permit_field("w:m" B), EARLY);
    ck_assert_str_eq(permit_field("w:" A), "7");
    ck_assert_str_eq(permit_field("w:" B), "5");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
}

/* What comes late must not store anything either. */
TEST(an_admission_that_comes_late_tells_nothing)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    struct call call = live_call(CALL_ADMIT, "", "");
    call.witnesses = span_of("m" A "=" EARLY);
    PERMIT_ASSERT_WORD(permit_look_above(9, PERMIT_OTHER_NONCE), LOOK_CREATED);
    call.mark =
        span_of("1:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH "::run:m");
    ck_assert_int_eq(live_ask(&call), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("w:m" A), "");
}

/* ---- its own ------------------------------------------------------------- */

/* The birth of the node's mark. */
static const char *birth(void)
{
    static char text[CALL_BIRTH_LEN + 1];
    char admission[CALL_STATE_MAX + 1];
    live_make_admission(admission, permit_field("mark"), 0);
    memcpy(text, admission + strlen(LIVE_NAME), CALL_BIRTH_LEN);
    return text;
}

/* This time, and a chance that is no look's. */
static const char *birth_at(int64_t us)
{
    return textf("%016lld5555555555", (long long)us);
}

/* Whichever call makes it: a clock may lie behind another machine's. */
TEST_RANGE(a_mark_is_later_than_the_latest_that_is_known, 0, 8)
{
    int64_t ahead_us = _i % 2 == 0 ? 3600000000 : -3600000000;
    int64_t latest_us = live_node_now_us() + ahead_us;
    struct call call = live_call(_i / 2 == 3 ? CALL_REVOKE : CALL_LOOK, "", "");
    call.latest = span_of(birth_at(latest_us));
    if (_i / 2 == 1)
        call.floor = 5;
    if (_i / 2 >= 2)
        live_admit();
    call.is_renewing = _i / 2 == 2;
    if (_i == 5) { /* it is not earlier, so it stays */
        PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED);
        return;
    }
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    int64_t made_us = span_number((struct span){birth(), 16}, 16);
    if (_i % 2 == 0)
        ck_assert_int_eq(made_us, latest_us + 1);
    else
        (void)permit_mark_of(LIVE_NONCE); /* now */
    ck_assert_mem_eq(birth() + 16, LIVE_NONCE, 10);
}

/* Another machine that answers to the name was marked later. */
static const char *later_than(const char *text, int by)
{
    static char later[CALL_BIRTH_LEN + 1];
    memcpy(later, text, sizeof later);
    later[CALL_BIRTH_LEN - 1] = (char)(later[CALL_BIRTH_LEN - 1] + by);
    return later;
}

TEST_RANGE(story_45_a_mark_is_made_anew_if_a_later_one_is_known, 0, 3)
{
    char mark[CALL_STATE_MAX + 1];
    struct call call = live_call(CALL_LOOK, "", "");
    permit_restart(7);
    strcpy(mark, permit_field("mark"));
    call.nonce = span_of(PERMIT_OTHER_NONCE);
    call.latest = span_of(later_than(birth(), _i - 1));
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_MARKED); /* not yet */
    call.is_renewing = true;
    call.nonce = span_of("");
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_MARKED); /* a probe */
    ck_assert_str_eq(permit_field("mark"), mark);
    call.nonce = span_of(PERMIT_OTHER_NONCE);
    PERMIT_ASSERT_WORD(permit_ask(&call), _i == 2 ? LOOK_CREATED : LOOK_MARKED);
    ck_assert_int_eq(strcmp(permit_field("mark"), mark) != 0, _i == 2);
    ck_assert_str_eq(permit_field("admit"), PERMIT_OLD); /* still evidence */
    ck_assert_int_eq(permit_number("beat"), 7);
    call = live_call(CALL_READMIT, "", "");
    call.mark = span_of(mark);
    call.found = span_of(PERMIT_OLD);
    ck_assert_int_eq(live_ask(&call), _i == 2 ? VOTE_CHANGED : VOTE_DONE);
}

/* A machine that was outlived: its server marks it anew once the other one is
 * gone, and until then leaves it alone. */
TEST_RANGE(an_admitted_node_is_marked_anew_if_a_later_birth_is_known, 0, 3)
{
    char own[CALL_BIRTH_LEN + 1];
    struct call call = live_call(CALL_LOOK, "", "");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    strcpy(own, birth());
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    call.latest = span_of(later_than(own, _i - 1));
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED);
    call.is_renewing = true;
    call.nonce = span_of("");
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED); /* a probe */
    call.nonce = span_of(PERMIT_OTHER_NONCE);
    PERMIT_ASSERT_WORD(permit_ask(&call),
                       _i == 2 ? LOOK_CREATED : LOOK_ADMITTED);
    if (_i < 2)
        return;
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_str_eq(permit_field("mark"), live.mark);
    ck_assert_int_gt(strcmp(birth(), later_than(own, 1)), 0);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    PERMIT_ASSERT_WORD(permit_renew(own), LOOK_MARKED); /* once */
}
