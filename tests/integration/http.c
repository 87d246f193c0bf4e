/* SPDX-License-Identifier: MIT */
/*
 * Calls by libcurl, and the contract of every answer.
 */
#include "http.h"

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "secure.h"

#include "../lib/jsonat/jsonat.h"

enum { CALL_TIMEOUT_MS = 30000 };

static CURL *kept;
static struct answer last;
static bool is_silence_allowed;

static size_t take(const char *data, size_t len, char *out, size_t *at,
                   size_t size)
{
    if (*at + len >= size)
        return 0;
    memcpy(out + *at, data, len);
    *at += len;
    out[*at] = '\0';
    return len;
}

static size_t on_head(char *data, size_t one, size_t len, void *arg)
{
    size_t at = strlen(last.head);

    (void)one;
    (void)arg;
    return take(data, len, last.head, &at, sizeof last.head);
}

static size_t on_body(char *data, size_t one, size_t len, void *arg)
{
    (void)one;
    (void)arg;
    return take(data, len, last.body, &last.body_len, sizeof last.body);
}

/* ---- the contract ------------------------------------------------------- */

static void check_problem(const struct answer *answer)
{
    const char *type = answer_header(answer, "Content-Type");

    ck_assert_msg(type && strcmp(type, "application/problem+json") == 0,
                  "%d with content type %s", answer->status, type);
    ck_assert_msg(answer->json, "no JSON: %s", answer->body);
    ck_assert_int_eq(answer_int(answer, "status"), answer->status);
    ck_assert_uint_gt(strlen(answer_text(answer, "type")), 0);
    ck_assert_uint_gt(strlen(answer_text(answer, "title")), 0);
    ck_assert_uint_gt(strlen(answer_text(answer, "detail")), 0);
    ck_assert_uint_gt(strlen(answer_text(answer, "code")), 0);
    const char *id = answer_header(answer, "X-Request-Id");
    ck_assert_str_eq(answer_text(answer, "request_id"), id);
}

/* Retry-After tells in whole seconds what retry_after_ms tells finer. */
static void check_retry(const struct answer *answer)
{
    const char *seconds = answer_header(answer, "Retry-After");
    bool has_ms = answer_has(answer, "retry_after_ms");

    ck_assert_int_eq(seconds != NULL, has_ms);
    if (has_ms)
        ck_assert_int_eq(atoi(seconds),
                         (answer_int(answer, "retry_after_ms") + 999) / 1000);
}

static void check_contract(const struct answer *answer,
                           const struct request *request)
{
    const char *cache = answer_header(answer, "Cache-Control");
    const char *id = answer_header(answer, "X-Request-Id");

    ck_assert_msg(cache && strcmp(cache, "no-store") == 0,
                  "no Cache-Control: no-store in\n%s", answer->head);
    ck_assert_msg(id && *id, "no X-Request-Id in\n%s", answer->head);
    if (strcmp(request->method, "HEAD") == 0) {
        ck_assert_uint_eq(answer->body_len, 0);
        return;
    }
    if (answer->body_len)
        ck_assert_int_eq(answer->body[answer->body_len - 1], '\n');
    ck_assert_msg(!strstr(answer->body, ":null"), "null in %s", answer->body);
    if (answer->status >= 400)
        check_problem(answer);
    if (answer->json)
        check_retry(answer);
}

/* ---- calls -------------------------------------------------------------- */

static bool has_content_type(const struct request *request)
{
    for (int i = 0; i < HTTP_HEADERS && request->headers[i]; i++)
        if (strncasecmp(request->headers[i], "Content-Type", 12) == 0)
            return true;
    return false;
}

static struct curl_slist *make_headers(const struct request *request)
{
    struct curl_slist *list = NULL;

    /* no "Expect: 100-continue", no content type of curl's choice */
    list = curl_slist_append(list, "Expect:");
    if (!has_content_type(request))
        list = curl_slist_append(list, request->json
                                           ? "Content-Type: application/json"
                                           : "Content-Type:");
    if (request->token) {
        const char *text = textf("X-Lock-Token: %s", request->token);
        list = curl_slist_append(list, text);
    }
    for (int i = 0; i < HTTP_HEADERS && request->headers[i]; i++)
        list = curl_slist_append(list, request->headers[i]);
    return list;
}

static void set_body(CURL *curl, const struct request *request)
{
    size_t len = request->body_len;

    if (!request->json)
        return;
    if (len == 0)
        len = strlen(request->json);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)len);
    curl_easy_setopt(curl, CURLOPT_COPYPOSTFIELDS, request->json);
}

static void set_tls(CURL *curl)
{
    const struct secure_client *client = secure_client();

    curl_easy_setopt(curl, CURLOPT_CAINFO, client->authority);
    if (client->pair) {
        curl_easy_setopt(curl, CURLOPT_SSLCERT, client->pair->certificate);
        curl_easy_setopt(curl, CURLOPT_SSLKEY, client->pair->key);
    }
}

