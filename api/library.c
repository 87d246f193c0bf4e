#include "library.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../server/base/log.h"

/* The default would decode the target, and cut it at %00. */
static size_t keep_escapes(void *cls, struct MHD_Connection *http, char *text)
{
    (void)cls;
    (void)http;
    return strlen(text);
}

static void on_library_log(void *cls, const char *format, va_list args)
{
    char text[256];
    (void)cls;
    if (!log_is_enabled(LOG_DEBUG))
        return;
    (void)vsnprintf(text, sizeof text, format, args); /* may be cut */
    text[strcspn(text, "\n")] = '\0';
    const struct log_field fields[] = {LOG_S("text", text), LOG_END};
    log_write(LOG_DEBUG, "http_library", fields);
}

static void on_library_panic(void *cls, const char *file, unsigned line,
                             const char *reason)
{
    (void)cls;
    (void)file;
    const struct log_field fields[] = {LOG_S("reason", reason),
                                       LOG_N("line", line), LOG_END};
    log_write(LOG_ERROR, "http_library_panic", fields);
    abort();
}

struct MHD_Daemon *library_start(const struct library_handlers *handlers,
                                 int fd, unsigned connections_max)
{
    MHD_set_panic_func(on_library_panic, NULL);
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO |
            MHD_USE_ERROR_LOG,
        0, NULL, NULL, handlers->request, handlers->ctx, /* the rest: options */
        MHD_OPTION_EXTERNAL_LOGGER, on_library_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)LIBRARY_POOL_SIZE, MHD_OPTION_CONNECTION_TIMEOUT,
        0u, /* connection.c has its own */
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, handlers->completed, handlers->ctx,
        MHD_OPTION_NOTIFY_CONNECTION, handlers->connection, handlers->ctx,
        MHD_OPTION_END);
}
