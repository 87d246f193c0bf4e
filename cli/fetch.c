/* SPDX-License-Identifier: MIT */
#include "fetch.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../api/message/jsonload.h"
#include "../server/base/clock.h"
#include "../server/base/types.h"

enum {
    CONNECT_MS = 2000,       /* to connect, or the host is taken for dead */
    SECRET_LEN = 8,          /* what is shorter is in many texts */
    BODY_MAX = 1 << 24,      /* of an answer */
    POLL_MAX_MS = 60000,     /* libcurl's own timeouts come earlier */
    RETRY_MAX_MS = 86400000, /* longer Retry-After is cut to this */
};

struct fetch {
    CURLM *multi;
    CURL *easy;
    const struct wake *wake;
    const struct fetch_trust *trust;
};

/* An answer while it comes in. */
struct received {
    CURL *easy;
    struct fetch_answer *answer;
    char *bytes; /* of its body */
    size_t len, size;
};

static_assert(FETCH_ERROR_SIZE >= CURL_ERROR_SIZE, "libcurl fills it");

/* ---- memory ------------------------------------------------------------- */

/*
 * libcurl takes some lacks of memory for something else, as for a host that
 * cannot be resolved; and its resolver is a thread.
 */
static atomic_bool is_starved;

static void *note(void *memory, size_t size)
{
    if (memory == NULL && size > 0)
        atomic_store(&is_starved, true);
    return memory;
}

static void *note_malloc(size_t size)
{
    return note(malloc(size), size);
}

static void *note_calloc(size_t count, size_t size)
{
    return note(calloc(count, size), count * size);
}

static void *note_realloc(void *old, size_t size)
{
    return note(realloc(old, size), size);
}

static char *note_strdup(const char *text)
{
    return note(strdup(text), 1);
}

/* ---- the library -------------------------------------------------------- */

struct fetch *fetch_new(const struct wake *wake,
                        const struct fetch_trust *trust)
{
    struct fetch *fetch = calloc(1, sizeof *fetch);
    if (fetch == NULL || curl_global_init_mem(CURL_GLOBAL_DEFAULT, note_malloc,
                                              free, note_realloc, note_strdup,
                                              note_calloc) != CURLE_OK) {
        free(fetch);
        return NULL;
    }
    jsonload_init();
    fetch->wake = wake;
    fetch->trust = trust;
    fetch->multi = curl_multi_init();
    fetch->easy = curl_easy_init();
    if (fetch->multi != NULL && fetch->easy != NULL)
        return fetch;
    fetch_free(fetch);
    return NULL;
}

void fetch_free(struct fetch *fetch)
{
    if (fetch == NULL)
        return;
    curl_easy_cleanup(fetch->easy);
    (void)curl_multi_cleanup(fetch->multi); /* it is empty */
    curl_global_cleanup();
    free(fetch);
}

static size_t take_bytes(char *data, size_t size, size_t count, void *arg)
{
    struct received *received = arg;
    struct fetch_answer *answer = received->answer;
    size_t len = size * count;
    (void)curl_easy_getinfo(received->easy, CURLINFO_RESPONSE_CODE,
                            &answer->status);
    answer->is_no_http = answer->status == 0;
    answer->is_endless = received->len + len > BODY_MAX;
    if (answer->is_endless)
        return 0;
    if (!bytes_reserve(&received->bytes, &received->size,
                       received->len + len)) {
        answer->is_starved = true;
        return 0;
    }
    memcpy(received->bytes + received->len, data, len);
    received->len += len;
    return answer->is_no_http ? 0 : len; /* more would tell nothing */
}

/* ---- the request -------------------------------------------------------- */

