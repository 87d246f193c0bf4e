/* SPDX-License-Identifier: MIT */
/*
 * Log lines on stderr, in one of two forms with the same names:
 *
 *   logfmt   ts=2026-11-23T07:31:05.042Z level=info event=start port=8080
 *   JSON     {"ts":"2026-11-23T07:31:05.042Z","level":"info","event":"start",…}
 *
 * Tokens, values of keys and passwords are never logged.
 */
#ifndef REDLOCKD_LOG_H
#define REDLOCKD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };

/* Lines below level are dropped; LOG_OFF silences all. Default: LOG_INFO. */
void log_set_level(enum log_level level);
bool log_is_enabled(enum log_level level);

enum log_format { LOG_LOGFMT, LOG_JSON };

/* How lines look from now on. Default: LOG_LOGFMT. */
void log_set_format(enum log_format wanted);

/* One key and its value; made by the macros below. text is borrowed. */
struct log_field {
    const char *key;
    const char *text; /* NULL: number is the value */
    int64_t number;
};

#define LOG_S(key, text) ((struct log_field){(key), (text), 0})
#define LOG_N(key, number) ((struct log_field){(key), 0, (number)})
#define LOG_END ((struct log_field){0, 0, 0})

/*
 * Writes one line. fields ends with LOG_END; NULL: none. Values are quoted and
 * escaped where necessary. A text that is too long is cut, but not within an
 * escape or a character; a field that has no room at all is left out. A line
 * that stderr does not accept is lost.
 */
void log_write(enum log_level level, const char *event,
               const struct log_field *fields);

/* The same with one field, the detail. */
void log_detail(enum log_level level, const char *event, const char *detail);

/*
 * Limits a kind of line: burst at once, and then one per every_us. The owner
 * sets only these two; the others start as zero.
 */
struct log_limit {
    int64_t every_us;
    int burst;
    int left;
    int64_t refilled_us; /* 0: never */
    int64_t dropped;     /* lines refused since the last accepted one */
    bool is_reported;    /* dropped was reported with an accepted line */
};

/*
 * True if the line may be written now; dropped then holds, until the next call,
 * how many were refused before it. now_us from clock_now_us().
 */
bool log_limit_take(struct log_limit *limit, int64_t now_us);

#endif
