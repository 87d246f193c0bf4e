/* SPDX-License-Identifier: MIT */
/*
 * A proxy reads the whole answer and then ends its connection to us as it
 * likes, often with a reset. What its client was told to hold must stay held.
 */

#include "../lib/folder/folder.h"
#include "http.h"
#include <signal.h>
#include <stdio.h>

enum { N = 3, LOCKS = 20, TTL_MS = 60000, RESETS_MS = 500 };

enum proxy_kind { PROXY_HAPROXY, PROXY_NGINX_HTTP, PROXY_NGINX_STREAM };

/* One way in which a proxy may be set up. */
struct proxy_mode {
    const char *name;
    enum proxy_kind kind;
    /* HAProxy: of "defaults" · nginx: of the upstream, of the location */
    const char *options;
    const char *location;
};

enum { START_MS = 20000, STOP_MS = 20000, TEXT_SIZE = 4096 };

/* ---- configurations ----------------------------------------------------- */

static void haproxy_text(const struct proxy_mode *mode, int from, int to,
                         char out[TEXT_SIZE])
{
    snprintf(out, TEXT_SIZE,
             "global\n"
             "    maxconn 200\n"
             "defaults\n"
             "    timeout connect 5s\n"
             "    timeout client 60s\n"
             "    timeout server 60s\n"
             "    %s\n"
             "listen redlockd\n"
             "    bind 127.0.0.1:%d\n"
             "    server one 127.0.0.1:%d\n",
             mode->options, from, to);
}

/* Whoever runs the tests may not write where Debian's nginx does. */
#define NGINX_PATHS                                                            \
    "access_log off;\n"                                                        \
    "client_body_temp_path body;\n"                                            \
    "proxy_temp_path proxy;\n"                                                 \
    "fastcgi_temp_path fastcgi;\n"                                             \
    "uwsgi_temp_path uwsgi;\n"                                                 \
    "scgi_temp_path scgi;\n"

#define NGINX_HEAD                                                             \
    "daemon off;\n"                                                            \
    "master_process off;\n"                                                    \
    "pid pid;\n"                                                               \
    "error_log stderr;\n"

static void nginx_http_text(const struct proxy_mode *mode, int from, int to,
                            char out[TEXT_SIZE])
{
    snprintf(out, TEXT_SIZE,
             NGINX_HEAD "events {}\n"
                        "http {\n" NGINX_PATHS
                        "upstream redlockd { server 127.0.0.1:%d; %s }\n"
                        "server {\n"
                        "    listen 127.0.0.1:%d;\n"
                        "    location / {\n"
                        "        proxy_pass http://redlockd;\n"
                        "        %s\n"
                        "    }\n"
                        "}\n"
                        "}\n",
             to, mode->options, from, mode->location);
}

static void nginx_stream_text(int from, int to, char out[TEXT_SIZE])
{
    snprintf(
        out, TEXT_SIZE,
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n" NGINX_HEAD
        "events {}\n"
        "stream {\n"
        "server {\n"
        "    listen 127.0.0.1:%d;\n"
        "    proxy_pass 127.0.0.1:%d;\n"
        "}\n"
        "}\n",
        from, to);
}

static void write_text(const struct proxy_mode *mode, int from, int to,
                       const char *path)
{
    char text[TEXT_SIZE];

    if (mode->kind == PROXY_HAPROXY)
        haproxy_text(mode, from, to, text);
    else if (mode->kind == PROXY_NGINX_HTTP)
        nginx_http_text(mode, from, to, text);
    else
        nginx_stream_text(from, to, text);
    folder_write(path, text);
}

/* ---- processes ---------------------------------------------------------- */

static pid_t spawn(enum proxy_kind kind, char *dir, char *config,
                   const char *log)
{
    char *haproxy[] = {"/usr/sbin/haproxy", "-db", "-f", config, NULL};
    char *nginx[] = {"/usr/sbin/nginx", "-p", dir,    "-e",
                     "stderr",          "-c", config, NULL};

    return harness_spawn(kind == PROXY_HAPROXY ? haproxy : nginx, NULL, log);
}

static pid_t proxy_start(const struct proxy_mode *mode,
                         const struct server *server, struct server *entry)
{
    char dir[PATH_SIZE], config[PATH_SIZE];

    *entry = (struct server){.port = harness_free_port()};
    harness_make_dir(dir);
    snprintf(config, sizeof config, "%.200s/config", dir);
    snprintf(entry->log, sizeof entry->log, "%.200s/log", dir);
    write_text(mode, entry->port, server->port, config);
    pid_t pid = spawn(mode->kind, dir, config, entry->log);
    int64_t deadline_ms = harness_now_ms() + START_MS;
    while (http_probe(entry, "/livez") != 200) {
        ck_assert_msg(harness_now_ms() < deadline_ms,
                      "the proxy %s does not serve:\n%s", mode->name,
                      harness_read_file(entry->log));
        pause_ms(5);
    }
    return pid;
}

static void proxy_stop(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_ge(harness_reap(pid, STOP_MS), 0);
}

static const struct proxy_mode modes[] = {
    {"keep-alive", PROXY_HAPROXY, "mode http\n option http-keep-alive", NULL},
    {"server-close", PROXY_HAPROXY, "mode http\n option http-server-close",
     NULL},
    {"close", PROXY_HAPROXY, "mode http\n option httpclose", NULL},
    {"no reuse", PROXY_HAPROXY, "mode http\n http-reuse never", NULL},
    {"any reuse", PROXY_HAPROXY, "mode http\n http-reuse always", NULL},
    {"tcp", PROXY_HAPROXY, "mode tcp", NULL},
    {"tcp, no linger", PROXY_HAPROXY, "mode tcp\n option nolinger", NULL},
    {"nginx", PROXY_NGINX_HTTP, "", ""},
    {"nginx, keepalive", PROXY_NGINX_HTTP, "keepalive 8;",
     "proxy_http_version 1.1; proxy_set_header Connection \"\";"},
    {"nginx, stream", PROXY_NGINX_STREAM, NULL, NULL},
};

WORLD(world_start, N, "");

/*
 * Half of the clients end behind their answer, as curl does on a command
 * line; the others go on with the connection they have.
 */
static void acquire_all(const struct server *proxy, int mode,
                        struct lock locks[LOCKS])
{
    for (int i = 0; i < LOCKS; i++) {
        const char *resource = textf("proxied-%d-%d", mode, i);
        lock_take(proxy, resource, TTL_MS, &locks[i]);
        if (i % 2 == 0)
            http_disconnect();
    }
    http_disconnect();
}

SUITE(proxies, .timeout_s = 120, WORLD_ONCE);

TEST_EACH(story_36_a_proxy_that_resets_does_not_lose_the_lock, modes)
{
    const struct proxy_mode *mode = &modes[_i];
    struct lock locks[LOCKS];
    struct server proxy;

    double lost = http_metric(here, "redlockd_undelivered_grants_total");
    pid_t pid = proxy_start(mode, here, &proxy);
    acquire_all(&proxy, _i, locks);
    pause_ms(RESETS_MS); /* for whatever comes behind the answers */
    for (int i = 0; i < LOCKS; i++) {
        const struct answer *a =
            lock_acquire(here, locks[i].resource, TTL_MS, NULL);
        ck_assert_msg(a->status == 409, "%s: %d is not held: %s", mode->name, i,
                      a->body);
        expect_ok(lock_extend(&proxy, &locks[i], TTL_MS));
        lock_drop(&proxy, &locks[i]);
    }
    ck_assert_double_eq(http_metric(here, "redlockd_undelivered_grants_total"),
                        lost);
    proxy_stop(pid);
}
