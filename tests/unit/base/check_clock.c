/* SPDX-License-Identifier: MIT */
#include "../../../server/base/clock.h"
#include "../../../server/base/types.h"
#include "../../lib/suite/suite.h"

/* ---- timestamp ---------------------------------------------------------- */

static const struct {
    int64_t wall_us;
    const char *text;
} rows[] = {
    {0, "1970-01-01T00:00:00.000Z"},
    {999, "1970-01-01T00:00:00.000Z"},
    {1795419065042999, "2026-11-23T07:31:05.042Z"},
    {1795419065999999, "2026-11-23T07:31:05.999Z"},
    {1795419066000000, "2026-11-23T07:31:06.000Z"},
    {951782400000000, "2000-02-29T00:00:00.000Z"},
    {253402300799999999, "9999-12-31T23:59:59.999Z"},
    {INT64_MAX, "294247-01-10T04:00:54.775Z"},
};

static const struct {
    const char *text;
    int64_t unix_s; /* -1: it is refused */
} moments[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2000-02-29T00:00:00Z", 951782400},
    {"2026-11-23T07:31:05Z", 1795419065},
    {"2026-12-31T23:59:59Z", 1798761599},
    {"9999-12-31T23:59:59Z", 253402300799},
    {"2026-02-29T00:00:00Z", -1},
    {"2026-00-01T00:00:00Z", -1},
    {"2026-13-01T00:00:00Z", -1},
    {"2026-04-31T00:00:00Z", -1},
    {"2026-11-23T24:00:00Z", -1},
    {"2026-11-23T07:60:05Z", -1},
    {"2026-11-23T07:31:60Z", -1},
    {"1969-12-31T23:59:59Z", -1},
    {"0000-01-01T00:00:00Z", -1},
    {"2026-11-23T07:31:05", -1},
    {"2026-11-23T07:31:05z", -1},
    {"2026-11-23 07:31:05Z", -1},
    {"2026-11-23T07:31:05.5Z", -1},
    {"2026-11-23T07:31:05+00:00", -1},
    {"2026-11-23T07:31:05Z ", -1},
    {"2026-11-23T 7:31:05Z", -1},
    {"+026-11-23T07:31:05Z", -1},
    {"2026-11-23", -1},
    {"20261123T073105Z", -1},
    {"", -1},
};

SUITE(clock);

TEST_EACH(moments_are_read_in_utc, moments)
{
    ck_assert_int_eq(timestamp_read(span_of(moments[_i].text)),
                     moments[_i].unix_s);
}

/* In any order: what it remembers is of one second only. */
TEST(moments_are_written_in_utc)
{
    char text[TIMESTAMP_SIZE];
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            timestamp_write(text, rows[i].wall_us);
            ck_assert_str_eq(text, rows[i].text);
        }
}
