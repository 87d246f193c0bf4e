#include "grant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct answer *grant_ask(const struct server *server, const char *json,
                               const char *key, struct grant *grant)
{
    struct request request = {.method = "POST", .path = "/locks", .json = json};
    if (key != NULL) {
        request.headers[0] = textf("Idempotency-Key: %s", key);
    }
    const struct answer *answer = http_call(server, &request);
    if (grant == NULL || answer->status >= 300)
        return answer;
    snprintf(grant->path, sizeof grant->path, "/locks/%s",
             answer_text(answer, "id"));
    snprintf(grant->token, sizeof grant->token, "%s",
             answer_text(answer, "token"));
    grant->number = answer_int(answer, "fencing_token");
    grant->validity_ms = answer_int(answer, "validity_ms");
    return answer;
}

const struct answer *grant_extend(const struct server *server,
                                  const struct grant *grant, int ttl_ms)
{
    char path[sizeof grant->path + 16], json[32];
    snprintf(path, sizeof path, "%s/extend", grant->path);
    snprintf(json, sizeof json, "{\"ttl_ms\":%d}", ttl_ms);
    return HTTP(server, .method = "PUT", .path = path, .token = grant->token,
                .json = json);
}

const struct answer *grant_release(const struct server *server,
                                   const struct grant *grant)
{
    return HTTP(server, .method = "DELETE", .path = grant->path,
                .token = grant->token);
}

const struct answer *grant_inspect(const struct server *server,
                                   const struct grant *grant)
{
    return HTTP(server, .method = "GET", .path = grant->path);
}

int grant_send(const struct server *server, const char *json, const char *key)
{
    char text[1024];
    int fd = raw_connect(server);
    int len = snprintf(text, sizeof text,
                       "POST /locks HTTP/1.1\r\nHost: x\r\nContent-Type: "
                       "application/json\r\n%s%s%s"
                       "Content-Length: %zu\r\n\r\n%s",
                       key ? "Idempotency-Key: " : "", key ? key : "",
                       key ? "\r\n" : "", strlen(json), json);
    ck_assert_int_lt(len, (int)sizeof text);
    raw_send(fd, text, (size_t)len);
    return fd;
}

struct grant grant_read(int fd, int status, int ms)
{
    struct grant grant = {0};
    char out[4096];
    raw_read(fd, out, sizeof out, "}\n", ms);
    ck_assert_msg(atoi(out + strlen("HTTP/1.1 ")) == status, "%s", out);
    json_t *body = json_loads(strstr(out, "\r\n\r\n") + 4, 0, NULL);
    ck_assert_ptr_nonnull(body);
    snprintf(grant.path, sizeof grant.path, "/locks/%s",
             json_string_value(json_object_get(body, "id")));
    snprintf(grant.token, sizeof grant.token, "%s",
             json_string_value(json_object_get(body, "token")));
    grant.number = json_integer_value(json_object_get(body, "fencing_token"));
    json_decref(body);
    return grant;
}
