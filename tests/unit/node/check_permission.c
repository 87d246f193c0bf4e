/*
 * The permission on the node: what look and admit do to a real Redis server's
 * state. Readmit and revoke are in check_permission_back.c, memory that was
 * replaced or rolled back in check_memory.c, what the node tells of its
 * promises in check_until.c and check_bar.c, births in check_births.c, and
 * garbage in check_permission_garbage.c.
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
    ck_assert_int_eq(live.reply.look.rest_us, 0);
    ck_assert_int_eq(live.reply.look.number, 0);
    ck_assert_int_eq(live.reply.beat, 0);
}

TEST(a_node_without_state_is_marked_once)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    const char *mark = permit_mark_of(LIVE_NONCE);
    ck_assert_str_eq(live.mark, mark);
    PERMIT_ASSERT_WORD(permit_look_with(PERMIT_OTHER_NONCE), LOOK_MARKED);
    ck_assert_str_eq(live.mark, mark);
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_MARKED);
    ck_assert_int_eq(master_integer(&live.master, "HLEN " PERMIT_STATE), 1);
    ck_assert_int_eq(master_integer(&live.master, "PTTL " PERMIT_STATE), -1);
}

TEST(a_state_without_a_mark_of_this_life_is_bare)
{
    permit_set("7", "5");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_BARE);
    ck_assert_int_eq(master_integer(&live.master, "HLEN " PERMIT_STATE), 1);
    permit_set("mark", "1:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH
                       "::run:older");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_BARE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    ck_assert_str_eq(live.mark, permit_mark_of(LIVE_NONCE));
    ck_assert_str_eq(permit_field("7"), "5");
}

TEST(the_admission_of_an_older_life_stays_as_evidence)
{
    permit_restart(5);
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
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(live.reply.look.beat, 6);
    ck_assert_int_eq(live.reply.beat, 6);
    ck_assert_int_eq(permit_number("beat"), 6);
    ck_assert_str_eq(live.admit, live.admission);
    ck_assert_str_eq(live.mark, "");
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_eq(permit_number("beat"), 7);
}

/* So that a server with a lower limit knows how long the locks of others may
 * live. */
TEST(a_look_raises_the_greatest_ttl)
{
    static const int told[] = {60000, 90000, 60000, 5000, 90001};
    static const int kept[] = {60000, 90000, 90000, 90000, 90001};
    struct call call = live_call(CALL_LOOK, "", "");
    live_admit();
    permit_set("max_ttl", "5000");
    for (int i = 0; i < 5; i++) {
        call.max_ttl_ms = told[i];
        PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_ADMITTED);
        ck_assert_int_eq(live.reply.look.max_ttl_ms, kept[i]);
        ck_assert_int_eq(permit_number("max_ttl"), kept[i]);
    }
    ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    call.max_ttl_ms = 95000; /* such a server can have promised nothing here */
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_MARKED);
    ck_assert_int_eq(live.reply.look.max_ttl_ms, 90001);
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

/* As the first mark of a node, or in place of an admission. */
TEST_RANGE(a_mark_tells_when_it_was_made, 0, 2)
{
    struct call call = live_call(_i == 0 ? CALL_LOOK : CALL_REVOKE, "", "");
    if (call.kind == CALL_REVOKE)
        live_admit();
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    (void)permit_mark_of(LIVE_NONCE);
}

static enum call_look_word object(const char *nonce)
{
    struct call call = live_call(CALL_LOOK, "", "");
    call.nonce = span_of(nonce);
    call.is_objecting = true;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    return live.reply.look.word;
}

/* However often another server tries. */
TEST(story_46_who_saw_an_admission_replaces_the_mark_of_a_first_start)
{
    static const char first[] = "0011223344:first";
    char mark[CALL_STATE_MAX + 1];
    for (int i = 0; i < 2; i++) {
        master_text(&live.master, "FLUSHALL");
        PERMIT_ASSERT_WORD(permit_look_with(first), LOOK_FRESH);
        strcpy(mark, permit_mark_of(first));
        ck_assert_str_eq(live.mark, mark);
        PERMIT_ASSERT_WORD(
            permit_look(),
            LOOK_MARKED); /* from a server that saw no admission */
        PERMIT_ASSERT_WORD(object(""), LOOK_MARKED); /* a probe */
        ck_assert_str_eq(permit_field("mark"), mark);
        PERMIT_ASSERT_WORD(object(LIVE_NONCE), LOOK_CREATED);
        ck_assert_str_eq(live.mark, permit_mark_of(LIVE_NONCE));
        ck_assert_int_eq(permit_admit(mark), VOTE_CHANGED);
        PERMIT_ASSERT_WORD(object(PERMIT_OTHER_NONCE), LOOK_MARKED);
        ck_assert_str_eq(permit_field("mark"), live.marked);
    }
}

