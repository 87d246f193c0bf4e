/*
 * libmicrohttpd as the server runs it: one epoll descriptor in our loop, its
 * log in ours, targets as they were sent. What the callbacks get and answer
 * stands in <microhttpd.h>.
 */
#ifndef REDLOCKD_LIBRARY_H
#define REDLOCKD_LIBRARY_H

#include <microhttpd.h>

/*
 * A connection's memory, cleared for each request: for the largest head that is
 * taken (HEAD_COST_MAX), and for the answer's.
 */
enum { LIBRARY_POOL_SIZE = 8 * 1024 };

struct library_handlers {
    MHD_AccessHandlerCallback request;
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection;
    void *ctx;
};

/*
 * Serves the listening socket fd, which it closes at its end. NULL: it cannot
 * start. MHD_ALLOW_SUSPEND_RESUME brings its wake-up descriptor along;
 * MHD_USE_TURBO reads and writes at once, without asking epoll before.
 */
struct MHD_Daemon *library_start(const struct library_handlers *handlers,
                                 int fd, unsigned connections_max);

#endif
