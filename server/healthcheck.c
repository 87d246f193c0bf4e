/*
 * One blocking HTTP request over plain sockets: a probe that starts every few
 * seconds should not need an HTTP library.
 */
#include "healthcheck.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"

enum { TIMEOUT_US = 5000000, ANSWER_SIZE = 2048 };

static const char *probe_host(const char *listen_host)
{
    if (strcmp(listen_host, "0.0.0.0") == 0)
        return "127.0.0.1";
    return strcmp(listen_host, "::") == 0 ? "::1" : listen_host;
}

/* Limits the next call on fd to the time left until deadline_us. */
static bool limit_time(int fd, int64_t deadline_us)
{
    int64_t left_us = deadline_us - clock_now_us();
    struct timeval limit = {left_us / 1000000, left_us % 1000000};

    if (left_us <= 0) {
        errno = ETIMEDOUT;
        return false;
    }
    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
           setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0;
}

static int connect_one(const struct addrinfo *at, int64_t deadline_us)
{
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (limit_time(fd, deadline_us) &&
        connect(fd, at->ai_addr, at->ai_addrlen) == 0)
        return fd;
    int saved = errno;
    (void)close(fd); /* nothing was written to it */
    errno = saved;
    return -1;
}

/* A connected socket; -1: errno says why. */
static int connect_any(const char *host, int port, int64_t deadline_us)
{
    const struct address_query query = address_query(port, 0);
    struct addrinfo *found = NULL;
    int fd = -1;

    if (getaddrinfo(host, query.port, &query.hints, &found) != 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = connect_one(at, deadline_us);
    freeaddrinfo(found);
    return fd;
}

static bool send_request(int fd, const char *host, int port)
{
    char address[ADDRESS_TEXT_MAX];
    char request[ADDRESS_TEXT_MAX + 128];

    address_format(address, sizeof address, host, port);
    int len = snprintf(request, sizeof request,
                       "GET /readyz HTTP/1.1\r\nHost: %s\r\n"
                       "Connection: close\r\n\r\n",
                       address);
    /* it fits into the empty buffer of a new socket */
    ssize_t sent = send(fd, request, (size_t)len, MSG_NOSIGNAL);
    if (sent == len)
        return true;
    if (sent >= 0)
        errno = ENOBUFS;
    return false;
}

/* The status code of the answer; -1: errno says why there is none. */
static int read_status(int fd, int64_t deadline_us)
{
    char answer[ANSWER_SIZE] = "";
    size_t len = 0;
    int status = 0;

    while (len < sizeof answer - 1 && !memchr(answer, '\n', len)) {
        if (!limit_time(fd, deadline_us))
            return -1;
        ssize_t got = recv(fd, answer + len, sizeof answer - 1 - len, 0);
        if (got < 0 && errno != EINTR)
            return -1;
        if (got == 0)
            break;
        len += got > 0 ? (size_t)got : 0;
    }
    answer[len] = '\0';
    /* NOLINTNEXTLINE(cert-err34-c): three digits fit */
    if (sscanf(answer, "HTTP/1.%*1d %3d", &status) == 1 && status > 0)
        return status;
    errno = EPROTO;
    return -1;
}

int healthcheck_run(const char *host, int port)
{
    int64_t deadline_us = clock_now_us() + TIMEOUT_US;
    const char *target = probe_host(host);
    int status = -1;
    int fd = connect_any(target, port, deadline_us);

    if (fd >= 0 && send_request(fd, target, port))
        status = read_status(fd, deadline_us);
    /* how the kernel reports that the time of limit_time has passed */
    if (status < 0 && (errno == EAGAIN || errno == EINPROGRESS))
        errno = ETIMEDOUT;
    if (status < 0)
        (void)fprintf(stderr, "redlockd: no answer on port %d: %s\n", port,
                      strerror(errno));
    else if (status != 200)
        (void)fprintf(stderr, "redlockd: not ready: status %d\n", status);
    if (fd >= 0)
        (void)close(fd); /* only read: nothing can be lost */
    return status == 200 ? 0 : 1;
}
