/* SPDX-License-Identifier: MIT */
/*
 * libmicrohttpd is a guest in our loop. It needs nothing but runs, and this
 * decides when:
 *
 *   its epoll descriptor is readable ──┐
 *   the timer: it wanted to run again ─┼──→ is_due ──→ front_serve, the stage
 *   a connection is woken ─────────────┘               LOOP_SERVE of a turn
 *                                                                │
 *            ┌───────────────────────────────────────────────────┘
 *            ↓
 *         MHD_run ──→ on_connection   connection_new, connection_free
 *         ↑     │     on_request      exchange_begin, exchange_go_on
 *         │     │     on_completed    connection_end
 *         │     ↓
 *         ├── it wants to go on, or has closed a connection
 *         ├── it holds requests, and one of the last runs did something
 *         │     │
 *         │     ↓ otherwise; or it has had its share of this turn
 *      (again)  set the timer, return: the nodes have their turn
 *
 * A request that waits is held at first: the library asks for its answer in
 * each run. After ASKED_MAX runs in vain it is suspended, until it is
 * woken.
 */
#include "front.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <gnutls/abstract.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../server/base/address.h"
#include "../server/base/clock.h"
#include "../server/base/log.h"
#include "access/access.h"
#include "access/audit.h"
#include "exchange.h"
#include "http/tls.h"
#include "message/jsonload.h"

enum {
    /*
     * A connection's memory, reused for each request. It must hold the largest
     * head that we take (HEAD_COST_MAX) and the head of the answer, and in one
     * of the two the id of many resources (HEAD_PATH_MAX). The library clears
     * all of it for each request.
     */
    POOL_SIZE = 12 * 1024,
    KNOCK_US = 100000,    /* until a full server looks again who waits */
    RUNS_MAX = 16,        /* of the library in a turn; nodes must be read too */
    RUNS_US = 10000,      /* no run begins later in the turn, either */
    LEAVE_RUNS_MAX = 64,  /* times RUNS_MAX, to accept what waits for that */
    STOP_RUNS_MAX = 1000, /* to write the last answers */
    ASKED_MAX = 32,       /* for an answer, before a request is suspended */
    FINISH_RUNS = 2,      /* until an answer is written, and known to be */
    QUIET_RUNS = 2,       /* in a row, while the library has requests to ask */
    QUIET_MS = 5,         /* until it runs again then, if nothing happens */
    DELAYED_PART = 4,     /* of the connections at most one in so many */
    PIECE_SIZE = 4096,    /* of a large answer */
    BATCH_WHOLE = 65536,  /* a longer answer to a batch is large, too */
};

struct front {
    struct MHD_Daemon *daemon;
    struct loop *loop;
    struct loop_watch *watch; /* of the library's epoll descriptor */
    struct loop_watch *door;  /* of the listener, while the server is full */
    uint64_t connections_max;
    struct loop_timer *timer; /* when the library wants to run again */
    bool is_due;              /* it has something to do */
    bool has_closed;          /* in this run of it */
    bool has_moved;           /* likewise: it did something */
    uint32_t run;             /* counts them */
    int held;                 /* requests that it asks for in each run */
    struct service service;
    struct connections connections;
    struct log_limit log_limit;
    struct requestid_source ids;
};

/* ---- answers ------------------------------------------------------------ */

