#include "log.h"

#include <poll.h>
#include <unistd.h>

#include "clock.h"
#include "logline.h"
#include "timestamp.h"

static enum log_level lowest = LOG_INFO;
static enum log_format form = LOG_LOGFMT;
static int64_t lost; /* lines that stderr did not accept */

void log_set_level(enum log_level level)
{
    lowest = level;
}

bool log_is_enabled(enum log_level level)
{
    return level >= lowest && level < LOG_OFF;
}

void log_set_format(enum log_format format)
{
    form = format;
}

static void add_head(struct logline *line, enum log_level level,
                     const char *event)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    char ts[TIMESTAMP_SIZE];
    timestamp_write(ts, clock_wall_us());
    logline_add(line, &LOG_S("ts", ts));
    logline_add(line, &LOG_S("level", names[level]));
    logline_add(line, &LOG_S("event", event));
}

/*
 * A reader that stalls must not stall the locks: a line is written only if
 * stderr accepts it now. A pipe that polls as writable has room for a line.
 */
static bool write_line(const struct logline *line)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0 &&
           write(STDERR_FILENO, line->text, line->len) == (ssize_t)line->len;
}

void log_write(enum log_level level, const char *event,
               const struct log_field *fields)
{
    if (!log_is_enabled(level))
        return;
    struct logline line;
    logline_begin(&line, form);
    add_head(&line, level, event);
    for (; fields != NULL && fields->key != NULL; fields++)
        logline_add(&line, fields);
    if (lost > 0)
        logline_add(&line, &LOG_N("lines_lost", lost));
    logline_end(&line);
    if (write_line(&line))
        lost = 0;
    else
        lost++;
}

bool log_limit_take(struct log_limit *limit, int64_t now_us)
{
    if (limit->is_told)
        limit->dropped = 0;
    if (limit->refilled_us == 0) {
        limit->left = limit->burst;
        limit->refilled_us = now_us;
    }
    int64_t grown = (now_us - limit->refilled_us) / limit->every_us;
    if (grown >= limit->burst - limit->left) {
        limit->left = limit->burst;
        limit->refilled_us = now_us;
    } else {
        limit->left += (int)grown;
        limit->refilled_us += grown * limit->every_us;
    }
    limit->is_told = limit->left > 0;
    if (limit->is_told)
        limit->left--;
    else
        limit->dropped++;
    return limit->is_told;
}
