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

void service_greet(struct client *client)
{
    char body[32], lease[256];
    struct http_answer answer;
    snprintf(body, sizeof body, "{\"TTL\":%d}", LEASE_S);
    const char *error = http_post(&client->http, "/v3/lease/grant", body);
    while (!error && !http_read(&client->http, &answer))
        continue;
    if (!error)
        error = answer.error;
    if (error || answer.status != 200 || !http_text(&answer, "ID", lease) ||
        strlen(lease) >= sizeof client->lease)
        errx(1, "no lease: %s", error ? error : client->http.response);
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

const char *service_acquire(struct client *client)
{
    char name[2 * sizeof client->resource], body[256];
    base64(client->resource, strlen(client->resource), name);
    snprintf(body, sizeof body, "{\"name\":\"%s\",\"lease\":\"%s\"}", name,
             client->lease);
    return http_post(&client->http, "/v3/lock/lock", body);
}

const char *service_release(struct client *client)
{
    char body[300];
    snprintf(body, sizeof body, "{\"key\":\"%s\"}", client->token);
    return http_post(&client->http, "/v3/lock/unlock", body);
}

const char *service_granted(struct client *client,
                            const struct http_answer *answer)
{
    if (answer->status != 200)
        return "unexpected status";
    return http_text(answer, "key", client->token) ? NULL : "no key";
}

const char *service_released(const struct http_answer *answer)
{
    return answer->status == 200 ? NULL : "unexpected status";
}
