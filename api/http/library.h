/*
 * libmicrohttpd as the server runs it: one epoll descriptor in our loop, its
 * log in ours, targets as they were sent. <microhttpd.h> tells what the
 * callbacks take and return.
 */
#ifndef REDLOCKD_LIBRARY_H
#define REDLOCKD_LIBRARY_H

#include <microhttpd.h>
#include <stdbool.h>

/*
 * A connection's memory, reused for each request. It must hold the largest head
 * that we take (HEAD_COST_MAX) and the head of the answer, and in one of the
 * two the id of many resources (HEAD_PATH_MAX). The library clears all of it
 * for each request.
 */
enum { LIBRARY_POOL_SIZE = 12 * 1024 };

struct library_handlers {
    MHD_AccessHandlerCallback request;
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection;
    void *ctx;
};

/*
 * Serves the listening socket fd; MHD_stop_daemon closes it. NULL: it cannot
 * start. MHD_ALLOW_SUSPEND_RESUME includes a descriptor that wakes the library;
 * MHD_USE_TURBO reads and writes at once, without asking epoll first; with it
 * the library says no goodbye to a TLS session. has_tls: each connection gets a
 * session, which the connection's handler must prepare; see tls.h.
 */
struct MHD_Daemon *library_start(const struct library_handlers *handlers,
                                 int fd, unsigned connections_max,
                                 bool has_tls);

/* Its epoll descriptor; -1: it has none. */
int library_epoll(struct MHD_Daemon *daemon);

/* The session that the library made for a connection; NULL: it has none. */
struct gnutls_session_int *library_session(struct MHD_Connection *http);

/* A connection's socket; -1: it is not known. */
int library_socket(struct MHD_Connection *http);

/* What the handler of connections has made of it; NULL: nothing. */
void *library_context(struct MHD_Connection *http);

/* The bytes of a request's head; 0: they are not known. */
size_t library_head_size(struct MHD_Connection *http);

#endif
