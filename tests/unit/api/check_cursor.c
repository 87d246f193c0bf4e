
#include "../../../api/message/cursor.h"
#include "../../lib/suite/suite.h"

static bool decode(const char *text)
{
    struct list_cursor cursor;
    return cursor_decode(span_of(text), &cursor);
}

SUITE(cursor);

TEST(what_is_encoded_is_decoded)
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

TEST(nothing_else_is_decoded)
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