/* False: no memory. */
static bool add_fields(struct MHD_Response *answer,
                       const struct http_request *request)
{
    const struct http_response *response = request->call.response;
    char seconds[DIGITS_MAX + 1]; /* whole ones, and no sooner */
    const struct {
        const char *name, *value;
    } fields[] = {
        {"X-Request-Id", request->id},
        {"Cache-Control", "no-store"},
        {"Content-Type", response->content_type},
        /* a text is what its type says */
        {"X-Content-Type-Options",
         response->content_type != NULL ? "nosniff" : NULL},
        {"Location", *response->location != '\0' ? response->location : NULL},
        {"Allow", response->allow},
        {"WWW-Authenticate", response->challenge},
        {"Retry-After", response->retry_after_ms > 0 ? seconds : NULL},
        /* a page takes everything from this server and sends nothing elsewhere;
         * no other page may show it in a frame */
        {"Content-Security-Policy",
         response->is_page
             ? "default-src 'self'; base-uri 'none'; frame-ancestors 'none'; "
               "form-action 'none'"
             : NULL},
        {"Connection", response->close ? "close" : NULL},
    };
    (void)snprintf(seconds, sizeof seconds, "%lld",
                   (long long)divide_up(response->retry_after_ms, MS_PER_S));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value != NULL &&
            MHD_add_response_header(answer, fields[i].name, fields[i].value) !=
                MHD_YES)
            return false;
    return true;
}

static ssize_t read_piece(void *body, uint64_t at, char *piece, size_t size)
{
    memcpy(piece, (const char *)body + at, size);
    return (ssize_t)size;
}

/*
 * Queues the answer to the request on its connection; the library writes it in
 * a later run. Takes response->body, unless that is static. False: no memory,
 * or the connection takes no answer now; the library must close it.
 */
static bool queue_answer(struct MHD_Connection *http,
                         const struct http_request *request)
{
    const struct http_response *response = request->call.response;
    bool is_static = response->is_static;
    struct MHD_Response *answer;
    /*
     * A run of the library writes once to each connection. When thousands ask
     * for a large answer at once, a run that writes it whole takes seconds, in
     * which no node is read: so it is written in pieces. What a batch does
     * takes longer than to write its answer; pieces would cost as much again.
     */
    bool is_batch = request->match.route == ROUTE_BATCH;
    if (response->body_len > (is_batch ? BATCH_WHOLE : PIECE_SIZE))
        answer = MHD_create_response_from_callback(
            response->body_len, PIECE_SIZE, read_piece, response->body,
            is_static ? NULL : free);
    else
        answer = MHD_create_response_from_buffer(
            response->body_len, response->body,
            is_static ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_FREE);
    if (answer == NULL) {
        if (!is_static)
            free(response->body);
        return false;
    }
    bool is_good =
        add_fields(answer, request) &&
        MHD_queue_response(http, (unsigned)response->status, answer) == MHD_YES;
    MHD_destroy_response(answer);
    return is_good;
}

static void set_held(struct front *front, struct connection *it, bool is_held)
{
    front->held += is_held - it->is_held;
    it->is_held = is_held;
}

static enum MHD_Result send_answer(struct front *front, struct exchange *it,
                                   int64_t now_us)
{
    const struct http_call *call = &it->request.call;
    audit_note_refusal(front->service.audit, &it->request.call,
                       (struct span){0});
    if (!queue_answer(it->connection.http, &it->request))
        return MHD_NO;
    set_held(front, &it->connection, false);
    it->connection.answered_run = front->run;
    exchange_note_answer(it, &front->log_limit, now_us);
    /* a grant stays open until it is written */
    connection_answer(&it->connection,
                      exchange_has_grant(it) ? call->response->body_len : 0,
                      now_us);
    return MHD_YES;
}

static void suspend(struct front *front, struct connection *it)
{
    set_held(front, it, false);
    MHD_suspend_connection(it->http);
    connection_suspend(it);
}

/*
 * When the outcome is still to come: to suspend a connection and to resume it
 * costs as much as to read the request. So most requests are held: the library
 * asks in each run for the answer, until it comes. Those that take longer are
 * suspended then, and cost nothing. A held connection is closed if the client
 * resets it, so what goes on without its client is suspended at once: an
 * extend, and a release that somebody counts.
 */
