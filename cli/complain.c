#include "complain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../server/base/utf8.h"

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

/* Escapes the message: the service puts names from other clients in it. */
static void print_line(const char *format, va_list args)
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
    print_line(format, args);
    va_end(args);
    return false;
}

void complain_of_lock(const struct options *options, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("redlockctl: ", stderr);
    if (options->resources_count == 0)
        (void)fputs(options->argv[1], stderr); /* the command */
    for (int i = 0; i < options->resources_count; i++) {
        (void)fputs(i > 0 ? ", " : "", stderr);
        shown_put(options->resources[i], stderr);
    }
    (void)fputs(": ", stderr);
    print_line(format, args);
    va_end(args);
}

int complain_status(const struct options *options, enum verdict verdict)
{
    switch (verdict) {
    case VERDICT_DONE:
        return 0;
    case VERDICT_HELD:
        return (int)options->conflict_code;
    case VERDICT_FINAL:
        return EXIT_NOT_ACQUIRED;
    case VERDICT_LOST:
        return EXIT_LOCK_LOST;
    case VERDICT_REFUSED:
        return EXIT_USAGE_ERROR;
    case VERDICT_DENIED:
        return EXIT_DENIED;
    case VERDICT_UNAVAILABLE:
        return EXIT_NO_QUORUM;
    case VERDICT_STARVED:
    case VERDICT_STOPPED:
        break;
    }
    return EXIT_OS_ERROR;
}

int complain_of_acquire(const struct options *options, enum verdict verdict,
                        const char *detail)
{
    bool has_waited = options->wait_ms > 0 && verdict != VERDICT_REFUSED &&
                      verdict != VERDICT_DENIED && verdict != VERDICT_STOPPED;
    double waited_s = (double)options->wait_ms / (double)MS_PER_S;
    if (has_waited)
        complain_of_lock(options, "%s; gave up after %g s", detail, waited_s);
    else if (verdict != VERDICT_STOPPED)
        complain_of_lock(options, "%s", detail);
    return complain_status(options, verdict);
}
