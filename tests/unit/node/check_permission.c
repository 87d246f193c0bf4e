/*
 * The permission on the node: what look and admit do to a real Redis server's
 * state. Readmit and revoke are in check_permission_back.c, memory that was
 * replaced or rolled back in check_memory.c, and garbage in
 * check_permission_garbage.c.
 */
#include <stdio.h>

#include "../../lib/suite/suite.h"
#include "permit.h"

SUITE(permission, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

/* ---- look ---------------------------------------------------------------- */

TEST(a_node_without_state_is_empty_and_stays_so_at_a_probe)
{
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_EMPTY);
    ck_assert(!permit_has_state());
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(live.mark, "");
    ck_assert_int_eq(live.reply.look.max_ttl_ms, 0);
    ck_assert(!live.reply.look.is_durable);
    ck_assert_int_eq(live.reply.look.beat, 0);
    ck_assert_int_eq(live.reply.look.seen_us, 0);
    ck_assert_int_eq(live.reply.look.voted_us, 0);
    ck_assert_int_eq(live.reply.beat, 0);
}

TEST(a_node_without_state_is_marked_once)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_str_eq(live.mark, live.first_mark);
    ck_assert_str_eq(permit_field("mark"), live.first_mark);
    PERMIT_ASSERT_WORD(permit_look_with(PERMIT_OTHER_NONCE), LOOK_MARKED);
    ck_assert_str_eq(live.mark, live.first_mark);
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_MARKED);
    ck_assert_int_eq(master_integer(&live.master, "HLEN " PERMIT_STATE), 2);
    ck_assert_int_eq(master_integer(&live.master, "PTTL " PERMIT_STATE), -1);
}

TEST(a_state_without_a_mark_of_this_life_is_bare)
{
    permit_set("7", "5");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_BARE);
    ck_assert_int_eq(master_integer(&live.master, "HLEN " PERMIT_STATE), 1);
    permit_set("mark", "1:run:older:0:ffffffffffffffff");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_BARE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(permit_field("mark"), live.first_mark);
    ck_assert_str_eq(permit_field("7"), "5");
}

TEST(the_admission_of_an_older_life_stays_as_evidence)
{
    permit_set("admit", PERMIT_OLD);
    permit_set("beat", "5");
    permit_set("durable", "1");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    ck_assert_str_eq(permit_field("admit"), PERMIT_OLD);
    ck_assert_int_eq(live.reply.look.beat, 5);
    ck_assert_int_eq(live.reply.beat, 0);
    ck_assert(live.reply.look.is_durable);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_str_eq(live.admit, PERMIT_OLD);
    ck_assert_str_eq(permit_field("beat"), "5"); /* nobody saw it admitted */
}

TEST(a_look_at_an_admitted_node_is_counted)
{
    live_admit();
    permit_set("beat", "5");
    permit_set_number("max_ttl", 90000);
    permit_set_number("voted", 77);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.beat, 6);
    ck_assert_int_eq(live.reply.beat, 6);
    ck_assert_int_eq(permit_number("beat"), 6);
    ck_assert_int_eq(live.reply.look.max_ttl_ms, 90000);
    ck_assert_int_eq(live.reply.look.voted_us, 77);
    ck_assert_int_eq(permit_number("voted"), 77);
    ck_assert_str_eq(live.admit, live.admission);
    ck_assert_str_eq(live.mark, "");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_eq(permit_number("beat"), 7);
}

/* By the median of the nodes' clocks; a server without one sets nothing. */
TEST(a_look_says_when_the_node_was_seen)
{
    struct call call = live_call(CALL_LOOK, "", "");
    live_admit();
    call.median_us = LIVE_MEDIAN_US + 5;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("seen"), LIVE_MEDIAN_US + 5);
    ck_assert_int_eq(live.reply.look.seen_us, LIVE_MEDIAN_US + 5);
    call.median_us = 0;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("seen"), LIVE_MEDIAN_US + 5);
    call.median_us = LIVE_MEDIAN_US + 3; /* the median of another server */
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("seen"), LIVE_MEDIAN_US + 3);
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    call.median_us = LIVE_MEDIAN_US + 9;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    PERMIT_ASSERT_WORD(live.reply.look.word, LOOK_MARKED);
    ck_assert_int_eq(permit_number("seen"), LIVE_MEDIAN_US + 3);
}

