
#include "../../../server/node/silence.h"
#include "../../lib/suite/suite.h"

enum { TIMEOUT_US = 300000 };

static const struct {
    int64_t heard_us, owed_us, now_us, since_us;
} rows[] = {
    {0, 0, 5000, 5000},       /* owes nothing, was never heard */
    {4000, 0, 5000, 5000},    /* owes nothing: its silence does not count */
    {0, 3000, 5000, 3000},    /* was never heard */
    {2000, 3000, 5000, 3000}, /* was heard before it owed anything */
    {3000, 3000, 5000, 3000},
    {4000, 3000, 5000, 4000}, /* owes more, but talks */
    {4000, 3000, 900000, 4000},
};

SUITE(silence);

TEST_EACH(the_deadline_follows_the_debt_and_the_last_word, rows)
{
    const struct silence silence = {TIMEOUT_US, rows[_i].heard_us};
    ck_assert_int_eq(
        silence_deadline_us(&silence, rows[_i].owed_us, rows[_i].now_us),
        rows[_i].since_us + TIMEOUT_US);
}

TEST(the_text_names_what_is_missing_and_for_how_long)
{
    const struct silence silence = {TIMEOUT_US, 0};
    char text[SILENCE_TEXT_MAX];
    silence_explain(&silence, "reply", text);
    ck_assert_str_eq(text, "no reply for 300 ms");
    silence_explain(&silence, "connection", text);
    ck_assert_str_eq(text, "no connection for 300 ms");
}