static enum MHD_Result front_take_step(struct front *front, struct exchange *it,
                                       enum exchange_step step, int64_t now_us)
{
    struct connection *connection = &it->connection;
    switch (step) {
    case EXCHANGE_READ:
        return MHD_YES;
    case EXCHANGE_WAIT:
        if (exchange_goes_on(it)) {
            suspend(front, connection);
        } else {
            set_held(front, connection, true);
            connection->asked = 0;
        }
        connection_wait(connection);
        return MHD_YES;
    case EXCHANGE_DELAY:
        MHD_suspend_connection(connection->http);
        return MHD_YES;
    case EXCHANGE_ANSWER:
        return send_answer(front, it, now_us);
    default:
        return MHD_NO;
    }
}

/* ---- requests ----------------------------------------------------------- */

static enum MHD_Result note_value(void *cls, enum MHD_ValueKind kind,
                                  const char *name, size_t name_len,
                                  const char *value, size_t value_len)
{
    struct head *head = cls;
    struct span name_span = {name, name_len}, value_span = {value, value_len};
    if (kind == MHD_HEADER_KIND)
        head_add_line(head, name_span, value_span);
    else
        head_add_parameter(head, name_span, value_span);
    return MHD_YES;
}

/* The head was read. */
static enum MHD_Result front_begin(struct front *front, struct exchange *it,
                                   const char *method, const char *target,
                                   const char *version)
{
    struct http_response response;
    struct head head;
    int64_t now_us = clock_now_us();
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(
        it->connection.http, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    exchange_open(it, &front->service, method, target, now_us);
    head_init(&head, info != NULL ? info->header_size : 0, strlen(target));
    head.line_end = version + strlen(version);
    (void)MHD_get_connection_values_n(
        it->connection.http,
        /* NOLINTNEXTLINE(clang-analyzer-optin.core.*): the kinds are flags */
        MHD_HEADER_KIND | MHD_GET_ARGUMENT_KIND, note_value, &head);
    enum exchange_step step =
        exchange_begin(it, &head, strcmp(version, "HTTP/1.0") == 0, &response);
    return front_take_step(front, it, step, now_us);
}

/*
 * Called at the head, for each piece of the body, and at the end, until there
 * is an answer: in each run, or when resumed.
 */
/* NOLINTNEXTLINE(readability-function-size): the library's parameters */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *http,
                                  const char *target, const char *method,
                                  const char *version, const char *piece,
                                  size_t *piece_len, void **request)
{
    struct front *front = cls;
    struct connection *it = *request;
    bool is_new = it == NULL;
    if (!is_new && it->is_held && it->state == CONNECTION_WAITING &&
        !front->connections.is_ending &&
        exchange_of(it)->caller.refusal.detail == NULL) {
        /* there is no outcome in this run, either */
        if (++it->asked == ASKED_MAX)
            suspend(front, it);
        return MHD_YES;
    }
    front->has_moved = true;
    if (is_new) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
        *request = it = info != NULL ? info->socket_context : NULL;
        if (it == NULL || !connection_is_trusted(it, target))
            return MHD_NO;
        return front_begin(front, exchange_of(it), method, target, version);
    }
    if (*piece_len > 0) {
        struct span span = {piece, *piece_len};
        *piece_len = 0;
        return connection_add_body(it, span) ? MHD_YES : MHD_NO;
    }
    struct http_response response;
    int64_t now_us = clock_now_us();
    enum exchange_step step =
        exchange_go_on(exchange_of(it), now_us, &response);
    return front_take_step(front, exchange_of(it), step, now_us);
}

static void on_completed(void *cls, struct MHD_Connection *http, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct front *front = cls;
    struct connection *it = *request;
    (void)http;
    front->has_moved = true;
    *request = NULL;
    if (it == NULL)
        return;
    /*
     * The library writes an answer in one run, and knows in the next that it is
     * whole. If the client resets the connection in between, it reports a
     * failure.
     */
    bool is_written = code == MHD_REQUEST_TERMINATED_COMPLETED_OK ||
                      (front->run - it->answered_run <= FINISH_RUNS &&
                       connection_may_have_answer(it));
    set_held(front, it, false);
    connection_end(it, is_written);
}