/* ---- configurations ------------------------------------------------------ */

/* Whose mark is NULL has one of ours. */
static const struct {
    const char *admit, *mark;
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

static void set_unless_empty(const char *name, const char *value)
{
    if (value[0] != '\0')
        permit_set(name, value);
}

TEST_EACH(story_10_another_configuration_is_never_touched, others)
{
    const char *own =
        textf(LIVE_NAME PERMIT_OLD_BIRTH ":%s", live.of_this_life);
    const char *admit = others[_i].admit;
    const char *mark = others[_i].mark != NULL ? others[_i].mark : own;
    struct call call = live_call(CALL_LOOK, "", "");
    set_unless_empty("admit", admit);
    set_unless_empty("mark", mark);
    permit_set("beat", "5");
    permit_set("durable", "1");
    call.floor = 6;
    call.is_durable = false;
    PERMIT_ASSERT_WORD(permit_ask(&call), others[_i].word);
    ck_assert_str_eq(live.admit, admit);
    ck_assert_str_eq(live.mark, mark);
    ck_assert_str_eq(permit_field("admit"), admit);
    ck_assert_str_eq(permit_field("mark"), mark);
    ck_assert_str_eq(permit_field("beat"), "5");
    ck_assert_str_eq(permit_field("durable"), "1");
    ck_assert_int_eq(permit_admit(own), mark == own ? VOTE_DONE : VOTE_CHANGED);
}

/* One machine that two names lead to: it stays what it is. */
TEST_RANGE(a_node_that_is_admitted_under_another_name_is_not_touched, 0, 2)
{
    static const char theirs[] = "1:fingerprint:fedcba9876543210:";
    char admit[CALL_STATE_MAX + 1];
    struct call call = live_call(CALL_LOOK, "", "");
    live_admit();
    PRINT_TO(admit, "%s" PERMIT_OLD_BIRTH ":0%s", theirs, live.of_this_life);
    permit_set("admit", admit);
    permit_set("beat", "5");
    call.floor = 6;
    call.is_durable = false;
    call.witnesses = span_of("00000000000000aa=5");
    if (_i == 1)
        call.nonce = span_of("");
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_MISNAMED);
    ck_assert_str_eq(live.admit, admit);
    ck_assert_str_eq(live.mark, "");
    ck_assert_str_eq(permit_field("admit"), admit);
    ck_assert_str_eq(permit_field("mark"), "");
    ck_assert_str_eq(permit_field("beat"), "5");
    ck_assert_str_eq(permit_field("durable"), "1");
    ck_assert_str_eq(permit_field("w:00000000000000aa"), "");
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    ck_assert_int_eq(permit_revoke(""), VOTE_CHANGED);
}

TEST(story_32_a_lower_epoch_is_marked_and_has_no_vote_from_then_on)
{
    live_admit();
    permit_set("mark", "1:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH
                       "::run:older");
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of("2:fingerprint:0123456789abcdef:run");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    PERMIT_ASSERT_WORD(live.reply.look.word, LOOK_CREATED);
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_str_eq(permit_field("mark"), live.mark);
    ck_assert_int_eq(live.mark[0], '2');
    live.mark[0] = '1';
    ck_assert(live_is_mark_of(live.mark, LIVE_NONCE));
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_NOT_ADMITTED);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_SUPERSEDED);
}

/* It has all its memory of other names, or not. */
static const struct {
    const char *admit;
    bool is_of_this_life, is_taken;
} taken[] = {
    {"1:another:0123456789abcdef:" PERMIT_OLD_BIRTH ":3", true, true},
    {"1:another:0123456789abcdef:" PERMIT_OLD_BIRTH ":3", false, false},
    {"1:another:fedcba9876543210:" PERMIT_OLD_BIRTH ":3", true, false},
    {"1:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH ":3", true, true},
    {"1:another:0123456789abcdef::3", true, false},
};

TEST_EACH(story_59_who_voted_under_other_names_tells_what_it_promised, taken)
{
    char admit[CALL_STATE_MAX + 1];
    live_admit();
    PRINT_TO(admit, "%s%s", taken[_i].admit,
             taken[_i].is_of_this_life ? live.of_this_life : ":older:m");
    permit_set("admit", admit);
    permit_set_number("until", live.reply.node_now_us + 3600000000);
    permit_set("top", "77");
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of("2:fingerprint:0123456789abcdef:run");
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_CREATED);
    ck_assert_str_eq(live.admit, "");
    ck_assert_str_eq(live.taken, taken[_i].is_taken ? admit : "");
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_str_eq(permit_field("mark"), live.mark);
    ck_assert_int_gt(live.reply.look.rest_us, 3590000000);
    ck_assert_int_eq(live.reply.look.number, 77);
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_MARKED);
    ck_assert_str_eq(live.admit, "");
}