static CURLcode perform(CURL *curl, const struct server *server,
                        const struct request *request)
{
    char url[9000];
    struct curl_slist *headers = make_headers(request);

    snprintf(url, sizeof url, "http%s://127.0.0.1:%d%s",
             server->is_tls ? "s" : "", server->port, request->path);
    curl_easy_reset(curl);
    if (server->is_tls)
        set_tls(curl);
    set_body(curl, request);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    if (strcmp(request->method, "HEAD") == 0)
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_head);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CALL_TIMEOUT_MS);
    CURLcode result = curl_easy_perform(curl);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    last.status = (int)status;
    curl_slist_free_all(headers);
    return result;
}

static void forget_last(void)
{
    json_decref(last.json);
    last.json = NULL;
    last.status = 0;
    last.head[0] = '\0';
    last.body[0] = '\0';
    last.body_len = 0;
}

static CURLcode call(const struct server *server, const struct request *request)
{
    CURL *curl = request->is_fresh ? NULL : kept;

    forget_last();
    if (!curl)
        curl = curl_easy_init();
    ck_assert_ptr_nonnull(curl);
    CURLcode result = perform(curl, server, request);
    if (request->is_fresh)
        curl_easy_cleanup(curl);
    else
        kept = curl;
    if (last.body[0] == '{')
        last.json =
            json_loadb(last.body, last.body_len, JSON_REJECT_DUPLICATES, NULL);
    return result;
}

static bool is_silence(CURLcode result)
{
    return result == CURLE_COULDNT_CONNECT || result == CURLE_GOT_NOTHING ||
           result == CURLE_RECV_ERROR || result == CURLE_SEND_ERROR;
}

const struct answer *http_call(const struct server *server,
                               const struct request *request)
{
    CURLcode result = call(server, request);

    if (is_silence_allowed && is_silence(result)) {
        forget_last();
        return &last;
    }
    ck_assert_msg(result == CURLE_OK, "%s %.200s: %s", request->method,
                  request->path, curl_easy_strerror(result));
    check_contract(&last, request);
    return &last;
}

void http_allow_silence(void)
{
    is_silence_allowed = true;
}

const struct answer *http_try(const struct server *server,
                              const struct request *request)
{
    struct request fresh = *request;

    fresh.is_fresh = true;
    CURLcode result = call(server, &fresh);
    if (result != CURLE_COULDNT_CONNECT && is_silence(result))
        return NULL;
    ck_assert_msg(result == CURLE_OK, "%s %.200s: %s", request->method,
                  request->path, curl_easy_strerror(result));
    check_contract(&last, request);
    return &last;
}

int http_probe(const struct server *server, const char *path)
{
    struct request request = {.method = "GET", .path = path, .is_fresh = true};

    return call(server, &request) == CURLE_OK ? last.status : 0;
}

void http_disconnect(void)
{
    if (kept)
        curl_easy_cleanup(kept);
    kept = NULL;
    forget_last();
}

/* ---- answers ------------------------------------------------------------ */

const char *answer_header(const struct answer *answer, const char *name)
{
    static char values[4][2048];
    static unsigned turn;
    size_t len = strlen(name);

    for (const char *line = answer->head; line;) {
        if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
            const char *start = line + len + 1;
            start += strspn(start, " ");
            char *value = values[turn++ % 4];
            snprintf(value, sizeof values[0], "%.*s",
                     (int)strcspn(start, "\r\n"), start);
            return value;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return NULL;
}

bool answer_has(const struct answer *answer, const char *path)
{
    return json_at(answer->json, path) != NULL;
}

json_int_t answer_int(const struct answer *answer, const char *path)
{
    json_t *value = json_at(answer->json, path);

    ck_assert_msg(json_is_integer(value), "no integer %s in %s", path,
                  answer->body);
    return json_integer_value(value);
}

const char *answer_text(const struct answer *answer, const char *path)
{
    json_t *value = json_at(answer->json, path);

    ck_assert_msg(json_is_string(value), "no string %s in %s", path,
                  answer->body);
    return json_string_value(value);
}

const struct answer *answer_expect(const struct answer *answer, int status,
                                   const char *code)
{
    ck_assert_msg(answer->status == status, "%d instead of %d: %s",
                  answer->status, status, answer->body);
    if (code)
        ck_assert_str_eq(answer_text(answer, "code"), code);
    return answer;
}

const struct answer *expect_ok(const struct answer *answer)
{
    return answer_expect(answer, 200, NULL);
}

const struct answer *answer_expect_free(const struct answer *answer)
{
    expect_ok(answer);
    ck_assert_has(answer->body, "\"held\":false,\"version\":\"free\"");
    return answer;
}

const struct answer *answer_expect_held(const struct answer *answer)
{
    expect_ok(answer);
    ck_assert_has(answer->body, "\"held\":true,\"version\":\"");
    return answer;
}

double http_metric(const struct server *server, const char *sample)
{
    const struct answer *answer =
        expect_ok(HTTP(server, .method = "GET", .path = "/metrics"));
    size_t len = strlen(sample);

    for (const char *line = answer->body; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, sample, len) == 0 && line[len] == ' ')
            return strtod(line + len, NULL);
    }
    return -1;
}

double http_open_requests(const struct server *server)
{
    return http_metric(server, "redlockd_http_requests_accepted_total") -
           http_metric(server, "redlockd_http_requests_answered_total") -
           http_metric(server, "redlockd_http_requests_abandoned_total");
}
