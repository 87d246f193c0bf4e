/*
 * The listening socket, and libmicrohttpd as the server runs it: one epoll
 * descriptor in our loop, its log in ours, targets as they were sent.
 * <microhttpd.h> tells what the callbacks take and return.
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
 * Binds and listens; the descriptor does not block. -1: error holds one line
 * for people. reuse_port: several processes may listen there at once.
 */
int library_listen(const char *host, int port, bool reuse_port, char *error,
                   size_t error_size);

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

#endif