static void on_connection(void *cls, struct MHD_Connection *http,
                          void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct front *front = cls;
    front->has_moved = true;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context != NULL)
            connection_free(*context);
        *context = NULL;
        front->has_closed = true;
        return;
    }
    const union MHD_ConnectionInfo *socket =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *session =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    /* without memory, its handshake or its first request ends it */
    *context = NULL;
    if (socket != NULL)
        *context = connection_new(&front->connections, socket->connect_fd, http,
                                  session != NULL ? session->tls_session : NULL,
                                  clock_now_us());
}

/* ---- the library in our loop -------------------------------------------- */

static void front_wake(struct connection *it)
{
    struct front *front = it->all->owner;
    if (!it->is_held)
        MHD_resume_connection(it->http);
    front->is_due = true;
}

static void front_pause(struct connection *it)
{
    MHD_suspend_connection(it->http);
}

static void on_readable(void *arg, int events)
{
    struct front *front = arg;
    (void)events;
    front->is_due = true;
}

static void front_on_timer(void *arg)
{
    struct front *front = arg;
    front->is_due = true;
}

/*
 * A client wants to connect while the server is full: the library does not
 * accept it. If no connection can be closed, the library runs again a moment
 * later, and the listener is watched again.
 */
static void on_knock(void *arg, int events)
{
    struct front *front = arg;
    (void)events;
    (void)loop_watch_set(front->door, 0);
    int64_t now_us = clock_now_us();
    if (connections_make_room(&front->connections, now_us))
        front->is_due = true;
    else
        loop_timer_set(front->timer, now_us + KNOCK_US);
}

/*
 * Runs the library until it has nothing to do; wait_ms: until it must run
 * again; false: not before an event. A full library takes its listener out of
 * epoll, and puts it back at the beginning of a run: so a run that closed
 * connections is followed by another. While it holds requests it never says
 * that it has nothing to do: so it runs until nothing has happened, or until
 * it holds one of each connection, so that none has anything to read.
 */
static bool run_library(struct front *front, int runs_max, int64_t until_us,
                        unsigned long long *wait_ms)
{
    bool has_wait = false;
    int quiet = 0;
    do {
        front->has_closed = front->has_moved = false;
        front->run++;
        MHD_run(front->daemon); /* fails only with a thread of its own */
        *wait_ms = 0;
        has_wait = MHD_get_timeout(front->daemon, wait_ms) == MHD_YES;
        if (front->has_closed) {
            *wait_ms = 0;
            has_wait = true;
        }
        quiet = front->has_moved ? 0 : quiet + 1;
        bool is_all_held =
            !front->has_closed &&
            (uint64_t)front->held == front->connections.metrics->connections;
        if (front->held > 0 && (quiet == QUIET_RUNS || is_all_held)) {
            *wait_ms = QUIET_MS;
            has_wait = true;
        }
    } while (has_wait && *wait_ms == 0 && --runs_max > 0 &&
             clock_now_us() < until_us);
    return has_wait;
}

void front_serve(struct front *front)
{
    unsigned long long wait_ms;
    if (!front->is_due)
        return;
    front->is_due = false;
    int64_t begin_us = clock_now_us();
    /* What is left waits for the nodes' turn, not for an event. */
    bool has_wait = run_library(front, RUNS_MAX, begin_us + RUNS_US, &wait_ms);
    int64_t now_us = clock_now_us();
    if (has_wait)
        loop_timer_set(front->timer, now_us + (int64_t)wait_ms * 1000);
    connections_end_turn(&front->connections, now_us - begin_us);
    if (front->door != NULL &&
        front->connections.metrics->connections >= front->connections_max)
        (void)loop_watch_set(front->door, LOOP_READABLE);
}

/* ---- the listening socket ----------------------------------------------- */

