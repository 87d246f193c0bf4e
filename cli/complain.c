/* SPDX-License-Identifier: MIT */
#include "complain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../server/base/encoding.h"

void shown_put(const char *text, FILE *out)
{
    struct span rest = span_of(text);
    while (rest.len > 0) {
        size_t len = utf8_len(rest);
        if (len == 0) {
            (void)fputs("\\uFFFD", out);
            len = 1;
        } else if (utf8_is_obeyed(rest)) {
            (void)fprintf(out, "\\u%04" PRIX32, utf8_code(rest, len));
        } else {
            (void)fwrite(rest.ptr, 1, len, out);
        }
        rest = span_behind(rest, len);
    }
}

void shown_url(const char *url, char out[SHOWN_URL_SIZE])
{
    const char *mark = strstr(url, "://");
    const char *host = mark != NULL ? mark + 3 : url;
    int scheme_len = (int)(host - url);
    const char *end = host + strcspn(host, "/?#");
    const char *at = memrchr(host, '@', (size_t)(end - host));
    if (at != NULL)
        host = at + 1;
    (void)snprintf(out, SHOWN_URL_SIZE, "%.*s%s", scheme_len, url, host);
}

void complain_end(const char *format, va_list args)
{
    char *text;
    if (vasprintf(&text, format, args) < 0) {
        (void)fputs("out of memory\n", stderr);
        return;
    }
    shown_put(text, stderr);
    (void)fputc('\n', stderr);
    free(text);
}

bool complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("redlockctl: ", stderr);
    complain_end(format, args);
    va_end(args);
    return false;
}
