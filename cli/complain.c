#include "complain.h"

#include <stdarg.h>
#include <stdio.h>

void complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("redlockctl: ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

void complain_of_lock(const struct options *options, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("redlockctl: ", stderr);
    for (int i = 0; i < options->resources_count; i++)
        (void)fprintf(stderr, "%s%s", i > 0 ? ", " : "", options->resources[i]);
    (void)fputs(": ", stderr);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
}

void complain_of_trouble(const char *detail)
{
    complain("no lock yet, still trying: %s", detail);
}

int complain_status(const struct options *options, enum service_result result)
{
    switch (result) {
    case SERVICE_DONE:
        return 0;
    case SERVICE_HELD:
        return (int)options->conflict_code;
    case SERVICE_FINAL:
        return EXIT_NOT_ACQUIRED;
    case SERVICE_LOST:
        return EXIT_LOCK_LOST;
    case SERVICE_REFUSED:
        return EXIT_USAGE_ERROR;
    case SERVICE_DENIED:
        return EXIT_DENIED;
    case SERVICE_UNAVAILABLE:
        return EXIT_NO_QUORUM;
    case SERVICE_STOPPED:
        break;
    }
    return EXIT_OS_ERROR;
}

void complain_of_acquire(const struct options *options,
                         enum service_result result, const char *detail)
{
    bool has_waited = options->wait_ms > 0 && result != SERVICE_REFUSED &&
                      result != SERVICE_DENIED;
    double waited_s = (double)options->wait_ms / (double)MS_PER_S;
    if (has_waited)
        complain_of_lock(options, "%s; gave up after %g s", detail, waited_s);
    else
        complain_of_lock(options, "%s", detail);
}
