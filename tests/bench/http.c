#include "http.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void dial(struct http *http)
{
    int one = 1;
    http->received = 0;
    http->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (http->fd < 0 ||
        connect(http->fd, (struct sockaddr *)&http->server,
                sizeof http->server) ||
        setsockopt(http->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        err(1, "connect");
}

void http_open(struct http *http, const struct sockaddr_in *server)
{
    http->server = *server;
    dial(http);
}

void http_reopen(struct http *http)
{
    close(http->fd);
    dial(http);
}

struct sockaddr_in http_address(const char *text)
{
    struct sockaddr_in server = {.sin_family = AF_INET};
    char host[64];
    unsigned short port;
    if (sscanf(text, "%63[^:]:%hu", host, &port) != 2 ||
        inet_pton(AF_INET, host, &server.sin_addr) != 1)
        errx(2, "not HOST:PORT: %s", text);
    server.sin_port = htons(port);
    return server;
}

static const char *send_request(struct http *http, int length)
{
    http->received = 0;
    http->response[0] = '\0';
    ssize_t sent = send(http->fd, http->request, (size_t)length, MSG_NOSIGNAL);
    return sent == length ? NULL : "cannot send";
}

const char *http_post(struct http *http, const char *path, const char *body)
{
    return send_request(http, snprintf(http->request, sizeof http->request,
                                       "POST %s HTTP/1.1\r\nHost: bench\r\n"
                                       "Content-Type: application/json\r\n"
                                       "Content-Length: %zu\r\n\r\n%s",
                                       path, strlen(body), body));
}

const char *http_delete(struct http *http, const char *path, const char *token)
{
    return send_request(http, snprintf(http->request, sizeof http->request,
                                       "DELETE %s HTTP/1.1\r\nHost: bench\r\n"
                                       "X-Lock-Token: %s\r\n\r\n",
                                       path, token));
}

/* What is wrong with what was received, or NULL; the body, if its head is
 * there, and whether it is whole. */
static const char *look(struct http *http, const char **body, bool *is_whole)
{
    const char *end = strstr(http->response, "\r\n\r\n");
    const char *length = strcasestr(http->response, "\r\nContent-Length:");
    if (!end && http->received < sizeof http->response - 1)
        return NULL;
    if (!end || !length || length > end)
        return "no length";
    *body = end + 4;
    size_t wanted = strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    size_t have = http->received - (size_t)(*body - http->response);
    *is_whole = have == wanted;
    return have > wanted ? "too long" : NULL;
}

bool http_read(struct http *http, struct http_answer *answer)
{
    size_t room = sizeof http->response - 1 - http->received;
    ssize_t size = recv(http->fd, http->response + http->received, room, 0);
    bool is_whole = false;
    *answer = (struct http_answer){0};
    if (size < 0 && errno == EINTR)
        return false;
    if (size <= 0) {
        answer->error = "connection lost";
        return true;
    }
    http->received += (size_t)size;
    http->response[http->received] = '\0';
    answer->error = look(http, &answer->body, &is_whole);
    if (is_whole)
        answer->status = atoi(http->response + strlen("HTTP/1.1 "));
    return is_whole || answer->error;
}

bool http_token(const struct http_answer *answer, char token[256])
{
    const char *found = strstr(answer->body, "\"token\":\"");
    return found && sscanf(found, "\"token\":\"%255[^\"]", token) == 1;
}