TEST(stories_29_and_44_durability_that_ended_is_written_down)
{
    live_admit();
    ck_assert_str_eq(permit_field("durable"), "1");
    struct call call = live_call(CALL_LOOK, "", "");
    call.is_durable = false;
    call.nonce = span_of("");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert(!live.reply.look.is_durable);
    ck_assert_str_eq(permit_field("durable"), "0");
    PERMIT_ASSERT_WORD(permit_look(),
                       LOOK_ADMITTED); /* and no look writes it back */
    ck_assert(!live.reply.look.is_durable);
    ck_assert_str_eq(permit_field("durable"), "0");
}

TEST(story_06_a_flush_takes_permission_and_mark)
{
    live_admit();
    master_text(&live.master, "FLUSHALL");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_EMPTY);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_str_eq(permit_field("admit"), "");
}

/* ---- marks --------------------------------------------------------------- */

/* The node may have gone on promising while the command was delayed, so nobody
 * knows when it stopped. */
TEST_RANGE(a_mark_tells_when_it_was_made_if_that_is_known, 0, 8)
{
    struct call call = live_call(_i % 2 == 0 ? CALL_LOOK : CALL_REVOKE, "", "");
    char expected[CALL_STATE_MAX + 1];
    live_make_mark(expected, _i < 2 ? LIVE_MEDIAN_US : 0, LIVE_NONCE);
    if (_i / 2 == 1)
        call.node_deadline_us = live_node_now_us() - 1000000;
    else if (_i / 2 == 2)
        call.node_deadline_us = 0; /* nor do we know the node's clock */
    else if (_i / 2 == 3)
        call.median_us = 0;
    call.found = span_of("");
    if (call.kind == CALL_REVOKE)
        live_admit();
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_str_eq(permit_field("mark"), expected);
}

static enum call_look_word object(const char *nonce)
{
    struct call call = live_call(CALL_LOOK, "", "");
    call.nonce = span_of(nonce);
    call.is_objecting = true;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    return live.reply.look.word;
}

/* Another machine that answers to the name has a later mark. */
TEST_RANGE(story_45_a_mark_is_made_anew_if_a_later_one_is_known, 0, 4)
{
    static const int64_t later_us[] = {INT64_MIN, -1, 0, 1};
    struct call call = live_call(CALL_LOOK, "", "");
    permit_restart(7);
    call.latest_us =
        later_us[_i] == INT64_MIN ? 0 : LIVE_MEDIAN_US + later_us[_i];
    call.median_us = LIVE_MEDIAN_US + 2;
    call.nonce = span_of("");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    PERMIT_ASSERT_WORD(live.reply.look.word, LOOK_MARKED); /* a probe */
    call.nonce = span_of(PERMIT_OTHER_NONCE);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    PERMIT_ASSERT_WORD(live.reply.look.word,
                       _i == 3 ? LOOK_CREATED : LOOK_MARKED);
    ck_assert_str_eq(permit_field("admit"), PERMIT_OLD); /* still evidence */
    ck_assert_int_eq(permit_number("beat"), 7);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD),
                     _i == 3 ? VOTE_CHANGED : VOTE_DONE);
}

