#include "client.h"

#include "service.h"

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
    service_greet(client);
}

void client_greet(struct client *client)
{
    struct http_answer answer;
    const char *error = http_get(&client->http, "/livez");
    while (!error && !http_read(&client->http, &answer))
        ;
    if (error || answer.error)
        errx(1, "GET /livez: %s", error ? error : answer.error);
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
    if (client_resource != NULL)
        snprintf(client->resource, sizeof client->resource, "%s",
                 client_resource);
    else
        snprintf(client->resource, sizeof client->resource,
                 "bench:%x:%d:%" PRIu64, run, client->number, client->round++);
    client->busy = true;
    client->holds = false;
    client->start_us = start_us;
    return asked(client, service_acquire(client));
}

static enum client_event take_grant(struct client *client,
                                    const struct http_answer *answer)
{
    const char *error = service_granted(client, answer);
    if (error)
        return failed(client, error);
    client->holds = true;
    return asked(client, service_release(client));
}

static enum client_event take_release(struct client *client,
                                      const struct http_answer *answer)
{
    const char *error = service_released(answer);
    if (error)
        return failed(client, error);
    client->busy = false;
    return CLIENT_DONE;
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
    return client->holds ? take_release(client, &answer)
                         : take_grant(client, &answer);
}