/* False: no memory, and the list is as it was. */
static bool add_header(struct curl_slist **list, const char *header)
{
    struct curl_slist *longer = curl_slist_append(*list, header);
    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

/* The same. What it wrote of a secret, it wipes. */
static bool add_bearer(struct curl_slist **list, const char *bearer)
{
    char *header = NULL;
    int len = asprintf(&header, "Authorization: Bearer %s", bearer);
    if (len < 0)
        return false;
    bool is_added = add_header(list, header);
    explicit_bzero(header, (size_t)len);
    free(header);
    return is_added;
}

/* NULL: no memory. A request without one of them would mean another thing. */
static struct curl_slist *make_headers(const struct fetch_request *request)
{
    struct curl_slist *list = NULL;
    /* a server that does not know 100-continue would cost a second */
    bool is_whole = add_header(&list, "Expect:");
    if (request->body != NULL)
        is_whole &= add_header(&list, "Content-Type: application/json");
    if (request->header != NULL)
        is_whole &= add_header(&list, request->header);
    if (*request->bearer)
        is_whole &= add_bearer(&list, request->bearer);
    if (is_whole)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

/*
 * For functions that set options of easy, and return is_set. An option that is
 * not set leaves a default that is wrong: another method, a proxy that sees the
 * token, the certificates of the system.
 */
#define SET(option, value)                                                     \
    (is_set &= curl_easy_setopt(easy, (option), (value)) == CURLE_OK)

/* libcurl checks certificate and name unless it is told not to. */
static bool set_trust(CURL *easy, const struct fetch_trust *trust,
                      bool is_probe, bool is_loopback)
{
    bool is_set = true;
    if (is_probe && is_loopback) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (trust->ca_file != NULL) {
        SET(CURLOPT_CAINFO, trust->ca_file);
        /* or it would trust those of the system as well */
        SET(CURLOPT_CAPATH, NULL);
    }
    if (trust->cert_file != NULL && !is_probe) {
        const char *key = trust->key_file;
        SET(CURLOPT_SSLCERT, trust->cert_file);
        SET(CURLOPT_SSLKEY, key != NULL ? key : trust->cert_file);
        /* or it would ask for a passphrase on the command's terminal */
        SET(CURLOPT_KEYPASSWD, "");
    }
    return is_set;
}

/*
 * Requests to this machine use no proxy, which would see the token. False: no
 * memory to find that out.
 */
static bool find_loopback(const char *url, bool *is_it)
{
    CURLU *parts = curl_url();
    char *host = NULL;
    struct in_addr v4;
    if (parts == NULL)
        return false;
    CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parts, CURLUPART_HOST, &host, 0);
    *is_it = code == CURLUE_OK && (strcasecmp(host, "localhost") == 0 ||
                                   strcmp(host, "[::1]") == 0 ||
                                   (inet_pton(AF_INET, host, &v4) == 1 &&
                                    ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET));
    curl_free(host);
    curl_url_cleanup(parts);
    return code != CURLUE_OUT_OF_MEMORY;
}

/* False: no memory. The texts are borrowed until the transfer has ended. */
static bool set_request(struct fetch *fetch,
                        const struct fetch_request *request, const char *url,
                        struct curl_slist *headers, struct received *received)
{
    CURL *easy = fetch->easy;
    long timeout_ms = (long)request->timeout_ms;
    bool is_loopback = false;
    bool is_set =
        url != NULL && headers != NULL && find_loopback(url, &is_loopback);
    if (!is_set)
        return false;
    SET(CURLOPT_URL, url);
    if (is_loopback)
        SET(CURLOPT_PROXY, ""); /* none, even if one is configured */
    SET(CURLOPT_CUSTOMREQUEST, request->method);
    SET(CURLOPT_HTTPHEADER, headers);
    if (request->body != NULL)
        SET(CURLOPT_POSTFIELDS, request->body);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_HTTP09_ALLOWED, 1L); /* to see what came: take_bytes */
    SET(CURLOPT_TIMEOUT_MS, timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS,
        timeout_ms < CONNECT_MS ? timeout_ms : (long)CONNECT_MS);
    SET(CURLOPT_USERAGENT, "redlockctl/" REDLOCKD_VERSION);
    SET(CURLOPT_ERRORBUFFER, received->answer->error);
    SET(CURLOPT_WRITEFUNCTION, take_bytes);
    SET(CURLOPT_WRITEDATA, received);
    return is_set &&
           set_trust(easy, fetch->trust, request->is_probe, is_loopback);
}

