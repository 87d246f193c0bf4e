
#include "../../../api/message/route.h"
#include "../../lib/suite/suite.h"

static struct query query;
static char out[4];
static struct span value;

static const char *read_force(void)
{
    return query_read(&query, QUERY_FORCE, out, sizeof out, &value);
}

static void begin(void)
{
    query = (struct query){0};
}

SUITE(route_query, .set_up = begin);

TEST(what_is_not_there_is_not_found)
{
    query_add(&query, span_of("forced"), span_of("1"));
    query_add(&query, span_of("Force"), span_of("1"));
    query_add(&query, span_of("forc"), span_of("1"));
    ck_assert(!query_has(&query, QUERY_FORCE));
}

TEST(a_value_is_decoded)
{
    query_add(&query, span_of("force"), span_of("%61b%C3%bc"));
    ck_assert_ptr_null(read_force());
    ck_assert_uint_eq(value.len, 4);
    ck_assert_mem_eq(out, "ab\xc3\xbc", 4);
    ck_assert(!query_has(&query, QUERY_VERBOSE));
}

TEST(without_a_value_it_is_empty)
{
    query_add(&query, span_of("force"), (struct span){0});
    ck_assert(query_has(&query, QUERY_FORCE));
    ck_assert_ptr_null(read_force());
    ck_assert_uint_eq(value.len, 0);
}

TEST(doubtful_values_are_refused)
{
    static const char *const values[] = {"abcde", "%", "%1", "a%4", "%xy"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        begin();
        query_add(&query, span_of("force"), span_of(values[i]));
        ck_assert_ptr_nonnull(read_force());
    }
}

/* Whatever stands behind the value, as the next argument does. */
TEST(a_cut_escape_takes_nothing_from_behind)
{
    static const char text[] = "%411";
    for (size_t cut = 1; cut < 3; cut++) {
        begin();
        query_add(&query, span_of("force"), (struct span){text, cut});
        ck_assert_ptr_nonnull(read_force());
    }
    begin();
    query_add(&query, span_of("force"), (struct span){text, 3});
    ck_assert_ptr_null(read_force());
    ck_assert_uint_eq(value.len, 1);
}

TEST(a_second_one_is_refused)
{
    query_add(&query, span_of("force"), span_of("1"));
    query_add(&query, span_of("force"), span_of("1"));
    ck_assert_str_eq(read_force(), "occurs twice");
}

/* ---- cursors ------------------------------------------------------------ */

static bool decode(const char *text)
{
    struct list_cursor cursor;
    return cursor_decode(span_of(text), &cursor);
}

TEST(an_encoded_cursor_is_decoded)
{
    static const struct list_cursor cursors[] = {
        {.nodes = 7, .at = 0, .scan = 22, .runs = 0xffddd08420860eff},
        {.nodes = 0x1ff, .at = 4, .scan = 999999999999999, .runs = 0},
        {.nodes = 1, .at = 0, .scan = 0, .runs = 1},
    };
    for (size_t i = 0; i < sizeof cursors / sizeof *cursors; i++) {
        struct list_cursor found;
        char text[CURSOR_MAX];
        cursor_encode(text, &cursors[i]);
        ck_assert(cursor_decode(span_of(text), &found));
        ck_assert_int_eq(found.nodes, cursors[i].nodes);
        ck_assert_int_eq(found.at, cursors[i].at);
        ck_assert_int_eq(found.scan, cursors[i].scan);
        ck_assert_uint_eq(found.runs, cursors[i].runs);
    }
}

TEST(nothing_else_is_decoded_as_a_cursor)
{
    static const char *const texts[] = {
        "",
        "0",
        ".",
        "...",
        "7",
        "7.0.22",
        "0.0.22.ffddd08420860eff",
        "7.0.22.ffddd08420860ef",
        "7.0.22.ffddd08420860efff",
        "7.0.22.FFDDD08420860EFF",
        "07.0.22.ffddd08420860eff",
        "7.00.22.ffddd08420860eff",
        "7.0.022.ffddd08420860eff",
        "7.-1.22.ffddd08420860eff",
        "7.0.-1.ffddd08420860eff",
        "7.0.22.ffddd08420860eff.",
        "7.0.1234567890123456.ffddd08420860eff",
        "10007.0.22.ffddd08420860eff",
        " 7.0.22.ffddd08420860eff",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        ck_assert_msg(!decode(texts[i]), "%s", texts[i]);
}