/* However often another server tries. */
TEST(story_46_who_saw_an_admission_replaces_the_mark_of_a_first_start)
{
    static const char first[] = "first-00112233445566ff";
    char mark[CALL_STATE_MAX + 1];
    live_make_mark(mark, LIVE_MEDIAN_US, first);
    for (int i = 0; i < 2; i++) {
        master_text(&live.master, "FLUSHALL");
        PERMIT_ASSERT_WORD(permit_look_with(first), LOOK_FRESH);
        ck_assert_str_eq(live.mark, mark);
        PERMIT_ASSERT_WORD(
            permit_look(),
            LOOK_MARKED); /* from a server that saw no admission */
        PERMIT_ASSERT_WORD(object(""), LOOK_MARKED); /* a probe */
        ck_assert_str_eq(permit_field("mark"), mark);
        PERMIT_ASSERT_WORD(object(LIVE_NONCE), LOOK_CREATED);
        ck_assert_str_eq(live.mark, live.first_mark);
        ck_assert_int_eq(permit_admit(mark), VOTE_CHANGED);
        PERMIT_ASSERT_WORD(object(PERMIT_OTHER_NONCE), LOOK_MARKED);
        ck_assert_str_eq(permit_field("mark"), live.first_mark);
    }
}

/* ---- configurations ------------------------------------------------------ */

static const struct {
    const char *admit, *mark; /* NULL: live.first_mark */
    enum call_look_word word;
} others[] = {
    {"2:fingerprint:run", "", LOOK_SUPERSEDED},
    {"", "2:run:n", LOOK_SUPERSEDED},
    {LIVE_ADMIT, "2:run:n", LOOK_SUPERSEDED},
    {"10:fingerprint:run", "", LOOK_SUPERSEDED},
    {"99999999999999999999:f:run", "", LOOK_SUPERSEDED},
    {"1:another:run", "", LOOK_FOREIGN},
    {"1:fingerprintx:run", "", LOOK_FOREIGN},
    {"1:another:run", NULL, LOOK_FOREIGN},
    {"01:fingerprint:run", "", LOOK_FOREIGN},
};

TEST(story_10_another_configuration_is_never_touched)
{
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        master_text(&live.master, "FLUSHALL");
        char before[256];
        if (others[i].admit[0] != '\0')
            permit_set("admit", others[i].admit);
        if (others[i].mark == NULL || others[i].mark[0] != '\0')
            permit_set("mark", others[i].mark != NULL ? others[i].mark
                                                      : live.first_mark);
        permit_set("beat", "5");
        permit_set("durable", "1");
        snprintf(before, sizeof before, "%s", permit_field("mark"));
        struct call call = live_call(CALL_LOOK, "", "");
        call.floor = 6;
        call.is_durable = false;
        ck_assert_int_eq(live_ask(&call), VOTE_DONE);
        PERMIT_ASSERT_WORD(live.reply.look.word, others[i].word);
        ck_assert_str_eq(live.admit, others[i].admit);
        ck_assert_str_eq(live.mark, before);
        ck_assert_str_eq(permit_field("admit"), others[i].admit);
        ck_assert_str_eq(permit_field("mark"), before);
        ck_assert_str_eq(permit_field("beat"), "5");
        ck_assert_str_eq(permit_field("durable"), "1");
        ck_assert_int_eq(permit_admit(live.first_mark),
                         others[i].mark == NULL ? VOTE_DONE : VOTE_CHANGED);
    }
}

TEST(story_32_a_lower_epoch_is_marked_and_has_no_vote_from_then_on)
{
    live_admit();
    permit_set("mark", "1:run:older:0:n");
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of("2:fingerprint:0123456789abcdef:run");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    PERMIT_ASSERT_WORD(live.reply.look.word, LOOK_CREATED);
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_int_eq(permit_field("mark")[0], '2');
    ck_assert_str_eq(permit_field("mark") + 1, live.first_mark + 1);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_QUARANTINED);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_SUPERSEDED);
}

/* ---- admit --------------------------------------------------------------- */

TEST(an_admission_ends_the_quarantine)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_admit(live.first_mark), VOTE_DONE);
    ck_assert_str_eq(permit_field("admit"), live.admission);
    ck_assert_str_eq(permit_field("mark"), "");
    ck_assert_str_eq(permit_field("durable"), "1");
    ck_assert_str_eq(permit_field("evicted"), "0");
    ck_assert_int_eq(permit_number("max_ttl"), LIVE_TTL_MS);
    ck_assert_int_eq(permit_number("beat"), LIVE_MEDIAN_US + 1);
    ck_assert_int_eq(live.reply.beat, LIVE_MEDIAN_US + 1);
    ck_assert_int_eq(permit_number("seen"), LIVE_MEDIAN_US);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
}

