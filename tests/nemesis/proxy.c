/* SPDX-License-Identifier: MIT */
/* A TCP proxy between servers and nodes, which does to each pair of them what
 * networks do:
 *
 *   proxy SERVERS NODE-PORT…
 *
 * It listens on a free port of loopback for each pair, prints these ports (one
 * line a server) and takes commands on stdin until that ends:
 *
 *   stall  SERVER NODE WAY ON          nothing passes until it is switched off
 *   delay  SERVER NODE WAY MS JITTER   everything is late; 0 0: no longer
 *   slice  SERVER NODE ON              byte by byte
 *   hold   SERVER NODE WAY MS          what is connected stalls, new ones not
 *   finish SERVER NODE WAY             what is connected ends in that way
 *   reset  SERVER NODE                 what is connected is reset
 *   sync                               says "done": all above is
 *
 * WAY is 0 from server to node, 1 from node to server. Like TCP it loses no
 * byte of a connection: what is stalled arrives later, also if the sender has
 * closed its end meanwhile. */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    SERVERS_MAX = 8,
    NODES_MAX = 10,
    ENDS_MAX = 2048,         /* that are polled at once */
    READ_MAX = 16384,        /* bytes taken at once */
    QUEUE_MAX = 1024 * 1024, /* bytes kept of a way, then no more is read */
    NUMBERS_MAX = 5,
};

enum way { UP, DOWN }; /* to the node, to the server; also: from end 0, 1 */

/* What was read in one piece. Without bytes: the end of the stream. */
struct chunk {
    STAILQ_ENTRY(chunk) next;
    int64_t due_us;
    size_t size, sent;
    char bytes[];
};

struct stream {
    STAILQ_HEAD(chunks, chunk) queue;
    size_t queued;
    int64_t due_us;  /* of the last chunk: nothing overtakes */
    int64_t hold_us; /* until then nothing passes */
    bool is_ended;   /* the end was read, or is pretended */
    bool is_closed;  /* nothing more can be written */
};

struct link {
    int listener, node_port;
    bool is_stalled[2], is_sliced;
    int64_t delay_us[2], jitter_us[2];
};

struct conn {
    LIST_ENTRY(conn) next;
    struct link *link;
    int fd[2];                /* of the server, of the node */
    struct stream streams[2]; /* UP reads fd[0] and writes fd[1] */
};

static struct {
    struct link links[SERVERS_MAX][NODES_MAX];
    int servers, nodes;
    LIST_HEAD(conns, conn) conns;
    unsigned seed;
    char line[256]; /* of a command, as far as it came */
    size_t line_size;
    struct pollfd polled[ENDS_MAX];
    nfds_t polled_count;
} proxy;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- streams ------------------------------------------------------------ */

static void stream_push(struct conn *conn, int way, const char *bytes,
                        size_t size)
{
    struct stream *stream = &conn->streams[way];
    if (stream->is_closed)
        return;
    struct chunk *chunk = malloc(sizeof *chunk + size);
    if (!chunk)
        err(1, "proxy");
    int64_t delay_us = conn->link->delay_us[way];
    if (conn->link->jitter_us[way] > 0)
        delay_us += rand_r(&proxy.seed) % conn->link->jitter_us[way];
    int64_t due_us = now_us() + delay_us;
    if (due_us < stream->due_us)
        due_us = stream->due_us;
    stream->due_us = due_us;
    *chunk = (struct chunk){.due_us = due_us, .size = size};
    if (size > 0)
        memcpy(chunk->bytes, bytes, size);
    STAILQ_INSERT_TAIL(&stream->queue, chunk, next);
    stream->queued += size;
}

static void stream_pop(struct stream *stream)
{
    struct chunk *chunk = STAILQ_FIRST(&stream->queue);
    STAILQ_REMOVE_HEAD(&stream->queue, next);
    stream->queued -= chunk->size;
    free(chunk);
}

static void stream_close(struct stream *stream)
{
    while (!STAILQ_EMPTY(&stream->queue))
        stream_pop(stream);
    stream->is_closed = true;
}

static void stream_end(struct conn *conn, int way)
{
    if (conn->streams[way].is_ended)
        return;
    conn->streams[way].is_ended = true;
    stream_push(conn, way, NULL, 0);
}

/* When the next chunk may pass; INT64_MAX: not before something happens. */
static int64_t stream_due_us(const struct conn *conn, int way)
{
    const struct stream *stream = &conn->streams[way];
    const struct chunk *chunk = STAILQ_FIRST(&stream->queue);
    if (!chunk || conn->link->is_stalled[way])
        return INT64_MAX;
    return chunk->due_us > stream->hold_us ? chunk->due_us : stream->hold_us;
}

static bool stream_is_due(const struct conn *conn, int way, int64_t at_us)
{
    return stream_due_us(conn, way) <= at_us;
}

/* False: the other end takes no more at present. */
static bool stream_write(struct conn *conn, int way, struct chunk *chunk)
{
    while (chunk->sent < chunk->size) {
        size_t size = conn->link->is_sliced ? 1 : chunk->size - chunk->sent;
        ssize_t sent = send(conn->fd[!way], chunk->bytes + chunk->sent, size,
                            MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN)
            return false;
        if (sent < 0) {
            stream_close(&conn->streams[way]);
            return false;
        }
        chunk->sent += (size_t)sent;
    }
    return true;
}

