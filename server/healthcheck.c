/*
 * One blocking HTTP request over a socket: a probe that starts every few
 * seconds should not need an HTTP library.
 */
#include "healthcheck.h"

#include <errno.h>
#include <gnutls/gnutls.h>
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

/* ---- plain, or TLS ------------------------------------------------------ */

/* A connection to the server. */
struct probe {
    int fd;
    gnutls_session_t tls; /* NULL: plain */
    gnutls_certificate_credentials_t credentials;
    int64_t deadline_us;
};

/* A GnuTLS result as errno tells it. */
static bool pass(ssize_t result)
{
    if (result == GNUTLS_E_AGAIN)
        errno = ETIMEDOUT;
    else if (result < 0 && result != GNUTLS_E_PULL_ERROR &&
             result != GNUTLS_E_PUSH_ERROR)
        errno = EPROTO;
    return result >= 0;
}

/*
 * The server asks itself, by an address that its certificate need not name: so
 * this verifies nothing. It shows no certificate either; see tls.h.
 */
static bool shake_hands(struct probe *probe)
{
    int result = gnutls_certificate_allocate_credentials(&probe->credentials);
    if (result >= 0)
        result = gnutls_init(&probe->tls, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
    if (result >= 0)
        result = gnutls_set_default_priority(probe->tls);
    if (result >= 0)
        result = gnutls_credentials_set(probe->tls, GNUTLS_CRD_CERTIFICATE,
                                        probe->credentials);
    if (result < 0)
        return pass(result);
    gnutls_transport_set_int(probe->tls, probe->fd);
    do
        result = gnutls_handshake(probe->tls);
    while (result < 0 && !gnutls_error_is_fatal(result) &&
           result != GNUTLS_E_AGAIN);
    return pass(result);
}

static ssize_t probe_send(struct probe *probe, const char *text, size_t len)
{
    if (probe->tls == NULL)
        return send(probe->fd, text, len, MSG_NOSIGNAL);
    ssize_t sent = gnutls_record_send(probe->tls, text, len);
    return pass(sent) ? sent : -1;
}

static ssize_t probe_recv(struct probe *probe, char *out, size_t size)
{
    if (probe->tls == NULL)
        return recv(probe->fd, out, size, 0);
    ssize_t got = gnutls_record_recv(probe->tls, out, size);
    return pass(got) ? got : -1;
}

static void probe_close(struct probe *probe)
{
    if (probe->tls != NULL)
        gnutls_deinit(probe->tls);
    if (probe->credentials != NULL)
        gnutls_certificate_free_credentials(probe->credentials);
    if (probe->fd >= 0)
        (void)close(probe->fd); /* only read: nothing can be lost */
}

/* ---- the request -------------------------------------------------------- */

static bool send_request(struct probe *probe, const char *host, int port)
{
    char address[ADDRESS_TEXT_MAX];
    char request[ADDRESS_TEXT_MAX + 128];

    address_format(address, sizeof address, host, port);
    int len = snprintf(request, sizeof request,
                       "GET /readyz HTTP/1.1\r\nHost: %s\r\n"
                       "Connection: close\r\n\r\n",
                       address);
    /* it fits into the empty buffer of a new socket */
    ssize_t sent = probe_send(probe, request, (size_t)len);
    if (sent == len)
        return true;
    if (sent >= 0)
        errno = ENOBUFS;
    return false;
}

/* The status code of the answer; -1: errno says why there is none. */
static int read_status(struct probe *probe)
{
    char answer[ANSWER_SIZE] = "";
    size_t len = 0;
    int status = 0;

    while (len < sizeof answer - 1 && !memchr(answer, '\n', len)) {
        if (!limit_time(probe->fd, probe->deadline_us))
            return -1;
        ssize_t got = probe_recv(probe, answer + len, sizeof answer - 1 - len);
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

int healthcheck_run(const char *host, int port, bool has_tls)
{
    struct probe probe = {.deadline_us = clock_now_us() + TIMEOUT_US};
    const char *target = probe_host(host);
    int status = -1;

    probe.fd = connect_any(target, port, probe.deadline_us);
    if (probe.fd >= 0 && (!has_tls || shake_hands(&probe)) &&
        send_request(&probe, target, port))
        status = read_status(&probe);
    /* how the kernel reports that the time of limit_time has passed */
    if (status < 0 && (errno == EAGAIN || errno == EINPROGRESS))
        errno = ETIMEDOUT;
    if (status < 0)
        (void)fprintf(stderr, "redlockd: no answer on port %d: %s\n", port,
                      strerror(errno));
    else if (status != 200)
        (void)fprintf(stderr, "redlockd: not ready: status %d\n", status);
    probe_close(&probe);
    return status == 200 ? 0 : 1;
}
