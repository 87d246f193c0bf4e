#include "verdict.h"

#include <stdarg.h>
#include <stdio.h>

#include "../server/base/types.h"
#include "complain.h"

void verdict_complain(const struct options *options, const char *format, ...)
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
    complain_end(format, args);
    va_end(args);
}

int verdict_status(const struct options *options, enum answer_verdict verdict)
{
    switch (verdict) {
    case ANSWER_DONE:
        return 0;
    case ANSWER_HELD:
        return (int)options->conflict_code;
    case ANSWER_FINAL:
        return EXIT_NOT_ACQUIRED;
    case ANSWER_LOST:
        return EXIT_LOCK_LOST;
    case ANSWER_REFUSED:
        return EXIT_USAGE_ERROR;
    case ANSWER_DENIED:
        return EXIT_DENIED;
    case ANSWER_FOREIGN:
        return EXIT_FOREIGN;
    case ANSWER_UNAVAILABLE:
        return EXIT_NO_QUORUM;
    case ANSWER_STARVED:
    case ANSWER_STOPPED:
        break;
    }
    return EXIT_OS_ERROR;
}

int verdict_end_acquire(const struct options *options,
                        enum answer_verdict verdict, const char *detail)
{
    bool has_waited = options->wait_ms > 0 && verdict != ANSWER_REFUSED &&
                      verdict != ANSWER_DENIED && verdict != ANSWER_FOREIGN &&
                      verdict != ANSWER_STOPPED;
    double waited_s = (double)options->wait_ms / (double)MS_PER_S;
    if (has_waited)
        verdict_complain(options, "%s; gave up after %g s", detail, waited_s);
    else if (verdict != ANSWER_STOPPED)
        verdict_complain(options, "%s", detail);
    return verdict_status(options, verdict);
}
