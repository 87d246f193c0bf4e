#include "front.h"

#include <assert.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../server/base/clock.h"
#include "accesslog.h"
#include "connection.h"
#include "handler.h"
#include "head.h"
#include "json.h"
#include "library.h"
#include "listener.h"
#include "problem.h"

enum {
    KNOCK_US = 100000,    /* until it is heard again that somebody wants in */
    RUNS_MAX = 16,        /* of the library a turn, so that nodes are heard */
    STOP_RUNS_MAX = 1000, /* to get the last answers out */
};

struct front {
    struct MHD_Daemon *daemon;
    struct loop *loop;
    struct loop_watch *watch; /* of the library's epoll descriptor */
    struct loop_watch *door;  /* of the listener, while it is full */
    uint64_t connections_max;
    struct loop_timer *timer; /* when the library wants to run again */
    bool is_due;              /* it has something to do */
    bool has_closed;          /* in this run of it */
    bool is_stopping;
    struct service service;
    struct connections connections;
    struct accesslog accesslog;
    struct requestid_source ids;
};

/* ---- answers ------------------------------------------------------------ */

static bool add_header(struct MHD_Response *answer, const char *name,
                       const char *value)
{
    return value == NULL ||
           MHD_add_response_header(answer, name, value) == MHD_YES;
}

static bool add_headers(struct MHD_Response *answer,
                        const struct http_request *request,
                        const struct http_response *response)
{
    char seconds[24];
    const char *retry_after = NULL;
    if (response->retry_after_ms > 0) {
        (void)snprintf(seconds, sizeof seconds, "%lld",
                       (long long)((response->retry_after_ms + 999) / 1000));
        retry_after = seconds;
    }
    const char *location =
        response->location[0] != '\0' ? response->location : NULL;
    return add_header(answer, "X-Request-Id", request->id) &&
           add_header(answer, "Cache-Control", "no-store") &&
           add_header(answer, "Content-Type", response->content_type) &&
           add_header(answer, "Location", location) &&
           add_header(answer, "Allow", response->allow) &&
           add_header(answer, "Retry-After", retry_after) &&
           add_header(answer, "Connection", response->close ? "close" : NULL);
}

/* Takes response->body. MHD_NO: no memory; the connection ends. */
static enum MHD_Result send_answer(struct front *front, struct connection *it,
                                   struct http_response *response)
{
    if (response->content_type != NULL && response->body == NULL)
        return MHD_NO;
    struct MHD_Response *answer = MHD_create_response_from_buffer(
        response->body_len, response->body, MHD_RESPMEM_MUST_FREE);
    if (answer == NULL) {
        free(response->body);
        return MHD_NO;
    }
    /* who keeps a connection sends the next request to a server that stays */
    response->close = response->close || front->service.is_draining;
    enum MHD_Result rc = MHD_NO;
    if (add_headers(answer, &it->request, response))
        rc = MHD_queue_response(it->http, (unsigned)response->status, answer);
    MHD_destroy_response(answer);
    if (rc == MHD_YES) {
        int64_t now_us = clock_now_us();
        accesslog_note(&front->accesslog, &it->request, response, now_us);
        connection_answer(it, now_us);
    }
    return rc;
}

static enum MHD_Result answer_settled(struct front *front,
                                      struct connection *it)
{
    struct http_response response;
    if (it->request.call == LOCK_ACQUIRE && it->has_left)
        return MHD_NO; /* connection_end releases what was granted */
    http_response_init(&response);
    handler_answer(&front->service, &it->request, clock_now_us(), &response);
    return send_answer(front, it, &response);
}

/* ---- requests ----------------------------------------------------------- */

/* The body is there as well: answers, or suspends until the outcome. */
static enum MHD_Result handle(struct front *front, struct connection *it)
{
    struct http_response response;
    http_response_init(&response);
    connection_hold(it, clock_now_us());
    if (front->is_stopping) {
        handler_refuse(&it->request, &response);
        return send_answer(front, it, &response);
    }
    if (handler_begin(&front->service, &it->request, it, &response))
        return send_answer(front, it, &response);
    if (it->state == CONNECTION_SETTLED)
        return answer_settled(front, it);
    MHD_suspend_connection(it->http);
    connection_wait(it);
    return MHD_YES;
}

/* A last answer for what waits while the process ends. */
static enum MHD_Result give_up(struct front *front, struct connection *it)
{
    struct http_response response;
    http_response_init(&response);
    handler_give_up(&front->service, &it->request, &response);
    return send_answer(front, it, &response);
}

/* A head, field by field; line_end: of the line before. */
struct lines {
    struct head *head;
    const char *line_end;
};

/*
 * The library ends a line at a CR or LF alone, too, and makes a NUL of it: the
 * next line then begins right behind it. What is a field to us would be a part
 * of the value to a proxy that passed it on.
 */
