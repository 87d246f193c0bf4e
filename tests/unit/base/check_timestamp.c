
#include "../../../server/base/timestamp.h"
#include "../../lib/suite/suite.h"

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

SUITE(timestamp);

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
