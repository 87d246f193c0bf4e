#include "timestamp.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "types.h"

/*
 * Thousands of lines fall into the same second: the C library would take most
 * of the time of a line to write it again for each.
 */
static const char *write_second(time_t second)
{
    static time_t written = -1;
    static char text[TIMESTAMP_SIZE];
    struct tm utc;
    if (second == written)
        return text;
    if (gmtime_r(&second, &utc) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc) == 0)
        return "0000-00-00T00:00:00"; /* the clock shows no year */
    written = second;
    return text;
}

void timestamp_write(char text[TIMESTAMP_SIZE], int64_t wall_us)
{
    int ms = (int)(wall_us / US_PER_MS % MS_PER_S);
    size_t len =
        span_copy(text, span_of(write_second((time_t)(wall_us / US_PER_S))));
    const char rest[] = {'.',
                         (char)('0' + ms / 100),
                         (char)('0' + ms / 10 % 10),
                         (char)('0' + ms % 10),
                         'Z',
                         '\0'};
    memcpy(text + len, rest, sizeof rest);
}
