/*
 * Real reverse proxies between clients and a server: HAProxy and nginx, as
 * Debian packs them.
 */
#ifndef REDLOCKD_TEST_PROXY_H
#define REDLOCKD_TEST_PROXY_H

#include "harness.h"

enum proxy_kind { PROXY_HAPROXY, PROXY_NGINX_HTTP, PROXY_NGINX_STREAM };

/* One way in which a proxy may be set up. */
struct proxy_mode {
    const char *name;
    enum proxy_kind kind;
    /* HAProxy: of "defaults" · nginx: of the upstream, of the location */
    const char *options;
    const char *location;
};

/*
 * Starts a proxy in front of server and waits until it passes requests on.
 * entry: where clients reach it, as if it were a server.
 */
pid_t proxy_start(const struct proxy_mode *mode, const struct server *server,
                  struct server *entry);
void proxy_stop(pid_t pid);

#endif
