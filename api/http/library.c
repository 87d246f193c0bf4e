#include "library.h"

#include <ctype.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../server/base/address.h"
#include "../../server/base/log.h"
#include "tls.h"

/* ---- the listening socket ----------------------------------------------- */

/* -1: errno tells why. */
static int open_at(const struct addrinfo *at, bool reuse_port)
{
    int fd =
        socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
               at->ai_protocol);
    const int on = 1;
    if (fd < 0)
        return -1;
    /* a restart must not wait for the old connections' TIME_WAIT */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        (!reuse_port ||
         setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) &&
        bind(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    int reason = errno;
    (void)close(fd); /* nothing was written to it */
    errno = reason;
    return -1;
}

/* "listen host:port: reason", the reason in lower case. */
static void library_explain(const char *host, int port, const char *reason,
                            char *error, size_t error_size)
{
    char address[ADDRESS_TEXT_MAX];
    address_format(address, sizeof address, host, port);
    /* may be cut: it is for people */
    (void)snprintf(error, error_size, "listen %s: %c%s", address,
                   tolower((unsigned char)reason[0]), reason + 1);
}

int library_listen(const char *host, int port, bool reuse_port, char *error,
                   size_t error_size)
{
    const struct address_query query = address_query(port, AI_PASSIVE);
    struct addrinfo *list;
    int code = getaddrinfo(host, query.port, &query.hints, &list);
    if (code != 0) {
        library_explain(host, port,
                        code == EAI_SYSTEM ? strerror(errno)
                                           : gai_strerror(code),
                        error, error_size);
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *at = list; at != NULL && fd < 0;
         at = at->ai_next)
        fd = open_at(at, reuse_port);
    if (fd < 0)
        library_explain(host, port, strerror(errno), error, error_size);
    freeaddrinfo(list);
    return fd;
}

/* ---- the library -------------------------------------------------------- */

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

/*
 * The library wants to know where certificates come from. But each session is
 * given its own when it begins, so that a reload needs nothing of the library.
 */
/* NOLINTNEXTLINE(readability-function-size): the library's parameters */
static int refuse_handshake(gnutls_session_t session,
                            const gnutls_datum_t *authorities, int count,
                            const gnutls_pk_algorithm_t *algorithms,
                            int algorithms_count, gnutls_pcert_st **chain,
                            unsigned *chain_length, gnutls_privkey_t *key)
{
    (void)session;
    (void)authorities;
    (void)count;
    (void)algorithms;
    (void)algorithms_count;
    *chain = NULL;
    *chain_length = 0;
    *key = NULL;
    return -1;
}

struct MHD_Daemon *library_start(const struct library_handlers *handlers,
                                 int fd, unsigned connections_max, bool has_tls)
{
    static const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the library wants it so */
    void *refuse = (void *)(intptr_t)refuse_handshake;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (char[]){TLS_PRIORITIES}},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, refuse},
        {MHD_OPTION_END, 0, NULL}};
    MHD_set_panic_func(on_library_panic, NULL);
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
            (has_tls ? MHD_USE_TLS : MHD_USE_TURBO) | MHD_USE_ERROR_LOG,
        0, NULL, NULL, handlers->request, handlers->ctx, /* the rest: options */
        MHD_OPTION_EXTERNAL_LOGGER, on_library_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)LIBRARY_POOL_SIZE, MHD_OPTION_CONNECTION_TIMEOUT,
        0u, /* connection.c has its own */
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, handlers->completed, handlers->ctx,
        MHD_OPTION_NOTIFY_CONNECTION, handlers->connection, handlers->ctx,
        MHD_OPTION_ARRAY, has_tls ? tls : plain, MHD_OPTION_END);
}