/* -1: errno has the reason. */
static int front_open_at(const struct addrinfo *at, bool reuse_port)
{
    int fd =
        socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
               at->ai_protocol);
    const int on = 1;
    if (fd < 0)
        return -1;
    /* a restart must not wait for the old connections' TIME_WAIT */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        (!reuse_port ||
         setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) == 0) &&
        bind(fd, at->ai_addr, at->ai_addrlen) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
    int reason = errno;
    (void)close(fd); /* nothing was written to it */
    errno = reason;
    return -1;
}

/* Binds and listens; the descriptor does not block. -1: error has the reason.
 */
static int front_listen(const struct config *config,
                        char error[FRONT_ERROR_MAX])
{
    const struct address_query query =
        address_query(config->listen_port, AI_PASSIVE);
    struct addrinfo *list = NULL;
    int fd = -1;
    int code =
        getaddrinfo(config->listen_host, query.port, &query.hints, &list);
    for (const struct addrinfo *at = list; at != NULL && fd < 0;
         at = at->ai_next)
        fd = front_open_at(at, config->reuse_port);
    if (fd < 0) {
        char address[ADDRESS_TEXT_MAX];
        const char *reason = code == 0 || code == EAI_SYSTEM
                                 ? strerror(errno)
                                 : gai_strerror(code);
        address_format(address, sizeof address, config->listen_host,
                       config->listen_port);
        (void)snprintf(error, FRONT_ERROR_MAX, "listen %s: %c%s", address,
                       tolower((unsigned char)reason[0]), reason + 1);
    }
    if (list != NULL)
        freeaddrinfo(list);
    return fd;
}

/* ---- the library -------------------------------------------------------- */

/* The default would decode the target, and cut it at %00. */
static size_t keep_escapes(void *cls, struct MHD_Connection *http, char *text)
{
    (void)cls;
    (void)http;
    return strlen(text);
}

static void on_library_log(void *cls, const char *format, va_list args)
{
    char text[256];
    (void)cls;
    if (!log_is_enabled(LOG_DEBUG))
        return;
    (void)vsnprintf(text, sizeof text, format, args); /* may be cut */
    text[strcspn(text, "\n")] = '\0';
    const struct log_field fields[] = {LOG_S("text", text), LOG_END};
    log_write(LOG_DEBUG, "http_library", fields);
}

static void on_library_panic(void *cls, const char *file, unsigned line,
                             const char *reason)
{
    (void)cls;
    (void)file;
    const struct log_field fields[] = {LOG_S("reason", reason),
                                       LOG_N("line", line), LOG_END};
    log_write(LOG_ERROR, "http_library_panic", fields);
    abort();
}

/*
 * The library wants to know where certificates come from. But each session is
 * given its own when it begins, so that a reload needs nothing of the library.
 */
/* NOLINTNEXTLINE(readability-function-size): the library's parameters */
static int refuse_handshake(gnutls_session_t session,
                            const gnutls_datum_t *authorities, int count,
                            const gnutls_pk_algorithm_t *algorithms,
                            int algorithms_count, gnutls_pcert_st **chain,
                            unsigned *chain_length, gnutls_privkey_t *key)
{
    (void)session;
    (void)authorities;
    (void)count;
    (void)algorithms;
    (void)algorithms_count;
    *chain = NULL;
    *chain_length = 0;
    *key = NULL;
    return -1;
}

/*
 * Serves the listening socket fd; MHD_stop_daemon closes it. False: it cannot
 * start. MHD_ALLOW_SUSPEND_RESUME includes a descriptor that wakes the library;
 * MHD_USE_TURBO reads and writes at once, without asking epoll first; with it
 * the library says no goodbye to a TLS session.
 */