static enum MHD_Result note_value(void *cls, enum MHD_ValueKind kind,
                                  const char *name, size_t name_len,
                                  const char *value, size_t value_len)
{
    struct lines *lines = cls;
    struct span name_span = {name, name_len};
    if (kind != MHD_HEADER_KIND) {
        head_add_argument(lines->head, name_span);
        return MHD_YES;
    }
    if (name == lines->line_end + 1)
        lines->head->has_bare_cr = true;
    if (value == NULL)
        value = "";
    else
        lines->line_end = value + value_len;
    head_add(lines->head, name_span, (struct span){value, value_len});
    return MHD_YES;
}

static void fill_request(struct front *front, struct http_request *request,
                         const struct head *head)
{
    struct span id = head->values[HEAD_REQUEST_ID];
    request->content_type = head->values[HEAD_CONTENT_TYPE];
    request->lock_token = head->values[HEAD_LOCK_TOKEN];
    request->idempotency_key = head->values[HEAD_IDEMPOTENCY_KEY];
    request->wants_verbose = head->wants_verbose;
    if (requestid_is_valid(id))
        request->id[span_copy(request->id, id)] = '\0';
    else
        requestid_make(&front->ids, request->id);
}

/*
 * The head was read, nothing of the body. What can be refused already ends the
 * connection: the body that follows cannot be told from a next request, or is
 * not worth reading.
 */
static enum MHD_Result begin(struct front *front, struct connection *it,
                             const char *method, const char *target,
                             const char *version)
{
    struct http_request *request = &it->request;
    struct http_response response;
    struct head head;
    connection_begin(it, clock_now_us());
    request->method = method;
    request->target = target;
    const union MHD_ConnectionInfo *size = MHD_get_connection_info(
        it->http, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    head_init(&head, size != NULL ? size->header_size : 0);
    struct lines lines = {&head, version + strlen(version)};
    (void)MHD_get_connection_values_n(
        it->http,
        /* NOLINTNEXTLINE(clang-analyzer-optin.core.*): the kinds are flags */
        MHD_HEADER_KIND | MHD_GET_ARGUMENT_KIND, note_value, &lines);
    fill_request(front, request, &head);
    const struct head_refusal refusal =
        head_check(&head, strcmp(version, "HTTP/1.0") == 0);
    if (refusal.reason == NULL &&
        head_content_length(&head) <= HTTP_DISCARD_MAX)
        return MHD_YES;
    http_response_init(&response);
    response.close = true;
    if (refusal.reason != NULL)
        problem_respond_plain(refusal.code, refusal.reason, request->id,
                              &response);
    else
        handler_refuse_body(request, &response);
    return send_answer(front, it, &response);
}

static struct connection *connection_of(struct MHD_Connection *http)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* Called at the head, for each piece of the body, at the end, when resumed. */
/* NOLINTNEXTLINE(readability-function-size): the library's parameters */
static enum MHD_Result on_request(void *cls, struct MHD_Connection *http,
                                  const char *target, const char *method,
                                  const char *version, const char *piece,
                                  size_t *piece_len, void **request)
{
    struct front *front = cls;
    if (*request == NULL) {
        struct connection *it = connection_of(http);
        *request = it;
        return it == NULL ? MHD_NO : begin(front, it, method, target, version);
    }
    struct connection *it = *request;
    if (*piece_len > 0) {
        bool is_taken =
            connection_add_body(it, (struct span){piece, *piece_len});
        *piece_len = 0;
        return is_taken ? MHD_YES : MHD_NO;
    }
    switch (it->state) {
    case CONNECTION_READING:
        return handle(front, it);
    case CONNECTION_SETTLED:
        return answer_settled(front, it);
    case CONNECTION_WAITING:
        return give_up(front, it); /* only front_free wakes without outcome */
    default:
        return MHD_NO; /* the client left */
    }
}

static void on_completed(void *cls, struct MHD_Connection *http, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct connection *it = *request;
    (void)cls;
    (void)http;
    if (it != NULL)
        connection_end(it, code == MHD_REQUEST_TERMINATED_COMPLETED_OK);
    *request = NULL;
}

static void on_connection(void *cls, struct MHD_Connection *http,
                          void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct front *front = cls;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context != NULL)
            connection_free(*context);
        *context = NULL;
        front->has_closed = true;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD);
    /* without memory: NULL, and its first request ends it */
    *context = info == NULL ? NULL
                            : connection_new(&front->connections,
                                             info->connect_fd, http);
}

/* ---- the library in our loop -------------------------------------------- */

static void wake(void *ctx, struct connection *it)
{
    struct front *front = ctx;
    MHD_resume_connection(it->http);
    front->is_due = true;
}

void front_on_answer(void *client)
{
    connection_settle(client);
}

static void on_readable(void *arg, int events)
{
    struct front *front = arg;
    (void)events;
    front->is_due = true;
}

static void on_timer(void *arg)
{
    struct front *front = arg;
    front->is_due = true;
}

/*
 * The library accepts nobody while it is full: somebody knocks. Where nobody
 * can give way, the knocking is heard again a moment later.
 */