static void stream_pump(struct conn *conn, int way)
{
    struct stream *stream = &conn->streams[way];
    while (stream_is_due(conn, way, now_us())) {
        struct chunk *chunk = STAILQ_FIRST(&stream->queue);
        if (chunk->size == 0) {
            (void)shutdown(conn->fd[!way], SHUT_WR); /* may be gone already */
            stream_close(stream);
        } else if (stream_write(conn, way, chunk)) {
            stream_pop(stream);
        } else {
            return;
        }
    }
}

static void stream_read(struct conn *conn, int way)
{
    char bytes[READ_MAX];
    ssize_t size = recv(conn->fd[way], bytes, sizeof bytes, 0);
    if (size < 0 && errno == EAGAIN)
        return;
    if (size <= 0)
        stream_end(conn, way);
    else if (!conn->streams[way].is_ended)
        stream_push(conn, way, bytes, (size_t)size);
}

/* ---- connections -------------------------------------------------------- */

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static int socket_new(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        err(1, "proxy: socket");
    return fd;
}

static void do_not_wait(int fd)
{
    int one = 1; /* a socket that was reset has no options any more */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void close_with_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}

static void conn_free(struct conn *conn, bool is_reset)
{
    for (int end = 0; end < 2; end++) {
        stream_close(&conn->streams[end]);
        if (is_reset)
            close_with_reset(conn->fd[end]);
        else
            close(conn->fd[end]);
    }
    LIST_REMOVE(conn, next);
    free(conn);
}

