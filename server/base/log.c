#include "log.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

enum { LINE_MAX_BYTES = 2048, QUOTE_AND_NEWLINE = 2 };

static enum log_level lowest = LOG_INFO;
static int64_t lost; /* lines that stderr did not accept */

struct line {
    size_t len;
    char text[LINE_MAX_BYTES];
};

void log_set_level(enum log_level level)
{
    lowest = level;
}

bool log_is_enabled(enum log_level level)
{
    return level >= lowest && level < LOG_OFF;
}

/* Adds all of the bytes or none, so that no escape is cut in two. */
static bool add(struct line *line, const char *bytes, size_t len)
{
    if (line->len + len > sizeof line->text - QUOTE_AND_NEWLINE)
        return false;
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
    return true;
}

static bool add_text(struct line *line, const char *text)
{
    return add(line, text, strlen(text));
}

static bool is_plain(unsigned char byte)
{
    return byte > ' ' && byte != '"' && byte != '=' && byte != '\\' &&
           byte != 0x7f;
}

static bool needs_quotes(const char *text)
{
    if (*text == '\0')
        return true;
    for (; *text != '\0'; text++)
        if (!is_plain((unsigned char)*text))
            return true;
    return false;
}

static bool add_escaped(struct line *line, char byte)
{
    char code[8];
    if (byte == '\n')
        return add_text(line, "\\n");
    if (byte == '\r')
        return add_text(line, "\\r");
    if (byte == '\t')
        return add_text(line, "\\t");
    if (byte == '"' || byte == '\\')
        snprintf(code, sizeof code, "\\%c", byte);
    else if ((unsigned char)byte < ' ' || byte == 0x7f)
        snprintf(code, sizeof code, "\\u%04x", (unsigned)byte);
    else
        snprintf(code, sizeof code, "%c", byte);
    return add_text(line, code);
}

static void add_quoted(struct line *line, const char *text)
{
    if (!add_text(line, "\""))
        return;
    while (*text != '\0' && add_escaped(line, *text))
        text++;
    line->text[line->len++] = '"'; /* its place is reserved */
}

static void add_field(struct line *line, const struct log_field *field)
{
    size_t before = line->len;
    bool fits = add_text(line, " ") && add_text(line, field->key) &&
                add_text(line, "=");
    if (fits && field->text == NULL) {
        char digits[24];
        snprintf(digits, sizeof digits, "%" PRId64, field->number);
        fits = add_text(line, digits);
    } else if (fits && needs_quotes(field->text)) {
        add_quoted(line, field->text);
    } else if (fits) {
        size_t room = sizeof line->text - QUOTE_AND_NEWLINE - line->len;
        add(line, field->text, strnlen(field->text, room));
    }
    if (!fits)
        line->len = before;
}

static void add_head(struct line *line, enum log_level level, const char *event)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    int64_t wall_us = clock_wall_us();
    time_t seconds = (time_t)(wall_us / 1000000);
    struct tm utc;
    char ts[40];
    gmtime_r(&seconds, &utc);
    size_t len = strftime(ts, sizeof ts, "ts=%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(ts + len, sizeof ts - len, ".%03dZ", (int)(wall_us / 1000 % 1000));
    add_text(line, ts);
    add_field(line, &LOG_S("level", names[level]));
    add_field(line, &LOG_S("event", event));
}

/*
 * A reader that stalls must not stall the locks: a line is written only if
 * stderr accepts it now. A pipe that polls as writable has room for a line.
 */
static bool write_line(struct line *line)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    line->text[line->len++] = '\n';
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0 &&
           write(STDERR_FILENO, line->text, line->len) == (ssize_t)line->len;
}

void log_write(enum log_level level, const char *event,
               const struct log_field *fields)
{
    if (!log_is_enabled(level))
        return;
    struct line line = {.len = 0};
    add_head(&line, level, event);
    for (; fields != NULL && fields->key != NULL; fields++)
        add_field(&line, fields);
    if (lost > 0)
        add_field(&line, &LOG_N("lines_lost", lost));
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
