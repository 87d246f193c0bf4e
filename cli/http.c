#include "http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../server/base/clock.h"
#include "../server/base/types.h"

enum {
    CONNECT_MS = 2000,       /* to connect, or the host is taken for dead */
    BODY_MAX = 1 << 24,      /* of an answer */
    POLL_MAX_MS = 60000,     /* libcurl's own timeouts come earlier */
    RETRY_MAX_MS = 86400000, /* longer Retry-After is cut to this */
};

struct http {
    CURLM *multi;
    CURL *easy;
    const struct wake *wake;
    const struct http_trust *trust;
};

/* The body of an answer, as it comes in. */
struct bytes {
    char *ptr;
    size_t len, size;
};

struct http *http_new(const struct wake *wake, const struct http_trust *trust)
{
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        return NULL;
    }
    http->wake = wake;
    http->trust = trust;
    http->multi = curl_multi_init();
    http->easy = curl_easy_init();
    if (http->multi != NULL && http->easy != NULL)
        return http;
    http_free(http);
    return NULL;
}

void http_free(struct http *http)
{
    if (http == NULL)
        return;
    curl_easy_cleanup(http->easy);
    (void)curl_multi_cleanup(http->multi); /* it is empty */
    curl_global_cleanup();
    free(http);
}

static size_t take_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct bytes *bytes = arg;
    size_t len = size * count;
    if (bytes->len + len > BODY_MAX ||
        !bytes_reserve(&bytes->ptr, &bytes->size, bytes->len + len))
        return 0;
    memcpy(bytes->ptr + bytes->len, data, len);
    bytes->len += len;
    return len;
}

/* False: no memory. What it wrote of a secret, it wipes. */
static bool add_bearer(struct curl_slist **list, const char *bearer)
{
    char *header = NULL;
    int len = asprintf(&header, "Authorization: Bearer %s", bearer);
    if (len < 0)
        return false;
    struct curl_slist *longer = curl_slist_append(*list, header);
    explicit_bzero(header, (size_t)len);
    free(header);
    if (longer == NULL)
        return false;
    *list = longer;
    return true;
}

static struct curl_slist *make_headers(const struct http_request *request)
{
    /* a server that does not know 100-continue would cost a second */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    if (request->body != NULL)
        list = curl_slist_append(list, "Content-Type: application/json");
    for (int i = 0; i < HTTP_HEADERS; i++)
        if (request->headers[i] != NULL)
            list = curl_slist_append(list, request->headers[i]);
    if (*request->bearer && !add_bearer(&list, request->bearer)) {
        curl_slist_free_all(list);
        return NULL;
    }
    return list;
}

/* libcurl checks certificate and name unless it is told not to. */
static void set_trust(CURL *easy, const struct http_trust *trust)
{
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (trust->ca_file != NULL) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, trust->ca_file);
        /* or it would trust those of the system as well */
        curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    }
    if (trust->cert_file != NULL) {
        const char *key = trust->key_file;
        curl_easy_setopt(easy, CURLOPT_SSLCERT, trust->cert_file);
        curl_easy_setopt(easy, CURLOPT_SSLKEY,
                         key != NULL ? key : trust->cert_file);
        /* or it would ask for a passphrase on the command's terminal */
        curl_easy_setopt(easy, CURLOPT_KEYPASSWD, "");
    }
}

/* Requests to this machine use no proxy, which would see the token. */
static bool is_loopback(const char *url)
{
    CURLU *parts = curl_url();
    char *host = NULL;
    struct in_addr v4;
    bool is_it =
        parts != NULL &&
        curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(parts, CURLUPART_HOST, &host, 0) == CURLUE_OK &&
        (strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 ||
         (inet_pton(AF_INET, host, &v4) == 1 &&
          ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET));
    curl_free(host);
    curl_url_cleanup(parts);
    return is_it;
}

static void set_options(struct http *http, const struct http_request *request,
                        const char *url, char error[CURL_ERROR_SIZE],
                        struct bytes *bytes)
{
    CURL *easy = http->easy;
    long timeout_ms = (long)request->timeout_ms;
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    if (is_loopback(url))
        curl_easy_setopt(easy, CURLOPT_PROXY,
                         ""); /* none, even if one is configured */
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request->method);
    if (request->body != NULL)
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request->body);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                     timeout_ms < CONNECT_MS ? timeout_ms : (long)CONNECT_MS);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "redlockctl/" REDLOCKD_VERSION);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, bytes);
    set_trust(easy, http->trust);
}