static void on_knock(void *arg, int events)
{
    struct front *front = arg;
    (void)events;
    (void)loop_watch_set(front->door, 0);
    int64_t now_us = clock_now_us();
    if (deadlines_make_room(&front->connections.deadlines, now_us))
        front->is_due = true;
    else
        loop_timer_set(front->timer, now_us + KNOCK_US);
}

/*
 * Runs the library until it has nothing to do at once; ms: when again. Full, it
 * takes its listener out of epoll, and puts it back at the beginning of a run:
 * one that closed connections is followed by another.
 */
static bool run_library(struct front *front, int runs_max,
                        unsigned long long *wait_ms)
{
    bool has_wait;
    do {
        front->has_closed = false;
        MHD_run(front->daemon); /* fails only with a thread of its own */
        *wait_ms = 0;
        has_wait = MHD_get_timeout(front->daemon, wait_ms) == MHD_YES;
        if (front->has_closed) {
            *wait_ms = 0;
            has_wait = true;
        }
    } while (has_wait && *wait_ms == 0 && --runs_max > 0);
    return has_wait;
}

void front_serve(struct front *front)
{
    unsigned long long wait_ms;
    if (!front->is_due)
        return;
    front->is_due = false;
    /* Left-over work waits for one look at the nodes, not for an event. */
    if (run_library(front, RUNS_MAX, &wait_ms))
        loop_timer_set(front->timer, clock_now_us() + (int64_t)wait_ms * 1000);
    if (front->connections.metrics->connections >= front->connections_max)
        (void)loop_watch_set(front->door, LOOP_READABLE);
}

/* ---- start and stop ----------------------------------------------------- */

static bool watch_library(struct front *front, int fd)
{
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(front->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL)
        return false;
    front->watch =
        loop_watch_new(front->loop, info->epoll_fd, on_readable, front);
    front->door = loop_watch_new(front->loop, fd, on_knock, front);
    front->timer = loop_timer_new(front->loop, on_timer, front);
    return front->watch != NULL && front->door != NULL &&
           front->timer != NULL && loop_watch_set(front->watch, LOOP_READABLE);
}

static void init(struct front *front, const struct front_setup *setup)
{
    json_init();
    front->loop = setup->loop;
    front->service = (struct service){
        .engine = setup->engine,
        .config = setup->config,
        .metrics = setup->metrics,
    };
    for (int i = 0; i < setup->config->nodes_count; i++)
        front->service.node_names[i] = setup->config->nodes[i].name;
    front->ids.seed = (uint64_t)clock_wall_us() ^ (uint64_t)getpid() << 40;
    front->is_due = true;
    accesslog_init(&front->accesslog, setup->metrics);
}

static bool start(struct front *front, const struct front_setup *setup,
                  char error[FRONT_ERROR_MAX])
{
    const struct config *config = setup->config;
    front->connections_max = (uint64_t)setup->connections_max;
    (void)snprintf(error, FRONT_ERROR_MAX, "no memory for the HTTP server");
    if (!connections_init(&front->connections, setup->loop, setup->engine,
                          setup->metrics))
        return false;
    front->connections.wake = wake;
    front->connections.ctx = front;
    int fd = listener_open(config->listen_host, config->listen_port,
                           config->reuse_port, error, FRONT_ERROR_MAX);
    if (fd < 0)
        return false;
    const struct library_handlers handlers = {on_request, on_completed,
                                              on_connection, front};
    front->daemon =
        library_start(&handlers, fd, (unsigned)front->connections_max);
    if (front->daemon == NULL) {
        (void)snprintf(error, FRONT_ERROR_MAX, "the HTTP server cannot start");
        return false; /* the process ends, and the socket with it */
    }
    return watch_library(front, fd);
}

struct front *front_new(const struct front_setup *setup,
                        char error[FRONT_ERROR_MAX])
{
    struct front *front = calloc(1, sizeof *front);
    if (front == NULL) {
        (void)snprintf(error, FRONT_ERROR_MAX, "no memory");
        return NULL;
    }
    init(front, setup);
    if (!start(front, setup, error)) {
        front_free(front);
        return NULL;
    }
    return front;
}

void front_begin_drain(struct front *front)
{
    front->service.is_draining = true;
}

void front_end_drain(struct front *front)
{
    front->service.is_drained = true;
}

int front_in_flight(const struct front *front)
{
    return front->connections.in_flight;
}

/*
 * The library panics if it is stopped with suspended connections: each gets an
 * answer first.
 */
static void answer_all(struct front *front)
{
    unsigned long long wait_ms;
    front->is_stopping = true;
    connections_wake(&front->connections);
    (void)run_library(front, STOP_RUNS_MAX, &wait_ms);
}

void front_free(struct front *front)
{
    if (front == NULL)
        return;
    loop_watch_free(front->watch);
    loop_watch_free(front->door);
    loop_timer_free(front->timer);
    if (front->daemon != NULL) {
        answer_all(front);
        MHD_stop_daemon(front->daemon);
    }
    connections_fini(&front->connections);
    free(front);
}
