/* SPDX-License-Identifier: MIT */
/*
 * Plain sockets: requests cut, dripped, doubled and reset.
 */
#include "http.h"

#include "secure.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int raw_connect(const struct server *server)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_msg(connect(fd, (struct sockaddr *)&at, sizeof at) == 0,
                  "connect: %s", strerror(errno));
    secure_forget(fd);
    if (server->is_tls)
        ck_assert_int_eq(secure_shake(fd), 0);
    return fd;
}

/* A server may close before it has read all: that is an answer too. */
void raw_send(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t sent = secure_is(fd) ? secure_send(fd, text, len)
                                     : send(fd, text, len, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return;
        text += sent;
        len -= (size_t)sent;
    }
}

bool raw_send_now(int fd, const char *text, size_t len)
{
    int flags = fcntl(fd, F_GETFL);

    ck_assert_int_eq(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
    ssize_t sent = secure_is(fd) ? secure_send(fd, text, len)
                                 : send(fd, text, len, MSG_NOSIGNAL);
    ck_assert_int_eq(fcntl(fd, F_SETFL, flags), 0);
    return sent > 0;
}

size_t raw_read(int fd, char *out, size_t size, const char *until, int ms)
{
    int64_t deadline_ms = harness_now_ms() + ms;
    size_t len = 0;

    out[0] = '\0';
    while (len < size - 1 && !(until && strstr(out, until))) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int64_t left_ms = deadline_ms - harness_now_ms();

        ck_assert_msg(left_ms > 0, "nothing more after %d ms: %s", ms, out);
        if (!(secure_is(fd) && secure_has_more(fd)) &&
            poll(&wait, 1, (int)left_ms) <= 0)
            continue;
        ssize_t got = secure_is(fd) ? secure_recv(fd, out + len, size - 1 - len)
                                    : recv(fd, out + len, size - 1 - len, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        len += (size_t)got;
        out[len] = '\0';
    }
    return len;
}

int raw_ask(const struct server *server, const char *text)
{
    int fd = raw_connect(server);
    raw_send(fd, text, strlen(text));
    return fd;
}

const char *raw_post_text(const char *json, const char *fields)
{
    return textf("POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: "
                 "application/json\r\nContent-Length: %zu\r\n%s\r\n%s",
                 strlen(json), fields, json);
}

int raw_post(const struct server *server, const char *json, const char *fields)
{
    return raw_ask(server, raw_post_text(json, fields));
}

void raw_expect(int fd, const char *part)
{
    char out[16384];
    size_t len = raw_read(fd, out, sizeof out, "}\n", 9000);
    ck_assert_int_eq(len > 0, *part != '\0');
    ck_assert_has(out, part);
}

void raw_stays(int fd, int ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};

    ck_assert_int_eq(poll(&wait, 1, ms), 0);
}

void raw_close(int fd)
{
    close(fd);
}

void raw_reset(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
}