static bool start_library(struct front *front, int fd)
{
    static const struct MHD_OptionItem plain[] = {{MHD_OPTION_END, 0, NULL}};
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the library wants it so */
    void *refuse = (void *)(intptr_t)refuse_handshake;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (char[]){TLS_PRIORITIES}},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, refuse},
        {MHD_OPTION_END, 0, NULL}};
    bool has_tls = front->service.tls != NULL;
    MHD_set_panic_func(on_library_panic, NULL);
    front->daemon = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
            (has_tls ? MHD_USE_TLS : MHD_USE_TURBO) | MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, front, /* the rest: options */
        MHD_OPTION_EXTERNAL_LOGGER, on_library_log, NULL,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)front->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)POOL_SIZE, MHD_OPTION_CONNECTION_TIMEOUT,
        0u, /* connection.c has its own */
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, front,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, front, MHD_OPTION_ARRAY,
        has_tls ? tls : plain, MHD_OPTION_END);
    return front->daemon != NULL;
}

/* ---- the files that the configuration names ----------------------------- */

static bool open_files(struct service *service, char error[FRONT_ERROR_MAX])
{
    static_assert((int)IDENTITIES_TEXT_MAX <= (int)FRONT_ERROR_MAX, "");
    const struct config *config = service->config;
    if (*config->auth_file != '\0') {
        service->access = access_new(config->auth_file, error);
        if (service->access == NULL)
            return false;
    }
    if (*config->tls_cert != '\0')
        service->tls =
            tls_new(config, service->metrics, error, FRONT_ERROR_MAX);
    return *config->tls_cert == '\0' || service->tls != NULL;
}

/* For the metrics. */
static void note_file(const struct service *service, enum metrics_file file,
                      bool is_read)
{
    metrics_note_file(service->metrics, file, is_read, clock_wall_us());
}

static void note_tls(const struct service *service, bool is_read)
{
    note_file(service, FILE_CERTIFICATES, is_read);
    if (*service->config->tls_client_crl != '\0')
        note_file(service, FILE_CRL, is_read);
}

/* Reads and opens the files. False: error holds one line for people. */
static bool service_open(struct service *service, struct loop *loop,
                         char error[FRONT_ERROR_MAX])
{
    const struct config *config = service->config;
    if (!open_files(service, error))
        return false;
    if (service->access != NULL)
        note_file(service, FILE_AUTH, true);
    if (service->tls != NULL)
        note_tls(service, true);
    if (*config->audit_log == '\0')
        return true;
    const struct audit_setup setup = {.loop = loop,
                                      .metrics = service->metrics,
                                      .access = service->access,
                                      .path = config->audit_log,
                                      .is_required = config->audit_required,
                                      .has_reads = config->audit_reads};
    service->audit = audit_open(&setup, error, FRONT_ERROR_MAX);
    return service->audit != NULL;
}

/* Reads them again, those that are bad not; opens the audit log anew. */
static void service_reload(struct service *service)
{
    audit_reopen(service->audit);
    if (service->tls != NULL)
        note_tls(service, tls_reload(service->tls));
    bool is_read = access_reload(service->access);
    if (service->access != NULL)
        note_file(service, FILE_AUTH, is_read);
    if (is_read)
        log_write(LOG_INFO, "reloaded", NULL);
}

static void service_close(struct service *service)
{
    audit_free(service->audit);
    tls_free(service->tls);
    access_free(service->access);
}

bool front_check(const struct config *config, char error[FRONT_ERROR_MAX])
{
    static struct metrics metrics; /* too large for the stack; nobody's */
    struct service service = {.config = config, .metrics = &metrics};
    bool is_good = open_files(&service, error);
    service_close(&service);
    return is_good;
}

/* ---- start and stop ----------------------------------------------------- */

static const struct connection_events events = {.wake = front_wake,
                                                .pause = front_pause,
                                                .leave = exchange_on_leave,
                                                .end = exchange_on_end};

