/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "encoding.h"
#include "types.h"

static enum log_level lowest = LOG_INFO;
static enum log_format format = LOG_LOGFMT;
static int64_t lost; /* lines that stderr did not accept */

void log_set_level(enum log_level level)
{
    lowest = level;
}

bool log_is_enabled(enum log_level level)
{
    return level >= lowest && level < LOG_OFF;
}

void log_set_format(enum log_format wanted)
{
    format = wanted;
}

/* ---- a line -------------------------------------------------------------- */

enum { LINE_MAX_LEN = 2048 }; /* with its newline */

/* It takes no memory; whatever is added, it ends up as one whole line. */
struct log_line {
    size_t len;
    char text[LINE_MAX_LEN];
};

/* Kept free for what closes a line: '"', '}' and the newline. */
static const size_t endings[] = {[LOG_LOGFMT] = 2, [LOG_JSON] = 3};

static size_t room(const struct log_line *line)
{
    size_t most = sizeof line->text - endings[format];
    return line->len < most ? most - line->len : 0;
}

/* Adds all of the bytes or none, so that no escape is cut in two. */
static bool log_add(struct log_line *line, const char *bytes, size_t len)
{
    if (len > room(line))
        return false;
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
    return true;
}

static bool add_text(struct log_line *line, const char *text)
{
    return log_add(line, text, strlen(text));
}

/* In quotes, as much as there is room for; false: there is none. */
static bool add_quoted(struct log_line *line, const char *text)
{
    struct span rest = span_of(text);
    if (!add_text(line, "\""))
        return false;
    while (rest.len > 0) {
        char escape[JSONTEXT_ESCAPE_MAX];
        size_t len = utf8_len(rest);
        struct span shown = {rest.ptr, len};
        if (len == 0) {
            len = 1;
            shown = span_of("\xef\xbf\xbd"); /* U+FFFD: it is none */
        } else if (*rest.ptr == '"' || *rest.ptr == '\\' ||
                   utf8_is_obeyed(rest)) {
            shown.ptr = escape;
            shown.len = jsontext_escape(escape, utf8_code(rest, len));
        }
        if (!log_add(line, shown.ptr, shown.len))
            break;
        rest = span_behind(rest, len);
    }
    line->text[line->len++] = '"'; /* its place is reserved */
    return true;
}

/* Whether logfmt puts it in quotes. */
static bool needs_quotes(struct span text)
{
    if (text.len == 0)
        return true;
    while (text.len > 0) {
        size_t len = utf8_len(text);
        if (utf8_is_obeyed(text) || strchr(" \"=\\", *text.ptr) != NULL)
            return true;
        text = span_behind(text, len);
    }
    return false;
}

/* False: there is no room for it. */
static bool log_add_whole(struct log_line *line, const struct log_field *field)
{
    bool is_json = format == LOG_JSON;
    const char *before = line->len > 0 ? " " : "";
    if (is_json)
        before = line->len > 1 ? ",\"" : "\"";
    if (!add_text(line, before) || !add_text(line, field->key) ||
        !add_text(line, is_json ? "\":" : "="))
        return false;
    if (field->text == NULL) {
        char digits[24];
        (void)snprintf(digits, sizeof digits, "%" PRId64, field->number);
        return add_text(line, digits);
    }
    if (is_json)
        return add_quoted(line, field->text);
    if (needs_quotes(span_of(field->text)))
        (void)add_quoted(line, field->text);
    else
        (void)log_add(line, field->text, strnlen(field->text, room(line)));
    return true;
}

static void log_add_field(struct log_line *line, const struct log_field *field)
{
    size_t before = line->len;
    if (!log_add_whole(line, field))
        line->len = before;
}

void log_write(enum log_level level, const char *event,
               const struct log_field *fields)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    struct log_line line;
    char ts[TIMESTAMP_SIZE];
    if (!log_is_enabled(level))
        return;
    timestamp_write(ts, clock_wall_us());
    line.len = 0;
    if (format == LOG_JSON)
        (void)add_text(&line, "{");
    log_add_field(&line, &LOG_S("ts", ts));
    log_add_field(&line, &LOG_S("level", names[level]));
    log_add_field(&line, &LOG_S("event", event));
    for (; fields != NULL && fields->key != NULL; fields++)
        log_add_field(&line, fields);
    if (lost > 0)
        log_add_field(&line, &LOG_N("lines_lost", lost));
    if (format == LOG_JSON)
        line.text[line.len++] = '}';
    line.text[line.len++] = '\n';
    /*
     * A reader that stalls must not stall the locks: a line is written only if
     * stderr accepts it now. A pipe that polls as writable has room for a line.
     */
    bool is_written =
        poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0 &&
        write(STDERR_FILENO, line.text, line.len) == (ssize_t)line.len;
    lost = is_written ? 0 : lost + 1;
}

void log_detail(enum log_level level, const char *event, const char *detail)
{
    log_write(level, event,
              (struct log_field[]){LOG_S("detail", detail), LOG_END});
}

bool log_limit_take(struct log_limit *limit, int64_t now_us)
{
    assert(limit->every_us > 0);
    if (limit->is_reported)
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
    limit->is_reported = limit->left > 0;
    if (limit->is_reported)
        limit->left--;
    else
        limit->dropped++;
    return limit->is_reported;
}
