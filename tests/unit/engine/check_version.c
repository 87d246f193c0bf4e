#include "../../../server/engine/port/token.h"
#include "../../lib/suite/suite.h"

SUITE(version);

static const struct {
    const char *text;
    bool is_wellformed;
} rows[] = {
    {"free", true},
    {"0", true},
    {"1795221641865000", true},
    {"foreign-af63f54c86021707", true},
    {"-", true},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd-z", true},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcd-zz",
     false},
    {"", false},
    {"Free", false},
    {"a.b", false},
    {"a b", false},
    {"\xc3\xbc", false},
};

TEST_EACH(what_clients_may_send_has_a_form, rows)
{
    ck_assert_int_eq(version_is_wellformed(span_of(rows[_i].text)),
                     rows[_i].is_wellformed);
}

TEST(the_form_has_no_nul)
{
    ck_assert(!version_is_wellformed((struct span){"a\0b", 3}));
}

/* So clients may send each of them. */
TEST(what_is_made_has_this_form)
{
    const struct version made[] = {
        version_free,
        version_shared,
        version_foreign,
        version_split,
        version_of_number(1),
        version_of_number(INT64_C(9999999999999999)),
        version_of_value(span_of("")),
        version_of_value(span_of("x")),
        version_of_value((struct span){"a\0b", 3}),
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        ck_assert_msg(version_is_wellformed(span_of(made[i].text)), "%s",
                      made[i].text);
}

/* Whatever server makes it: a reload or another replica changes nothing. */
TEST(a_value_has_always_the_same_version)
{
    struct version x = version_of_value(span_of("x"));
    struct version none = version_of_value(span_of(""));
    ck_assert_str_eq(x.text, "foreign-af63f54c86021707");
    ck_assert_str_eq(none.text, "foreign");
    ck_assert(!version_is(&x, span_of(version_of_value(span_of("y")).text)));
}

/* Scripts read no more of it, so what follows may differ. */
TEST(a_value_that_is_too_long_has_no_version_of_its_own)
{
    char text[256];
    memset(text, 'x', sizeof text);
    struct version less = version_of_value((struct span){text, 255});
    struct version most = version_of_value((struct span){text, 256});
    ck_assert(!version_is(&less, span_of("foreign")));
    ck_assert(version_is(&most, span_of("foreign")));
}

TEST(only_what_is_vague_may_pass)
{
    struct version x = version_of_value(span_of("x"));
    struct version number = version_of_number(1);
    ck_assert(version_may_pass(&version_split));
    ck_assert(version_may_pass(&version_foreign));
    ck_assert(!version_may_pass(&version_free));
    ck_assert(!version_may_pass(&version_shared));
    ck_assert(!version_may_pass(&x));
    ck_assert(!version_may_pass(&number));
}
