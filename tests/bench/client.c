#include "client.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>

static unsigned run; /* differs from process to process */

void client_open(struct client *client, int number,
                 const struct sockaddr_in *server)
{
    *client = (struct client){.number = number};
    while (run == 0)
        if (getrandom(&run, sizeof run, 0) < 0)
            err(1, "load");
    http_open(&client->http, server);
}

/* The caller has to watch the new descriptor. */
static enum client_event failed(struct client *client, const char *what)
{
    static int told;
    if (told++ < 10)
        warnx("%s: %s: %.*s", client->holds ? "release" : "acquire", what,
              (int)client->http.received, client->http.response);
    http_reopen(&client->http);
    client->busy = false;
    return CLIENT_FAILED;
}

static enum client_event asked(struct client *client, const char *error)
{
    return error ? failed(client, error) : CLIENT_WAITS;
}

enum client_event client_begin(struct client *client, int64_t start_us)
{
    char body[128];
    snprintf(body, sizeof body,
             "{\"resource\":\"bench:%x:%d:%" PRIu64 "\",\"ttl_ms\":30000}", run,
             client->number, client->round++);
    client->busy = true;
    client->holds = false;
    client->start_us = start_us;
    return asked(client, http_post(&client->http, "/locks", body));
}

static enum client_event release(struct client *client)
{
    char path[128];
    snprintf(path, sizeof path, "/locks/bench:%x:%d:%" PRIu64, run,
             client->number, client->round - 1);
    client->holds = true;
    return asked(client, http_delete(&client->http, path, client->token));
}

enum client_event client_read(struct client *client)
{
    struct http_answer answer;
    if (!http_read(&client->http, &answer))
        return CLIENT_WAITS;
    if (answer.error)
        return failed(client, answer.error);
    if (!client->busy)
        return failed(client, "not asked");
    if (answer.status != (client->holds ? 200 : 201))
        return failed(client, "unexpected status");
    if (client->holds) {
        client->busy = false;
        return CLIENT_DONE;
    }
    return http_token(&answer, client->token) ? release(client)
                                              : failed(client, "no token");
}
