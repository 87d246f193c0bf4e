/*
 * A permission that somebody else has written: never more than an error.
 */
#include <stdlib.h>

#include "../../lib/suite/suite.h"
#include "permit.h"

#define WITNESS "0123456789abcdef"
#define WITNESS_FIELD "w:0123456789abcdef" /* its field, … */
#define BIRTH_FIELD "w:m0123456789abcdef"  /* … and that of its birth */
#define NO_BIRTH "00000000000000000000000000"
#define BIRTH "17000000000000011234567890"

static const char *const garbage[] = {
    "",      "x",
    "nan",   "-nan",
    "inf",   "-inf",
    "1e400", "-1",
    "1.5",   ":",
    "::",    "1",
    "1:",    "1:fingerprint",
    "0x7f",  "9223372036854775808",
    "1e300", "9007199254740992",
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
    static const char *const numbers[] = {
        "max_ttl", "durable", "beat", "until",       "top",
        "bar",     "evicted", "7",    WITNESS_FIELD, BIRTH_FIELD};
    static const char *const texts[] = {"admit", "mark"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        permit_set(numbers[i], text);
    for (int i = 0; i < 2; i++)
        permit_set(texts[i], text);
    PERMIT_ASSERT_WORD(permit_probe(),
                       strncmp(text, "1:", 2) == 0 ? LOOK_FOREIGN : LOOK_BARE);
    if (live.reply.look.word == LOOK_FOREIGN)
        return; /* what begins like an admission of this epoch */
    PERMIT_ASSERT_WORD(permit_tell(WITNESS "=5"), LOOK_CREATED);
    ck_assert_int_eq(permit_readmit(text), VOTE_CHANGED);
    ck_assert_int_eq(permit_admit(live.marked), VOTE_DONE);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_ADMITTED);
    ck_assert_int_eq(live.downs, 0);
}

SUITE(permission_garbage, .timeout_s = 60, .set_up = live_setup,
      .tear_down = live_teardown);

TEST(garbage_in_the_fields_is_nothing)
{
    with_each(write_everywhere);
}

/* A beat that is not a count is 0: any floor is above it. */
static void look_at_beat(const char *text)
{
    live_admit();
    permit_set("beat", text);
    PERMIT_ASSERT_WORD(permit_probe(), LOOK_ADMITTED);
    ck_assert_int_ge(live.reply.look.beat, 1);
    ck_assert_int_le(live.reply.look.beat, INT64_C(1) << 53);
    ck_assert_int_eq(live.reply.look.beat, permit_number("beat"));
    ck_assert_int_eq(live_run(CALL_ACQUIRE, "r", "A"), VOTE_GRANTED);
    ck_assert_int_gt(live.reply.beat, 0);
    permit_set("beat", text);
    PERMIT_ASSERT_WORD(permit_look_above(INT64_C(1) << 53, LIVE_NONCE),
                       LOOK_CREATED);
    ck_assert_int_eq(live.downs, 0);
}

TEST(a_beat_that_is_no_number_is_written_over)
{
    with_each(look_at_beat);
}

/* ---- witnesses ----------------------------------------------------------- */

static void hear_of_witness(const char *text)
{
    live_admit();
    permit_set(WITNESS_FIELD, text);
    PERMIT_ASSERT_WORD(permit_tell(WITNESS "=5"), LOOK_ADMITTED);
    int64_t beat = atoll(live.witnesses);
    ck_assert_int_ge(beat, 5);
    ck_assert_int_le(beat, INT64_C(1) << 53);
    ck_assert_int_eq(live.downs, 0);
}

TEST(a_witness_that_is_no_number_is_none)
{
    with_each(hear_of_witness);
}

static void hear_of_birth(const char *text)
{
    live_admit();
    permit_set(BIRTH_FIELD, text);
    PERMIT_ASSERT_WORD(permit_tell("m" WITNESS "=" NO_BIRTH), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, NO_BIRTH);
    PERMIT_ASSERT_WORD(permit_tell("m" WITNESS "=" BIRTH), LOOK_ADMITTED);
    ck_assert_str_eq(live.witnesses, BIRTH);
    ck_assert_str_eq(permit_field(BIRTH_FIELD), BIRTH);
    ck_assert_int_eq(live.downs, 0);
}

TEST(a_birth_that_is_none_of_ours_is_none)
{
    with_each(hear_of_birth);
}

TEST(a_long_admission_or_mark_is_told_as_far_as_it_fits)
{
    char text[400];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text, "1:", 2);
    permit_set("admit", text);
    PERMIT_ASSERT_WORD(permit_look(), LOOK_FOREIGN);
    ck_assert_uint_eq(strlen(live.admit), CALL_STATE_MAX);
}

TEST_RANGE(a_state_of_another_type_is_an_error_and_no_more, 0, 2)
{
    static const enum call_kind kinds[] = {
        CALL_LOOK,    CALL_ADMIT,  CALL_READMIT, CALL_REVOKE,
        CALL_ACQUIRE, CALL_EXTEND, CALL_RELEASE};
    master_text(&live.master, _i == 0 ? "SET " PERMIT_STATE " x"
                                      : "RPUSH " PERMIT_STATE " x");
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(live_run(kinds[i], "r", "A"), UNFIT(FAILED));
    ck_assert_int_eq(live.downs, 0);
}
