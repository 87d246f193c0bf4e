#include "client.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

static struct sockaddr_in address;
static unsigned run; /* differs from process to process */

static void reconnect(struct client *client)
{
    int one = 1;
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 ||
        connect(client->fd, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        err(1, "load: connect");
}

void client_open(struct client *client, int number,
                 const struct sockaddr_in *server)
{
    *client = (struct client){.number = number};
    address = *server;
    while (run == 0)
        if (getrandom(&run, sizeof run, 0) < 0)
            err(1, "load");
    reconnect(client);
}

/* The caller has to watch the new descriptor. */
static enum client_event failed(struct client *client, const char *what)
{
    static int told;
    if (told++ < 10)
        warnx("%s: %s: %.*s", client->holds ? "release" : "acquire", what,
              (int)client->received, client->response);
    close(client->fd);
    reconnect(client);
    client->busy = false;
    return CLIENT_FAILED;
}

static enum client_event send_request(struct client *client, int length)
{
    client->received = 0;
    client->response[0] = '\0';
    ssize_t sent =
        send(client->fd, client->request, (size_t)length, MSG_NOSIGNAL);
    return sent == length ? CLIENT_WAITS : failed(client, "cannot send");
}

enum client_event client_begin(struct client *client, int64_t start_us)
{
    char body[128];
    int size =
        snprintf(body, sizeof body,
                 "{\"resource\":\"bench:%x:%d:%" PRIu64 "\",\"ttl_ms\":30000}",
                 run, client->number, client->round++);
    client->busy = true;
    client->holds = false;
    client->start_us = start_us;
    return send_request(client,
                        snprintf(client->request, sizeof client->request,
                                 "POST /locks HTTP/1.1\r\nHost: bench\r\n"
                                 "Content-Type: application/json\r\n"
                                 "Content-Length: %d\r\n\r\n%s",
                                 size, body));
}

static enum client_event release(struct client *client)
{
    client->holds = true;
    return send_request(client,
                        snprintf(client->request, sizeof client->request,
                                 "DELETE /locks/bench:%x:%d:%" PRIu64
                                 " HTTP/1.1\r\nHost: bench\r\n"
                                 "X-Lock-Token: %s\r\n\r\n",
                                 run, client->number, client->round - 1,
                                 client->token));
}

/* The whole response is there; what comes next. */
static enum client_event answered(struct client *client, const char *body)
{
    const char *status = client->response + strlen("HTTP/1.1 ");
    if (client->holds) {
        if (strncmp(status, "200 ", 4) != 0)
            return failed(client, "unexpected status");
        client->busy = false;
        return CLIENT_DONE;
    }
    const char *token = strstr(body, "\"token\":\"");
    if (strncmp(status, "201 ", 4) != 0 || !token ||
        sscanf(token, "\"token\":\"%255[^\"]", client->token) != 1)
        return failed(client, "unexpected answer");
    return release(client);
}

enum client_event client_read(struct client *client)
{
    size_t room = sizeof client->response - 1 - client->received;
    ssize_t size =
        recv(client->fd, client->response + client->received, room, 0);
    if (size < 0 && errno == EINTR)
        return CLIENT_WAITS;
    if (size <= 0 || !client->busy)
        return failed(client, "connection lost");
    client->received += (size_t)size;
    client->response[client->received] = '\0';
    const char *end = strstr(client->response, "\r\n\r\n");
    const char *length = strcasestr(client->response, "\r\nContent-Length:");
    if (!end && client->received < sizeof client->response - 1)
        return CLIENT_WAITS;
    if (!end || !length || length > end)
        return failed(client, "no length");
    const char *body = end + 4;
    size_t wanted = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    size_t have = client->received - (size_t)(body - client->response);
    if (have < wanted)
        return CLIENT_WAITS;
    return have > wanted ? failed(client, "too long") : answered(client, body);
}