/* ---- the transfer ------------------------------------------------------- */

/* Runs the transfer to its end. False: wake said to stop. */
static bool transfer(struct fetch *fetch)
{
    const struct wake *wake = fetch->wake;
    int running = 1;
    while (curl_multi_perform(fetch->multi, &running) == CURLM_OK && running) {
        struct curl_waitfd fds[WAKE_FDS];
        bool is_ready = false;
        for (unsigned i = 0; i < wake->count; i++)
            fds[i] = (struct curl_waitfd){wake->fds[i], CURL_WAIT_POLLIN, 0};
        if (curl_multi_poll(fetch->multi, fds, wake->count, POLL_MAX_MS,
                            NULL) != CURLM_OK)
            return true;
        for (unsigned i = 0; i < wake->count; i++)
            is_ready = is_ready || fds[i].revents != 0;
        if (is_ready && wake->on_ready(wake->ctx))
            return false;
    }
    return true;
}

/* A refusal by a proxy has only the header. */
static int64_t retry_after_ms(struct fetch *fetch, const json_t *body)
{
    curl_off_t seconds = 0;
    int64_t reported_ms = fetch_number(body, "retry_after_ms");
    curl_easy_getinfo(fetch->easy, CURLINFO_RETRY_AFTER, &seconds);
    if (reported_ms <= 0 && seconds > 0)
        reported_ms = at_most(seconds, RETRY_MAX_MS) * MS_PER_S;
    return at_most(at_least(reported_ms, 0), RETRY_MAX_MS);
}

static void report_starved(struct fetch_answer *answer)
{
    answer->is_starved = true;
    answer->status = 0;
    (void)snprintf(answer->error, sizeof answer->error, "out of memory");
}

/* ---- what came, for people ---------------------------------------------- */

static bool repeats(const struct received *received, const char *secret)
{
    size_t len = strlen(secret);
    return len >= SECRET_LEN &&
           memmem(received->bytes, received->len, secret, len);
}

/* The first line that is not empty, unless all of it repeats what we keep
 * secret: our bearer token, the key or the token of a lock. */
static void keep_line(const struct received *received,
                      const struct fetch_request *request, char *line)
{
    const char *header = request->header != NULL ? request->header : "";
    const char *value = strchr(header, ' ');
    size_t at = 0, len = 0;
    if (received->len == 0 || repeats(received, request->bearer) ||
        (value != NULL && repeats(received, value + 1)))
        return;
    while (at < received->len && isspace((unsigned char)received->bytes[at]))
        at++;
    for (; at < received->len && len < FETCH_LINE_SIZE - 1; at++) {
        char byte = received->bytes[at];
        if (byte == '\n' || byte == '\r')
            break;
        line[len] = '.'; /* instead of a NUL */
        if (byte != '\0')
            line[len] = byte;
        len++;
    }
    line[len] = '\0';
}

static void keep_came(CURL *easy, const struct received *received,
                      const struct fetch_request *request,
                      struct fetch_answer *answer)
{
    const char *type = NULL, *location = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_CONTENT_TYPE, &type);
    (void)curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &location);
    (void)snprintf(answer->type, sizeof answer->type, "%s",
                   type != NULL ? type : "");
    (void)snprintf(answer->location, sizeof answer->location, "%s",
                   location != NULL ? location : "");
    answer->len = received->len;
    keep_line(received, request, answer->line);
}

