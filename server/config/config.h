/* SPDX-License-Identifier: MIT */
/*
 * The configuration: all options, from the environment and the command line.
 * One table feeds parsing, --help and --print-config.
 */
#ifndef REDLOCKD_CONFIG_H
#define REDLOCKD_CONFIG_H

#include <stdio.h>

#include "../base/address.h"
#include "../base/log.h"
#include "../base/types.h"
#include "../lock/lock.h"

enum {
    CONFIG_PREFIX_MAX = 64,
    CONFIG_PATH_MAX = 1023,
    CONFIG_LIST_MAX = 1023,
    CONFIG_ERROR_MAX = 512,
};

/* The task of the process. */
enum config_action {
    CONFIG_SERVE,
    CONFIG_CHECK,
    CONFIG_PRINT,
    CONFIG_PLAN,
    CONFIG_HELP,
    CONFIG_VERSION,
};

struct config {
    enum config_action action;
    char listen_host[ADDRESS_HOST_MAX + 1];
    int listen_port;
    bool reuse_port;
    char tls_cert[CONFIG_PATH_MAX + 1]; /* "": plain HTTP */
    char tls_key[CONFIG_PATH_MAX + 1];
    char tls_client_ca[CONFIG_PATH_MAX + 1];  /* "": any client */
    char tls_client_crl[CONFIG_PATH_MAX + 1]; /* "": nobody is revoked */
    struct address_node nodes[NODES_MAX];
    int nodes_count;
    char nodes_file[CONFIG_PATH_MAX + 1]; /* from which they came; "": none */
    char node_ca[CONFIG_PATH_MAX + 1];    /* "": whom the system trusts */
    char node_cert[CONFIG_PATH_MAX + 1];  /* "": none */
    char node_key[CONFIG_PATH_MAX + 1];
    int64_t node_timeout_ms;
    int64_t default_ttl_ms;
    int64_t max_ttl_ms;
    int64_t max_hold_ms; /* 0: without limit */
    int64_t max_readers;
    double drift_factor;
    int64_t retry_count;
    int64_t retry_delay_ms;
    char key_prefix[CONFIG_PREFIX_MAX + 1];
    int first_start; /* enum first_start */
    int ask;         /* enum ask_mode */
    int64_t config_epoch;
    int64_t take_over; /* 0, or the same */
    bool restart_guard;
    int64_t drain_ms;
    char auth_file[CONFIG_PATH_MAX + 1]; /* "": none */
    bool allow_anonymous;
    char allowed_hosts[CONFIG_LIST_MAX + 1];   /* as in address.h */
    char trusted_proxies[CONFIG_LIST_MAX + 1]; /* as in address.h */
    int log_level;                             /* enum log_level */
    int log_format;                            /* enum log_format */
    char audit_log[CONFIG_PATH_MAX + 1];       /* "-": stdout; "": none */
    bool audit_required;
    bool audit_reads;
};

/* Whether a node of the configuration speaks TLS. */
static inline bool config_has_tls_nodes(const struct config *config)
{
    for (int i = 0; i < config->nodes_count; i++)
        if (config->nodes[i].is_tls)
            return true;
    return false;
}

/*
 * Fills config from defaults, then the environment (REDLOCKD_…), then argv.
 * False: error holds one line that names the option, the value and the fix, but
 * no secret. --help and --version are found before anything else is read; nodes
 * are required only to serve and to check.
 */
bool config_load(struct config *config, int argc, char **argv, char **envp,
                 char error[CONFIG_ERROR_MAX]);

/* The help text, and every value as --flag=value without secrets. */
void config_print_help(FILE *out);
void config_print(const struct config *config, FILE *out);

#endif
