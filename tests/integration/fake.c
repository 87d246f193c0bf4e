/*
 * One forked process, one connection after the other, no protocol.
 */
#include "fake.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FAKE_CONNECTIONS = 64 };

static int listen_on(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    ck_assert_int_ge(fd, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    return fd;
}

static bool send_text(int fd, const char *text)
{
    return send(fd, text, strlen(text), MSG_NOSIGNAL) > 0;
}

/* False: the connection has ended. */
static bool answer(int fd, const char *reply)
{
    char data[16384];
    ssize_t got = recv(fd, data, sizeof data, 0);

    if (got <= 0)
        return false;
    for (ssize_t i = 0; i < got; i++)
        if (data[i] == '*' && (i == 0 || data[i - 1] == '\n') &&
            !send_text(fd, reply))
            return false;
    return true;
}

/* polls[0] listens; a new connection takes the first free place. */
static void greet(struct pollfd *polls, const char *banner)
{
    int fd = accept(polls[0].fd, NULL, NULL);

    for (int i = 1; i < FAKE_CONNECTIONS && fd >= 0; i++) {
        if (polls[i].fd >= 0)
            continue;
        polls[i] = (struct pollfd){.fd = fd, .events = POLLIN};
        if (banner)
            send_text(fd, banner);
        return;
    }
    if (fd >= 0)
        close(fd);
}

static void serve(int listener, const char *banner, const char *reply)
{
    struct pollfd polls[FAKE_CONNECTIONS];

    for (int i = 0; i < FAKE_CONNECTIONS; i++)
        polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    polls[0].fd = listener;
    while (poll(polls, FAKE_CONNECTIONS, -1) >= 0) {
        if (polls[0].revents)
            greet(polls, banner);
        for (int i = 1; i < FAKE_CONNECTIONS; i++) {
            if (polls[i].fd < 0 || !polls[i].revents ||
                answer(polls[i].fd, reply))
                continue;
            close(polls[i].fd);
            polls[i].fd = -1;
        }
    }
}

void fake_start(const char *banner, const char *reply)
{
    struct node *node = &world.nodes[world.nodes_count];

    ck_assert_int_lt(world.nodes_count, WORLD_NODES);
    node->port = harness_free_port();
    int listener = listen_on(node->port);
    node->pid = harness_fork();
    if (node->pid == 0) {
        serve(listener, banner, reply);
        _exit(0);
    }
    close(listener);
    world.nodes_count++;
}
