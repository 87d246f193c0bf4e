#include "service.h"

#include <stdio.h>

void service_greet(struct client *client)
{
    (void)client; /* nothing is needed */
}

const char *service_acquire(struct client *client)
{
    char body[128];
    snprintf(body, sizeof body, "{\"resource\":\"%s\",\"ttl_ms\":%d%s}",
             client->resource, service_ttl_ms,
             service_is_shared ? ",\"mode\":\"shared\"" : "");
    return http_post(&client->http, "/locks", body);
}

const char *service_release(struct client *client)
{
    char path[128];
    snprintf(path, sizeof path, "/locks/%s", client->resource);
    return http_delete(&client->http, path, client->token);
}

const char *service_granted(struct client *client,
                            const struct http_answer *answer)
{
    if (answer->status != 201)
        return "unexpected status";
    return http_text(answer, "token", client->token) ? NULL : "no token";
}

const char *service_released(const struct http_answer *answer)
{
    return answer->status == 200 ? NULL : "unexpected status";
}
