/* SPDX-License-Identifier: MIT */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int service_most = 100;

void service_greet(struct client *client, struct http *http)
{
    (void)client, (void)http; /* nothing is needed */
}

/* ---- what is asked --------------------------------------------------------
 */

/* The members of an acquire. */
static int put_acquire(char *to, size_t room, const struct client *client)
{
    return snprintf(to, room, "\"resource\":\"%s\",\"ttl_ms\":%d%s",
                    client->resource, service_ttl_ms,
                    service_is_shared ? ",\"mode\":\"shared\"" : "");
}

static const char *ask_alone(struct http *http, const struct client *client)
{
    char body[160] = "{";
    if (client->holds) {
        char path[128];
        snprintf(path, sizeof path, "/locks/%s", client->resource);
        return http_delete(http, path, client->token);
    }
    put_acquire(body + 1, sizeof body - 2, client);
    return http_post(http, "/locks", strcat(body, "}"));
}

static int put_operation(char *to, size_t room, const struct client *client)
{
    if (client->holds)
        return snprintf(to, room,
                        "{\"operation\":\"release\",\"id\":\"%s\","
                        "\"token\":\"%s\"},",
                        client->resource, client->token);
    char acquire[160];
    put_acquire(acquire, sizeof acquire, client);
    return snprintf(to, room, "{\"operation\":\"acquire\",%s},", acquire);
}

const char *service_ask(struct http *http, struct client *const *clients,
                        int count)
{
    static char body[48 * 1024];
    if (count == 1)
        return ask_alone(http, clients[0]);
    size_t size = (size_t)sprintf(body, "{\"operations\":[");
    for (int i = 0; i < count; i++) {
        size_t room = sizeof body - size - 1; /* for the bracket */
        int more = put_operation(body + size, room, clients[i]);
        if (more < 0 || (size_t)more >= room)
            return "too much for a batch";
        size += (size_t)more;
    }
    strcpy(body + size - 1, "]}"); /* in place of the last comma */
    return http_post(http, "/batch", body);
}

/* ---- what is answered -----------------------------------------------------
 */

/* Goes over a text that must be there. */
static bool skip(char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Behind the text whose first character this is; NULL: it has no end. */
static char *past_text(char *at)
{
    for (at += strcspn(at, "\"\\"); *at == '\\' && at[1] != '\0';
         at += strcspn(at, "\"\\"))
        at += 2;
    return *at == '"' ? at + 1 : NULL;
}

/* Behind the object that begins here; NULL: it has no end. */
static char *past_object(char *at)
{
    int depth = 0;
    do {
        at += strcspn(at, "\"{}");
        if (*at == '"')
            at = past_text(at + 1);
        else if (*at != '\0')
            depth += *at++ == '{' ? 1 : -1;
        if (!at || *at == '\0')
            return NULL;
    } while (depth > 0);
    return at;
}

/* An item: {"status":201,"grant":{…}} */
static const char *take_item(char **from, struct http_answer *item)
{
    char *at = *from;
    if (!skip(&at, "{\"status\":"))
        return "too few results";
    *item = (struct http_answer){.status = (int)strtol(at, &at, 10)};
    if (!skip(&at, ",\"grant\":") && !skip(&at, ",\"release\":") &&
        !skip(&at, ",\"problem\":"))
        return "an empty result";
    item->body = at;
    at = *at == '{' ? past_object(at) : NULL;
    if (!at || *at != '}')
        return "a result without an end";
    *at = '\0';
    *from = at + 1;
    return NULL;
}

/* Whether it is about this lock, or a problem. */
static bool is_of(const struct client *client, const struct http_answer *answer)
{
    char resource[256];
    return answer->status >= 400 || (http_text(answer, "resource", resource) &&
                                     strcmp(resource, client->resource) == 0);
}

const char *service_split(const struct http_answer *all,
                          struct client *const *clients, int count,
                          struct http_answer *each)
{
    each[0] = *all;
    if (count == 1)
        return NULL;
    char *at = all->body;
    if (all->status != 200 || !skip(&at, "{\"results\":["))
        return "no results";
    for (int i = 0; i < count; i++) {
        const char *error = take_item(&at, &each[i]);
        if (error)
            return error;
        if (!is_of(clients[i], &each[i]))
            return "a result of another lock";
        if (!skip(&at, i < count - 1 ? "," : "]}"))
            return i < count - 1 ? "too few results" : "too many results";
    }
    return NULL;
}

static const char *granted(struct client *client,
                           const struct http_answer *answer)
{
    if (answer->status != 201)
        return "unexpected status";
    const char *fence = strstr(answer->body, "\"fencing_token\":");
    if (!fence || strtoll(strchr(fence, ':') + 1, NULL, 10) <= 0)
        return "no fencing token";
    return http_text(answer, "token", client->token) ? NULL : "no token";
}

static const char *released(const struct http_answer *answer)
{
    if (answer->status != 200)
        return "unexpected status";
    return strstr(answer->body, "\"released\":true") ? NULL : "not released";
}

const char *service_answered(struct client *client,
                             const struct http_answer *answer)
{
    return client->holds ? released(answer) : granted(client, answer);
}