static bool front_start(struct front *front, const struct front_setup *setup,
                        char error[FRONT_ERROR_MAX])
{
    front->connections_max = (uint64_t)setup->connections_max;
    (void)snprintf(error, FRONT_ERROR_MAX, "out of memory for the HTTP server");
    if (!connections_init(&front->connections, setup->loop, setup->metrics))
        return false;
    if (!service_open(&front->service, setup->loop, error))
        return false;
    front->connections.events = &events;
    front->connections.owner = front;
    front->connections.size = sizeof(struct exchange);
    front->connections.tls = front->service.tls;
    front->connections.delayed_most = setup->connections_max / DELAYED_PART;
    int fd = front_listen(setup->config, error);
    if (fd < 0)
        return false;
    if (!start_library(front, fd)) {
        (void)snprintf(error, FRONT_ERROR_MAX, "the HTTP server cannot start");
        return false; /* the process ends, and the socket with it */
    }
    const union MHD_DaemonInfo *epoll =
        MHD_get_daemon_info(front->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (epoll == NULL)
        return false;
    front->watch =
        loop_watch_new(front->loop, epoll->epoll_fd, on_readable, front);
    front->door = loop_watch_new(front->loop, fd, on_knock, front);
    front->timer = loop_timer_new(front->loop, front_on_timer, front);
    return front->watch != NULL && front->door != NULL &&
           front->timer != NULL && loop_watch_set(front->watch, LOOP_READABLE);
}

struct front *front_new(const struct front_setup *setup,
                        char error[FRONT_ERROR_MAX])
{
    struct front *front = calloc(1, sizeof *front);
    if (front == NULL) {
        (void)snprintf(error, FRONT_ERROR_MAX, "out of memory");
        return NULL;
    }
    jsonload_init();
    front->loop = setup->loop;
    front->service = (struct service){
        .engine = setup->engine,
        .config = setup->config,
        .metrics = setup->metrics,
        .ids = &front->ids,
    };
    front->ids.seed = (uint64_t)clock_wall_us() ^ (uint64_t)getpid() << 40;
    front->is_due = true;
    front->log_limit = exchange_log_limit;
    if (!front_start(front, setup, error)) {
        front_free(front);
        return NULL;
    }
    return front;
}

/*
 * From now on the other processes on this port get all new connections. Those
 * that wait in the kernel for this one are served first: it would reset them.
 */
static void leave_port(struct front *front)
{
    const struct metrics *metrics = front->connections.metrics;
    unsigned long long wait_ms;
    uint64_t before;
    int tries = LEAVE_RUNS_MAX;
    do {
        before = metrics->connections;
        (void)run_library(front, RUNS_MAX, INT64_MAX, &wait_ms);
    } while (metrics->connections != before && --tries > 0);
    front->is_due = true; /* as these runs leave no timer */
    loop_watch_free(front->door);
    front->door = NULL;
    int fd = MHD_quiesce_daemon(front->daemon);
    if (fd >= 0)
        (void)close(fd); /* nothing was written to it */
}

void front_begin_drain(struct front *front)
{
    front->service.is_draining = true;
    engine_stop_waiting(front->service.engine);
    if (front->service.config->reuse_port && front->door != NULL)
        leave_port(front);
}

void front_end_drain(struct front *front)
{
    front->service.is_drained = true;
}

void front_reload(struct front *front)
{
    service_reload(&front->service);
    exchanges_review(&front->connections);
}

int front_in_flight(const struct front *front)
{
    return front->connections.in_flight;
}

void front_free(struct front *front)
{
    unsigned long long wait_ms;
    if (front == NULL)
        return;
    loop_watch_free(front->watch);
    loop_watch_free(front->door);
    loop_timer_free(front->timer);
    if (front->daemon != NULL) {
        /* the library panics if it is stopped with suspended connections; so
         * each gets an answer first */
        front->service.is_stopping = true;
        connections_wake(&front->connections);
        (void)run_library(front, STOP_RUNS_MAX, INT64_MAX, &wait_ms);
        MHD_stop_daemon(front->daemon);
    }
    connections_fini(&front->connections);
    service_close(&front->service);
    free(front);
}
