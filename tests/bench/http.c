/* SPDX-License-Identifier: MIT */
#include "http.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LENGTH_FIELD = sizeof "\r\nContent-Length:" - 1 };

static char request[1 << 16], response[1 << 17]; /* of a hundred at once */
static char authorization[256]; /* a line of the head, or empty */

void http_set_token(const char *token)
{
    int length = snprintf(authorization, sizeof authorization,
                          "Authorization: Bearer %s\r\n", token);
    if (length < 0 || (size_t)length >= sizeof authorization)
        errx(2, "the token is too long");
}

static gnutls_certificate_credentials_t credentials; /* NULL: plain */

void http_use_tls(void)
{
    if (gnutls_certificate_allocate_credentials(&credentials) < 0)
        errx(1, "out of memory for TLS");
}

static void shake_hands(struct http *http)
{
    int rc = gnutls_init(&http->tls, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
    if (rc < 0 || gnutls_set_default_priority(http->tls) < 0 ||
        gnutls_credentials_set(http->tls, GNUTLS_CRD_CERTIFICATE, credentials) <
            0)
        errx(1, "out of memory for TLS");
    gnutls_transport_set_int(http->tls, http->fd);
    do
        rc = gnutls_handshake(http->tls);
    while (rc < 0 && !gnutls_error_is_fatal(rc));
    if (rc < 0)
        errx(1, "handshake: %s", gnutls_strerror(rc));
}

static ssize_t put(struct http *http, const char *text, size_t size)
{
    return http->tls ? gnutls_record_send(http->tls, text, size)
                     : send(http->fd, text, size, MSG_NOSIGNAL);
}

static ssize_t take(struct http *http, char *out, size_t size)
{
    return http->tls ? gnutls_record_recv(http->tls, out, size)
                     : recv(http->fd, out, size, 0);
}

static void forget(struct http *http)
{
    free(http->kept);
    http->kept = NULL;
    http->received = 0;
    http->response = "";
}

static void dial(struct http *http)
{
    int one = 1;
    http->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (http->fd < 0 ||
        connect(http->fd, (struct sockaddr *)&http->server,
                sizeof http->server) ||
        setsockopt(http->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one))
        err(1, "connect");
    if (credentials)
        shake_hands(http);
}

void http_open(struct http *http, const struct sockaddr_in *server)
{
    *http = (struct http){.server = *server, .response = ""};
    dial(http);
}

void http_reopen(struct http *http)
{
    close(http->fd);
    if (http->tls)
        gnutls_deinit(http->tls);
    http->tls = NULL;
    forget(http);
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
    forget(http);
    if (length < 0 || (size_t)length >= sizeof request)
        return "too long";
    ssize_t sent = put(http, request, (size_t)length);
    return sent == length ? NULL : "cannot send";
}

const char *http_get(struct http *http, const char *path)
{
    return send_request(http,
                        snprintf(request, sizeof request,
                                 "GET %s HTTP/1.1\r\nHost: bench\r\n%s\r\n",
                                 path, authorization));
}

const char *http_post(struct http *http, const char *path, const char *body)
{
    return send_request(http,
                        snprintf(request, sizeof request,
                                 "POST %s HTTP/1.1\r\nHost: bench\r\n%s"
                                 "Content-Type: application/json\r\n"
                                 "Content-Length: %zu\r\n\r\n%s",
                                 path, authorization, strlen(body), body));
}

const char *http_delete(struct http *http, const char *path, const char *token)
{
    return send_request(http, snprintf(request, sizeof request,
                                       "DELETE %s HTTP/1.1\r\nHost: bench\r\n%s"
                                       "X-Lock-Token: %s\r\n\r\n",
                                       path, authorization, token));
}

/* What is wrong with what was received, or NULL; the body, if its head is
 * there, and whether it is whole. */
static const char *look(size_t received, char **body, bool *is_whole)
{
    char *end = strstr(response, "\r\n\r\n");
    if (!end)
        return received < sizeof response - 1 ? NULL : "no end of the head";
    const char *length = memmem(response, (size_t)(end - response),
                                "\r\nContent-Length:", LENGTH_FIELD);
    if (!length)
        return "no length";
    *body = end + 4;
    size_t wanted = strtoul(length + LENGTH_FIELD, NULL, 10);
    size_t have = received - (size_t)(*body - response);
    *is_whole = have == wanted;
    return have > wanted ? "too long" : NULL;
}

/* Puts what came before into the buffer again. */
static void bring_back(struct http *http)
{
    if (http->kept)
        memcpy(response, http->kept, http->received);
    free(http->kept);
    http->kept = NULL;
}

static void keep(struct http *http)
{
    http->kept = malloc(http->received);
    if (!http->kept)
        err(1, "bench");
    memcpy(http->kept, response, http->received);
}

bool http_read(struct http *http, struct http_answer *answer)
{
    size_t room = sizeof response - 1 - http->received;
    ssize_t size = take(http, response + http->received, room);
    bool is_whole = false;
    *answer = (struct http_answer){0};
    if (http->tls ? size == GNUTLS_E_AGAIN : size < 0 && errno == EINTR)
        return false;
    bring_back(http);
    if (size > 0)
        http->received += (size_t)size;
    response[http->received] = '\0';
    http->response = response;
    answer->error = size > 0 ? look(http->received, &answer->body, &is_whole)
                             : "connection lost";
    if (is_whole)
        answer->status = atoi(response + strlen("HTTP/1.1 "));
    else if (!answer->error)
        keep(http);
    return is_whole || answer->error;
}

bool http_text(const struct http_answer *answer, const char *name,
               char text[256])
{
    char start[32];
    snprintf(start, sizeof start, "\"%s\":\"", name);
    const char *found = strstr(answer->body, start);
    if (!found)
        return false;
    found += strlen(start);
    size_t length = strcspn(found, "\"");
    if (length == 0 || length > 255)
        return false;
    memcpy(text, found, length);
    text[length] = '\0';
    return true;
}