/* Runs the transfer to its end. False: wake said to stop. */
static bool transfer(struct http *http)
{
    const struct wake *wake = http->wake;
    int running = 1;
    while (curl_multi_perform(http->multi, &running) == CURLM_OK && running) {
        struct curl_waitfd fds[WAKE_FDS];
        bool is_ready = false;
        for (unsigned i = 0; i < wake->count; i++)
            fds[i] = (struct curl_waitfd){wake->fds[i], CURL_WAIT_POLLIN, 0};
        if (curl_multi_poll(http->multi, fds, wake->count, POLL_MAX_MS, NULL) !=
            CURLM_OK)
            return true;
        for (unsigned i = 0; i < wake->count; i++)
            is_ready = is_ready || fds[i].revents != 0;
        if (is_ready && wake->on_ready(wake->ctx))
            return false;
    }
    return true;
}

/* A refusal by a proxy has only the header. */
static int64_t retry_after_ms(struct http *http, const json_t *body)
{
    curl_off_t seconds = 0;
    int64_t told_ms = http_number(body, "retry_after_ms");
    curl_easy_getinfo(http->easy, CURLINFO_RETRY_AFTER, &seconds);
    if (told_ms <= 0 && seconds > 0)
        told_ms = at_most(seconds, RETRY_MAX_MS) * MS_PER_S;
    return at_most(at_least(told_ms, 0), RETRY_MAX_MS);
}

static void read_answer(struct http *http, const char *error,
                        const struct bytes *bytes, struct http_answer *answer)
{
    int left = 0;
    const CURLMsg *message = curl_multi_info_read(http->multi, &left);
    CURLcode result = message != NULL && message->msg == CURLMSG_DONE
                          ? message->data.result
                          : CURLE_OUT_OF_MEMORY;
    if (result != CURLE_OK) {
        (void)snprintf(answer->error, sizeof answer->error, "%s",
                       *error ? error : curl_easy_strerror(result));
        answer->is_untrusted = result == CURLE_PEER_FAILED_VERIFICATION ||
                               result == CURLE_SSL_CACERT_BADFILE ||
                               result == CURLE_SSL_CERTPROBLEM ||
                               result == CURLE_SSL_CLIENTCERT;
        return;
    }
    curl_easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &answer->status);
    answer->body = json_loadb(bytes->ptr, bytes->len, 0, NULL);
    if (!json_is_object(answer->body)) {
        json_decref(answer->body);
        answer->body = NULL;
    }
    answer->retry_after_ms = retry_after_ms(http, answer->body);
}

void http_call(struct http *http, const struct http_request *request,
               struct http_answer *answer)
{
    char error[CURL_ERROR_SIZE] = "";
    struct bytes bytes = {NULL, 0, 0};
    char *url = NULL;
    assert(*request->path == '/' && request->timeout_ms >= 1);
    *answer = (struct http_answer){.sent_us = clock_now_us()};
    struct curl_slist *headers = make_headers(request);
    if (headers == NULL ||
        asprintf(&url, "%s%s", request->base, request->path) < 0) {
        (void)snprintf(answer->error, sizeof answer->error, "out of memory");
        curl_slist_free_all(headers);
        return;
    }
    set_options(http, request, url, error, &bytes);
    curl_easy_setopt(http->easy, CURLOPT_HTTPHEADER, headers);
    if (curl_multi_add_handle(http->multi, http->easy) == CURLM_OK) {
        answer->is_stopped = !transfer(http);
        if (!answer->is_stopped)
            read_answer(http, error, &bytes, answer);
        /* closes the connection of a stopped request: the server notices */
        (void)curl_multi_remove_handle(http->multi, http->easy);
    }
    curl_slist_free_all(headers);
    free(bytes.ptr);
    free(url);
}

void http_answer_free(struct http_answer *answer)
{
    json_decref(answer->body);
    answer->body = NULL;
}

const char *http_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

int64_t http_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

char *http_escape(const char *text)
{
    char *escaped = curl_easy_escape(NULL, text, 0);
    char *copy = escaped != NULL ? strdup(escaped) : NULL;
    curl_free(escaped);
    return copy;
}