/* ---- what was taken from other names ------------------------------------- */

static char old_admit[CALL_STATE_MAX + 1];

/* A look with these names marks the node, or not. */
static enum call_look_word look_as(const char *names, bool is_established)
{
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of(textf("%s:0123456789abcdef:run", names));
    call.is_established = is_established;
    return permit_ask(&call);
}

/* Admits the node that was marked; these names are dead. */
static void admit_as(const char *names, const char *dead)
{
    struct call call = live_call(CALL_ADMIT, "", "");
    call.admit = span_of(textf("%s:0123456789abcdef:run", names));
    call.mark = span_of(live.marked);
    call.dead = span_of(dead);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
}

static void take(void)
{
    live_admit();
    PRINT_TO(old_admit, "1:another:0123456789abcdef:" PERMIT_OLD_BIRTH ":3%s",
             live.of_this_life);
    permit_set("admit", old_admit);
    PERMIT_ASSERT_WORD(look_as("2:first", false), LOOK_CREATED);
    ck_assert_str_eq(live.taken, old_admit);
}

TEST(story_65_what_was_taken_is_told_until_the_node_votes_again)
{
    take();
    PERMIT_ASSERT_WORD(look_as("2:first", false), LOOK_MARKED);
    ck_assert_str_eq(live.taken, old_admit);
    ck_assert_str_eq(live.passed, "");
    admit_as("2:first", "1:another:");
    ck_assert_str_eq(permit_field("taken"), "");
    PERMIT_ASSERT_WORD(look_as("2:first", false), LOOK_ADMITTED);
    ck_assert_str_eq(live.taken, "");
    ck_assert_str_eq(live.passed, "1:another:");
    PERMIT_ASSERT_WORD(look_as("1:another", false), LOOK_SUPERSEDED);
    ck_assert_str_eq(live.passed, "");
}

/* All of its nodes may restart at once. */
TEST(story_65_who_is_dead_is_told_after_a_restart)
{
    live_admit();
    permit_set("dead", "1:another:");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_str_eq(live.passed, "1:another:");
    permit_restart(live.reply.look.beat);
    ck_assert_str_eq(live.passed, "1:another:");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_MARKED);
    ck_assert_str_eq(live.passed, "1:another:");
}

static const char *admit_knowing(const char *dead)
{
    struct call call = live_call(CALL_ADMIT, "", "");
    permit_drop("admit");
    PERMIT_ASSERT_WORD(permit_look(), LOOK_CREATED);
    call.mark = span_of(live.marked);
    call.dead = span_of(dead);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    return permit_field("dead");
}

/* A node may be away for several changes. */
TEST(story_65_who_was_dead_before_is_kept)
{
    char dead[CALL_STATE_MAX + 1] = "";
    live_admit();
    ck_assert_str_eq(admit_knowing("11:a:"), "11:a:");
    ck_assert_str_eq(admit_knowing("1:a:"), "1:a:11:a:");
    ck_assert_str_eq(admit_knowing("1:a:"), "1:a:11:a:");
    ck_assert_str_eq(admit_knowing("2:b:11:a:"), "2:b:11:a:1:a:");
    for (int i = 0; i < 20; i++) { /* … and the oldest dropped */
        char before[CALL_STATE_MAX + 1];
        strcpy(before, dead);
        PRINT_TO(dead, "%d:0123456789abcdef:", 100 + i);
        size_t len = strlen(dead);
        PRINT_TO(dead, "%s", admit_knowing(dead));
        if (i > 0)
            ck_assert(strncmp(dead + len, before, strlen(before) - len) == 0);
        ck_assert_int_eq(dead[strlen(dead) - 1], ':');
        PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
        ck_assert_str_eq(live.passed, dead);
    }
}

/* Nobody counts it as a mark in between, as its epoch is lower; and a server
 * that does not know it leaves it there. */