TEST_RANGE(story_26_an_admission_that_comes_late_does_nothing, 0, 3)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    if (_i == 0) {
        ck_assert_int_eq(permit_admit(live.first_mark), VOTE_DONE);
        ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    } else {
        master_text(&live.master, "FLUSHALL");
        if (_i == 2)
            PERMIT_ASSERT_WORD(permit_look_with(PERMIT_OTHER_NONCE),
                               LOOK_FRESH);
    }
    ck_assert_int_eq(permit_admit(live.first_mark), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_str_eq(permit_field("mark"), _i == 1 ? "" : permit_other_mark());
    ck_assert(permit_has_state() == (_i != 1));
}

TEST(the_second_of_two_admissions_does_nothing)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_admit(live.first_mark), VOTE_DONE);
    ck_assert_int_eq(permit_admit(live.first_mark), VOTE_CHANGED);
    ck_assert_int_eq(permit_admit(""), VOTE_CHANGED);
    ck_assert_int_eq(permit_number("beat"), LIVE_MEDIAN_US + 1);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
}

/* Only with the mark that was seen, not that of another life or memory. */
TEST(a_mark_of_another_life_admits_nobody)
{
    static const char *const marks[] = {"1:old:m:0:n", "1:run:m:0:n",
                                        "2:run:m:0:n", "", "x"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        permit_set("mark", marks[i]);
        ck_assert_int_eq(permit_admit(marks[i]), VOTE_CHANGED);
        ck_assert_str_eq(permit_field("admit"), "");
    }
}

/* Above every beat that was seen, and above the time: no memory that is
 * restored later has a beat as high. */
TEST_RANGE(an_admission_begins_above_all_beats_before, 0, 10)
{
    static const struct {
        int64_t kept, floor, above;
    } rows[] = {
        {0, 0, LIVE_MEDIAN_US},
        {7, 9, LIVE_MEDIAN_US},
        {LIVE_MEDIAN_US + 5, 9, LIVE_MEDIAN_US + 5},
        {LIVE_MEDIAN_US + 5, LIVE_MEDIAN_US + 7, LIVE_MEDIAN_US + 7},
        {0, LIVE_MEDIAN_US + 7, LIVE_MEDIAN_US + 7},
    };
    struct call call = live_call(_i < 5 ? CALL_ADMIT : CALL_READMIT, "", "");
    if (call.kind == CALL_ADMIT)
        PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    else
        permit_restart(1);
    permit_set_number("beat", rows[_i % 5].kept);
    call.found = span_of(PERMIT_OLD);
    call.floor = rows[_i % 5].floor;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("beat"), rows[_i % 5].above + 1);
    ck_assert_int_eq(live.reply.beat, rows[_i % 5].above + 1);
    PERMIT_ASSERT_WORD(permit_look_above(call.floor, LIVE_NONCE),
                       LOOK_ADMITTED);
}

/* The quarantine lasted for the greatest TTL; now the present one is enough. */
TEST(story_33_an_admission_names_the_ttl_of_the_configuration)
{
    static const int ttls[] = {5000, 90000, 60000};
    for (int i = 0; i < 3; i++) {
        struct call call = live_call(CALL_ADMIT, "", "");
        PERMIT_ASSERT_WORD(permit_look(), i == 0 ? LOOK_FRESH : LOOK_MARKED);
        call.mark = span_of(i == 0 ? live.first_mark : permit_other_mark());
        call.max_ttl_ms = ttls[i];
        ck_assert_int_eq(live_ask(&call), VOTE_DONE);
        ck_assert_int_eq(permit_number("max_ttl"), ttls[i]);
        ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
        ck_assert_int_eq(permit_number("max_ttl"), ttls[i]);
    }
}
