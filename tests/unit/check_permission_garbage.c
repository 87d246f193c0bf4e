/*
 * A permission that some other hand has written: never more than an error.
 */
#include <check.h>
#include <stdlib.h>

#include "permit.h"

static const char *const garbage[] = {
    "",      "x",
    "nan",   "-nan",
    "inf",   "-inf",
    "1e400", "-1",
    "1.5",   ":",
    "::",    "1",
    "1:",    "1:fingerprint",
    "0x7f",  "9223372036854775808",
};

/* A new node each time, as far as its state is concerned. */
static void with_each(void (*check)(const char *text))
{
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        master_text(&live.master, "FLUSHALL");
        check(garbage[i]);
    }
}

static void write_everywhere(const char *text)
{
    static const char *const numbers[] = {"max_ttl", "durable", "beat"};
    static const char *const texts[] = {"admit", "mark"};
    for (int i = 0; i < 3; i++)
        permit_set(numbers[i], text);
    for (int i = 0; i < 2; i++)
        permit_set(texts[i], text);
    struct script_call call = live_call(SCRIPT_LOOK, "", "");
    ck_assert_int_eq(live_ask(&call), VOTE_DONE);
    if (live.reply.look.word == LOOK_FOREIGN)
        return; /* what begins like an admission of this epoch */
    PERMIT_ASSERT_WORD(live.reply.look.word, LOOK_CREATED);
    ck_assert_int_eq(permit_readmit(text, 0), VOTE_CHANGED);
    ck_assert_int_eq(permit_admit(LIVE_MARK), VOTE_DONE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(live.downs, 0);
}

START_TEST(garbage_in_the_fields_is_nothing)
{
    with_each(write_everywhere);
}
END_TEST

static void readmit_with_beat(const char *text)
{
    (void)permit_restarted(1000000);
    permit_set("beat", text);
    ck_assert_int_eq(permit_readmit(PERMIT_OLD, 0), VOTE_CHANGED);
}

START_TEST(a_beat_that_is_no_number_gives_nothing_back)
{
    with_each(readmit_with_beat);
}
END_TEST

static void look_at_beat(const char *text)
{
    live_admit();
    permit_set("beat", text);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    char *end;
    double beat = strtod(permit_field("beat"), &end);
    ck_assert(beat > 1e15);
}

START_TEST(a_beat_that_is_no_number_is_written_over)
{
    with_each(look_at_beat);
}
END_TEST

START_TEST(a_long_admission_or_mark_is_told_as_far_as_it_fits)
{
    char text[400];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text, "1:", 2);
    permit_set("admit", text);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FOREIGN);
    ck_assert_uint_eq(strlen(live.admit), SCRIPT_STATE_MAX);
}
END_TEST

START_TEST(a_state_of_another_type_is_an_error_and_no_more)
{
    static const enum script_kind kinds[] = {SCRIPT_LOOK,    SCRIPT_ADMIT,
                                             SCRIPT_READMIT, SCRIPT_REVOKE,
                                             SCRIPT_ACQUIRE, SCRIPT_EXTEND};
    master_text(&live.master, _i == 0 ? "SET " PERMIT_STATE " x"
                                      : "RPUSH " PERMIT_STATE " x");
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(live_run(kinds[i], "r", "A"), VOTE_FAILED);
    ck_assert_int_eq(live_run(SCRIPT_RELEASE, "r", "A"), VOTE_FREE);
    ck_assert_int_eq(live.downs, 0);
}
END_TEST

Suite *check_permission_garbage(void);

Suite *check_permission_garbage(void)
{
    Suite *suite = suite_create("permission_garbage");
    TCase *tc = tcase_create("garbage");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, live_setup, live_teardown);
    tcase_add_test(tc, garbage_in_the_fields_is_nothing);
    tcase_add_test(tc, a_beat_that_is_no_number_gives_nothing_back);
    tcase_add_test(tc, a_beat_that_is_no_number_is_written_over);
    tcase_add_test(tc, a_long_admission_or_mark_is_told_as_far_as_it_fits);
    tcase_add_loop_test(tc, a_state_of_another_type_is_an_error_and_no_more, 0,
                        2);
    suite_add_tcase(suite, tc);
    return suite;
}