/* OpenSSL has no code for it that libcurl would pass on. */
static bool speaks_no_tls(CURLcode result, const char *error)
{
    static const char *const signs[] = {"wrong version number", "http request",
                                        "packet length too long",
                                        "unexpected message"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (result == CURLE_SSL_CONNECT_ERROR && strstr(error, signs[i]))
            return true;
    return false;
}

/* The codes would not tell: the first try of two may have been sent over a
 * connection that was closed just then, and a timeout may be of any part. */
static bool is_unsent(CURL *easy)
{
    long sent = 0;
    return curl_easy_getinfo(easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK &&
           sent == 0;
}

static void read_answer(struct fetch *fetch, const struct received *received,
                        struct fetch_answer *answer)
{
    int left = 0;
    const CURLMsg *message = curl_multi_info_read(fetch->multi, &left);
    CURLcode result = message != NULL && message->msg == CURLMSG_DONE
                          ? message->data.result
                          : CURLE_OUT_OF_MEMORY;
    if (result == CURLE_OUT_OF_MEMORY || answer->is_starved ||
        (result != CURLE_OK && atomic_load(&is_starved))) {
        report_starved(answer);
        return;
    }
    if (answer->is_no_http || answer->is_endless)
        return;
    if (result != CURLE_OK) {
        answer->status = 0;
        answer->is_unsent = is_unsent(fetch->easy);
        answer->is_no_tls = speaks_no_tls(result, answer->error);
        answer->is_closed =
            result == CURLE_GOT_NOTHING || result == CURLE_RECV_ERROR;
        if (*answer->error == '\0')
            (void)snprintf(answer->error, sizeof answer->error, "%s",
                           curl_easy_strerror(result));
        answer->is_untrusted = result == CURLE_PEER_FAILED_VERIFICATION ||
                               result == CURLE_SSL_CACERT_BADFILE ||
                               result == CURLE_SSL_CERTPROBLEM ||
                               result == CURLE_SSL_CLIENTCERT;
        return;
    }
    curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &answer->status);
    answer->body = jsonload(received->bytes, received->len, 0, NULL);
    if (jsonload_has_failed()) {
        report_starved(answer);
        return;
    }
    if (!json_is_object(answer->body)) {
        json_decref(answer->body);
        answer->body = NULL;
    }
    answer->retry_after_ms = retry_after_ms(fetch, answer->body);
}

void fetch_call(struct fetch *fetch, const struct fetch_request *request,
                struct fetch_answer *answer)
{
    struct received received = {.easy = fetch->easy, .answer = answer};
    char *url = NULL;
    assert(*request->path == '/' && request->timeout_ms >= 1);
    atomic_store(&is_starved, false);
    *answer = (struct fetch_answer){.sent_us = clock_now_us()};
    struct curl_slist *headers = make_headers(request);
    if (asprintf(&url, "%s%s", request->base, request->path) < 0)
        url = NULL;
    if (set_request(fetch, request, url, headers, &received) &&
        curl_multi_add_handle(fetch->multi, fetch->easy) == CURLM_OK) {
        answer->is_stopped = !transfer(fetch);
        if (answer->is_stopped) {
            answer->is_unsent = is_unsent(fetch->easy);
        } else {
            read_answer(fetch, &received, answer);
            keep_came(fetch->easy, &received, request, answer);
        }
        /* closes the connection of a stopped request: the server notices */
        (void)curl_multi_remove_handle(fetch->multi, fetch->easy);
    } else {
        report_starved(answer);
    }
    curl_easy_reset(fetch->easy); /* it would keep pointers to what ends here */
    curl_slist_free_all(headers);
    free(received.bytes);
    free(url);
}

void fetch_answer_free(struct fetch_answer *answer)
{
    json_decref(answer->body);
    answer->body = NULL;
}

const char *fetch_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

int64_t fetch_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

char *fetch_escape(const char *text)
{
    return curl_easy_escape(NULL, text, 0); /* its free is ours: fetch_new */
}
