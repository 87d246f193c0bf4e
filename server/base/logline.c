#include "logline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "jsontext.h"
#include "types.h"
#include "utf8.h"

/* Kept free for what closes a line: '"', '}' and the newline. */
static const size_t endings[] = {[LOG_LOGFMT] = 2, [LOG_JSON] = 3};

static size_t room(const struct logline *line)
{
    size_t most = sizeof line->text - endings[line->format];
    return line->len < most ? most - line->len : 0;
}

/* Adds all of the bytes or none, so that no escape is cut in two. */
static bool add(struct logline *line, const char *bytes, size_t len)
{
    if (len > room(line))
        return false;
    memcpy(line->text + line->len, bytes, len);
    line->len += len;
    return true;
}

static bool add_text(struct logline *line, const char *text)
{
    return add(line, text, strlen(text));
}

static bool add_number(struct logline *line, int64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    return add_text(line, digits);
}

/* ---- texts --------------------------------------------------------------- */

/* What stands for the first character of rest, which has *len bytes. */
static struct span form_of(struct span rest, size_t *len,
                           char escape[JSONTEXT_ESCAPE_MAX])
{
    *len = utf8_len(rest);
    if (*len == 0) {
        *len = 1;
        return span_of("\xef\xbf\xbd"); /* U+FFFD: it is none */
    }
    if (*rest.ptr != '"' && *rest.ptr != '\\' && !utf8_is_obeyed(rest))
        return (struct span){rest.ptr, *len};
    return (struct span){escape,
                         jsontext_escape(escape, utf8_code(rest, *len))};
}

/* False: there is no room for it. */
static bool add_character(struct logline *line, struct span *rest)
{
    char escape[JSONTEXT_ESCAPE_MAX];
    size_t len;
    struct span form = form_of(*rest, &len, escape);
    if (!add(line, form.ptr, form.len))
        return false;
    *rest = (struct span){rest->ptr + len, rest->len - len};
    return true;
}

/* In quotes, as much as there is room for; false: there is none. */
static bool add_quoted(struct logline *line, const char *text)
{
    struct span rest = span_of(text);
    if (!add_text(line, "\""))
        return false;
    while (rest.len > 0 && add_character(line, &rest))
        continue;
    line->text[line->len++] = '"'; /* its place is reserved */
    return true;
}

/* ---- logfmt ------------------------------------------------------------- */

static bool needs_quotes(struct span text)
{
    if (text.len == 0)
        return true;
    while (text.len > 0) {
        size_t len = utf8_len(text);
        if (utf8_is_obeyed(text) || strchr(" \"=\\", *text.ptr) != NULL)
            return true;
        text = (struct span){text.ptr + len, text.len - len};
    }
    return false;
}

/* False: there is no room for it. */
static bool add_logfmt(struct logline *line, const struct log_field *field)
{
    if (line->len > 0 && !add_text(line, " "))
        return false;
    if (!add_text(line, field->key) || !add_text(line, "="))
        return false;
    if (field->text == NULL)
        return add_number(line, field->number);
    if (needs_quotes(span_of(field->text)))
        (void)add_quoted(line, field->text);
    else
        (void)add(line, field->text, strnlen(field->text, room(line)));
    return true;
}

/* ---- JSON --------------------------------------------------------------- */

/* False: there is no room for it. */
static bool add_json(struct logline *line, const struct log_field *field)
{
    if (!add_text(line, line->len > 1 ? ",\"" : "\"") ||
        !add_text(line, field->key) || !add_text(line, "\":"))
        return false;
    if (field->text == NULL)
        return add_number(line, field->number);
    return add_quoted(line, field->text);
}

/* ---- the line ----------------------------------------------------------- */

void logline_begin(struct logline *line, enum log_format format)
{
    line->format = format;
    line->len = 0;
    if (format == LOG_JSON)
        (void)add_text(line, "{");
}

void logline_add(struct logline *line, const struct log_field *field)
{
    size_t before = line->len;
    bool fits = line->format == LOG_JSON ? add_json(line, field)
                                         : add_logfmt(line, field);
    if (!fits)
        line->len = before;
}

void logline_end(struct logline *line)
{
    if (line->format == LOG_JSON)
        line->text[line->len++] = '}';
    line->text[line->len++] = '\n';
}
