#include "listener.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../server/base/address.h"

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
static void explain(const char *host, int port, const char *reason, char *error,
                    size_t error_size)
{
    char address[ADDRESS_TEXT_MAX];
    address_format(address, sizeof address, host, port);
    /* may be cut: it is for people */
    (void)snprintf(error, error_size, "listen %s: %c%s", address,
                   tolower((unsigned char)reason[0]), reason + 1);
}

int listener_open(const char *host, int port, bool reuse_port, char *error,
                  size_t error_size)
{
    const struct address_query query = address_query(port, AI_PASSIVE);
    struct addrinfo *list;
    int code = getaddrinfo(host, query.port, &query.hints, &list);
    if (code != 0) {
        explain(host, port,
                code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code),
                error, error_size);
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *at = list; at != NULL && fd < 0;
         at = at->ai_next)
        fd = open_at(at, reuse_port);
    if (fd < 0)
        explain(host, port, strerror(errno), error, error_size);
    freeaddrinfo(list);
    return fd;
}
