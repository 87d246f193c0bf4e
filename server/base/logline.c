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

/* Its place is reserved. */
static void add_quote(struct logline *line)
{
    line->text[line->len++] = '"';
}

static bool add_number(struct logline *line, int64_t number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%" PRId64, number);
    return add_text(line, digits);
}

/* ---- logfmt ------------------------------------------------------------- */

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

static bool add_escaped(struct logline *line, char byte)
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

static void add_quoted(struct logline *line, const char *text)
{
    if (!add_text(line, "\""))
        return;
    while (*text != '\0' && add_escaped(line, *text))
        text++;
    add_quote(line);
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
    if (needs_quotes(field->text))
        add_quoted(line, field->text);
    else
        (void)add(line, field->text, strnlen(field->text, room(line)));
    return true;
}

/* ---- JSON --------------------------------------------------------------- */

/* What stands for the first character of rest, which has *len bytes. */
static struct span form_of(struct span rest, size_t *len,
                           char escape[JSONTEXT_ESCAPE_MAX])
{
    *len = utf8_len(rest);
    if (*len == 0) {
        *len = 1;
        return span_of("\xef\xbf\xbd"); /* U+FFFD: it is none */
    }
    if (*len > 1 || jsontext_plain_len((struct span){rest.ptr, 1}) == 1)
        return (struct span){rest.ptr, *len};
    return (struct span){escape,
                         jsontext_escape(escape, (unsigned char)*rest.ptr)};
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

/* False: there is no room for it. */
static bool add_json(struct logline *line, const struct log_field *field)
{
    if (!add_text(line, line->len > 1 ? ",\"" : "\"") ||
        !add_text(line, field->key) || !add_text(line, "\":"))
        return false;
    if (field->text == NULL)
        return add_number(line, field->number);
    if (!add_text(line, "\""))
        return false;
    struct span rest = span_of(field->text);
    while (rest.len > 0 && add_character(line, &rest))
        continue;
    add_quote(line);
    return true;
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
