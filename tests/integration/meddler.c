/*
 * One forked process; pairs of connections, one byte stream each way.
 */
#include "meddler.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"

enum { PAIRS = 64, PIECE = 65536 };

/* polls[2 * i] is the server's side, the next one the node's. */
struct meddler {
    struct pollfd polls[2 * PAIRS + 1]; /* the last one listens */
    bool has_subscribed[PAIRS];
    int node_port;
    const char *text;
};

static void end(struct meddler *meddler, int pair)
{
    for (int i = 2 * pair; i < 2 * pair + 2; i++) {
        close(meddler->polls[i].fd);
        meddler->polls[i].fd = -1;
    }
    meddler->has_subscribed[pair] = false;
}

static void greet(struct meddler *meddler, int fd)
{
    const struct server node = {.port = meddler->node_port};
    for (int i = 0; i < PAIRS; i++) {
        if (meddler->polls[2 * i].fd >= 0)
            continue;
        meddler->polls[2 * i].fd = fd;
        meddler->polls[2 * i + 1].fd = raw_connect(&node);
        return;
    }
    close(fd);
}

static void pass(struct meddler *meddler, int i)
{
    static char data[PIECE];
    int pair = i / 2, other = meddler->polls[i ^ 1].fd;
    ssize_t got = recv(meddler->polls[i].fd, data, sizeof data, 0);
    if (got <= 0) {
        end(meddler, pair);
        return;
    }
    bool is_of_node = i % 2 == 1;
    /* the command; the scripts have the word, too */
    static const char subscribe[] = "$9\r\nSUBSCRIBE\r\n";
    if (!is_of_node &&
        memmem(data, (size_t)got, subscribe, sizeof subscribe - 1))
        meddler->has_subscribed[pair] = true;
    if (is_of_node && meddler->has_subscribed[pair])
        raw_send(other, meddler->text, strlen(meddler->text));
    raw_send(other, data, (size_t)got);
}

static void serve(struct meddler *meddler)
{
    struct pollfd *listener = &meddler->polls[2 * PAIRS];
    while (poll(meddler->polls, 2 * PAIRS + 1, -1) >= 0) {
        for (int i = 0; i < 2 * PAIRS; i++)
            if (meddler->polls[i].fd >= 0 && meddler->polls[i].revents)
                pass(meddler, i);
        if (listener->revents)
            greet(meddler, accept(listener->fd, NULL, NULL));
    }
}

int meddle(const struct node *node, const char *text)
{
    static struct meddler meddler;
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, PAIRS), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    if (harness_fork() == 0) {
        meddler.node_port = node->port;
        meddler.text = text;
        for (int i = 0; i <= 2 * PAIRS; i++)
            meddler.polls[i] = (struct pollfd){.fd = -1, .events = POLLIN};
        meddler.polls[2 * PAIRS].fd = fd;
        serve(&meddler);
        _exit(1);
    }
    close(fd);
    return ntohs(at.sin_port);
}
