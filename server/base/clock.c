/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec now;
    int rc = clock_gettime(id, &now);
    assert(rc == 0); /* these clocks exist since Linux 2.6.39 */
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_now_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t clock_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

int64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

/* ---- moments as text ----------------------------------------------------- */

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

/* The digits at ptr, before the mark that must follow; -1: it is another text.
 */
static int read_part(const char *ptr, size_t digits, char mark)
{
    struct span text = {ptr, digits};
    return ptr[digits] == mark ? (int)span_number(text, digits) : -1;
}

int64_t timestamp_read(struct span text)
{
    static const char form[] = "2026-11-23T07:31:05Z";
    if (text.len != sizeof form - 1)
        return -1;
    struct tm read = {
        .tm_year = read_part(text.ptr, 4, '-') - 1900,
        .tm_mon = read_part(text.ptr + 5, 2, '-') - 1,
        .tm_mday = read_part(text.ptr + 8, 2, 'T'),
        .tm_hour = read_part(text.ptr + 11, 2, ':'),
        .tm_min = read_part(text.ptr + 14, 2, ':'),
        .tm_sec = read_part(text.ptr + 17, 2, 'Z'),
    };
    struct tm normal = read; /* 30 February becomes a day in March */
    time_t second = timegm(&normal);
    bool is_moment =
        second >= 0 && normal.tm_year == read.tm_year &&
        normal.tm_mon == read.tm_mon && normal.tm_mday == read.tm_mday &&
        normal.tm_hour == read.tm_hour && normal.tm_min == read.tm_min &&
        normal.tm_sec == read.tm_sec;
    return is_moment ? (int64_t)second : -1;
}
