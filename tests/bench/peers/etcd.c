/* SPDX-License-Identifier: MIT */
/* etcd's lock service by its HTTP gateway: bytes are base64 there. A lock hangs
 * on a lease; a client takes one lease for all its locks, as etcd's own clients
 * do, and never renews it. */
#include "../service.h"

#include <err.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { LEASE_S = 3600 }; /* longer than any run */

const int service_most = 1;

void service_greet(struct client *client, struct http *http)
{
    char body[32], lease[256];
    struct http_answer answer;
    snprintf(body, sizeof body, "{\"TTL\":%d}", LEASE_S);
    const char *error = http_post(http, "/v3/lease/grant", body);
    while (!error && !http_read(http, &answer))
        continue;
    if (!error)
        error = answer.error;
    if (error || answer.status != 200 || !http_text(&answer, "ID", lease) ||
        strlen(lease) >= sizeof client->lease)
        errx(1, "no lease: %s", error ? error : http->response);
    memcpy(client->lease, lease, strlen(lease) + 1);
}

/* RFC 4648 §4; `text` has room for 4 characters for each 3 bytes, and a NUL. */
static void base64(const char *bytes, size_t count, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    for (size_t i = 0; i < count + (3 - count % 3) % 3; i++) {
        bits = bits << 8 | (i < count ? (unsigned char)bytes[i] : 0U);
        if (i % 3 != 2)
            continue;
        for (unsigned shift = 24; shift > 0; shift -= 6)
            *text++ = digits[bits >> (shift - 6) & 63U];
    }
    for (size_t missing = (3 - count % 3) % 3; missing > 0; missing--)
        text[-(ptrdiff_t)missing] = '=';
    *text = '\0';
}

static const char *acquire(struct http *http, const struct client *client)
{
    char name[2 * sizeof client->resource], body[256];
    base64(client->resource, strlen(client->resource), name);
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"lease\":\"%s\"}", name,
             client->lease);
    return http_post(http, "/v3/lock/lock", body);
}

static const char *release(struct http *http, const struct client *client)
{
    char body[300];
    snprintf(body, sizeof body, "{\"key\":\"%s\"}", client->token);
    return http_post(http, "/v3/lock/unlock", body);
}

const char *service_ask(struct http *http, struct client *const *clients,
                        int count)
{
    (void)count; /* one */
    return (clients[0]->holds ? release : acquire)(http, clients[0]);
}

const char *service_split(const struct http_answer *all,
                          struct client *const *clients, int count,
                          struct http_answer *each)
{
    (void)clients, (void)count; /* one */
    each[0] = *all;
    return NULL;
}

const char *service_answered(struct client *client,
                             const struct http_answer *answer)
{
    if (answer->status != 200)
        return "unexpected status";
    if (client->holds)
        return NULL;
    return http_text(answer, "key", client->token) ? NULL : "no key";
}