TEST(story_65_who_is_dead_is_told_while_the_node_votes)
{
    take();
    admit_as("2:first", "1:another:");
    ck_assert_str_eq(permit_field("dead"), "1:another:");
    PERMIT_ASSERT_WORD(look_as("3:second", false), LOOK_CREATED);
    ck_assert_str_eq(live.passed, "1:another:");
    admit_as("3:second", "");
    PERMIT_ASSERT_WORD(look_as("3:second", false), LOOK_ADMITTED);
    ck_assert_str_eq(live.passed, "1:another:");
    ck_assert_str_eq(permit_field("dead"), "1:another:");
}

TEST(story_65_each_mark_that_it_passed_is_told)
{
    take();
    PERMIT_ASSERT_WORD(look_as("3:second", false), LOOK_CREATED);
    ck_assert_str_eq(live.taken, old_admit);
    ck_assert_str_eq(live.passed, "2:first:");
    PERMIT_ASSERT_WORD(look_as("5:third", false), LOOK_CREATED);
    ck_assert_str_eq(live.taken, old_admit);
    ck_assert_str_eq(live.passed, "2:first:3:second:");
    ck_assert_str_eq(permit_field("passed"), "2:first:3:second:");
}

/* Else nobody could ever tell who may have counted it: so the last list that
 * marked it has to go on. */
TEST(story_65_it_passes_no_more_marks_than_it_can_tell)
{
    char names[CALL_STATE_MAX + 1], last[CALL_STATE_MAX + 1] = "";
    int epoch = 3;
    take();
    for (; epoch < 30; epoch++) {
        PRINT_TO(names, "%d:0123456789abcdef", epoch);
        if (look_as(names, false) != LOOK_CREATED)
            break;
        PRINT_TO(last, "%s", names);
    }
    ck_assert_int_gt(epoch, 9);
    ck_assert_int_lt(epoch, 20);
    PERMIT_ASSERT_WORD(look_as(names, false), LOOK_FOREIGN);
    ck_assert_str_eq(live.taken, old_admit);
    ck_assert_uint_le(strlen(live.passed), CALL_STATE_MAX - 25);
    PERMIT_ASSERT_WORD(look_as(last, false), LOOK_MARKED);
    ck_assert_str_eq(live.taken, old_admit);
    PERMIT_ASSERT_WORD(look_as(names, true), LOOK_CREATED); /* ours vote */
}

TEST(story_65_of_two_that_take_over_at_once_neither_takes_from_the_other)
{
    take();
    PERMIT_ASSERT_WORD(look_as("2:rival", false), LOOK_FOREIGN);
    ck_assert_str_eq(live.taken, old_admit);
    PERMIT_ASSERT_WORD(look_as("1:another", false), LOOK_SUPERSEDED);
    PERMIT_ASSERT_WORD(look_as("2:rival", true), LOOK_CREATED);
    ck_assert_str_eq(live.passed, "2:first:");
}

/* Nobody was replaced: such a mark may be a mistake. */
TEST(a_mark_that_has_taken_nothing_is_replaced)
{
    PERMIT_ASSERT_WORD(look_as("2:first", false), LOOK_FRESH);
    PERMIT_ASSERT_WORD(look_as("2:rival", false), LOOK_CREATED);
    ck_assert_str_eq(live.taken, "");
    ck_assert_str_eq(live.passed, "");
}

TEST(story_65_a_lower_epoch_of_the_same_names_takes_nothing_back)
{
    take();
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of("1:first:0123456789abcdef:run");
    call.is_renewing = true;
    PERMIT_ASSERT_WORD(permit_ask(&call), LOOK_SUPERSEDED);
}

/* Its run_id or its memory is another one, or a name led elsewhere meanwhile.
 */
TEST_RANGE(story_65_what_another_life_had_is_not_told, 0, 3)
{
    take();
    if (_i == 0)
        permit_set("taken", "1:another:0123456789abcdef:" PERMIT_OLD_BIRTH
                            ":3:older:memory");
    struct call call = live_call(CALL_LOOK, "", "");
    call.admit = span_of(_i == 2 ? "2:first:fedcba9876543210:run"
                                 : "2:first:0123456789abcdef:run");
    if (_i == 1) {
        call.is_renewing = true;
        call.latest = span_of("99999999999999991234567890");
    }
    (void)permit_ask(&call);
    ck_assert_str_eq(live.taken, "");
}

/* Its clock stepped: what it promised may have ended too early. */
TEST(story_65_who_loses_its_permission_tells_nothing)
{
    take();
    struct call call = live_call(CALL_REVOKE, "", "");
    call.admit = span_of("2:first:0123456789abcdef:run");
    call.nonce = span_of(LIVE_NONCE);
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    PERMIT_ASSERT_WORD(look_as("2:first", false), LOOK_MARKED);
    ck_assert_str_eq(live.taken, "");
}

