/* SPDX-License-Identifier: MIT */
#include "notify.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>

#include "base/clock.h"

/* ---- the log ------------------------------------------------------------- */

enum { CONNECTIONS_FEW = 1000 }; /* fewer than this may be a mistake */

/* field: what it is about. */
static void warn(const char *event, struct log_field field, const char *detail)
{
    log_write(LOG_WARN, event,
              (struct log_field[]){field, LOG_S("detail", detail), LOG_END});
}

/* A file that holds a secret, and that others may read or write. */
static void warn_if_open(const char *event, const char *path)
{
    struct stat info;
    if (*path != '\0' && stat(path, &info) == 0 &&
        (info.st_mode & (S_IROTH | S_IWOTH)) != 0)
        warn(event, LOG_S("file", path),
             "every user of this machine may read or write this secret; chmod "
             "640 it");
}

static void warn_of_passwords(const struct config *config)
{
    int have = 0, in_the_clear = 0;
    for (int i = 0; i < config->nodes_count; i++) {
        const struct address_node *node = &config->nodes[i];
        if (*node->password == '\0')
            continue;
        have++;
        in_the_clear +=
            !node->is_tls && !node->is_unix && !address_is_loopback(node->host);
    }
    if (in_the_clear > 0)
        warn("nodes_in_the_clear", LOG_N("nodes", in_the_clear),
             "others on the network can read their passwords, and forge locks "
             "with them; write rediss://");
    if (have > 0)
        warn_if_open("nodes_file_is_open", config->nodes_file);
    warn_if_open("node_key_is_open", config->node_key);
}

static void notify_warn(const struct config *config, int64_t connections)
{
    bool is_local = address_is_loopback(config->listen_host);
    if (connections < CONNECTIONS_FEW)
        warn(
            "few_connections", LOG_N("connections", connections),
            "to serve more clients, raise the limit of open files (ulimit -n)");
    if (*config->tls_cert == '\0' && !is_local)
        log_detail(LOG_WARN, "clients_in_the_clear",
                   "others on the network can read tokens and use them; set "
                   "--tls-cert and --tls-key, or listen on 127.0.0.1");
    if (*config->auth_file == '\0' && !is_local)
        log_detail(LOG_WARN, "open_to_all",
                   "whoever can connect may acquire, and force the release of, "
                   "every lock; set --auth-file, or listen on 127.0.0.1");
    warn_of_passwords(config);
    if (config->nodes_count % 2 == 0)
        warn("even_number_of_nodes", LOG_N("nodes", config->nodes_count),
             "an even number of nodes tolerates no more failures than with one "
             "node fewer; add or remove a node");
    if (!config->restart_guard)
        log_detail(
            LOG_WARN, "restart_guard_off",
            "nodes that lost their data vote at once, so a lock may have "
            "two holders; set --restart-guard on");
}

void notify_start(const struct config *config, int64_t connections)
{
    log_write(
        LOG_INFO, "start",
        (struct log_field[]){LOG_S("version", REDLOCKD_VERSION),
                             LOG_S("host", config->listen_host),
                             LOG_N("port", config->listen_port),
                             LOG_N("nodes", config->nodes_count),
                             LOG_N("quorum", quorum_of(config->nodes_count)),
                             LOG_N("connections", connections), LOG_END});
    notify_warn(config, connections);
}

/* ---- the service manager ------------------------------------------------- */

/* A service manager that hears nothing may kill the process. */
static void check_sent(int rc)
{
    if (rc < 0)
        log_detail(LOG_WARN, "notify_failed", strerror(-rc));
}

void notify_ready(const struct config *config)
{
    char address[ADDRESS_TEXT_MAX];
    address_format(address, sizeof address, config->listen_host,
                   config->listen_port);
    check_sent(sd_notifyf(0, "READY=1\nSTATUS=serving on %s with %d nodes",
                          address, config->nodes_count));
}

void notify_reloading(void)
{
    check_sent(sd_notifyf(0,
                          "RELOADING=1\nMONOTONIC_USEC=%" PRId64
                          "\nSTATUS=reloading its files",
                          clock_monotonic_us()));
}

void notify_draining(int64_t drain_ms, int64_t most_us)
{
    log_write(LOG_INFO, "draining",
              (struct log_field[]){LOG_N("drain_ms", drain_ms), LOG_END});
    check_sent(sd_notifyf(0,
                          "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64
                          "\nSTATUS=draining for %" PRId64 " ms",
                          most_us, drain_ms));
}
