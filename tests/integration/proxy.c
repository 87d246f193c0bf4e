/*
 * Writes a proxy's configuration and runs it in the foreground.
 */
#include "proxy.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "../lib/folder/folder.h"
#include "http.h"

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

pid_t proxy_start(const struct proxy_mode *mode, const struct server *server,
                  struct server *entry)
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

void proxy_stop(pid_t pid)
{
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_ge(harness_reap(pid, STOP_MS), 0);
}