/* ---- admit --------------------------------------------------------------- */

TEST(an_admission_ends_the_quarantine)
{
    char expected[CALL_STATE_MAX + 1];
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    live_make_admission(expected, live.marked, 0); /* of the mark's birth */
    ck_assert_str_eq(permit_field("admit"), expected);
    ck_assert_str_eq(permit_field("mark"), "");
    ck_assert_str_eq(permit_field("durable"), "1");
    ck_assert_str_eq(permit_field("evicted"), "0");
    ck_assert_int_eq(permit_number("max_ttl"), LIVE_TTL_MS);
    ck_assert_int_eq(permit_number("beat"), LIVE_MEDIAN_US + 1);
    ck_assert_int_eq(live.reply.beat, LIVE_MEDIAN_US + 1);
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
}

TEST_RANGE(story_26_an_admission_that_comes_late_does_nothing, 0, 3)
{
    char mark[CALL_STATE_MAX + 1];
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    strcpy(mark, live.mark);
    if (_i == 0) {
        ck_assert_int_eq(permit_admit(mark), VOTE_DONE);
        ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
    } else {
        master_text(&live.master, "FLUSHALL");
        if (_i == 2)
            PERMIT_ASSERT_WORD(permit_look_with(PERMIT_OTHER_NONCE),
                               LOOK_FRESH);
    }
    ck_assert_int_eq(permit_admit(mark), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("admit"), "");
    if (_i == 1)
        ck_assert(!permit_has_state());
    else
        (void)permit_mark_of(PERMIT_OTHER_NONCE);
}

TEST(the_second_of_two_admissions_does_nothing)
{
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    ck_assert_int_eq(permit_admit(live.marked), VOTE_CHANGED);
    ck_assert_int_eq(permit_admit(""), VOTE_CHANGED);
    ck_assert_int_eq(permit_number("beat"), LIVE_MEDIAN_US + 1);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
}

/* Only with the mark that was seen, not that of another life or memory. */
TEST(a_mark_of_another_life_admits_nobody)
{
    static const char *const marks[] = {
        "1:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH "::old:m",
        "1:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH "::run:m",
        "2:fingerprint:0123456789abcdef:" PERMIT_OLD_BIRTH "::run:m", "", "x"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        permit_set("mark", marks[i]);
        ck_assert_int_eq(permit_admit(marks[i]), VOTE_CHANGED);
        ck_assert_str_eq(permit_field("admit"), "");
    }
}

/* Whatever is another in it: a longer one, or another birth. */
TEST_RANGE(a_mark_is_compared_whole, 0, 3)
{
    char other[CALL_STATE_MAX + 1];
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    strcpy(other, live.marked);
    size_t len = strlen(other);
    if (_i == 0)
        strcat(other, "first");
    else if (_i == 1)
        other[len - 1] = '\0';
    else /* the last digit of its birth */
        other[len - 2] = other[len - 2] == '0' ? '1' : '0';
    ck_assert_int_eq(permit_admit(other), VOTE_CHANGED);
    ck_assert_str_eq(permit_field("admit"), "");
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
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
    if (_i < 5)
        PERMIT_ASSERT_WORD(permit_look(), LOOK_FRESH);
    else
        permit_restart(1);
    struct call call = live_call(_i < 5 ? CALL_ADMIT : CALL_READMIT, "", "");
    permit_set_number("beat", rows[_i % 5].kept);
    call.found = span_of(PERMIT_OLD);
    call.floor = rows[_i % 5].floor;
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    ck_assert_int_eq(permit_number("beat"), rows[_i % 5].above + 1);
    ck_assert_int_eq(live.reply.beat, rows[_i % 5].above + 1);
    PERMIT_ASSERT_WORD(permit_look_above(call.floor, LIVE_NONCE),
                       LOOK_ADMITTED);
}

/* What was promised for longer has ended; now the present one is enough. */
TEST(story_33_an_admission_names_the_ttl_of_the_configuration)
{
    static const int ttls[] = {5000, 90000, 60000};
    for (int i = 0; i < 3; i++) {
        PERMIT_ASSERT_WORD(permit_look(), i == 0 ? LOOK_FRESH : LOOK_MARKED);
        struct call call = live_call(CALL_ADMIT, "", "");
        call.max_ttl_ms = ttls[i];
        ck_assert_int_eq(live_ask(&call), VOTE_DONE);
        ck_assert_int_eq(permit_number("max_ttl"), ttls[i]);
        ck_assert_int_eq(permit_revoke(""), VOTE_DONE);
        ck_assert_int_eq(permit_number("max_ttl"), ttls[i]);
    }
}