static void link_accept(struct link *link)
{
    /* cppcheck-suppress nullPointer; who connects does not matter */
    int fd = accept4(link->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return;
    struct sockaddr_in node = loopback(link->node_port);
    int node_fd = socket_new();
    if (connect(node_fd, (struct sockaddr *)&node, sizeof node) &&
        errno != EINPROGRESS) {
        close(node_fd);
        close_with_reset(fd); /* the nearest to a refused connection */
        return;
    }
    do_not_wait(fd);
    do_not_wait(node_fd);
    struct conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        err(1, "proxy");
    conn->link = link;
    conn->fd[0] = fd;
    conn->fd[1] = node_fd;
    for (int way = 0; way < 2; way++)
        STAILQ_INIT(&conn->streams[way].queue);
    LIST_INSERT_HEAD(&proxy.conns, conn, next);
}

static int listen_on_loopback(int *fd)
{
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    *fd = socket_new();
    if (bind(*fd, (struct sockaddr *)&address, size) || listen(*fd, 128) ||
        getsockname(*fd, (struct sockaddr *)&address, &size))
        err(1, "proxy: listen");
    return ntohs(address.sin_port);
}

/* ---- commands ----------------------------------------------------------- */

enum action { ACTION_HOLD, ACTION_FINISH, ACTION_RESET };

static void on_conns_of(const struct link *link, enum action action, int way,
                        int64_t until_us)
{
    struct conn *next;
    for (struct conn *conn = LIST_FIRST(&proxy.conns); conn; conn = next) {
        next = LIST_NEXT(conn, next);
        if (conn->link != link)
            continue;
        if (action == ACTION_HOLD)
            conn->streams[way].hold_us = until_us;
        else if (action == ACTION_FINISH)
            stream_end(conn, way);
        else
            conn_free(conn, true);
    }
}

static void obey(const char *verb, const long *numbers)
{
    if (numbers[0] < 0 || numbers[0] >= proxy.servers || numbers[1] < 0 ||
        numbers[1] >= proxy.nodes)
        errx(1, "proxy: %s: no such pair", verb);
    struct link *link = &proxy.links[numbers[0]][numbers[1]];
    int way = numbers[2] != 0;
    if (strcmp(verb, "stall") == 0) {
        link->is_stalled[way] = numbers[3] != 0;
    } else if (strcmp(verb, "delay") == 0) {
        link->delay_us[way] = numbers[3] * 1000;
        link->jitter_us[way] = numbers[4] * 1000;
    } else if (strcmp(verb, "slice") == 0) {
        link->is_sliced = numbers[2] != 0;
    } else if (strcmp(verb, "hold") == 0) {
        on_conns_of(link, ACTION_HOLD, way, now_us() + numbers[3] * 1000);
    } else if (strcmp(verb, "finish") == 0) {
        on_conns_of(link, ACTION_FINISH, way, 0);
    } else if (strcmp(verb, "reset") == 0) {
        on_conns_of(link, ACTION_RESET, 0, 0);
    } else {
        errx(1, "proxy: no such command: %s", verb);
    }
}

static void obey_line(char *line)
{
    long numbers[NUMBERS_MAX] = {0};
    char *rest = NULL;
    const char *verb = strtok_r(line, " ", &rest);
    for (int i = 0; verb && i < NUMBERS_MAX; i++) {
        const char *word = strtok_r(NULL, " ", &rest);
        if (word)
            numbers[i] = strtol(word, NULL, 10);
    }
    if (verb && strcmp(verb, "sync") == 0) {
        puts("done");
        if (fflush(stdout))
            err(1, "proxy");
    } else if (verb) {
        obey(verb, numbers);
    }
}

static void read_commands(void)
{
    size_t room = sizeof proxy.line - proxy.line_size;
    ssize_t size = read(STDIN_FILENO, proxy.line + proxy.line_size, room);
    if (size <= 0)
        exit(0); /* the driver has gone */
    proxy.line_size += (size_t)size;
    char *end;
    while ((end = memchr(proxy.line, '\n', proxy.line_size))) {
        size_t used = (size_t)(end - proxy.line) + 1;
        *end = '\0';
        obey_line(proxy.line);
        proxy.line_size -= used;
        memmove(proxy.line, end + 1, proxy.line_size);
    }
    if (proxy.line_size == sizeof proxy.line)
        errx(1, "proxy: a command without end");
}

/* ---- the loop ----------------------------------------------------------- */

static void watch(int fd, short events)
{
    if (proxy.polled_count == ENDS_MAX)
        errx(1, "proxy: too many connections");
    /* what nobody waits for is left out: a hang-up would wake us for ever */
    proxy.polled[proxy.polled_count++] =
        (struct pollfd){.fd = events ? fd : -1, .events = events};
}

/* Two places a connection, in the order of the list. */
static void watch_conn(const struct conn *conn, int64_t at_us)
{
    for (int end = 0; end < 2; end++) {
        const struct stream *in = &conn->streams[end];
        short events = 0;
        if (!in->is_ended && in->queued < QUEUE_MAX)
            events |= POLLIN;
        if (stream_is_due(conn, !end, at_us))
            events |= POLLOUT;
        watch(conn->fd[end], events);
    }
}

/* Prepares the poll, and returns in how many µs something is due; -1: never. */
static int64_t watch_all(void)
{
    int64_t at_us = now_us(), due_us = INT64_MAX;
    proxy.polled_count = 0;
    watch(STDIN_FILENO, POLLIN);
    for (int s = 0; s < proxy.servers; s++)
        for (int n = 0; n < proxy.nodes; n++)
            watch(proxy.links[s][n].listener, POLLIN);
    const struct conn *conn;
    LIST_FOREACH(conn, &proxy.conns, next)
    {
        /* cppcheck-suppress uninitvar; of calloc, as all in the list */
        watch_conn(conn, at_us);
        for (int way = 0; way < 2; way++) {
            int64_t next_us = stream_due_us(conn, way);
            if (next_us > at_us && next_us < due_us)
                due_us = next_us;
        }
    }
    return due_us == INT64_MAX ? -1 : due_us - at_us;
}

static void serve_conns(nfds_t place)
{
    struct conn *next;
    for (struct conn *conn = LIST_FIRST(&proxy.conns); conn; conn = next) {
        next = LIST_NEXT(conn, next);
        for (int end = 0; end < 2; end++, place++)
            if (proxy.polled[place].fd >= 0 &&
                (proxy.polled[place].revents & (POLLIN | POLLHUP | POLLERR)) &&
                (proxy.polled[place].events & POLLIN))
                stream_read(conn, end);
        stream_pump(conn, UP);
        stream_pump(conn, DOWN);
        if (conn->streams[UP].is_closed && conn->streams[DOWN].is_closed)
            conn_free(conn, false);
    }
}

static void turn(void)
{
    int64_t wait_us = watch_all();
    struct timespec wait = {.tv_sec = wait_us / 1000000,
                            .tv_nsec = wait_us % 1000000 * 1000};
    if (ppoll(proxy.polled, proxy.polled_count, wait_us < 0 ? NULL : &wait,
              NULL) < 0)
        err(1, "proxy: poll");
    /* connections first: commands and listeners change the list */
    nfds_t listeners = (nfds_t)proxy.servers * (nfds_t)proxy.nodes;
    serve_conns(1 + listeners);
    for (nfds_t i = 0; i < listeners; i++)
        if (proxy.polled[1 + i].revents)
            link_accept(
                &proxy.links[i / (nfds_t)proxy.nodes][i % (nfds_t)proxy.nodes]);
    if (proxy.polled[0].revents)
        read_commands();
}

int main(int argc, char **argv)
{
    proxy.servers = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
    proxy.nodes = argc - 2;
    if (proxy.servers < 1 || proxy.servers > SERVERS_MAX || proxy.nodes < 1 ||
        proxy.nodes > NODES_MAX)
        errx(2, "usage: proxy SERVERS NODE-PORT…");
    signal(SIGPIPE, SIG_IGN);
    for (int s = 0; s < proxy.servers; s++) {
        for (int n = 0; n < proxy.nodes; n++) {
            struct link *link = &proxy.links[s][n];
            link->node_port = (int)strtol(argv[2 + n], NULL, 10);
            printf("%s%d", n ? " " : "", listen_on_loopback(&link->listener));
        }
        puts("");
    }
    if (fflush(stdout))
        err(1, "proxy");
    for (;;)
        turn();
}
